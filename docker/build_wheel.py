"""Build a wheel that holds its kernels compiled, for processors of the level x86-64-v3.

It runs what users run, with an empty cache for the level and not for this processor, and gives the
cache to the wheel. Whoever installs it on such a processor, with the numba and the Python that it
was built with, waits for no compiler.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from weald.treecore.compiled.packaged import MANIFEST, made_by, settings_of_the_level

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = Path(sys.executable).parent
PARTS = ("pyproject.toml", "README.md", "LICENSE", "weald")


def compile_kernels(kernels: Path, families: list[str], place: Path) -> None:
    """Run what users run, and keep what is compiled for the level."""
    environment = os.environ | settings_of_the_level() | {"WEALD_KERNEL_CACHE": str(kernels)}
    table = place / "table.csv"
    values = np.random.default_rng(0).normal(size=(90, 4)) + np.arange(90)[:, None] % 3 * 4
    np.savetxt(table, values, delimiter=",", header="a,b,c,d", comments="")

    def weald(*arguments: str) -> None:
        subprocess.run([SCRIPTS / "weald", *arguments], env=environment, cwd=place, check=True)  # noqa: S603

    weald("warmup", *(part for name in families for part in ("--family", name)))
    for name in families or ("auto", "gaussian", "diagonal"):
        weald("fit", str(table), "--family", name)
    (kernels / "lock").unlink(missing_ok=True)
    (kernels / MANIFEST).write_text(json.dumps(made_by(), indent=2))


def build(families: list[str], out: Path) -> None:
    """Build the wheel from a copy of the sources, so that the checkout gets no kernels."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        copy = place / "source"
        copy.mkdir()
        ignored = shutil.ignore_patterns("__pycache__", "kernels")
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, copy / part, ignore=ignored)
            else:
                shutil.copy(ROOT / part, copy)
        kernels = copy / "weald" / "treecore" / "compiled" / "kernels"
        compile_kernels(kernels, families, place)
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        tag = f"--plat-name={sys.platform}_{platform.machine()} --python-tag={python}"
        option = f"--config-setting=--build-option={tag}"
        command = [
            SCRIPTS / "uv",
            "build",
            "--quiet",
            "--wheel",
            "--out-dir",
            out.resolve(),
            option,
            copy,
        ]
        subprocess.run(command, check=True)  # noqa: S603


def main() -> None:
    """Read the arguments, and build."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", action="append", default=[], help="only this one; repeatable")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    arguments = parser.parse_args()
    build(arguments.family, arguments.out)


if __name__ == "__main__":
    main()
