"""Arithmetic on statistics rows: one dense float64 row per node, block or atom.

Column 0 is the number of observations (what the partition prior sees), column 1 the sum of their
weights (what the likelihood sees); the rest belongs to the family. All columns are additive.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import generic, implements

__all__ = [
    "Rows",
    "add_row",
    "clear_row",
    "copy_row",
    "fade_row",
    "is_single",
    "rows_like",
    "subtract_row",
    "sum_rows",
]

Rows = NDArray[np.float64]
# Rows of one form, dense or sparse.
R = TypeVar("R")


@generic
def add_row(rows: R, i: int, other: R, j: int) -> None:
    """``rows[i] += other[j]``."""
    raise NotImplementedError


@generic
def subtract_row(rows: R, i: int, other: R, j: int) -> None:
    """``rows[i] -= other[j]``; a row whose count reaches zero becomes exactly zero."""
    raise NotImplementedError


@generic
def copy_row(rows: R, i: int, other: R, j: int) -> None:
    """``rows[i] = other[j]``."""
    raise NotImplementedError


@generic
def clear_row(rows: R, i: int) -> None:
    """``rows[i] = 0``."""
    raise NotImplementedError


@generic
def sum_rows(rows: R, i: int, j: int, k: int) -> None:
    """``rows[i] = rows[j] + rows[k]``: an inner node from its children, free of drift."""
    raise NotImplementedError


@generic
def fade_row(rows: Rows, i: int, factor: float) -> None:
    """Multiply the weights of row i; how many observations it counts stays."""
    raise NotImplementedError


@generic
def is_single(rows: Rows, i: int) -> bool:
    """Whether row i is one observation of weight one, so that a predictive table applies to it."""
    raise NotImplementedError


@generic
def rows_like(rows: R, capacity: int, copies: int) -> R:
    """Empty rows of the same form, with room for all that ``rows`` may hold, ``copies`` times.

    Python only. Dense rows have the same room however much is in them.
    """
    raise NotImplementedError


@implements(rows_like, np.ndarray)
def _rows_like(rows: Rows, capacity: int, _copies: int) -> Rows:
    # Zeroed pages cost no memory until they are touched.
    return np.zeros((capacity, rows.shape[1]))


@implements(add_row, np.ndarray)
def _add_row(rows: Rows, i: int, other: Rows, j: int) -> None:
    for c in range(rows.shape[1]):
        rows[i, c] += other[j, c]


@implements(subtract_row, np.ndarray)
def _subtract_row(rows: Rows, i: int, other: Rows, j: int) -> None:
    if rows[i, 0] <= other[j, 0]:
        for c in range(rows.shape[1]):
            rows[i, c] = 0.0
        return
    for c in range(rows.shape[1]):
        rows[i, c] -= other[j, c]


@implements(copy_row, np.ndarray)
def _copy_row(rows: Rows, i: int, other: Rows, j: int) -> None:
    for c in range(rows.shape[1]):
        rows[i, c] = other[j, c]


@implements(clear_row, np.ndarray)
def _clear_row(rows: Rows, i: int) -> None:
    for c in range(rows.shape[1]):
        rows[i, c] = 0.0


@implements(sum_rows, np.ndarray)
def _sum_rows(rows: Rows, i: int, j: int, k: int) -> None:
    for c in range(rows.shape[1]):
        rows[i, c] = rows[j, c] + rows[k, c]


@implements(fade_row, np.ndarray)
def _fade_row(rows: Rows, i: int, factor: float) -> None:
    for c in range(1, rows.shape[1]):
        rows[i, c] *= factor


@implements(is_single, np.ndarray)
def _is_single(rows: Rows, i: int) -> bool:
    return rows[i, 0] == 1.0 and rows[i, 1] == 1.0
