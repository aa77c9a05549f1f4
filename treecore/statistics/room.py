"""Arrays with room behind their end, so that what grows with a stream grows where it is."""

import mmap
import sys
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["has_room", "longer", "next_length"]

A = TypeVar("A", bound=NDArray[Any])

# Addresses that are set aside behind an array, as a multiple of it: a page costs memory from when
# it is written to, not before.
_ROOM = 64
# Below this an array is copied as it grows.
_SMALL = 2**20
# Asks Linux not to count these addresses as memory; Python has no name for it before 3.13.
_UNCOUNTED = 0x4000 if sys.platform == "linux" else 0


def next_length(held: int, needed: int) -> int:
    """How many rows to have room for where ``held`` are too few: a quarter more at least."""
    return max(needed, held + held // 4)


def has_room(array: A, n: int) -> bool:
    """Whether :func:`longer` can give this array n rows without a copy."""
    room = array.base
    return isinstance(room, mmap.mmap) and _n_bytes(array, n) <= len(room)


def longer(array: A, n: int, kept: slice | NDArray[np.int64] = slice(None)) -> A:
    """The same array with n rows, zeros behind those that it has.

    Parameters
    ----------
    array:
        Shape (m, ...), a whole array, not a part of one. It must not be used any more: the two are
        the same memory where there was room.
    n:
        Rows that the new one has, m at least.
    kept:
        Rows whose content counts. Where there is no room they alone are copied, so that pages of
        the others stay untouched and cost no memory; the others' content is then zeros.
    """
    kind, shape = array.dtype, (n, *array.shape[1:])
    if has_room(array, n):
        same: Any = np.ndarray(shape, kind, buffer=array.base)
        return same
    room = _set_aside(_n_bytes(array, n))
    grown: Any = np.zeros(shape, kind) if room is None else np.ndarray(shape, kind, buffer=room)
    grown[: len(array)][kept] = array[kept]
    return grown


def _set_aside(n_bytes: int) -> mmap.mmap | None:
    """Zeros with room behind them, where they are many enough and the machine allows it."""
    if n_bytes < _SMALL:
        return None
    try:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _UNCOUNTED
        return mmap.mmap(-1, _ROOM * n_bytes, flags=flags)
    except OSError:
        # Addresses are limited, or each of them counts as memory.
        return None


def _n_bytes(array: A, n: int) -> int:
    return n * int(np.prod(array.shape[1:], dtype=np.int64)) * array.itemsize
