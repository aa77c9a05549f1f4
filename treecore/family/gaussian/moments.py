"""First and second moments out of the statistics rows of Gaussian clusters.

Row of full covariance: [count, weight, s (d), Q (lower triangle by rows, d(d+1)/2)]; see
:mod:`~weald.treecore.family.gaussian.normal_inverse_wishart`.
"""

from functools import cache
from math import isqrt

import numpy as np
from numpy.typing import NDArray

__all__ = ["centres_and_spreads", "lower_triangle", "moments_of", "unpacked"]

Values = NDArray[np.float64]
# What is below this share of the terms that it is a difference of is their rounding.
_ROUNDING = 1e-13


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


def centres_and_spreads(origin: Values, first: Values, second: Values) -> tuple[Values, Values]:
    """Means and standard deviations (d) from mean offsets and squared offsets from ``origin`` (d).

    What rounding alone makes is 0: a column of zeros is not told as -1e-16.
    """
    centre, variance = origin + first, second - first**2
    centre = np.where(np.abs(centre) > _ROUNDING * np.abs(first), centre, 0.0)
    return centre, np.sqrt(np.where(variance > _ROUNDING * second, variance, 0.0))
