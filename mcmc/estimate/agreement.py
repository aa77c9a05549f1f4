"""How far two partitions of the same observations agree."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["adjusted_rand_index"]


def adjusted_rand_index(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """Return the agreement of two partitions, corrected for chance (Hubert and Arabie 1985)."""
    _, a = np.unique(one, return_inverse=True)
    _, b = np.unique(other, return_inverse=True)
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1.0)

    def pairs(counts: NDArray[np.float64]) -> float:
        return float((counts * (counts - 1.0)).sum() / 2.0)

    both, in_a, in_b = pairs(table), pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    every = pairs(np.array([float(len(one))]))
    expected = in_a * in_b / every if every else 0.0
    largest = (in_a + in_b) / 2.0
    return 1.0 if largest == expected else (both - expected) / (largest - expected)
