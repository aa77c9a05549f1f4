"""Is the process alive, is it ready, and if not, why. Pure: the clock is passed in.

Alive means that the engine's loop came round lately, and nothing else: were liveness to depend on
Kafka, SQL or Redis, an outage of one of them would restart every process. Ready means that every
required condition holds; an advisory one is told but never makes a process unready, as Redis only
holds a copy.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

__all__ = ["ADVISORY", "REQUIRED", "Condition", "Health", "JointHealth", "Probed", "Report"]

# schema: the database is at the newest migration. sql: the last transaction went through.
# source: partitions are owned, or the process stands by. model: state is loaded and replayed.
REQUIRED: Final = ("schema", "sql", "source", "model")
ADVISORY: Final = ("redis",)


@dataclass(frozen=True)
class Condition:
    """One thing that readiness asks for, and what was last heard of it."""

    name: str
    ok: bool
    reason: str
    required: bool


@dataclass(frozen=True)
class Report:
    """An answer to a probe: the verdict and what it rests on."""

    ok: bool
    conditions: tuple[Condition, ...]


class Health:
    """What the engine says of itself, read by the probes from other threads.

    Parameters
    ----------
    stalled_after_seconds : float
        The process counts as dead when `progress` was not called for so long.
    required, advisory : sequence of str
        Names of the conditions; every one fails until it is first satisfied.
    clock : callable
        Monotonic seconds.
    """

    def __init__(
        self,
        stalled_after_seconds: float = 300.0,
        *,
        required: Sequence[str] = REQUIRED,
        advisory: Sequence[str] = ADVISORY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = stalled_after_seconds
        self._clock = clock
        self._last_progress = clock()
        self._lock = threading.Lock()
        self._conditions = {
            name: Condition(name, ok=False, reason="not known yet", required=name in required)
            for name in (*required, *advisory)
        }

    def progress(self) -> None:
        """Say that the loop came round. Long work (a replay) calls it between its parts."""
        self._last_progress = self._clock()

    def satisfied(self, name: str, reason: str = "") -> None:
        """Say that a condition holds."""
        self._set(name, ok=True, reason=reason)

    def unsatisfied(self, name: str, reason: str) -> None:
        """Say that a condition does not hold, and why, in words for an operator."""
        self._set(name, ok=False, reason=reason)

    def _set(self, name: str, *, ok: bool, reason: str) -> None:
        with self._lock:
            if name not in self._conditions:
                known = ", ".join(self._conditions)
                raise ValueError(f"unknown condition {name!r}; one of {known}")
            required = self._conditions[name].required
            self._conditions[name] = Condition(name, ok, reason, required)

    def live(self) -> Report:
        """Tell whether the loop came round lately enough."""
        idle = self._clock() - self._last_progress
        alive = idle <= self._limit
        reason = f"last round of the loop {idle:.1f} s ago, limit {self._limit:g} s"
        return Report(alive, (Condition("progress", alive, reason, required=True),))

    def ready(self) -> Report:
        """Tell whether every required condition holds, with all conditions and reasons."""
        with self._lock:
            conditions = tuple(self._conditions.values())
        return Report(all(c.ok for c in conditions if c.required), conditions)


class Probed(Protocol):
    """What probes ask."""

    def live(self) -> Report:
        """Tell whether it is alive."""

    def ready(self) -> Report:
        """Tell whether it is ready, with all conditions and reasons."""


class JointHealth:
    """The health of a process with several engines: that of the worst of them.

    Parameters
    ----------
    of : mapping of str to Health
        By the name that their conditions are told under.
    """

    def __init__(self, of: Mapping[str, Health]) -> None:
        self._of = dict(of)

    def live(self) -> Report:
        """Tell whether every loop came round lately enough."""
        return _joint({name: each.live() for name, each in self._of.items()})

    def ready(self) -> Report:
        """Tell whether every required condition of each holds."""
        return _joint({name: each.ready() for name, each in self._of.items()})


def _joint(reports: Mapping[str, Report]) -> Report:
    conditions = [
        replace(condition, name=f"{name} {condition.name}")
        for name, report in reports.items()
        for condition in report.conditions
    ]
    return Report(all(report.ok for report in reports.values()), tuple(conditions))
