"""Build a wheel that holds its kernels compiled, for levels of processors, and try it.

What users run is run, with a cache for each level and not for this processor, and the wheel gets
the caches. Whoever installs it on such a processor, with the numba and the Python that it was built
with, waits for no compiler: the wheel is installed into an environment of its own and runs the same
there, once as if each level were all that the processor has, and nothing may be compiled.
"""

import argparse
import platform
import shutil
import sys
import tempfile
from pathlib import Path

from package_kernels import package_kernels, run

from weald.treecore.compiled.packaged import LEVELS, settings_of

ROOT = Path(__file__).resolve().parents[1]
UV = Path(sys.executable).with_name("uv")
PARTS = ("pyproject.toml", "README.md", "LICENSE", "weald")
USES = ROOT / "docker" / "what_users_run.py"

# In the environment where the wheel is tried: names of our functions that are compiled after all.
WATCH = """
import os
from numba.core import event

class Compilations(event.Listener):
    def on_start(self, compilation):
        function = compilation.data["dispatcher"]
        if type(function).__module__.startswith("weald."):
            with open(os.environ["COMPILED"], "a") as file:
                print(function.py_func.__module__, function.py_func.__qualname__, file=file)

    def on_end(self, compilation):
        pass

event.register("numba:compile", Compilations())
"""
PROBE = """
from weald.treecore.compiled.compile import compiled

compiled(lambda x: x + 1)(1)
"""


def build(families: list[str], levels: list[str], out: Path) -> Path:
    """Build the wheel from a copy of the sources, so that the checkout gets no kernels."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "source")
        copy.mkdir()
        ignored = shutil.ignore_patterns("__pycache__", "kernels")
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, copy / part, ignore=ignored)
            else:
                shutil.copy(ROOT / part, copy)
        kernels = copy / "weald" / "treecore" / "compiled" / "kernels"
        package_kernels(kernels, levels, [sys.executable, USES, *families])
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        tag = f"--plat-name={sys.platform}_{platform.machine()} --python-tag={python}"
        option = f"--config-setting=--build-option={tag}"
        run(UV, "build", "--quiet", "--wheel", "--out-dir", folder, option, copy)
        (built,) = Path(folder).glob("*.whl")
        out.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(built, out / built.name))


def try_it(wheel: Path, families: list[str], levels: list[str]) -> list[str]:
    """Run what users run with the wheel and an empty home; return what was compiled.

    The best level has to be found; others are those of processors that have no better one.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        python = place / "environment" / "bin" / "python"
        run(UV, "venv", "--quiet", "--python", sys.executable, place / "environment")
        wanted = f"weald[embedded,notebook,plots] @ {wheel.resolve().as_uri()}"
        constraints = ("--constraint", ROOT / "constraints.txt")
        run(UV, "pip", "install", "--quiet", "--python", python, *constraints, wanted)
        (packages,) = (place / "environment" / "lib").glob("python*/site-packages")
        (packages / "sitecustomize.py").write_text(WATCH)
        compiled = place / "compiled"
        empty = {"HOME": folder, "WEALD_KERNEL_CACHE": str(place / "kernels")}
        empty["COMPILED"] = str(compiled)
        (place / "probe.py").write_text(PROBE)
        run(python, "-P", place / "probe.py", **empty)
        if "<lambda>" not in compiled.read_text():
            sys.exit("nobody sees what is compiled")
        compiled.write_text("")
        for level in levels:
            best = level == LEVELS[0]
            run(python, "-P", USES, *families, **empty, **({} if best else settings_of(level)))
        return sorted(set(compiled.read_text().splitlines()))


def main() -> None:
    """Read the arguments, build, and try."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", action="append", default=[], help="only this one; repeatable")
    parser.add_argument("--level", action="append", default=[], choices=LEVELS, help="likewise")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    arguments = parser.parse_args()
    levels = arguments.level or list(LEVELS)
    wheel = build(arguments.family, levels, arguments.out)
    compiled = try_it(wheel, arguments.family, levels)
    if compiled:
        sys.exit("the wheel lacks what users run:\n" + "\n".join(compiled))
    sys.stderr.write(f"{wheel}\n")


if __name__ == "__main__":
    main()
