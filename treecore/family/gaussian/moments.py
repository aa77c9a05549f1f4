"""First and second moments out of the statistics rows of Gaussian clusters with full covariance.

Row: [count, weight, s (d), Q (lower triangle by rows, d(d+1)/2)]; see
:mod:`~weald.treecore.family.gaussian.normal_inverse_wishart`.
"""

from functools import cache
from math import isqrt

import numpy as np
from numpy.typing import NDArray

__all__ = ["lower_triangle", "moments_of", "unpacked"]

Values = NDArray[np.float64]


@cache
def lower_triangle(d: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns (d(d+1)/2) of what is packed of a (d, d) matrix; not to be changed."""
    row, column = np.tril_indices(d)
    row.flags.writeable = column.flags.writeable = False
    return row, column


def unpacked(packed: Values) -> Values:
    """Symmetric matrices (..., d, d) from lower triangles packed by rows (..., d(d+1)/2)."""
    d = isqrt(2 * packed.shape[-1])
    row, column = lower_triangle(d)
    full = np.empty((*packed.shape[:-1], d, d))
    full[..., row, column] = packed
    full[..., column, row] = packed
    return full


def moments_of(rows: Values, d: int) -> tuple[Values, Values]:
    """Sums s (..., d) and Q (..., d, d) of the observations behind rows (..., m)."""
    return rows[..., 2 : 2 + d], unpacked(rows[..., 2 + d :])
