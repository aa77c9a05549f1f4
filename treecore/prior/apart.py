"""A prior under which some atoms never share a block: those that are marked.

A marked atom counts as so many observations more that the size of a block says whether it has none,
one or several of them. With none or one the block weighs what it weighs without marks; with several
it weighs nothing. Kernels read the table of sizes as ever, so that none of those that decide by log
joints needs to know. Those that draw weights of blocks from their sizes cannot run under it.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from .base import Seating

__all__ = ["apart_seating", "keeps_apart", "with_marks"]

# Blocks that are larger than the table is long weigh this often the logarithm of a factorial: what
# no likelihood makes up for, and yet a number, since kernels subtract weights from one another.
_SCALE = -1e9


def _mark(n: int) -> int:
    # One more than a block can have: kernels ask for the growth of the largest one, too.
    return n + 2


def with_marks(
    sizes: NDArray[np.int64], rows: NDArray[np.float64], marked: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Sizes (n) and statistics rows (n, m) of atoms, those at the places ``marked`` (o) marked.

    A row counts as its size does: no formula of a family reads that, and a marked observation is no
    single one to kernels, which take the growth by one of these for granted.
    """
    sizes, rows = sizes.copy(), rows.copy()
    sizes[marked] += _mark(int(sizes.sum()))
    rows[marked, 0] = sizes[marked]
    return sizes, rows


def apart_seating(seating: Seating, n: int) -> Seating:
    """The same prior of n observations in all, for atoms with marks: a table of 16 n bytes."""
    table = np.zeros((2, _mark(n)))
    sizes = np.arange(1, table.shape[1], dtype=np.float64)
    table[:, 1:] = seating.scale * (gammaln(sizes + seating.shift) - seating.log_norm)
    return seating._replace(shift=0.0, scale=_SCALE, log_norm=0.0, size_table=table.reshape(-1))


def keeps_apart(seating: Seating) -> bool:
    """Whether it is one of :func:`apart_seating`; its ``shift`` and ``scale`` say nothing then."""
    return seating.scale == _SCALE
