"""A shard's labels after each sweep, which outlive its process."""

import os
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LabelFiles"]


class LabelFiles:
    """Labels in a folder, a file for each sweep that is kept.

    A file is there as a whole or not at all. A process may die at any time; against the loss of
    the disk nothing is done.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _path(self, sweep: int) -> Path:
        return self._folder / f"labels{sweep}.npy"

    def save(self, sweep: int, labels: NDArray[np.int32]) -> None:
        """Keep the labels after a sweep."""
        # One that lost its coordinator may still write while its successor does.
        part = self._folder / f"labels{os.getpid()}.part"
        with part.open("wb") as file:
            np.save(file, labels, allow_pickle=False)
        part.replace(self._path(sweep))

    def load(self, sweep: int) -> NDArray[np.int32]:
        """The labels after a sweep, as a map of the file."""
        labels: NDArray[np.int32] = np.load(self._path(sweep), mmap_mode="r", allow_pickle=False)
        return labels

    def drop(self, sweep: int) -> None:
        """Forget them, if they are there."""
        self._path(sweep).unlink(missing_ok=True)

    def scratch(self, n: int, dtype: type[np.generic]) -> NDArray[Any]:
        """Room for n numbers, all 0: a map of a file without a name, which goes with the process.

        The system takes its pages back at need, so that no process has to hold its labels.
        """
        with TemporaryFile(dir=self._folder) as file:
            file.truncate(n * np.dtype(dtype).itemsize)
            mapped = np.memmap(file, dtype=dtype, mode="r+", shape=(n,))
        # As a plain array, for which kernels are compiled.
        return np.asarray(mapped)
