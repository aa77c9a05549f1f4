"""Observations as people give them: numbers, or counts of words as a sparse matrix of scipy."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["CompressedRows", "Observations", "SparseMatrix"]


class CompressedRows(Protocol):
    """What is read of a matrix by rows, as scipy has them."""

    data: NDArray[np.float64]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int32]

    def sum_duplicates(self) -> None:
        """Add up entries of one place."""

    def eliminate_zeros(self) -> None:
        """Leave out entries that are zero."""


class SparseMatrix(Protocol):
    """What is asked of a sparse matrix (n, d), whichever of scipy's it is."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...

    def tocsr(self, copy: bool = False) -> CompressedRows:  # noqa: FBT001, FBT002 - scipy's
        """The same by rows."""
        ...

    def toarray(self) -> NDArray[np.float64]:
        """The same with its zeros."""
        ...

    def __getitem__(self, rows: slice | NDArray[np.int64], /) -> SparseMatrix:
        """Some rows."""
        ...


# (n, d), one observation a row.
Observations = NDArray[np.float64] | SparseMatrix
