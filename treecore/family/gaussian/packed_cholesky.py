"""Packed triangles: the factors behind Gaussian clusters with full covariance."""

from math import log, sqrt
from typing import Final

import numpy as np
from numpy import uint64
from numpy.typing import NDArray

from weald.treecore.compiled.compile import inner
from weald.treecore.statistics.rows import Rows

__all__ = [
    "extend_inverse",
    "factor_scatter",
    "invert_factor",
    "log_determinants",
    "squared_distance",
]

# Matrices that are factored side by side: as many as stay near the processor.
_LANES: Final = 32

_LEAST_FACTOR = 1e-75
# Compiled code looks whether a signed index counts from the end, at each access. Unsigned ones mix
# with unsigned ones only.
_ZERO, _ONE, _TWO, _THREE, _FOUR = uint64(0), uint64(1), uint64(2), uint64(3), uint64(4)


@inner
def factor_scatter(
    scale: NDArray[np.float64],
    pull: NDArray[np.float64],
    rows: Rows,
    i: int,
    shrink: float,
    work: Rows,
) -> float:
    """Cholesky factor of ``scale + Q - shrink s s'`` into ``work[1]``; returns its log determinant.

    ``rows[i]`` holds first moments (d) from column 2 on, which with ``pull`` (d) are s, and the
    second moments Q after them; ``scale`` and Q are lower triangles packed by rows. The factor is
    packed by its columns, each from its pivot down: a column less another is a run over neighbours.
    """
    n, of = uint64(pull.shape[0]), uint64(i)
    log_det = 0.0
    product = 1.0
    start = diagonal = _ZERO
    for a in range(n):
        length, entry = n - a, diagonal
        first = rows[of, _TWO + a] + pull[a]
        for b in range(a, n):
            moment = scale[entry] + rows[of, _TWO + n + entry]
            scaled = (rows[of, _TWO + b] + pull[b]) * shrink
            work[_ONE, start + b - a] = moment - scaled * first
            entry += b + _ONE
        before = _ZERO + a
        for c in range(a):
            factor = work[_ONE, before]
            for b in range(length):
                work[_ONE, start + b] -= factor * work[_ONE, before + b]
            before += n - c - _ONE
        # Rounding may take a pivot below what psi alone guarantees; it can't truly be less.
        value = max(work[_ONE, start], 1e-12 * scale[diagonal])
        root = np.sqrt(value)
        work[_ONE, start] = root
        for b in range(_ONE, length):
            work[_ONE, start + b] /= root
        # Four pivots within these bounds multiply without leaving float64.
        if _LEAST_FACTOR < value < 1.0 / _LEAST_FACTOR:
            product *= value
        else:
            log_det += log(value)
        if a % _FOUR == _THREE:
            log_det += log(product)
            product = 1.0
        start += length
        diagonal += a + _TWO
    return log_det + log(product)


@inner
def invert_factor(work: Rows, table: Rows, k: int, d: int, rescale: float) -> None:
    """Write ``rescale`` times the inverse of :func:`factor_scatter`'s factor into ``table[k]``.

    From column 2 + d on, a lower triangle packed by rows.
    """
    n, to = uint64(d), uint64(k)
    at = _TWO + n
    for a in range(n):
        for b in range(a):
            table[to, at + b] = 0.0
        # Place a of the factor's columns, and the inverse's rows above.
        entry, above = _ZERO + a, _TWO + n
        for c in range(a):
            factor = work[_ONE, entry]
            for b in range(c + _ONE):
                table[to, at + b] -= factor * table[to, above + b]
            entry += n - c - _ONE
            above += c + _ONE
        pivot = work[_ONE, entry]
        for b in range(a):
            table[to, at + b] /= pivot
        table[to, at + a] = rescale / pivot
        at += a + _ONE


@inner
def squared_distance(table: Rows, k: int, rows: Rows, i: int, d: int, farthest: float) -> float:
    """Length squared of F (x - location); no more of it than shows that it exceeds ``farthest``.

    ``rows[i]`` holds x (d) from column 2 on, ``table[k]`` the location there and then F, a lower
    triangle: the sum only grows from row to row.
    """
    distance = 0.0
    n, of, to = uint64(d), uint64(k), uint64(i)
    at = _TWO + n
    for a in range(n):
        value = 0.0
        for b in range(a + _ONE):
            value += table[of, at] * (rows[to, _TWO + b] - table[of, _TWO + b])
            at += _ONE
        distance += value * value
        if distance > farthest:
            break
    return distance


