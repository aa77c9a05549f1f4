"""How far two partitions of the same observations agree."""

import numpy as np
from numpy.typing import NDArray

from weald.treecore.prior.sequential import canonical_labels

__all__ = ["adjusted_rand_index", "share_alike"]


def adjusted_rand_index(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """Return the agreement of two partitions, corrected for chance (Hubert and Arabie 1985)."""
    table = _table(one, other)

    def pairs(counts: NDArray[np.float64]) -> float:
        return float((counts * (counts - 1.0)).sum() / 2.0)

    both, in_a, in_b = pairs(table), pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    every = pairs(np.array([float(len(one))]))
    expected = in_a * in_b / every if every else 0.0
    largest = (in_a + in_b) / 2.0
    return 1.0 if largest == expected else (both - expected) / (largest - expected)


def share_alike(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """Return the share of observations that two partitions put alike, parts matched one to one.

    One less this is the transfer distance (Day 1981): the share that has to change its part.
    """
    table = _table(one, other)
    for side in (table, table.T):
        # Where no two parts want the same one, each gets the best.
        if len(set(side.argmax(axis=1).tolist())) == len(side):
            return float(side.max(axis=1).sum() / len(one))
    # Slow to load.
    from scipy.optimize import linear_sum_assignment

    return float(table[linear_sum_assignment(table, maximize=True)].sum() / len(one))


def _table(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.float64]:
    """How many observations (a, b) are in a part of one and of the other."""
    # Sorting many rows would take longer than all else.
    a, b = canonical_labels(one), canonical_labels(other)
    n_a, n_b = int(a.max()) + 1, int(b.max()) + 1
    return np.bincount(a * n_b + b, minlength=n_a * n_b).reshape(n_a, n_b).astype(np.float64)
