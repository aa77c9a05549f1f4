"""Read a data file into a matrix, for ``weald fit`` and ``weald predict``."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from weald.cli.errors import NotFoundError, NotReadyError, UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SUFFIXES", "Table", "load_table", "open_text"]

SUFFIXES = (".npy", ".npz", ".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".parquet")


@dataclass(frozen=True)
class Table:
    """Rows of numbers out of a file.

    Parameters
    ----------
    values : float64[n, d], or a sparse matrix of that shape
        One row per record, in the file's order.
    names : list of str, length d
        Column names; ``x1``, ``x2``, ... where the file gives none.
    left_out : list of str
        Columns that hold no numbers.
    truth : int[n] or None
        Labels that came along (``y`` of an ``.npz``): never used for fitting, only compared with.
    """

    values: Any
    names: list[str]
    left_out: list[str]
    truth: NDArray[np.int64] | None = None


def load_table(
    path: Path,
    columns: Sequence[str] | None = None,
    *,
    keep_sparse: bool = False,
    missing: bool = False,
) -> Table:
    """Load a file by its suffix.

    Parameters
    ----------
    path : Path
        ``.npy``, ``.npz`` (``X``, or a CSR matrix as scipy saves it), ``.csv[.gz]``,
        ``.jsonl[.gz]``, ``.parquet``.
    columns : sequence of str, optional
        The columns to take, in this order; otherwise all that hold numbers.
    keep_sparse : bool
        Whether a sparse matrix stays one.
    missing : bool
        Whether values may be missing: they are NaN then.

    Raises
    ------
    NotFoundError
        If there is no such file.
    UsageError
        If it holds no usable matrix; the message names the row and the column.
    """
    if not path.is_file():
        raise NotFoundError(f"{path}: no such file")
    name = path.name.lower()
    if name.endswith((".npy", ".npz")):
        table = _from_numpy(path)
    elif name.endswith((".csv", ".csv.gz")):
        table = _from_csv(path)
    elif name.endswith((".jsonl", ".jsonl.gz")):
        table = _from_jsonl(path)
    elif name.endswith(".parquet"):
        table = _from_parquet(path)
    else:
        raise UsageError(f"{path}: cannot tell what it is; expected one of {', '.join(SUFFIXES)}")
    if not keep_sparse and not _is_dense(table):
        table = replace(table, values=table.values.toarray())
    chosen = table if columns is None else _select(path, table, columns)
    return _checked(path, chosen, missing=missing)


def _from_numpy(path: Path) -> Table:
    import numpy as np

    try:
        loaded = np.load(path, allow_pickle=False)
    except (ValueError, OSError) as error:
        raise UsageError(f"{path}: not a NumPy file of plain numbers: {error}") from error
    if isinstance(loaded, np.ndarray):
        return _matrix(path, loaded)
    with loaded:
        keys = set(loaded.files)
        if "A" in keys and "X" not in keys:
            raise UsageError(f"{path}: holds a network (A): cluster it with --family irm")
        if {"data", "indices", "indptr", "shape"} <= keys:
            return _compressed(path, loaded)
        if "X" in keys:
            values = loaded["X"]
        else:
            raise UsageError(f"{path}: expected an array X, found {', '.join(sorted(keys))}")
        truth = loaded["y"] if "y" in keys else None
    table = _matrix(path, values)
    if truth is None or truth.shape != table.values.shape[:1] or truth.dtype.kind not in "iu":
        return table
    return Table(table.values, table.names, [], truth.astype(np.int64))


def _is_dense(table: Table) -> bool:
    import numpy as np

    return isinstance(table.values, np.ndarray)


def _compressed(path: Path, arrays: Any) -> Table:
    """A CSR matrix; columns are named by an array ``vocab``, where there is one."""
    import numpy as np
    from scipy.sparse import csr_array

    parts = (arrays["data"], arrays["indices"], arrays["indptr"])
    try:
        matrix = csr_array(parts, shape=tuple(arrays["shape"])).astype(np.float64)
    except ValueError as error:
        raise UsageError(f"{path}: not a CSR matrix as scipy saves it: {error}") from error
    n, d = matrix.shape
    names = arrays["vocab"] if "vocab" in arrays else np.empty(0)
    named = names.shape == (d,) and names.dtype.kind == "U"
    truth = arrays["y"] if "y" in arrays else np.empty(0)
    known = truth.shape == (n,) and truth.dtype.kind in "iu"
    return Table(
        matrix,
        [str(name) for name in names] if named else _numbered(d),
        [],
        truth.astype(np.int64) if known else None,
    )


def _matrix(path: Path, values: NDArray[Any]) -> Table:
    import numpy as np

    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        raise UsageError(
            f"{path}: expected rows x features of numbers, found {values.dtype} {values.shape}"
        )
    return Table(np.asarray(values, dtype=np.float64), _numbered(values.shape[1]), [])


def _numbered(n_columns: int) -> list[str]:
    return [f"x{index}" for index in range(1, n_columns + 1)]


def open_text(path: Path, errors: str = "strict") -> TextIO:
    """Open a text file, decompressing it if its name says so; ``errors`` as ``open`` has it."""
    if path.name.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8", errors=errors, newline="")
    return path.open(encoding="utf-8", errors=errors, newline="")


def _from_csv(path: Path) -> Table:
    with open_text(path) as lines:
        first = lines.readline()
        # What stands between most of the cells of the first line, a comma where there is but one.
        delimiter = max(",;\t", key=first.count)
        rows = [row for row in csv.reader(chain([first], lines), delimiter=delimiter) if row]
    if not rows:
        raise UsageError(f"{path}: no rows")
    # A first row in which nothing is a number is a header.
    named = not any(_is_number(cell) for cell in rows[0])
    names = rows[0] if named else _numbered(len(rows[0]))
    body = rows[1:] if named else rows
    for number, row in enumerate(body, start=2 if named else 1):
        if len(row) != len(names):
            raise UsageError(f"{path}: line {number} has {len(row)} cells, expected {len(names)}")
    return _by_columns(path, names, body)


def _from_jsonl(path: Path) -> Table:
    records = []
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                records.append(_record(path, number, line))
    if not records:
        raise UsageError(f"{path}: no records")
    names = list(records[0])
    rows = [[record.get(name, "") for name in names] for record in records]
    return _by_columns(path, names, rows)


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}: line {number} is not JSON: {error}") from error
    if isinstance(record, list):
        return dict(zip(_numbered(len(record)), record, strict=True))
    if not isinstance(record, dict):
        raise UsageError(f"{path}: line {number} is neither an object nor a list")
    return record


def _from_parquet(path: Path) -> Table:
    try:
        # By name, because pyarrow is no dependency and has no types.
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        raise NotReadyError(
            f"{path}: reading Parquet needs pyarrow", next_step="pip install pyarrow"
        ) from error
    table = parquet.read_table(path)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return _by_columns(path, list(table.column_names), [list(row) for row in rows])


def _by_columns(path: Path, names: list[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Keep the columns whose every filled cell is a number."""
    import numpy as np

    columns = list(zip(*rows, strict=True))
    numeric = [j for j, column in enumerate(columns) if _is_numeric(column)]
    left_out = [name + _why(columns[j]) for j, name in enumerate(names) if j not in numeric]
    if not numeric:
        raise UsageError(f"{path}: no column holds numbers only; found {', '.join(names)}")
    values = np.full((len(rows), len(numeric)), np.nan)
    for index, j in enumerate(numeric):
        values[:, index] = [float(cell) if _filled(cell) else np.nan for cell in columns[j]]
    return Table(values, [names[j] for j in numeric], left_out)


