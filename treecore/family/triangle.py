"""Lower triangles packed by rows: the factors behind Gaussian clusters with full covariance."""

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from ..compile import inner
from ..rows import Rows

__all__ = ["extend_inverse", "factor_scatter"]

_LEAST_FACTOR = 1e-75


@inner
def factor_scatter(
    scale: NDArray[np.float64], rows: Rows, i: int, shrink: float, d: int, work: Rows
) -> float:
    """Cholesky factor of ``scale + Q - shrink s s'`` into ``work[1]``; returns its log determinant.

    ``rows[i]`` holds the first moments s (d) from column 2 on and the second moments Q after them;
    ``scale``, Q and the factor are packed.
    """
    log_det = 0.0
    product = 1.0
    start = 0
    for a in range(d):
        scaled = rows[i, 2 + a] * shrink
        other = 0
        for b in range(a + 1):
            value = scale[start + b] + rows[i, 2 + d + start + b]
            value -= scaled * rows[i, 2 + b]
            for c in range(b):
                value -= work[1, start + c] * work[1, other + c]
            if b < a:
                work[1, start + b] = value / work[1, other + b]
                other += b + 1
                continue
            # Rounding may take a pivot below what psi alone guarantees; it can't truly be less.
            value = max(value, 1e-12 * scale[start + a])
            work[1, start + a] = np.sqrt(value)
            # Four pivots within these bounds multiply without leaving float64.
            if _LEAST_FACTOR < value < 1.0 / _LEAST_FACTOR:
                product *= value
            else:
                log_det += log(value)
            if a % 4 == 3:
                log_det += log(product)
                product = 1.0
        start += a + 1
    return log_det + log(product)


@inner
def extend_inverse(table: Rows, k: int, source: int, d: int, rescale: float, work: Rows) -> float:
    """Write ``rescale`` times the inverse factor of a matrix plus ``v v'``; returns ``|F v|^2``.

    F, the inverse factor of the matrix, is in ``table[source]`` from column 2 + d on; the new one
    comes into ``table[k]``, which may be the same row. ``work[1]`` holds v (d), then d zeros.
    """
    # Row by row, with z = F v and t = 1 + the sum of z^2 so far, the new F is
    # sqrt(t_before / t_after) (F - z / t_before sum of the rows above times their z): Sherman and
    # Morrison's formula in factors, which no rounding can make indefinite.
    distance = 0.0
    at = 2 + d
    for a in range(d):
        z = 0.0
        for b in range(a + 1):
            z += table[source, at + b] * work[1, b]
        before = 1.0 + distance
        distance += z * z
        shrink = rescale * sqrt(before / (1.0 + distance))
        above = z / before
        for b in range(a + 1):
            old = table[source, at + b]
            table[k, at + b] = shrink * (old - above * work[1, d + b])
            work[1, d + b] += z * old
        at += a + 1
    return distance
