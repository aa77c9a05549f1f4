"""Values as finely as they are known: what was rounded may have been anything that rounds to it.

A density that may become narrower than the grid that values lie on, or than the plane that a
cluster's rows lie in, grows without bound and nothing else counts: flags would be clusters of their
own, and columns that depend on each other inside clusters would decide everything. So each value
is moved within half a step of its column's grid, if it has one, and at least within a thousandth of
the column's spread. The moves are a function of row and column alone.
"""

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from weald.treecore.family.gaussian.robust_spread import spread_of

__all__ = ["within_resolution"]

_LEAST = 1e-3
# A column lies on a grid if so large a share of its values has been there before.
_TIES = 0.5
_SEED = 0x5EED


def within_resolution(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The observations (n, d), each value moved within half of what it is known to."""
    n, d = values.shape
    step = np.zeros(d)
    for c in range(d):
        seen = values[np.isfinite(values[:, c]), c]
        step[c] = _LEAST * spread_of(seen[:, None])[0] if seen.size else 0.0
        distinct = np.unique(seen)
        if 1 < distinct.size <= (1.0 - _TIES) * seen.size:
            step[c] = max(step[c], float(np.diff(distinct).min()))
    moves = Generator(PCG64(_SEED)).random((n, d)) - 0.5
    return np.asarray(values + step * moves)
