"""``python -m tests.simulation.mutants``: does anything notice when the code is wrong?

Each mutant of ``mutants.toml`` is one changed line. Seeds are played with it in a process of its
own, which takes over the code of the changed functions, until one finds a violation; where none
does, the tests nearest to the file are run in a copy of the tree. The tree itself is never touched.
With ``--write`` the score goes into ``docs/guarantees.md``.
"""

import os
import sys

from .virtual_time import install_clock, real_seconds, without_compiler

if __name__ == "__main__":
    without_compiler()
    install_clock()

import argparse
import importlib
import shutil
import subprocess
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from .scenario import Scenario, scenario_of

__all__ = ["BEGIN", "END", "Mutant", "mutants", "notices"]

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("mutants.toml")
DOCUMENT = ROOT / "docs" / "guarantees.md"
BEGIN, END = "<!-- mutants: begin -->", "<!-- mutants: end -->"
_ROOMS = ("answers", "cli", "mcmc", "monitoring", "storage", "stream", "treecore")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "vendor", ".*")
_LONGEST_SECONDS = 600.0

# Which runs can exercise what the mutants are of.
_RELEVANT: dict[str, Callable[[Scenario], bool]] = {
    "fence": lambda run: (
        run.n_writers > 1 and bool({"group", "freeze", "sql_answers"} & {*run.faults})
    ),
    "lease tokens": lambda run: run.n_workers > 0,
    "adoption": lambda run: run.n_workers > 0,
    "replay": lambda run: "crash" in run.faults,
    "retention": lambda run: bool(run.retention),
    "dead letters": lambda run: "operator" in run.faults,
    "another log": lambda run: "another_log" in run.faults,
}


@dataclass(frozen=True)
class Mutant:
    """One wrong line.

    Parameters
    ----------
    number : int
    path, group : str
    tests : tuple of str
        Nearest to the file.
    old, new : str
    remark : str
        Why nothing can notice, of one that is equivalent.
    """

    number: int
    path: str
    group: str
    tests: tuple[str, ...]
    old: str
    new: str
    remark: str = ""

    def applied(self, text: str) -> str:
        """The file's text with this line wrong.

        Raises
        ------
        ValueError
            When the line is not there, or not once: the list has to follow the code.
        """
        if text.count(self.old) != 1:
            raise ValueError(f"mutant {self.number}: {self.path} has {self.old!r} not once")
        return text.replace(self.old, self.new)


def mutants() -> list[Mutant]:
    """The list, in order."""
    found = [
        Mutant(row[0], file["path"], file["group"], tuple(file["tests"]), *row[1:])
        for file in tomllib.loads(LIST.read_text())["file"]
        for row in file["mutants"]
    ]
    return sorted(found, key=lambda mutant: mutant.number)


def relevant(group: str, n: int) -> Iterator[Scenario]:
    """The first runs that can exercise a group."""
    fits = _RELEVANT.get(group, lambda _: True)
    runs: Iterator[Scenario] = map(scenario_of, count())
    return islice(filter(fits, runs), n)


def notices(mutant: Mutant, n_seeds: int) -> str:
    """What a simulation says of a mutant, in a child of this process; "" for nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        said = "nothing came back"
        try:
            said = _play_with(mutant, n_seeds)
        except Exception as error:  # noqa: BLE001 - whatever it is, it was noticed
            said = repr(error)
        finally:
            os.write(writing, said.encode()[:4000])
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    os.waitpid(child, 0)
    return said


def _play_with(mutant: Mutant, n_seeds: int) -> str:
    from .run import workshop

    _mutate(mutant)
    with workshop() as simulation:
        for run in relevant(mutant.group, n_seeds):
            faults = simulation.play(run).faults
            if faults:
                return f"seed {run.seed}: {faults[0]}"
    return ""


def _mutate(mutant: Mutant) -> None:
    """Have the functions of this process do what the wrong line says."""
    module = importlib.import_module(f"weald.{mutant.path.removesuffix('.py').replace('/', '.')}")
    text = mutant.applied((ROOT / mutant.path).read_text())
    wrong = _codes(compile(text, str(ROOT / mutant.path), "exec"))
    n_changed = 0
    for function in _functions(module):
        code = wrong.get(function.__code__.co_qualname)
        if code is not None and code != function.__code__:
            function.__code__ = code
            n_changed += 1
    if not n_changed:
        raise RuntimeError(f"mutant {mutant.number} changes no function")


def _codes(code: CodeType) -> dict[str, CodeType]:
    found: dict[str, CodeType] = {}
    for each in code.co_consts:
        if isinstance(each, CodeType):
            found[each.co_qualname] = each
            found |= _codes(each)
    return found


def _functions(module: ModuleType) -> Iterator[Any]:
    """Functions and methods that a module defines, under whatever wraps them."""
    waiting: list[Any] = list(vars(module).values())
    while waiting:
        each = waiting.pop()
        if isinstance(each, type) and each.__module__ == module.__name__:
            waiting += vars(each).values()
        for name in ("__func__", "__wrapped__", "fget"):
            if (inner := getattr(each, name, None)) is not None:
                waiting.append(inner)
        if hasattr(each, "cache_clear"):
            each.cache_clear()
        if getattr(each, "__code__", None) and each.__module__ == module.__name__:
            yield each


class Copy:
    """A copy of the tree, in which the tests nearest to a mutant are run."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        for name in (*_ROOMS, "tests", "docs"):
            shutil.copytree(ROOT / name, folder / name, ignore=_LEFT_OUT)
        shutil.copytree(ROOT / "weald", folder / "weald", symlinks=True, ignore=_LEFT_OUT)
        shutil.copy(ROOT / "pyproject.toml", folder)

    def fails(self, mutant: Mutant) -> bool:
        """Whether a test fails, or does not end, with the wrong line."""
        place = self.root / mutant.path
        right = place.read_text()
        place.write_text(mutant.applied(right))
        environment = {**os.environ, "PYTHONPATH": str(self.root)}
        environment.pop("NUMBA_DISABLE_JIT", None)
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-x", *mutant.tests],
                cwd=self.root,
                env=environment,
                capture_output=True,
                timeout=_LONGEST_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return True
        finally:
            place.write_text(right)
        return done.returncode != 0


