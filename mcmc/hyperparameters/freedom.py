"""Degrees of freedom of clusters' variances: their log is normal a priori, N(2, 1.5^2).

No conditional of theirs is known, so that a few Metropolis steps redraw them. (``answers.md``
section 3.)
"""

from collections.abc import Callable
from math import log

from numpy.random import Generator

__all__ = ["redraw_log_freedom"]

_MEAN, _SPREAD = 2.0, 1.5
_STEP = 0.5
_STEPS = 3


def redraw_log_freedom(
    rng: Generator, present: float, log_likelihood: Callable[[float], float]
) -> float:
    """A few Metropolis steps of the log of the degrees of freedom, on this likelihood of it."""

    def log_target(log_freedom: float) -> float:
        off = (log_freedom - _MEAN) / _SPREAD
        return log_likelihood(log_freedom) - 0.5 * off * off

    reached = log_target(present)
    for _ in range(_STEPS):
        proposed = present + _STEP * float(rng.standard_normal())
        found = log_target(proposed)
        if log(1.0 - rng.random()) < found - reached:
            present, reached = proposed, found
    return present