@inner
def _lay_sum(  # noqa: PLR0913 - two arrays and two places in them
    scale: NDArray[np.float64],
    pull: NDArray[np.float64],
    kappa: float,
    rows: Rows,
    i: int,
    other: Rows,
    j: int,
    d: int,
    work: Rows,
    column: int,
) -> None:
    """Put the matrix of :func:`factor_scatter`, for ``rows[i] + other[j]``, into a column of work.

    From row 2 on, for :func:`_factor_columns`; ``shrink`` is 1 over ``kappa`` and the weight.
    """
    at, to, lane, n = uint64(i), uint64(j), uint64(column), uint64(d)
    shrink = 1.0 / (kappa + (rows[at, _ONE] + other[to, _ONE]))
    entry = _ZERO
    for a in range(n):
        work[_ZERO, a] = rows[at, _TWO + a] + other[to, _TWO + a] + pull[a]
        scaled = work[_ZERO, a] * shrink
        for b in range(a + _ONE):
            moment = rows[at, _TWO + n + entry] + other[to, _TWO + n + entry]
            work[_TWO + entry, lane] = scale[entry] + moment - scaled * work[_ZERO, b]
            entry += _ONE


@inner
def _take_pivots(work: Rows, pivot: uint64, least: float, log_det: NDArray[np.float64]) -> None:
    """Invert a row of pivots, which then are in the products in row 1 or in ``log_det``."""
    for lane in range(uint64(log_det.shape[0])):
        value = max(work[pivot, lane], least)
        work[pivot, lane] = 1.0 / value
        if _LEAST_FACTOR < value < 1.0 / _LEAST_FACTOR:
            work[_ONE, lane] *= value
        else:
            log_det[lane] += log(value)


@inner
def _factor_columns(
    scale: NDArray[np.float64], d: int, log_det: NDArray[np.float64], work: Rows
) -> None:
    """Log determinants of the matrices in as many columns of ``work`` as ``log_det`` has places.

    They are factored as L D L' (ones on the diagonal of L, so without roots), side by side: one
    instruction works on several of them.
    """
    n, width = uint64(d), uint64(log_det.shape[0])
    # L of the present row times D, behind the matrices.
    row = _TWO + n * (n + _ONE) // _TWO
    log_det[:] = 0.0
    for lane in range(width):
        work[_ONE, lane] = 1.0
    start = _TWO
    for a in range(n):
        pivot, other = start + a, _TWO
        for b in range(a):
            entry = start + b
            for c in range(b):
                for lane in range(width):
                    work[entry, lane] -= work[row + c, lane] * work[other + c, lane]
            for lane in range(width):
                value = work[entry, lane]
                work[row + b, lane] = value
                work[entry, lane] = value * work[other + b, lane]
                work[pivot, lane] -= value * work[entry, lane]
            other += b + _ONE
        # Rounding may take a pivot below what the scale alone guarantees, as in factor_scatter.
        _take_pivots(work, pivot, 1e-12 * scale[pivot - _TWO], log_det)
        if a % _FOUR == _THREE or a + _ONE == n:
            for lane in range(width):
                log_det[lane] += log(work[_ONE, lane])
                work[_ONE, lane] = 1.0
        start += a + _ONE


@inner
def log_determinants(  # noqa: PLR0913 - three arrays and two places in them
    scale: NDArray[np.float64],
    pull: NDArray[np.float64],
    kappa: float,
    rows: Rows,
    places: NDArray[np.int64],
    other: Rows,
    j: int,
    d: int,
    out: NDArray[np.float64],
    work: Rows,
) -> None:
    """Write to ``out`` what :func:`factor_scatter` returns for each ``rows[places] + other[j]``.

    ``shrink`` is 1 over ``kappa`` and the sum's weight; ``work`` has two rows more than it has
    columns, which are those of a statistics row.
    """
    lanes = min(work.shape[1], _LANES)
    for start in range(0, places.shape[0], lanes):
        stop = min(start + lanes, places.shape[0])
        for at in range(start, stop):
            _lay_sum(scale, pull, kappa, rows, places[at], other, j, d, work, at - start)
        _factor_columns(scale, d, out[start:stop], work)


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
    n, old_row, new_row = uint64(d), uint64(source), uint64(k)
    at = _TWO + n
    for a in range(n):
        z = 0.0
        for b in range(a + _ONE):
            z += table[old_row, at + b] * work[_ONE, b]
        before = 1.0 + distance
        distance += z * z
        shrink = rescale * sqrt(before / (1.0 + distance))
        above = z / before
        for b in range(a + _ONE):
            old = table[old_row, at + b]
            table[new_row, at + b] = shrink * (old - above * work[_ONE, n + b])
            work[_ONE, n + b] += z * old
        at += a + _ONE
    return distance