def main() -> int:
    """Judge the mutants that the command line names, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", nargs="*", type=int, help="which mutants; all without any")
    parser.add_argument("--seeds", type=int, default=40, help="runs played with each, at most")
    parser.add_argument("--write", action="store_true", help="put the score into the documents")
    parser.add_argument("--quick", action="store_true", help="leave survivors to a later call")
    parser.add_argument("--tests-only", action="store_true", help="play no seeds")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--results", type=Path, help="a file that keeps results between calls")
    arguments = parser.parse_args()
    known = _read(arguments.results)
    began = real_seconds()
    wanted = [m for m in mutants() if not arguments.numbers or m.number in arguments.numbers]
    _warm_up()
    with tempfile.TemporaryDirectory(prefix="weald-mutants-") as folder:
        copy = None if arguments.quick else Copy(Path(folder))
        for mutant in wanted:
            if mutant.number in known or real_seconds() - began > arguments.seconds:
                continue
            said = "" if arguments.tests_only else notices(mutant, arguments.seeds)
            killer = "simulation" if said else ""
            if copy is not None and not killer and copy.fails(mutant):
                killer = "tests"
            print(f"{mutant.number}\t{killer or 'nothing'}\t{said[:150]}", flush=True)
            if killer or not arguments.quick:
                known[mutant.number] = killer
                _keep(arguments.results, mutant.number, killer)
    survivors = [m.number for m in wanted if known.get(m.number) == "" and not m.remark]
    print(f"{len(known)} judged, {len(survivors)} survive: {survivors}")
    if arguments.write:
        write(known, arguments.seeds)
    return int(bool(survivors))


def _warm_up() -> None:
    """Import and compile once what every child needs."""
    from .run import workshop

    with workshop() as simulation:
        simulation.play(scenario_of(1))


def _keep(results: Path | None, number: int, killer: str) -> None:
    if results is not None:
        with results.open("a") as file:
            file.write(f"{number}\t{killer}\n")


def _read(results: Path | None) -> dict[int, str]:
    if results is None or not results.exists():
        return {}
    rows = (line.split("\t") for line in results.read_text().splitlines())
    return {int(number): killer for number, killer in rows}


def write(killers: dict[int, str], n_seeds: int) -> None:
    """Put the score between its marks in the document."""
    text = DOCUMENT.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    DOCUMENT.write_text(f"{before}{BEGIN}\n{score(killers, n_seeds)}{END}{after}")


def score(killers: dict[int, str], n_seeds: int) -> str:
    """The score as a table, by what the mutants are of."""
    groups: dict[str, Counter[str]] = {}
    for mutant in mutants():
        groups.setdefault(mutant.group, Counter())[_verdict(mutant, killers)] += 1
    total: Counter[str] = sum(groups.values(), Counter())
    lines = [
        "| mutants of | killed by seeds | by nearest tests | equivalent | survive | not judged |",
        "|---|---|---|---|---|---|",
    ]
    for name, counts in [*groups.items(), ("all", total)]:
        row = [counts[each] for each in _VERDICTS]
        lines.append(f"| {name} | " + " | ".join(map(str, row)) + " |")
    lines.append("")
    lines.append(f"At most {n_seeds} runs for each, of those that can exercise it.")
    told = [
        m for m in mutants() if _verdict(m, killers) in ("equivalent", "survives", "not judged")
    ]
    for mutant in told:
        remark = mutant.remark or _verdict(mutant, killers)
        lines.append(f"\n- {mutant.number}, `{mutant.path}`, `{mutant.new.strip()}`: {remark}")
    return "\n".join(lines) + "\n"


_VERDICTS = ("simulation", "tests", "equivalent", "survives", "not judged")


def _verdict(mutant: Mutant, killers: dict[int, str]) -> str:
    if mutant.number not in killers:
        return "not judged"
    return killers[mutant.number] or ("equivalent" if mutant.remark else "survives")


if __name__ == "__main__":
    sys.exit(main())
