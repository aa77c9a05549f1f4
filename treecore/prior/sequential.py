"""Drawing a partition one observation after another, and numbering its blocks."""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

__all__ = ["canonical_labels", "seat_one_by_one"]

# Sorting is slower than counting unless labels are spread wider than this many times n.
_SPREAD = 8


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
    n = labels.shape[0]
    if n == 0:
        return np.empty(0, dtype=np.int64)
    end = int(labels.max()) + 1
    if labels.dtype.kind not in "iu" or int(labels.min()) < 0 or end > _SPREAD * n:
        _, labels = np.unique(labels, return_inverse=True)
        end = int(labels.max()) + 1
    first = np.full(end, n, dtype=np.int64)
    # Written from the back, so that the earliest place of each label is the one that stays.
    first[labels[::-1]] = np.arange(n - 1, -1, -1, dtype=np.int64)
    present = np.flatnonzero(first < n)
    rank = np.empty(end, dtype=np.int64)
    rank[present[np.argsort(first[present])]] = np.arange(present.shape[0], dtype=np.int64)
    return rank[labels]
