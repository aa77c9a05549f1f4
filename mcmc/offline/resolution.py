"""Values as finely as they are known: what was rounded may have been anything that rounds to it.

A density that may become narrower than the grid that values lie on, or than the plane that a
cluster's rows lie in, grows without bound and nothing else counts: flags would be clusters of their
own, and columns that depend on each other inside clusters would decide everything. So each value
is moved by about half a step of its column's grid, if it has one, and at least of a thousandth of
the column's spread. The moves of a fit are a function of row and column alone, those of a stream of
its seed, the observation's number and the column.

Numbers beside other kinds have a base measure that is not learned, and are moved where the grid is
coarse only. Counts that are seen by their logarithm lie on no even grid there, and move by what
half a step of theirs is at each of them.

Moves are normal, of standard deviation half a step. Where values next to each other are as frequent
the density is as even as by moves that fill each step evenly (within 1.5 %), while a value that all
rows of a cluster have is one normal cluster, whatever their number: evenly filled it is several,
which differ in nothing but what moved them.
"""

from typing import NamedTuple

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray
from scipy.special import ndtri

from weald.mcmc.hyperparameters.learner import learns_by_default
from weald.mcmc.sharded.counter import row_key, uniforms
from weald.treecore.family.gaussian.robust_spread import spread_of
from weald.treecore.family.interface.base import Family
from weald.treecore.family.product import Product, parts_of
from weald.treecore.statistics.observations import Observations

__all__ = [
    "Moves",
    "as_finely_as_known",
    "moved",
    "moved_about",
    "resolution_of",
    "resolution_under",
    "unmoved_variance",
    "whole_steps",
    "within_resolution",
]

_LEAST = 1e-3
# Standard deviation of a move, in steps.
_SPREAD = 0.5
# A uniform number may be 0, of which the normal one is not finite.
_TINY = 2.0**-54
# Share of a column's spread from which the step of its grid is coarse.
_COARSE = 0.03
# A column lies on a grid if so large a share of its values has been there before.
_TIES = 0.5
_SEED = 0x5EED
# Of the random numbers that a stream's seed gives by counter, those of moves.
_STAGE = 0x5EED


def resolution_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The step (d) to which values of each column are known, by observations (n, d)."""
    step = np.zeros(values.shape[1])
    for c in range(step.size):
        seen = values[np.isfinite(values[:, c]), c]
        step[c] = _LEAST * spread_of(seen[:, None])[0] if seen.size else 0.0
        step[c] = max(step[c], _step_of_grid(seen))
    return step


def _step_of_grid(seen: NDArray[np.float64]) -> float:
    """Of a column's values (n), none of them missing; 0 where they lie on no grid."""
    distinct = np.unique(seen)
    on_grid = 1 < distinct.size <= (1.0 - _TIES) * seen.size
    return float(np.diff(distinct).min()) if on_grid else 0.0


def resolution_under(family: Family, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The steps (d) by which such a family wants observations (n, d) moved; 0 where not at all."""
    if learns_by_default(family):
        return resolution_of(values)
    step = np.zeros(values.shape[1])
    if not isinstance(family, Product):
        return step
    for part in parts_of(family):
        if not learns_by_default(part.family):
            continue
        for column in part.columns.tolist():
            seen = values[np.isfinite(values[:, column]), column]
            grid = _step_of_grid(seen)
            if grid > 0.0 and grid > _COARSE * spread_of(seen[:, None])[0]:
                step[column] = grid
    return step


def whole_steps(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The steps (d) of columns of whole numbers that repeat, by observations (n, d); else 0."""
    step = np.zeros(values.shape[1])
    for c in range(step.size):
        seen = values[np.isfinite(values[:, c]), c]
        if (seen == np.rint(seen)).all():
            step[c] = _step_of_grid(seen)
    return step


class Moves(NamedTuple):
    """How the values of a stream are moved.

    Attributes
    ----------
    step : ndarray of float64, shape (d,) or (n, d)
        To which values are known; of each observation by itself, where their number is given.
    law : str
        ``normal``; or ``even``, within half a step, of streams that an earlier Weald began.
    """

    step: NDArray[np.float64]
    law: str = "normal"

    def variance(self) -> NDArray[np.float64]:
        """Of the moves (d)."""
        return np.asarray(self.step**2 * (_SPREAD**2 if self.law == "normal" else 1.0 / 12.0))


def within_resolution(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The observations (n, d), each value moved by about half of what it is known to."""
    return moved_about(values, resolution_of(values))


def moved_about(values: NDArray[np.float64], step: NDArray[np.float64]) -> NDArray[np.float64]:
    """The observations (n, d), each moved by about half of a step (n, d) or (d) of its own."""
    moves = Generator(PCG64(_SEED)).normal(scale=_SPREAD, size=values.shape)
    return np.asarray(values + step * moves)


def as_finely_as_known(family: Family, values: Observations) -> Observations:
    """Observations (n, d) by which partitions under such a family are compared.

    These are moved within their resolution, as its chains see them. On the grid itself a chain
    that made every row a cluster, as narrow as it likes, would predict best.
    """
    if not isinstance(values, np.ndarray):
        return values
    step = resolution_under(family, values)
    return moved_about(values, step) if step.any() else values


def moved(
    values: NDArray[np.float64], moves: Moves, seqs: NDArray[np.int64], seed: int
) -> NDArray[np.float64]:
    """Observations (n, d) of these numbers (n) in a stream, as they are moved there.

    The same observation of the same stream is moved alike, in whatever batch it comes.
    """
    found, at = values.copy(), np.empty(len(values))
    step = np.broadcast_to(moves.step, values.shape)
    for column in np.flatnonzero(step.any(axis=0)):
        uniforms(row_key(seed, int(column), _STAGE), seqs, at)
        steps = at - 0.5 if moves.law == "even" else _SPREAD * ndtri(np.maximum(at, _TINY))
        found[:, column] += step[:, column] * steps
    return found


def unmoved_variance(variance: NDArray[np.float64], moves: Moves) -> NDArray[np.float64]:
    """Variances (d) without those of the moves."""
    return np.maximum(variance - moves.variance(), 0.0)
