"""Drawing a partition one observation after another, and numbering its blocks."""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

__all__ = ["canonical_labels", "seat_one_by_one"]


def seat_one_by_one(
    rng: Generator, n: int, discount: float, opens: Callable[[int, int], bool]
) -> NDArray[np.int64]:
    """Labels of n observations, each of which opens a block or joins block c ~ n_c - discount.

    Parameters
    ----------
    rng:
        Source of randomness.
    n:
        Number of observations.
    discount:
        What is taken off every block's size, in [0, 1).
    opens:
        Called once for each observation i = 0, 1, ... with i and the number of blocks so far;
        whether i opens a block. It must do so at i = 0.

    Returns
    -------
    NDArray[np.int64]
        Labels (n), numbered in order of appearance.
    """
    labels: list[int] = []
    sizes: list[int] = []
    for i in range(n):
        if opens(i, len(sizes)):
            labels.append(len(sizes))
            sizes.append(1)
            continue
        # The block of an earlier observation is chosen ~ n_c; keeping it with probability
        # (n_c - discount) / n_c makes that ~ n_c - discount.
        block = labels[int(rng.random() * i)]
        while discount > 0.0 and rng.random() * sizes[block] < discount:
            block = labels[int(rng.random() * i)]
        labels.append(block)
        sizes[block] += 1
    return np.array(labels, dtype=np.int64)


def canonical_labels(labels: NDArray[np.integer]) -> NDArray[np.int64]:
    """The same partition with labels 0, 1, 2, ... numbered as they first appear."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(first.shape[0], dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.shape[0], dtype=np.int64)
    return rank[inverse]
