"""Entries to inner functions, so that tests run their machine code."""

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.statistics.ordering import in_order

__all__ = ["checked_half", "half_of", "sorted_ids"]


@compiled
def sorted_ids(ids: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.int64]:
    """As :func:`in_order`."""
    return in_order(ids, values)


@inner
def half_of(x: int) -> int:
    """Half of an even number."""
    if x % 2 == 1:
        raise ValueError("odd")
    return x // 2


@compiled
def checked_half(x: int) -> int:
    """As :func:`half_of`."""
    return half_of(x)
