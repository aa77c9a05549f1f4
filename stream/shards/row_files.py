"""Parquet files and arrays as one table of rows, a range of which a shard reads.

A shard decodes its rows once, into a file of plain numbers that it maps into memory: what does not
fit is read from the disk in every pass, in order.
"""

import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from weald.stream.errors import SourceError
from weald.stream.optional import optional_library

__all__ = ["RowFiles", "row_files", "rows_of"]

Matrix = NDArray[np.float64]

_BATCH = 65_536


class RowFiles(msgspec.Struct, frozen=True):
    """Files whose rows follow each other.

    Attributes
    ----------
    paths, rows:
        Each file and how many rows it has.
    columns:
        The columns of numbers that are taken, in this order.
    left_out:
        Columns that are no numbers.
    """

    paths: list[str]
    rows: list[int]
    columns: list[str]
    left_out: list[str] = []

    @property
    def n(self) -> int:
        """All rows."""
        return sum(self.rows)


def row_files(paths: Sequence[Path], columns: Sequence[str] | None) -> RowFiles:
    """What is in the files; by default all columns that hold numbers are taken.

    Raises SourceError for a file that is none of these, or has other columns than asked for.
    """
    if len(paths) == 1 and paths[0].suffix == ".npy":
        matrix = _matrix(paths[0])
        names = [f"x{at + 1}" for at in range(matrix.shape[1])]
        return RowFiles([str(paths[0])], [matrix.shape[0]], _chosen(paths[0], names, columns))
    opened = [(path, _parquet(path)) for path in paths]
    first, file = opened[0]
    types = import_module("pyarrow.types")
    numeric: list[str] = []
    others: list[str] = []
    for each in file.schema_arrow:
        is_number = types.is_floating(each.type) or types.is_integer(each.type)
        (numeric if is_number or types.is_boolean(each.type) else others).append(each.name)
    chosen = _chosen(first, numeric, columns)
    for path, each in opened:
        if missing := [name for name in chosen if name not in each.schema_arrow.names]:
            raise SourceError(f"{path}: no column {', '.join(missing)}, which {first} has")
    counts = [each.metadata.num_rows for _, each in opened]
    return RowFiles([str(path) for path in paths], counts, chosen, others)


def _chosen(path: Path, names: list[str], columns: Sequence[str] | None) -> list[str]:
    if columns is not None and (missing := [name for name in columns if name not in names]):
        raise SourceError(
            f"{path}: no column of numbers named {', '.join(missing)}; there are {', '.join(names)}"
        )
    if not names:
        raise SourceError(f"{path}: no column holds numbers")
    return list(names if columns is None else columns)


def _matrix(path: Path) -> Matrix:
    try:
        # Copied where somebody writes: nobody does, but what is read only compiles anew.
        matrix: Matrix = np.load(path, mmap_mode="c", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: not a NumPy file of plain numbers: {error}") from error
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise SourceError(f"{path}: expected rows x features of numbers")
    return matrix


def _parquet(path: Path) -> Any:
    parquet = optional_library("pyarrow.parquet", f"{path}: reading Parquet", "parquet")
    try:
        return parquet.ParquetFile(path)
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: cannot be read as Parquet: {error}") from error


def rows_of(files: RowFiles, start: int, stop: int, folder: Path) -> Matrix:
    """Rows from ``start`` to ``stop`` (n, d), as a map of a file in the folder, made if need be."""
    if files.paths[0].endswith(".npy"):
        matrix = _matrix(Path(files.paths[0]))
        whole = [f"x{at + 1}" for at in range(matrix.shape[1])]
        if files.columns == whole and matrix.dtype == np.float64 and matrix.flags.c_contiguous:
            return matrix[start:stop]
    path = folder / "rows.npy"
    if not path.exists():
        part = folder / f"rows{os.getpid()}.part"
        shape = (stop - start, len(files.columns))
        out = np.lib.format.open_memmap(part, mode="w+", dtype=np.float64, shape=shape)
        at = 0
        for values in _batches(files, start, stop):
            out[at : at + len(values)] = values
            at += len(values)
        out.flush()
        del out
        part.replace(path)
    rows: Matrix = np.load(path, mmap_mode="c", allow_pickle=False)
    return rows


def _batches(files: RowFiles, start: int, stop: int) -> Iterator[Matrix]:
    """Values of the rows in order, some at a time."""
    if files.paths[0].endswith(".npy"):
        matrix = _matrix(Path(files.paths[0]))
        places = [int(name[1:]) - 1 for name in files.columns]
        for at in range(start, stop, _BATCH):
            yield np.asarray(matrix[at : min(at + _BATCH, stop), places], np.float64)
        return
    first = 0
    for path, n in zip(files.paths, files.rows, strict=True):
        if first < stop and first + n > start:
            yield from _of_file(Path(path), files.columns, start - first, stop - first)
        first += n


def _of_file(path: Path, columns: list[str], start: int, stop: int) -> Iterator[Matrix]:
    file = _parquet(path)
    first = 0
    for group in range(file.num_row_groups):
        n = file.metadata.row_group(group).num_rows
        if first < stop and first + n > start:
            at = first
            for batch in file.iter_batches(_BATCH, row_groups=[group], columns=columns):
                low, high = max(start - at, 0), min(stop - at, batch.num_rows)
                if low < high:
                    yield _numbers(batch.slice(low, high - low), columns)
                at += batch.num_rows
        first += n


def _numbers(batch: Any, columns: list[str]) -> Matrix:
    """A batch's columns as numbers; what is missing is NaN."""
    values = np.empty((batch.num_rows, len(columns)))
    for at, name in enumerate(columns):
        values[:, at] = batch.column(name).to_numpy(zero_copy_only=False).astype(np.float64)
    return values
