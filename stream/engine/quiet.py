"""Whether a stream goes on refining while no record comes, and when that is enough.

Refinement and publication are counted in records, so that a topic that has gone quiet would show
for ever what it showed at its last publication. While it is quiet each further refinement is
published out of turn, which SQL keeps, and which a replay therefore repeats. It ends when the log
joint of the chain's newest draws is no higher than before: more would show the same with other
noise.
"""

import math
import time
from collections.abc import Callable

import numpy as np

__all__ = ["Quiet"]

# Two runs of so many refinements are compared, and no more than so many are made.
_RUN = 6
_MOST = 100
_STANDARD_ERRORS = 2.0


class Quiet:
    """What is known of the records' silence.

    Parameters
    ----------
    seconds : float
        Silence after which refinement goes on; 0 for never.
    clock : callable
        Seconds that only grow.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._heard = clock()
        self._reached: list[float] = []

    def heard(self) -> None:
        """Note that records came."""
        self._heard = self._clock()
        self._reached.clear()

    @property
    def due(self) -> bool:
        """Whether one more refinement is worth its while."""
        return self.silent and not self._settled

    @property
    def silent(self) -> bool:
        """Whether no record has come for so long."""
        return 0.0 < self._seconds <= self._clock() - self._heard

    def refined(self, log_joint: float) -> None:
        """Note the log joint that a refinement in the silence has reached."""
        self._reached.append(log_joint)

    @property
    def _settled(self) -> bool:
        n = len(self._reached)
        if n < 2 * _RUN:
            return False
        last, before = np.array(self._reached[-_RUN:]), np.array(self._reached[-2 * _RUN : -_RUN])
        error = math.sqrt((float(last.var(ddof=1)) + float(before.var(ddof=1))) / _RUN)
        return n >= _MOST or float(last.mean() - before.mean()) <= _STANDARD_ERRORS * error
