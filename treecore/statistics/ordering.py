"""Orders of few numbers inside compiled code, where numpy's own take seconds to compile."""

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import allocating, inner

__all__ = ["in_order"]


@inner
def _order_stably(
    values: NDArray[np.float64], order: NDArray[np.int64], spare: NDArray[np.int64]
) -> None:
    """Fill ``order`` (n) with the places of ``values`` (n, no NaN), rising, ties by place.

    ``spare`` (n) is overwritten.
    """
    n = values.shape[0]
    for at in range(n):
        order[at] = at
    width = 1
    while width < n:
        a, b, middle, stop = 0, 0, 0, 0
        for at in range(n):
            if at == stop:
                a, b = at, min(n, at + width)
                middle, stop = b, min(n, b + width)
            if a < middle and (b == stop or values[order[a]] <= values[order[b]]):
                spare[at] = order[a]
                a += 1
            else:
                spare[at] = order[b]
                b += 1
        for at in range(n):
            order[at] = spare[at]
        width *= 2


@allocating
def in_order(ids: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The ids (n, integer) by their values (n, no NaN), rising, ties in their order."""
    n = ids.shape[0]
    order = np.empty(n, dtype=np.int64)
    spare = np.empty(n, dtype=np.int64)
    _order_stably(values, order, spare)
    for at in range(n):
        spare[at] = ids[order[at]]
    return spare
