"""Which of two blocks has the nearer mean: the cheapest answer to where an observation belongs."""

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import inner
from weald.treecore.statistics.rows import Rows

__all__ = ["nearer"]


@inner
def nearer(rows: Rows, a: int, b: int, x: int, precision: NDArray[np.float64]) -> bool:
    """Whether the mean of ``rows[x]`` is as near to that of ``rows[a]`` as to that of ``rows[b]``.

    First moments are in column 2 and after; squares of distances count by ``precision`` (d).
    """
    share_a, share_b, share_x = 1.0 / rows[a, 1], 1.0 / rows[b, 1], 2.0 / rows[x, 1]
    further = 0.0
    for c in range(precision.shape[0]):
        # |x - a|^2 - |x - b|^2 has no square of x.
        to_a, to_b = share_a * rows[a, 2 + c], share_b * rows[b, 2 + c]
        further += precision[c] * (to_b - to_a) * (share_x * rows[x, 2 + c] - to_a - to_b)
    return further <= 0.0
