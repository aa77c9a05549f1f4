"""``python -m tests.protocol.spin``: search the models, and what each wrong form breaks.

Spin makes a program of a model, a C compiler builds it once, and the bounds and the form come to it
by its environment. With ``--short`` within the bounds of the suite. Exit code 1 when the right form
breaks a promise, or a wrong one breaks none.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tests.servers.server import MissingServerError

from .scenes import MODELS, Bounds, Scenes

__all__ = ["Model", "Verdict"]

# What all models include.
INCLUDED = Path(__file__).with_name("told.h")


@dataclass(frozen=True)
class Verdict:
    """What a search came to.

    Parameters
    ----------
    states : int
    seconds : float
    broken : str
        The promise that does not hold; "" when all do, in every state.
    steps : list of str
        How it comes to that.
    """

    states: int
    seconds: float
    broken: str = ""
    steps: list[str] = field(default_factory=list)


class Model:
    """The program that searches a model.

    Parameters
    ----------
    scenes : Scenes
        Of the model.
    folder : Path
        Where it is built.

    Raises
    ------
    MissingServerError
        Where there is no Spin, or no C compiler.
    """

    def __init__(self, scenes: Scenes, folder: Path) -> None:
        self._scenes, self._folder = scenes, folder
        spin, compiler = _program("spin"), _program("cc")
        for each in (scenes.path, INCLUDED):
            shutil.copy(each, folder)
        self._run(spin, "-a", scenes.file)
        # Nothing of one process can be left out for another's sake: all is everybody's.
        options = ("-O1", "-w", "-DSAFETY", "-DNOREDUCE", "-DVECTORSZ=2048", "-DMEMLIM=8000")
        self._run(compiler, *options, *scenes.options, "-o", "pan", "pan.c")

    @cached_property
    def version(self) -> str:
        """Of Spin."""
        return self._run(_program("spin"), "-V").split()[2]

    def search(self, bounds: Bounds, form: str | None = None) -> Verdict:
        """Look at every state within the bounds, until one breaks a promise."""
        wrong = self._scenes.numbers()[form] if form else 0
        told = {**self._scenes.least, **bounds, "WRONG": wrong}
        environment = {**os.environ, **{name: str(value) for name, value in told.items()}}
        said = self._run("./pan", "-m10000", "-w22", environment=environment)
        states = re.search(r"(\S+) states, stored", said)
        seconds = re.search(r"elapsed time (\S+) seconds", said)
        if states is None or seconds is None or "max search depth" in said:
            raise RuntimeError(f"the search did not end:\n{said[-2000:]}")
        found = (int(float(states[1])), float(seconds[1]))
        broken = re.search(r"assertion violated (\w+)", said)
        if broken is None:
            if "errors: 0" not in said or "Search not completed" in said:
                raise RuntimeError(f"the search did not end:\n{said[-2000:]}")
            return Verdict(*found)
        trail = self._run("./pan", "-r", environment=environment)
        steps = re.findall(r"^ *((?:writer|lease|person|the group|owner) .*)$", trail, re.MULTILINE)
        return Verdict(*found, broken[1], steps)

    def _run(self, *words: str, environment: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            words,
            cwd=self._folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=3600,
            check=False,
        )
        said = done.stdout + done.stderr
        if done.returncode != 0 and "pan:" not in said:
            raise RuntimeError(f"{' '.join(words)}:\n{said[-2000:]}")
        return said


def _program(name: str) -> str:
    program = shutil.which(name)
    if program is None:
        package = {"spin": "spin", "cc": "gcc"}[name]
        raise MissingServerError(f"{name} is not on the PATH (Debian package {package})")
    return program


def _searched(scenes: Scenes, *, short: bool) -> tuple[int, int]:
    """Search a model for all scenes and forms; returns how many of either are not as told."""
    states, wrong, n_found = 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="weald-spin-") as folder:
        model = Model(scenes, Path(folder))
        for scene, bounds in (scenes.short if short else scenes.long).items():
            verdict = model.search(bounds)
            states, wrong = states + verdict.states, wrong + bool(verdict.broken)
            print(f"{scene}: {verdict.states} states, {verdict.seconds} s {verdict.broken}")
            print("".join(f"    {step}\n" for step in verdict.steps), end="", flush=True)
        for form in scenes.forms:
            verdict = model.search(form.bounds, form.name)
            n_found += bool(verdict.broken)
            print(f"{form.name}: {verdict.broken or 'not found'} in {verdict.states} states")
    n_forms = len(scenes.forms)
    print(
        f"{scenes.file}: {states} states, {wrong} scenes wrong; {n_found} of {n_forms} wrong forms "
        "found"
    )
    return wrong, n_forms - n_found


def main() -> int:
    """Search all scenes and forms."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="within the bounds of the suite")
    parser.add_argument("--model", choices=[each.file for each in MODELS], help="by default all")
    arguments = parser.parse_args()
    asked = [each for each in MODELS if arguments.model in (None, each.file)]
    return int(any(any(_searched(each, short=arguments.short)) for each in asked))


if __name__ == "__main__":
    sys.exit(main())
