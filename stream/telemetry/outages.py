"""What is away is told when it begins, once a minute while it lasts, and when it is over."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Outages"]

_log = logging.getLogger(__name__)

SECONDS_A_LINE = 60.0


@dataclass
class _Outage:
    since: float
    attempts: int = 0
    told: bool = False


class Outages:
    """Logs outages, each target's at most once in so many seconds, and its end where it was told.

    Parameters
    ----------
    clock : callable
        Seconds of any beginning that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._now: dict[str, _Outage] = {}
        self._told_at: dict[str, float] = {}

    def away(self, target: str, reason: str) -> None:
        """Tell that a target did not answer and will be asked again."""
        now = self._clock()
        outage = self._now.setdefault(target, _Outage(now))
        outage.attempts += 1
        told_at = self._told_at.get(target)
        if told_at is not None and now - told_at < SECONDS_A_LINE:
            return
        self._told_at[target] = now
        if outage.told:
            lasted = f"still, after {now - outage.since:.0f} s and {outage.attempts} attempts"
        else:
            lasted = "asked again until it answers"
        outage.told = True
        _log.warning("%s is away (%s): %s", target, lasted, reason)

    def back(self, target: str) -> None:
        """Tell that a target answers."""
        outage = self._now.pop(target, None)
        if outage is not None and outage.told:
            seconds = self._clock() - outage.since
            _log.info("%s answers again after %.1f s, attempt %d", target, seconds, outage.attempts)
