"""A seed, played and checked; and the smallest part of its events that still goes wrong."""

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .checker import faults_of
from .database import Database
from .scenario import Scenario
from .scheduler import StalledError
from .world import World

__all__ = ["Outcome", "Simulation", "workshop"]


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    faults: tuple[str, ...]
    notes: tuple[str, ...]
    n_commits: int
    n_steps: int
    seconds: float
    digest: str


class Simulation:
    """Plays scenarios, one after the other.

    Parameters
    ----------
    folder : Path
        Best in memory.
    """

    def __init__(self, folder: Path) -> None:
        self._database = Database(folder)

    def play(self, scenario: Scenario) -> Outcome:
        """Run a scenario to its end and check it."""
        world = World(scenario, self._database)
        try:
            world.play()
            with world.in_place():
                faults = faults_of(world)
        except StalledError as error:
            faults = [f"stalled: {error}"]
        outcome = Outcome(
            tuple(faults),
            tuple(world.history.notes),
            world.history.commits,
            world.scheduler.steps,
            world.scheduler.now,
            world.history.digest(),
        )
        world.close()
        return outcome

    def shrink(self, scenario: Scenario) -> Scenario:
        """Leave events out as long as something still goes wrong (Zeller's ddmin).

        A. Zeller and R. Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE
        Transactions on Software Engineering 28(2), 2002, section 3.
        """
        n = 2
        while len(scenario.events) >= 2:
            size = max(len(scenario.events) // n, 1)
            for start in range(0, len(scenario.events), size):
                smaller = scenario.without(set(range(start, start + size)))
                if self.play(smaller).faults:
                    scenario, n = smaller, max(n - 1, 2)
                    break
            else:
                if size == 1:
                    return scenario
                n = min(2 * n, len(scenario.events))
        return scenario


@contextmanager
def workshop() -> Iterator[Simulation]:
    """A place for simulations, in memory where there is one; the product's log is kept quiet."""
    shared = Path("/dev/shm")  # noqa: S108 - a folder of its own is made in it
    place = shared if os.access(shared, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="weald-sim-", dir=place))
    logging.disable(logging.CRITICAL)
    try:
        yield Simulation(folder)
    finally:
        logging.disable(logging.NOTSET)
        shutil.rmtree(folder)
