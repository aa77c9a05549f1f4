"""Predictive tables side by side: the density of one observation under all blocks at once.

Block by block, the terms of a density wait for one another. Side by side, one term of all the
blocks is a run over neighbouring numbers, which the processor takes four or eight at a time; each
block's own sum keeps its order. (``log_predictive`` remains for the few blocks of a split or a
window.)
"""

from math import log1p
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import inner
from weald.treecore.compiled.reference import held_by_reference
from weald.treecore.statistics.rows import Rows

__all__ = [
    "NEGLIGIBLE",
    "BatchedPredictives",
    "OneByOne",
    "show",
    "weigh_products",
    "weigh_students",
]

# A weight that is this much smaller than another, in nats, changes no bit of their sum, nor do a
# thousand of them: a double has 53 bits, which are 37 nats.
NEGLIGIBLE = 44.0
# So many features are looked at a quarter at a time, until at most one in so many blocks may be
# near: then those are asked one by one.
_MANY = 16
_FEW = 8


@held_by_reference
class BatchedPredictives(NamedTuple):
    """Room for blocks in slots below the width.

    Attributes
    ----------
    table:
        Column k is what ``fill_predictive`` writes for block k, float64 (columns of it, width).
    prior:
        What the prior adds to the log density of one more observation in block k, float64 (width).
    found, term:
        Scratch, float64 (width).
    """

    table: Rows
    prior: NDArray[np.float64]
    found: NDArray[np.float64]
    term: NDArray[np.float64]


class OneByOne(NamedTuple):
    """What a family has instead whose blocks are asked one after another."""

    width: int


@inner
def show(batched: BatchedPredictives, k: int, predictive: Rows, prior: float) -> None:
    """Write the table of block k, row k of ``predictive``, into its column."""
    table = batched.table
    for c in range(table.shape[0]):
        table[c, k] = predictive[k, c]
    batched.prior[k] = prior


@inner
def _add_squares(  # noqa: PLR0913 - a table, a row, and which rows of F
    batched: BatchedPredictives, n: int, rows: Rows, i: int, d: int, first: int, last: int
) -> None:
    """Add the squares of places ``first`` to ``last`` - 1 of F (x - location) to ``found``.

    Under blocks 0 to n - 1. ``rows[i]`` holds x (d) from column 2 on; the table the location (d)
    from row 2 on and then F, a lower triangle packed by rows.
    """
    table, found, term = batched.table, batched.found, batched.term
    at = 2 + d + first * (first + 1) // 2
    for a in range(first, last):
        x = rows[i, 2]
        for k in range(n):
            term[k] = table[at, k] * (x - table[2, k])
        for b in range(1, a + 1):
            x = rows[i, 2 + b]
            for k in range(n):
                term[k] += table[at + b, k] * (x - table[2 + b, k])
        if a == 0:
            for k in range(n):
                found[k] = term[k] * term[k]
        else:
            for k in range(n):
                found[k] += term[k] * term[k]
        at += a + 1


@inner
def _all_squares(
    batched: BatchedPredictives, k: int, rows: Rows, i: int, d: int, first: int
) -> float:
    """``found`` of one block, with what :func:`_add_squares` would add from place ``first`` on."""
    table, squares = batched.table, batched.found[k]
    at = 2 + d + first * (first + 1) // 2
    for a in range(first, d):
        value = table[at, k] * (rows[i, 2] - table[2, k])
        for b in range(1, a + 1):
            value += table[at + b, k] * (rows[i, 2 + b] - table[2 + b, k])
        squares += value * value
        at += a + 1
    return squares


@inner
def _bound_weights(batched: BatchedPredictives, n: int) -> None:
    """What weights are at most, into ``term``: squares that are still to come only lower them."""
    table, prior, found, most = batched.table, batched.prior, batched.found, batched.term
    for k in range(n):
        # log1p(z) >= 2 z / (2 + z), which is worked out for several blocks at a time.
        below = 2.0 * found[k] / (2.0 + found[k])
        most[k] = prior[k] + table[0, k] - table[1, k] * below


@inner
def weigh_students(  # noqa: PLR0913 - tables, a row, and where its weights go
    batched: BatchedPredictives,
    n: int,
    slots: NDArray[np.int64],
    rows: Rows,
    i: int,
    d: int,
    largest: float,
    weights: NDArray[np.float64],
) -> None:
    """Weights where log t = constant - exponent log1p(|F (x - location)|^2) is the log density.

    The table holds the constant, the exponent, and what :func:`_add_squares` reads. Of many
    features a few tell that most blocks are beyond notice, and the others are asked alone.
    """
    table, prior, most = batched.table, batched.prior, batched.term
    near, looked_at, step = n, 0, d // 4 if d >= _MANY else d
    while looked_at < d and near * _FEW > n:
        _add_squares(batched, n, rows, i, d, looked_at, min(looked_at + step, d))
        looked_at = min(looked_at + step, d)
        _bound_weights(batched, n)
        if looked_at < d:
            near = 0
            for at in range(slots.shape[0]):
                near += most[slots[at]] >= largest - NEGLIGIBLE
    for at in range(slots.shape[0]):
        k = slots[at]
        if most[k] < largest - NEGLIGIBLE:
            weights[at] = -np.inf
            continue
        squares = _all_squares(batched, k, rows, i, d, looked_at)
        weights[at] = prior[k] + table[0, k] - table[1, k] * log1p(squares)
        largest = max(largest, weights[at])


@inner
def weigh_products(
    batched: BatchedPredictives,
    n: int,
    slots: NDArray[np.int64],
    rows: Rows,
    i: int,
    weights: NDArray[np.float64],
) -> None:
    """Weights where the log density is the product of the table and the row from column 2 on."""
    table, prior, found = batched.table, batched.prior, batched.found
    for k in range(n):
        found[k] = prior[k]
    for c in range(table.shape[0]):
        x = rows[i, 2 + c]
        if x != 0.0:
            for k in range(n):
                found[k] += x * table[c, k]
    for at in range(slots.shape[0]):
        weights[at] = found[slots[at]]
