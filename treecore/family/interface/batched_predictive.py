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
def _squared_distances(batched: BatchedPredictives, n: int, rows: Rows, i: int, d: int) -> None:
    """Lengths squared of F (x - location) under blocks 0 to n - 1, into ``found``.

    ``rows[i]`` holds x (d) from column 2 on; the table the location (d) from row 2 on and then F,
    a lower triangle packed by rows.
    """
    table, found, term = batched.table, batched.found, batched.term
    at = 2 + d
    for a in range(d):
        first = rows[i, 2]
        for k in range(n):
            term[k] = table[at, k] * (first - table[2, k])
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

    The table holds the constant, the exponent, and what :func:`_squared_distances` reads.
    """
    _squared_distances(batched, n, rows, i, d)
    table, prior, found, most = batched.table, batched.prior, batched.found, batched.term
    for k in range(n):
        # log1p(z) >= 2 z / (2 + z), which is worked out for several blocks at a time.
        below = 2.0 * found[k] / (2.0 + found[k])
        most[k] = prior[k] + table[0, k] - table[1, k] * below
    for at in range(slots.shape[0]):
        k = slots[at]
        if most[k] < largest - NEGLIGIBLE:
            weights[at] = -np.inf
            continue
        weights[at] = prior[k] + table[0, k] - table[1, k] * log1p(found[k])
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
