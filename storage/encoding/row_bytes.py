"""Rows of numbers as the bytes that the tables and Redis hold: float64, little-endian."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "from_bytes",
    "matrix_from_bytes",
    "offset_of_end",
    "offset_of_record",
    "rows_to_bytes",
    "to_bytes",
]

_FLOAT64 = np.dtype("<f8")


def to_bytes(row: NDArray[np.float64]) -> bytes:
    """Return the row float64[m] as 8 m bytes."""
    return np.ascontiguousarray(row, dtype=_FLOAT64).tobytes()


def from_bytes(data: bytes) -> NDArray[np.float64]:
    """Return the row float64[m] that ``to_bytes`` made; the array is the caller's own."""
    return np.frombuffer(data, dtype=_FLOAT64).astype(np.float64)


def rows_to_bytes(values: NDArray[np.float64]) -> list[bytes]:
    """Return each row of float64[n, d] as its bytes: one copy of the whole, then slices."""
    n, d = values.shape
    width = d * _FLOAT64.itemsize
    block = to_bytes(values)
    return [block[start : start + width] for start in range(0, n * width, width)]


def matrix_from_bytes(rows: Sequence[bytes]) -> NDArray[np.float64]:
    """Return float64[n, d] from n rows of equal length.

    Raises
    ------
    ValueError
        If the rows differ in length.
    """
    if not rows:
        return np.empty((0, 0), dtype=np.float64)
    return from_bytes(b"".join(rows)).reshape(len(rows), -1)


def offset_of_end(offset: int, side: int) -> int:
    """Return an offset for the vertex that came with the edge at ``offset``, as its ``side``.

    It is below 0, so that each row has an identity of its own: -2 o - 1 for the source (side 0) of
    the record at o, and -2 o - 2 for its target (side 1).
    """
    return -2 * offset - 1 - side


def offset_of_record(offset: int) -> int:
    """Return the offset of the record that a row came with; undo ``offset_of_end``."""
    return offset if offset >= 0 else (-offset - 1) // 2