def _why(column: Sequence[object]) -> str:
    """The first cell that is no number, where most of them are: it may be a slip."""
    odd = [(row, cell) for row, cell in enumerate(column) if _filled(cell) and not _is_number(cell)]
    if 2 * len(odd) > len(column) or not odd:
        return ""
    row, cell = odd[0]
    return f" (in record {row + 1} it is {cell!r}, one of {len(odd)} that are no numbers)"


def _filled(cell: object) -> bool:
    return cell is not None and cell != ""


def _is_number(cell: object) -> bool:
    if isinstance(cell, bool | int | float):
        return True
    try:
        float(cell)  # type: ignore[arg-type]  # whatever it is, the answer is yes or no
    except (TypeError, ValueError):
        return False
    return True


def _is_numeric(column: Iterable[object]) -> bool:
    filled = [cell for cell in column if _filled(cell)]
    return bool(filled) and all(map(_is_number, filled))


def _select(path: Path, table: Table, columns: Sequence[str]) -> Table:
    missing = [name for name in columns if name not in table.names]
    if missing:
        raise UsageError(
            f"{path}: no column of numbers named {', '.join(missing)}; "
            f"there are {', '.join(table.names)}"
        )
    order = [table.names.index(name) for name in columns]
    return Table(table.values[:, order], list(columns), table.left_out, table.truth)


def _checked(path: Path, table: Table, *, missing: bool) -> Table:
    import numpy as np

    if _is_dense(table):
        values = table.values
        bad = np.argwhere(np.isinf(values) if missing else ~np.isfinite(values))
    else:
        held = table.values.tocoo()
        bad = np.column_stack([held.row, held.col])[~np.isfinite(held.data)]
    if len(bad):
        row, column = bad[0]
        raise UsageError(
            f"{path}: {len(bad)} values are missing or not finite, the first in row {row + 1}, "
            f"column {table.names[column]}; drop such rows or choose other columns",
            next_step="weald fit --family diagonal (which takes missing values), or --columns "
            "NAME,NAME ...",
        )
    if table.values.shape[0] == 0:
        raise UsageError(f"{path}: no rows")
    return table
