"""``python -m tests.simulation SEED...``: play seeds, and say what went wrong.

``A:B`` stands for all seeds from A to B - 1. Exit code 1 when anything went wrong.
"""

from .virtual_time import install_clock, real_seconds, without_compiler

if __name__ == "__main__":
    without_compiler()
    install_clock()

import argparse
import sys
from collections.abc import Iterator

from .run import Simulation, workshop
from .scenario import scenario_of


def main() -> int:
    """Play what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seeds", nargs="+", metavar="SEED", help="a seed, or A:B")
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--shrink", action="store_true", help="leave out events that do not matter")
    parser.add_argument("--events", action="store_true", help="tell what happens")
    parser.add_argument("--digest", action="store_true", help="tell a checksum of each run")
    parser.add_argument("--keep-going", action="store_true", help="go on after a violation")
    arguments = parser.parse_args()
    began, n_played, n_wrong = real_seconds(), 0, 0
    with workshop() as simulation:
        for seed in _seeds(arguments.seeds):
            if arguments.seconds and real_seconds() - began >= arguments.seconds:
                break
            wrong = _play(simulation, seed, arguments)
            n_played, n_wrong = n_played + 1, n_wrong + wrong
            if wrong and not arguments.keep_going:
                break
    seconds = real_seconds() - began
    print(f"{n_played} seeds, {n_wrong} with violations, {seconds:.1f} s")
    return int(n_wrong > 0)


def _play(simulation: Simulation, seed: int, arguments: argparse.Namespace) -> bool:
    scenario = scenario_of(seed)
    outcome = simulation.play(scenario)
    if arguments.digest:
        print(f"digest {outcome.digest} of seed {seed}: {outcome.n_commits} commits")
    if outcome.faults and arguments.shrink:
        scenario = simulation.shrink(scenario)
        outcome = simulation.play(scenario)
    if outcome.faults or arguments.events:
        print(f"seed {seed}: {scenario}")
        for event in scenario.events:
            print(f"    {event}")
        for note in outcome.notes:
            print(f"    note: {note}")
    for fault in outcome.faults:
        print(f"  VIOLATION of seed {seed}: {fault}", flush=True)
    return bool(outcome.faults)


def _seeds(words: list[str]) -> Iterator[int]:
    for word in words:
        first, colon, end = word.partition(":")
        yield from range(int(first), int(end)) if colon else (int(first),)


if __name__ == "__main__":
    sys.exit(main())
