"""What the product takes from the machine, taken from the scheduler instead while a run lasts.

The clock, sleeping, threads and chance; nothing of the product is changed for it. The clock's
functions are put in place once, before anything of the product is imported, since some of it keeps
them as default arguments.
"""

import os
import random
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from .scheduler import EPOCH, Scheduler

if TYPE_CHECKING:
    from weald.stream.engine.concurrent import Work

__all__ = ["Beside", "Pool", "install_clock", "real_seconds", "virtual_time", "without_compiler"]

# Nothing is worth compiling, and the order of sets must be the same in every process.
_ENVIRONMENT = {"NUMBA_DISABLE_JIT": "1", "PYTHONHASHSEED": "0"}

_REAL = {name: getattr(time, name) for name in ("time", "monotonic", "perf_counter", "sleep")}
_running: list[Scheduler] = []
# Between two looks at whether another greenlet has ended.
_LOOK_AGAIN_SECONDS = 0.001


def without_compiler() -> None:
    """Begin this process again where its environment is not the one that simulations need."""
    if _ENVIRONMENT.items() - os.environ.items():
        os.execve(sys.executable, sys.orig_argv, os.environ | _ENVIRONMENT)  # noqa: S606


def real_seconds() -> float:
    """Seconds of the machine's own clock, which only grow."""
    return float(_REAL["perf_counter"]())


def _time() -> float:
    if not _running:
        return float(_REAL["time"]())
    process = _running[0].process
    return EPOCH + _running[0].now + (process.skew if process else 0.0)


def _monotonic() -> float:
    return _running[0].now if _running else float(_REAL["monotonic"]())


def _sleep(seconds: float) -> None:
    if _running:
        _running[0].sleep(seconds)
    else:
        _REAL["sleep"](seconds)


def install_clock() -> None:
    """Put the clock's functions in place; they are the machine's unless a simulation runs."""
    stand_ins = {
        "time": _time,
        "monotonic": _monotonic,
        "perf_counter": _monotonic,
        "sleep": _sleep,
    }
    for name, stand_in in stand_ins.items():
        setattr(time, name, stand_in)


@contextmanager
def virtual_time(
    scheduler: Scheduler, draw: random.Random, pass_step: Callable[[str], None]
) -> Iterator[None]:
    """Have the product live under the scheduler's clock.

    Parameters
    ----------
    scheduler : Scheduler
    draw : random.Random
        What the product's own unseeded generators are seeded from.
    pass_step : callable
        Called at every labelled step (`weald.storage.sql.failpoints`) with its label.
    """
    from weald.storage.sql.failpoints import failpoint
    from weald.stream.source import retry
    from weald.stream.worker import worker

    chance = SimpleNamespace(Random=lambda: random.Random(draw.random()))
    with ExitStack() as stack:
        stack.enter_context(patch.object(retry, "random", chance))
        stack.enter_context(
            patch.object(uuid, "uuid4", lambda: uuid.UUID(int=draw.getrandbits(128), version=4))
        )
        stack.enter_context(patch.object(worker, "threading", _threads(scheduler)))
        for module in _users_of(failpoint):
            stack.enter_context(patch.object(module, "failpoint", pass_step))
        _running.append(scheduler)
        stack.callback(_running.clear)
        yield


class Beside:
    """Work beside the loop, which ends after so many virtual seconds."""

    def __init__(self, work: "Work", scheduler: Scheduler, seconds: float) -> None:
        self._work: Work | None = work
        self._scheduler, self._until = scheduler, scheduler.now + seconds

    @property
    def ended(self) -> bool:
        if self._work is not None and self._scheduler.now >= self._until:
            self._work.run()
            self._work = None
        return self._work is None

    def stop(self) -> None:
        """Nothing runs that could be stopped."""


class Begun:
    """What a thread of a pool does, as a greenlet of whoever has begun it."""

    def __init__(self, scheduler: Scheduler, work: Callable[[], object]) -> None:
        self._scheduler, self._work = scheduler, work
        self._ended = False
        self._result: object = None
        self._failure: Exception | None = None
        process = scheduler.process
        if process is None:
            raise RuntimeError("only a process has threads")
        scheduler.spawn(process, self._run)

    def _run(self) -> None:
        try:
            self._result = self._work()
        except Exception as failure:  # noqa: BLE001 - whoever waits for it gets it
            self._failure = failure
        self._ended = True

    def exception(self) -> Exception | None:
        """Wait for its end, and return what it has failed of."""
        while not self._ended:
            self._scheduler.sleep(_LOOK_AGAIN_SECONDS)
        return self._failure

    def result(self) -> object:
        """Wait for its end, and return what came of it, or raise what it has failed of."""
        if (failure := self.exception()) is not None:
            raise failure
        return self._result


class Pool:
    """Threads of one process."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def submit(self, work: Callable[..., object], *arguments: object) -> Begun:
        """Begin what is to be done."""
        return Begun(self._scheduler, partial(work, *arguments))

    def shutdown(self) -> None:
        """Whoever has begun something has waited for it."""


def _users_of(function: Callable[..., object]) -> list[Any]:
    return [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("weald.") and getattr(module, "failpoint", None) is function
    ]


def _threads(scheduler: Scheduler) -> SimpleNamespace:
    """Events and threads as greenlets of whoever starts them."""

    class Event:
        def __init__(self) -> None:
            self._set = False

        def set(self) -> None:
            self._set = True

        def is_set(self) -> bool:
            return self._set

        def wait(self, seconds: float) -> bool:
            end = scheduler.now + seconds
            while not self._set and scheduler.now < end:
                scheduler.sleep(min(1.0, end - scheduler.now))
            return self._set

    class Thread:
        def __init__(self, target: Callable[[], None], **_: object) -> None:
            self._target = target

        def start(self) -> None:
            process = scheduler.process
            if process is not None:
                scheduler.spawn(process, self._target)

        def join(self) -> None:
            """It ends by itself: what it waits for has been set."""

    return SimpleNamespace(Event=Event, Thread=Thread)
