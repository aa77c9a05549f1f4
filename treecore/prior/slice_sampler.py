"""Slice sampling in one dimension, for the conditionals that have no direct draw.

Neal (2003), "Slice sampling", Annals of Statistics 31: stepping out (figure 3, with no limit on the
number of steps) and shrinkage (figure 5). Both leave any density invariant as long as ``width`` and
the bounds don't depend on the point that is being moved.
"""

from collections.abc import Callable
from math import log

from numpy.random import Generator

__all__ = ["slice_bounded", "slice_stepping_out"]

LogDensity = Callable[[float], float]


def slice_stepping_out(
    rng: Generator, log_density: LogDensity, start: float, width: float
) -> float:
    """One update on the whole line; ``width`` is a guess at the density's width."""
    level = log_density(start) + log(1.0 - rng.random())
    lower = start - width * rng.random()
    upper = lower + width
    while log_density(lower) > level:
        lower -= width
    while log_density(upper) > level:
        upper += width
    return _shrink(rng, log_density, level, start, (lower, upper))


def slice_bounded(
    rng: Generator, log_density: LogDensity, start: float, bounds: tuple[float, float]
) -> float:
    """One update within bounds, both of them excluded, beyond which the density is zero."""
    level = log_density(start) + log(1.0 - rng.random())
    return _shrink(rng, log_density, level, start, bounds)


def _shrink(
    rng: Generator,
    log_density: LogDensity,
    level: float,
    start: float,
    bounds: tuple[float, float],
) -> float:
    lower, upper = bounds
    while True:
        proposal = lower + (upper - lower) * rng.random()
        if lower < proposal < upper and log_density(proposal) > level:
            return proposal
        # The start itself is on the slice: rounding aside, the loop ends there at the latest.
        if proposal == start or upper - lower <= abs(start) * 1e-15:
            return start
        lower, upper = (proposal, upper) if proposal < start else (lower, proposal)
