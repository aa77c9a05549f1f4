"""Put what the program really prints into the documents, and the demo's picture beside them.

Run it from the root of the repository: ``.venv/bin/python docs/refresh.py``. It fills each block
that follows a line ``<!-- shown: COMMAND; COMMAND ... -->``, where ``demo`` is the demo's own
output, and ``{cluster}``, ``{key}`` and ``{moment}`` are a cluster that the demo found and a key
and a publication that it printed.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = (ROOT / "README.md", ROOT / "docs" / "quickstart.md")
PICTURE = ROOT / "docs" / "images" / "earthquakes.png"
BLOCK = re.compile(r"(<!-- shown: (?P<commands>[^>]+) -->\n```\n).*?(```\n)", re.DOTALL)
# A tight swarm inside a wide cluster: the one that shows most.
SUBJECT = "Aguanga"


def weald(folder: Path, *arguments: str) -> str:
    """What the program prints on standard output."""
    argv = [sys.executable, "-m", "weald.cli.main", *arguments]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=True)  # noqa: S603  # ours
    return done.stdout


def subject_of(demo: str) -> str:
    """Id of the cluster that the documents look at."""
    found = re.search(rf"^ +(\d+) +\d+ +{SUBJECT}", demo, re.MULTILINE)
    if found is None:
        raise SystemExit(f"the demo found no cluster at {SUBJECT}")
    return found.group(1)


def shown(folder: Path, commands: str, demo: str, names: dict[str, str]) -> str:
    """The commands as they are typed, each with what it prints."""
    if commands == "demo":
        return demo.strip("\n") + "\n"
    parts = []
    for command in commands.split(";"):
        text = command.strip().format(**names)
        parts.append(f"$ weald {text}\n{weald(folder, *text.split())}")
    return "\n".join(parts)


def main() -> None:
    """Run the demo afresh and fill every block."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        demo = weald(folder, "demo")
        key, moment = re.findall(r"assign (\S+) --as-of (\S+)", demo)[0]
        names = {"cluster": subject_of(demo), "key": key, "moment": moment}
        for document in DOCUMENTS:
            text = BLOCK.sub(
                lambda block: (
                    block.group(1)
                    + shown(folder, block.group("commands"), demo, names)
                    + block.group(3)
                ),
                document.read_text(encoding="utf-8"),
            )
            document.write_text(text, encoding="utf-8")
        PICTURE.parent.mkdir(exist_ok=True)
        shutil.copy(folder / "weald-demo" / "clusters.png", PICTURE)


if __name__ == "__main__":
    main()
