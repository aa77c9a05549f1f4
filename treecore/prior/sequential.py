"""Drawing a partition one observation after another, and numbering its blocks."""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled

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
    found = np.array(labels, dtype=np.int64, order="C")
    _renumber(found, np.full(end, -1, dtype=np.int64))
    return found


@compiled
def _renumber(labels: NDArray[np.int64], number: NDArray[np.int64]) -> None:
    """Number labels (n) in place as they first appear; ``number`` of each label, -1 before."""
    numbered = 0
    for i in range(labels.shape[0]):
        label = labels[i]
        if number[label] < 0:
            number[label] = numbered
            numbered += 1
        labels[i] = number[label]
