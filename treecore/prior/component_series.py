"""Sums over an unknown number K of components, with a proven truncation error.

A partition into t blocks that came from K exchangeable components has weight
``V(t) = sum over K >= t of B(K) / (K - t)!``; every term is positive. The sum advances by the ratio
of neighbouring terms, ``c(K) (K + 1) / (K + 1 - t)`` with ``c(K) = B(K + 1) / ((K + 1) B(K))``, and
stops when a bound on all later ratios shows that the rest cannot be seen in a double.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import gammaln

from weald.treecore.compiled.compile import compiled

__all__ = ["ComponentTable", "draw_components", "log_rising", "sum_components"]

_TOLERANCE = 2.0**-58
_LARGE = 2.0**500
_FIRST_LENGTH = 128
_STIRLING_FROM = 24.0


class ComponentTable(NamedTuple):
    """Terms for K = first, first + 1, ...

    Attributes
    ----------
    first:
        Smallest K in the table, 1 or more.
    log_start:
        ``log B(first)``.
    log_ratio:
        ``log c(K)``; minus infinity at the largest K that is possible, where the table then ends.
    ceiling:
        At entry K, at least every ``c(K')`` for K' from K up to some L that all entries share.
    far:
        At least every ratio of neighbouring terms beyond L, below 1; 0 if K ends there.
    """

    first: int
    log_start: float
    log_ratio: NDArray[np.float64]
    ceiling: NDArray[np.float64]
    far: float


MakeTable = Callable[[int], ComponentTable]


@compiled
def _sum_from(
    t: int, first: int, ratio: NDArray[np.float64], ceiling: NDArray[np.float64], far: float
) -> float:
    """Log of ``V(t) / B(t)``; NaN when the table ends before the rest is known to be negligible."""
    term, total, log_unit = 1.0, 1.0, 0.0
    for j in range(t - first, ratio.shape[0]):
        # (K + 1) / (K + 1 - t) falls with K, so up to L no later ratio exceeds ceiling * grow.
        grow = (first + j + 1.0) / (first + j + 1 - t)
        worst = max(ceiling[j] * grow, far)
        if term * worst <= _TOLERANCE * total * (1.0 - worst):
            return log_unit + np.log(total)
        term *= ratio[j] * grow
        total += term
        if total > _LARGE:
            term /= _LARGE
            total /= _LARGE
            log_unit += np.log(_LARGE)
    return np.nan


@compiled
def _sum_each(
    first: int,
    ratio: NDArray[np.float64],
    ceiling: NDArray[np.float64],
    far: float,
    out: NDArray[np.float64],
) -> None:
    # From the largest t, whose series is the longest: a table that is too short shows at once.
    for i in range(out.shape[0] - 1, -1, -1):
        out[i] = _sum_from(first + i, first, ratio, ceiling, far)
        if np.isnan(out[i]):
            return


def sum_components(make_table: MakeTable, n_values: int) -> NDArray[np.float64]:
    """Log V(t) for ``n_values`` successive t, the first of them being the table's ``first``.

    Parameters
    ----------
    make_table:
        Table of at least the given number of entries; shorter only where K ends.
    n_values:
        How many t are asked for. Where t exceeds the largest K the result is minus infinity.

    Returns
    -------
    NDArray[np.float64]
        Log V (n_values); truncation changes V by less than one part in 2^57.
    """
    return _resolve(make_table, n_values)[1]


def _resolve(make_table: MakeTable, n_values: int) -> tuple[ComponentTable, NDArray[np.float64]]:
    spare = _FIRST_LENGTH
    while True:
        table = make_table(n_values + spare)
        first, log_start, log_ratio, ceiling, far = table
        out = np.full(n_values, -np.inf)
        possible = out[: log_ratio.shape[0]]
        _sum_each(first, np.exp(log_ratio), ceiling, far, possible)
        if not np.isnan(possible).any():
            break
        spare *= 4
    # log B(t) by its increments: neighbouring t then differ by the rounding of one sum only.
    following = np.arange(first + 1, first + possible.shape[0])
    steps = log_ratio[: following.shape[0]] + np.log(following)
    possible += log_start + np.concatenate(([0.0], np.cumsum(steps)))
    return table, out


def draw_components(rng: Generator, make_table: MakeTable) -> int:
    """Number of components K drawn given that there are t = ``first`` blocks."""
    table, _ = _resolve(make_table, 1)
    ahead = np.arange(1.0, table.log_ratio.shape[0] + 1)
    steps = table.log_ratio + np.log((table.first + ahead) / ahead)
    log_terms = np.concatenate(([0.0], np.cumsum(steps)))
    cumulative = np.cumsum(np.exp(log_terms - log_terms.max()))
    chosen = np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")
    return table.first + int(chosen)


def log_rising(x: NDArray[np.float64], rise: float) -> NDArray[np.float64]:
    """``log Gamma(x + rise) - log Gamma(x)`` for positive x, without cancelling large values."""
    above = np.maximum(x, _STIRLING_FROM)
    value = (above + rise - 0.5) * np.log1p(rise / above) + rise * (np.log(above) - 1.0)
    value += _stirling(above + rise) - _stirling(above)
    small = np.flatnonzero(x < _STIRLING_FROM)
    value[small] = gammaln(x[small] + rise) - gammaln(x[small])
    return value


def _stirling(x: NDArray[np.float64]) -> NDArray[np.float64]:
    inverse = 1.0 / x
    square = inverse * inverse
    return inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
