"""Bounds of predictive densities with full covariance, for searches of the best of many clusters.

The squared distance of an observation is a sum over the rows of a lower triangle: it only grows,
and the first few rows take the first few features alone. They are a table's *outline*, all that is
needed to leave most clusters out.
"""

from math import log1p

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import implements
from weald.treecore.family.interface.base import (
    log_predictive_above,
    outline,
    outline_bounds,
    outline_width,
)
from weald.treecore.statistics.rows import Rows

from .normal_inverse_wishart import NormalInverseWishart
from .packed_cholesky import squared_distance

# Features that an outline shows; further ones of fewer features are zero.
_FEATURES = 4
_FACTOR = 2 + _FEATURES
_WIDTH = _FACTOR + _FEATURES * (_FEATURES + 1) // 2
# Rounding must not make a bound give up on what it should let pass.
_SAFE = 1.0 + 1e-9


@implements(log_predictive_above, NormalInverseWishart)
def _log_predictive_above(
    family: NormalInverseWishart, table: Rows, k: int, rows: Rows, i: int, least: float
) -> float:
    # The distance only grows from term to term, and log1p(z) >= 2 z / (2 + z).
    gap = (table[k, 0] - least) / table[k, 1]
    if gap < 0.0:
        return -np.inf
    farthest = _SAFE * (2.0 * gap / (2.0 - gap) if gap < 1.0 else np.expm1(gap))
    distance = squared_distance(table, k, rows, i, family.mean.shape[0], farthest)
    if distance > farthest:
        return -np.inf
    found = table[k, 0] - table[k, 1] * log1p(distance)
    return found if found >= least else -np.inf


@implements(outline_width, NormalInverseWishart)
def _outline_width(_family: NormalInverseWishart) -> int:
    return _WIDTH


@implements(outline, NormalInverseWishart)
def _outline(
    family: NormalInverseWishart,
    table: Rows,
    k: int,
    outlines: NDArray[np.float64],
    group: int,
    lane: int,
) -> None:
    d = family.mean.shape[0]
    shown = min(d, _FEATURES)
    for c in range(2 + shown):
        outlines[group, c, lane] = table[k, c]
    for c in range(shown * (shown + 1) // 2):
        outlines[group, _FACTOR + c, lane] = table[k, 2 + d + c]


@implements(outline_bounds, NormalInverseWishart)
def _outline_bounds(  # noqa: PLR0913 - as declared
    family: NormalInverseWishart,
    outlines: NDArray[np.float64],
    group: int,
    n: int,
    rows: Rows,
    x: int,
    work: Rows,
    bounds: NDArray[np.float64],
) -> None:
    d = family.mean.shape[0]
    for c in range(_FEATURES):
        work[1, c] = rows[x, 2 + c] if c < d else 0.0
    for lane in range(n):
        distance = 0.0
        at = _FACTOR
        for a in range(_FEATURES):
            value = 0.0
            for b in range(a + 1):
                value += outlines[group, at, lane] * (work[1, b] - outlines[group, 2 + b, lane])
                at += 1
            distance += value * value
        # log y = 4 log y^(1/4), and log y >= 2 (y - 1) / (y + 1) from one on.
        grown = np.sqrt(np.sqrt(1.0 + distance))
        growth = 8.0 * (grown - 1.0) / (_SAFE * (grown + 1.0))
        bounds[lane] = outlines[group, 0, lane] - outlines[group, 1, lane] * growth
