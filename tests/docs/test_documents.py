"""The documents: what they tell people to type works, and the site builds without a network."""

import itertools
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from weald import BayesianClusterer, OnlineBayesianClusterer
from weald.cli.config.settings import load
from weald.cli.main import app, main
from weald.mcmc.schedule.kernels import KERNELS, NETWORK_KERNELS
from weald.treecore.family import FAMILIES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    page for page in DOCS.rglob("*.md") if "reference" not in page.relative_to(DOCS).parts
)
each_page = pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.relative_to(ROOT).as_posix()
)


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [str(block) for block in found]


def with_blocks(*languages: str) -> pytest.MarkDecorator:
    pages = [page for page in PAGES if any(blocks(page, each) for each in languages)]
    return pytest.mark.parametrize("page", pages, ids=lambda page: page.stem)


def steps(page: Path) -> list[tuple[str, str]]:
    """What a reader does, in order: a program in Python, or commands; neighbours are one step."""
    found = re.findall(
        r"^```(python|console)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL
    )
    return [
        (language, "\n".join(text for _, text in group))
        for language, group in itertools.groupby(found, key=lambda each: str(each[0]))
    ]


@with_blocks("python", "console")
def test_what_the_documents_say_to_do_works(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEALD__MONITORING__PORT", "0")
    for language, text in steps(page):
        if language == "python":
            in_python(text, tmp_path / "page.py")
            continue
        lines = [line for line in text.splitlines() if line.startswith("$ weald ")]
        assert lines
        for line in lines:
            with pytest.raises(SystemExit) as left:
                main(shlex.split(line.removeprefix("$ weald ")))
            assert not left.value.code, line


def in_python(text: str, script: Path) -> None:
    """Run it as a script of its own, the way a reader would; warnings are theirs to see."""
    script.write_text(text)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=800, check=False
    )
    assert done.returncode == 0, done.stderr


@with_blocks("toml")
def test_settings_in_the_documents_are_settings(page: Path, tmp_path: Path) -> None:
    for block in blocks(page, "toml"):
        assert tomllib.loads(block)
        file = tmp_path / "weald.toml"
        file.write_text(block)
        load(file)


def mentioned(page: Path) -> Iterator[list[str]]:
    """What follows `weald` in inline code and in what is typed."""
    text = page.read_text()
    for found in re.findall(
        r"`weald ([^`\n]+)`|^\s*\$ (?:\w+=\S+ )*weald (.+)$", text, re.MULTILINE
    ):
        yield shlex.split("".join(found).split(" #")[0].split("|")[0], comments=False)


@each_page
def test_commands_that_are_mentioned_exist(page: Path) -> None:
    for words in mentioned(page):
        command: Any = get_command(app)
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        if words and words[0].isupper():
            continue
        # A group may be named alone; what follows it is one of its own.
        unknown = hasattr(command, "commands") and words and not words[0].startswith("-")
        assert not unknown, f"{page}: weald {words}"
        known = {name for parameter in command.params for name in parameter.opts}
        known |= {name for parameter in command.params for name in parameter.secondary_opts}
        options = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert options <= known | {"--help", "--version"}, f"{page}: weald {command.name} {words}"


def test_families_are_named_where_people_choose_one() -> None:
    """A command's help may not load them to make the list itself."""
    fit: Any = get_command(app).commands["fit"]  # type: ignore[attr-defined]  # it is a group
    (option,) = (each for each in fit.params if "--family" in each.opts)
    places = {
        "weald fit --help": option.help,
        "BayesianClusterer": BayesianClusterer.__doc__,
        "OnlineBayesianClusterer": OnlineBayesianClusterer.__doc__,
        "choosing.md": (DOCS / "choosing.md").read_text(),
    }
    faults = [
        f"{place}: {name}"
        for place, text in places.items()
        for name in FAMILIES
        if not re.search(rf"(?<![\w-]){name}(?![\w-])", text or "")
    ]
    assert not faults


def test_every_kernel_has_a_figure() -> None:
    shown = (DOCS / "how-it-works.md").read_text()
    names = [f"kernel-{name}" for name in KERNELS] + [f"network-{name}" for name in NETWORK_KERNELS]
    for name in names:
        assert f"(images/{name}.png)" in shown
        assert (DOCS / "images" / f"{name}.png").is_file()


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Every link leads somewhere; no page asks another server for anything to be read."""
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", str(DOCS), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for page in tmp_path.rglob("*.html"):
        fetched = re.findall(
            r'<(?:script|img|link)[^>]+(?:src|href)="(https?://[^"]+)"', page.read_text()
        )
        assert not fetched, page.name
