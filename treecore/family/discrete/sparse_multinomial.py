"""The Dirichlet-multinomial on sparse rows: every cost is that of an observation's own words."""

from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import implements
from weald.treecore.errors import ObservationError
from weald.treecore.family.interface.base import make_predictive, make_rows
from weald.treecore.statistics.log_gamma import SMALL, log_gamma, log_rising, rising
from weald.treecore.statistics.observations import SparseMatrix
from weald.treecore.statistics.rows import Rows, clear_row
from weald.treecore.statistics.sparse_rows import SparseRows, make_sparse_rows, put_word, seek

from .dirichlet_multinomial import (
    LARGEST_PRODUCT,
    SMALLEST_PRODUCT,
    DirichletMultinomial,
    bag_marginal,
    bag_predictive,
    bag_prepare,
    bag_tables,
    bag_union,
    observe_bag,
)

__all__ = ["SparsePredictive", "SparseValues", "add_bags", "sparse_values"]

_COUNT, _WEIGHT, _TOKENS, _SCORE = 0, 1, 2, 3


class SparseValues(NamedTuple):
    """Observations as compressed rows, each word once: those of row r are ``start[r]`` and on.

    ``start`` int64 (n + 1), ``word`` int32 and ``counts`` float64 (non-zeros).
    """

    start: NDArray[np.int64]
    word: NDArray[np.int32]
    counts: NDArray[np.float64]


def sparse_values(matrix: SparseMatrix) -> SparseValues:
    """Take the observations from any scipy sparse matrix or array (n, d) of counts.

    Raises ObservationError naming the first count that is not whole, or negative.
    """
    compressed = matrix.tocsr(copy=True)
    compressed.sum_duplicates()
    compressed.eliminate_zeros()
    counts = np.asarray(compressed.data, dtype=np.float64)
    bad = ~((counts == np.floor(counts)) & (counts > 0.0) & np.isfinite(counts))
    if bad.any():
        at = int(bad.argmax())
        row = int(np.searchsorted(compressed.indptr, at, side="right")) - 1
        where = f"row {row}, feature {compressed.indices[at]}"
        raise ObservationError(f"{where} is {counts[at]:g}: a count is whole, from 0")
    return SparseValues(
        compressed.indptr.astype(np.int64), compressed.indices.astype(np.int32), counts
    )


def add_bags(values: SparseValues, groups: NDArray[np.int64], totals: Rows) -> None:
    """Add each observation to the dense row (3 + vocabulary) of its group."""
    counts = np.bincount(groups, minlength=totals.shape[0])
    totals[:, :2] += counts[:, None]
    group = np.repeat(groups, np.diff(values.start))
    np.add.at(totals, (group, 3 + values.word), values.counts)
    totals[:, 2] = totals[:, 3:].sum(axis=1)


class SparsePredictive(NamedTuple):
    """Predictive tables that look words up in the rows themselves.

    Attributes
    ----------
    rows:
        The rows of the blocks.
    source:
        Row of each block, int64 (capacity).
    tokens:
        Posterior weight of all words of each block, and its log gamma: float64 (capacity, 2).
    """

    rows: SparseRows
    source: NDArray[np.int64]
    tokens: NDArray[np.float64]


@implements(make_rows, DirichletMultinomial)
def _make_rows(
    family: DirichletMultinomial, capacity: int, values: Rows | SparseValues
) -> Rows | SparseRows:
    if isinstance(values, SparseValues):
        return make_sparse_rows(capacity, values.word.shape[0], family.from_word)
    return np.zeros((capacity, 3 + family.vocabulary))


@implements(make_predictive, DirichletMultinomial)
def _make_predictive(family: DirichletMultinomial, capacity: int, rows: Any) -> Any:
    return bag_tables(rows, capacity, family)


@implements(bag_tables, SparseRows)
def _bag_tables(rows: SparseRows, capacity: int, _family: DirichletMultinomial) -> SparsePredictive:
    return SparsePredictive(rows, np.zeros(capacity, dtype=np.int64), np.zeros((capacity, 2)))


@implements(observe_bag, SparseRows)
def _observe_bag(
    rows: SparseRows, i: int, _family: DirichletMultinomial, values: SparseValues, r: int
) -> None:
    clear_row(rows, i)
    rows.head[i, _COUNT] = 1.0
    rows.head[i, _WEIGHT] = 1.0
    for at in range(values.start[r], values.start[r + 1]):
        rows.head[i, _TOKENS] += values.counts[at]
        put_word(rows, i, values.word[at], 1, values.counts[at])


@implements(bag_marginal, SparseRows)
def _bag_marginal(rows: SparseRows, i: int, family: DirichletMultinomial) -> float:
    return rows.head[i, _SCORE] - log_rising(family.from_all, 0, rows.head[i, _TOKENS])


@implements(bag_union, SparseRows)
def _bag_union(
    rows: SparseRows,
    i: int,
    other: SparseRows,
    j: int,
    family: DirichletMultinomial,
    _work: Rows,
) -> float:
    if rows.used[i] < other.used[j]:
        rows, i, other, j = other, j, rows, i
    lookup, words, weights, from_word = rows.lookup, rows.word, rows.weight, family.from_word
    start, room = rows.start[i], rows.room[i]
    total = rows.head[i, _SCORE] + other.head[j, _SCORE]
    for slot in range(other.start[j], other.start[j] + other.used[j]):
        word, others = other.word[slot], other.weight[slot]
        entry = lookup[2 * start + seek(lookup, words, start, room, word)]
        if entry > 0:
            mine = weights[start + entry - 1]
            total += log_rising(from_word, 0, mine + others)
            total -= log_rising(from_word, 0, mine) + log_rising(from_word, 0, others)
    tokens = rows.head[i, _TOKENS] + other.head[j, _TOKENS]
    return total - log_rising(family.from_all, 0, tokens)


@implements(bag_prepare, SparsePredictive)
def _bag_prepare(
    table: SparsePredictive, k: int, rows: SparseRows, i: int, family: DirichletMultinomial
) -> None:
    table.source[k] = i
    table.tokens[k, 0] = family.beta * family.vocabulary + rows.head[i, _TOKENS]
    table.tokens[k, 1] = log_gamma(table.tokens[k, 0])


@implements(bag_predictive, SparsePredictive)
def _bag_predictive(
    table: SparsePredictive, k: int, rows: SparseRows, i: int, family: DirichletMultinomial
) -> float:
    block, source = table.rows, table.source[k]
    lookup, words, weights = block.lookup, block.word, block.weight
    start, room = block.start[source], block.room[source]
    total = table.tokens[k, 1] - log_gamma(table.tokens[k, 0] + rows.head[i, _TOKENS])
    product = 1.0
    for slot in range(rows.start[i], rows.start[i] + rows.used[i]):
        count, known = rows.weight[slot], family.beta
        if room > 0:
            entry = lookup[2 * start + seek(lookup, words, start, room, rows.word[slot])]
            known += weights[start + entry - 1] if entry > 0 else 0.0
        if count > SMALL:
            total += log_gamma(known + count) - log_gamma(known)
            continue
        product *= rising(known, count)
        if product > LARGEST_PRODUCT or product < SMALLEST_PRODUCT:
            total += log(product)
            product = 1.0
    return total + log(product)
