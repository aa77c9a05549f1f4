"""Virtual time, and who runs next: the only source of order in a simulation.

Every process is a set of greenlets. One runs until it waits for something: it sleeps, or it talks
to a server. What waits is woken in the order of the virtual clock, equal times in an order that the
seed draws. Nothing else decides anything, so the same seed gives the same run.
"""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import greenlet

__all__ = ["KilledError", "Process", "Scheduler", "StalledError"]

# What the virtual clock starts from, in seconds since 1970.
EPOCH = 1_800_000_000.0


class KilledError(BaseException):
    """Ends a process where it stands, as SIGKILL does: no handler of its own may do anything."""


class StalledError(Exception):
    """More steps than any run needs: somebody goes round without ever waiting."""


@dataclass(eq=False)
class Process:
    """What dies together.

    Attributes
    ----------
    name : str
    alive : bool
    frozen_until : float
        Virtual time before which none of its greenlets runs, as after SIGSTOP.
    skew : float
        Seconds by which its wall clock is wrong.
    """

    name: str
    alive: bool = True
    frozen_until: float = 0.0
    skew: float = 0.0
    tasks: "list[greenlet.greenlet]" = field(default_factory=list)


class Scheduler:
    """Runs greenlets under a virtual clock.

    Parameters
    ----------
    draw : random.Random
        Breaks ties between equal times.
    most_steps : int
        After so many switches the run counts as stalled.
    """

    def __init__(self, draw: random.Random, most_steps: int = 400_000) -> None:
        self.now = 0.0
        self.steps = 0
        self._draw = draw
        self._most_steps = most_steps
        self._hub = greenlet.getcurrent()
        self._waiting: list[tuple[float, float, int, greenlet.greenlet]] = []
        self._number = 0
        self._process_of: dict[greenlet.greenlet, Process] = {}

    @property
    def process(self) -> Process | None:
        """Whose greenlet runs; None for the hub."""
        return self._process_of.get(greenlet.getcurrent())

    def spawn(self, process: Process, run: Callable[[], object], delay: float = 0.0) -> None:
        """Start another greenlet of a process, after a delay."""

        def body() -> None:
            try:
                run()
            except KilledError:
                pass
            finally:
                self._process_of.pop(task, None)

        task = greenlet.greenlet(body, self._hub)
        process.tasks.append(task)
        self._process_of[task] = process
        self._wake(task, self.now + delay)

    def sleep(self, seconds: float) -> None:
        """Let virtual time pass for whoever calls."""
        task = greenlet.getcurrent()
        process = self._process_of.get(task)
        if process is None:
            raise RuntimeError("only a process may wait")
        if not process.alive:
            raise KilledError
        self._wake(task, self.now + max(seconds, 0.0))
        self._hub.switch()
        if not process.alive:
            raise KilledError

    def kill(self, process: Process) -> None:
        """End a process at once; its greenlets unwind without another step."""
        process.alive = False
        here = greenlet.getcurrent()
        for task in list(process.tasks):
            if task is not here and task:
                task.parent = here
                task.throw(KilledError)
            elif task is not here:
                self._process_of.pop(task, None)
        process.tasks.clear()
        if self._process_of.get(here) is process:
            raise KilledError

    def run(self, until: float, done: Callable[[], bool] = lambda: False) -> None:
        """Wake whoever waits, until so much virtual time has passed or `done` says so.

        Raises
        ------
        StalledError
            When it takes more steps than any run needs.
        """
        while self._waiting and not done():
            at, _, _, task = self._waiting[0]
            if at > until:
                break
            heapq.heappop(self._waiting)
            process = self._process_of.get(task)
            if task.dead or process is None or not process.alive:
                continue
            self.now = max(self.now, at)
            if process.frozen_until > self.now:
                self._wake(task, process.frozen_until)
                continue
            self.steps += 1
            if self.steps > self._most_steps:
                raise StalledError(f"{process.name} was the last of {self.steps} steps")
            task.switch()
        else:
            return
        self.now = max(self.now, until)

    def _wake(self, task: greenlet.greenlet, at: float) -> None:
        self._number += 1
        heapq.heappush(self._waiting, (at, self._draw.random(), self._number, task))
