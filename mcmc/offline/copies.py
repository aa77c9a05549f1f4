"""Rows of a table that are exact copies of others.

Two rows that were measured one by one do not have the same numbers in every column, to the last
digit, unless numbers are few. Where rows do, a table was joined, appended or exported twice, or one
thing is in it several times. Such a row is no observation of its own: under a density a pair of
equal rows is a cluster as narrow as can be. So a fit sees each of them once.

Rows are taken for copies by counts of pairs alone, so that no unit matters:

- Were columns independent of each other, less than a thousandth as many pairs would be alike as
  are. Columns of which n rows have no more than the square root of n values don't count in that:
  flags, categories and small whole numbers often hang together.
- More pairs are alike in all columns than in all but one. Rows that are alike by chance, or as
  clusters are narrow or columns move together, are more often nearly so.

A row that is there more often than ten times is a place of its own, such as what a sensor tells
while it is stuck, and stays as it is. So does a table of which more than half of the rows are
repeats: its rows are of few kinds.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from weald.treecore.statistics.observations import Observations

__all__ = ["are_originals", "originals", "originals_seen", "place_of_original", "sees_once"]

# What has clusters as narrow as the rows say, or may come to it.
_OF_WIDTHS = frozenset({"auto", "gaussian", "diagonal", "mixed"})

_BY_CHANCE = 1e-3
_OFTEN = 10
# Of the finaliser of SplitMix64 (G. Steele, D. Lea and C. Flood, OOPSLA 2014).
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def sees_once(family: str, params: Mapping[str, object], learn_base: bool | None = None) -> bool:
    """Whether a fit of a family, asked for with such parameters, sees copies of rows once.

    Who says what a cluster is like beforehand, or that it is not to be learned, has bounded its
    width, and gets the posterior of all rows.
    """
    return family in _OF_WIDTHS and not params and learn_base is not False


def originals_seen(
    values: Observations, family: str, params: Mapping[str, object], learn_base: bool | None = None
) -> NDArray[np.int64]:
    """What `originals` says of observations (n, d), where such a fit sees copies once."""
    return originals(values) if sees_once(family, params, learn_base) else _itself(values)


def are_originals(original: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows (n) are no copies, by what `originals` says of them."""
    return np.asarray(original == np.arange(original.size))


def place_of_original(original: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each row's original (n) is among the rows that are no copies."""
    return np.asarray((np.cumsum(are_originals(original)) - 1)[original])


def originals(values: Observations) -> NDArray[np.int64]:
    """The row (n) that each row of observations (n, d) is a copy of, itself where it is none.

    Of rows that are alike all but the first are copies; gaps (NaN) are alike. Sparse rows, which
    are counts, are never.
    """
    itself = _itself(values)
    if not isinstance(values, np.ndarray):
        return itself
    rows = np.zeros(len(values), dtype=np.uint64)
    for c in range(values.shape[1]):
        rows += _hashed(values[:, c], c)
    _, first, kind, sizes = np.unique(
        rows, return_index=True, return_inverse=True, return_counts=True
    )
    few = sizes[kind] <= _OFTEN
    if first.size == len(values) or 2 * first.size < len(values) or not few.any():
        return itself
    if not _are_copies(values[few], rows[few]):
        return itself
    return np.where(few, first[kind], itself)


def _itself(values: Observations) -> NDArray[np.int64]:
    return np.arange(values.shape[0])


def _are_copies(values: NDArray[np.float64], rows: NDArray[np.uint64]) -> bool:
    """Whether rows (n, d) are alike otherwise than by chance; ``rows`` (n) are their hashes."""
    alike, every = _pairs(rows), len(rows) * (len(rows) - 1) / 2
    by_chance, but_one = every, 0.0
    for c in range(values.shape[1]):
        column = _hashed(values[:, c], c)
        # A row's hash is the sum of those of its cells.
        but_one += _pairs(rows - column) - alike
        if but_one >= alike:
            return False
        if np.unique(column).size > np.sqrt(len(rows)):
            by_chance *= _pairs(column) / every
    return by_chance < _BY_CHANCE * alike


def _pairs(hashes: NDArray[np.uint64]) -> float:
    """Pairs of hashes (n) that are equal."""
    sizes = np.unique(hashes, return_counts=True)[1].astype(np.float64)
    return float((sizes * (sizes - 1.0)).sum() / 2.0)


def _hashed(column: NDArray[np.float64], place: int) -> NDArray[np.uint64]:
    """Hashes of a column's values (n), which those of another place don't have."""
    # One zero and one gap, whatever their bits.
    bits = np.where(np.isnan(column), np.nan, column + 0.0).view(np.uint64)
    bits = bits + np.uint64((place + 1) * _GOLDEN % 2**64)
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return np.asarray(bits ^ (bits >> np.uint64(31)))
