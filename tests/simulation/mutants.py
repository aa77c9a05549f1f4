"""``python -m tests.simulation.mutants``: does anything notice when the code is wrong?

Each mutant of ``mutants.toml`` is one changed line. It is made in a copy of the tree, never in the
tree itself; seeds are played in the copy until one finds a violation, and where none does, the
tests nearest to the file are run. With ``--write`` the score goes into ``docs/guarantees.md``.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Mutant", "judge", "mutants"]

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("mutants.toml")
DOCUMENT = ROOT / "docs" / "guarantees.md"
BEGIN, END = "<!-- mutants: begin -->", "<!-- mutants: end -->"
_ROOMS = ("answers", "cli", "mcmc", "monitoring", "storage", "stream", "treecore")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "vendor", ".*")


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


class Copy:
    """A copy of the tree in which one line is wrong at a time."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        for name in (*_ROOMS, "tests"):
            shutil.copytree(ROOT / name, folder / name, ignore=_LEFT_OUT)
        shutil.copytree(ROOT / "weald", folder / "weald", symlinks=True, ignore=_LEFT_OUT)
        shutil.copy(ROOT / "pyproject.toml", folder)

    def run(self, *command: str, seconds: float) -> bool:
        """Whether a command succeeds with the wrong line, in time."""
        environment = os.environ | {"PYTHONPATH": str(self.root)}
        try:
            done = subprocess.run(
                [sys.executable, *command],
                cwd=self.root,
                env=environment,
                capture_output=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def judge(copy: Copy, mutant: Mutant, seeds: str, *, tests: bool = True) -> str:
    """Say what kills a mutant: "simulation", "tests", or "" for nothing."""
    place = copy.root / mutant.path
    right = place.read_text()
    place.write_text(mutant.applied(right))
    try:
        if not copy.run("-m", "tests.simulation", seeds, seconds=600.0):
            return "simulation"
        if tests and not copy.run("-m", "pytest", "-q", "-x", *mutant.tests, seconds=600.0):
            return "tests"
        return ""
    finally:
        place.write_text(right)


def main() -> int:
    """Judge the mutants that the command line names, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", nargs="*", type=int, help="which mutants; all without any")
    parser.add_argument("--seeds", default="0:400", metavar="A:B", help="played with each")
    parser.add_argument("--quick", action="store_true", help="leave survivors to a later call")
    parser.add_argument("--write", action="store_true", help="put the score into the documents")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--results", type=Path, help="a file that keeps results between calls")
    arguments = parser.parse_args()
    known = _read(arguments.results)
    began = time.monotonic()
    wanted = [m for m in mutants() if not arguments.numbers or m.number in arguments.numbers]
    with tempfile.TemporaryDirectory(prefix="weald-mutants-") as folder:
        copy = Copy(Path(folder))
        for mutant in wanted:
            if mutant.number in known or time.monotonic() - began > arguments.seconds:
                continue
            killer = judge(copy, mutant, arguments.seeds, tests=not arguments.quick)
            if arguments.quick and not killer:
                continue
            known[mutant.number] = killer
            line = f"{mutant.number}\t{known[mutant.number]}"
            print(f"{line}\t{mutant.path}: {mutant.new.strip()}", flush=True)
            if arguments.results:
                with arguments.results.open("a") as file:
                    file.write(line + "\n")
    survivors = [m for m in wanted if known.get(m.number) == "" and not m.remark]
    judged = [m for m in wanted if m.number in known]
    print(f"{len(judged)} judged, {len(survivors)} survive: {[m.number for m in survivors]}")
    if arguments.write and len(judged) == len(mutants()):
        write(known, arguments.seeds)
    return int(bool(survivors))


def _read(results: Path | None) -> dict[int, str]:
    if results is None or not results.exists():
        return {}
    rows = (line.split("\t") for line in results.read_text().splitlines())
    return {int(number): killer for number, killer in rows}


def write(killers: dict[int, str], seeds: str) -> None:
    """Put the score between its marks in the document."""
    text = DOCUMENT.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    DOCUMENT.write_text(f"{before}{BEGIN}\n{score(killers, seeds)}{END}{after}")


def score(killers: dict[int, str], seeds: str) -> str:
    """The score as a table, by what the mutants are of."""
    groups: dict[str, Counter[str]] = {}
    for mutant in mutants():
        groups.setdefault(mutant.group, Counter())[_verdict(mutant, killers)] += 1
    total: Counter[str] = sum(groups.values(), Counter())
    lines = [
        "| mutants of | killed by simulation | by the nearest tests | equivalent | survive |",
        "|---|---|---|---|---|",
    ]
    for name, counts in [*groups.items(), ("all", total)]:
        row = [counts[each] for each in ("simulation", "tests", "equivalent", "survives")]
        lines.append(f"| {name} | " + " | ".join(map(str, row)) + " |")
    lines.append("")
    lines.append(f"Seeds {seeds} for each mutant (`python -m tests.simulation.mutants --write`).")
    told = [m for m in mutants() if _verdict(m, killers) in ("equivalent", "survives")]
    for mutant in told:
        remark = mutant.remark or "survives: nothing notices it yet"
        lines.append(f"\n- {mutant.number}, `{mutant.path}`, `{mutant.new.strip()}`: {remark}")
    return "\n".join(lines) + "\n"


def _verdict(mutant: Mutant, killers: dict[int, str]) -> str:
    if killers[mutant.number]:
        return killers[mutant.number]
    return "equivalent" if mutant.remark else "survives"


if __name__ == "__main__":
    sys.exit(main())
