"""Read a data file into a matrix, for ``weald fit`` and ``weald predict``."""

from __future__ import annotations

import csv
import gzip
import json
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, register_error
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, cast

from weald.cli.errors import NotFoundError, UsageError
from weald.stream.record.inference.field_inference import MOST_ODD

from .gap_words import is_gap
from .refused_rows import UNREADABLE, RefusedRow, tell_refused
from .text_table import LOOKED_AT, SEPARATORS, text_table
from .written_numbers import plain, tell_writings, writings_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SUFFIXES", "Table", "checked", "load_table", "open_bytes", "open_text", "selected"]

_LENIENT = "weald.windows-1252"
# Bytes of a file by which it is known what is in it, and those with which a workbook of Excel or
# LibreOffice begins.
_BEGINNING = 8192
_ARCHIVE = b"PK\x03\x04"
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
    rows : int[n] or None
        Place of each row in the file, from 0, where some were refused.
    slips : sequence of (int, str or None, RefusedRow)
        Cells of columns of numbers that are none: the place of the row, the column, and what
        people are told. Without a column it is the whole row.
    """

    values: Any
    names: list[str]
    left_out: list[str]
    truth: NDArray[np.int64] | None = None
    rows: NDArray[np.int64] | None = None
    slips: Sequence[tuple[int, str | None, RefusedRow]] = ()

    def place_of(self, row: int) -> int:
        """Place in the file, from 0, of one of the rows."""
        return row if self.rows is None else int(self.rows[row])

    def of_rows(self, kept: NDArray[np.bool_]) -> Table:
        """Return the table of some of its rows (n), the slips left out."""
        if kept.all():
            return self
        import numpy as np

        places = np.arange(len(kept)) if self.rows is None else self.rows
        truth = None if self.truth is None else self.truth[kept]
        return replace(self, values=self.values[kept], truth=truth, rows=places[kept], slips=())

    def without(self, refused: Sequence[int]) -> Table:
        """All rows but these places."""
        import numpy as np

        if not refused:
            return self
        kept = np.ones(self.values.shape[0], dtype=bool)
        kept[list(refused)] = False
        return replace(self, values=self.values[kept], rows=np.flatnonzero(kept))


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
        raise UsageError(
            f"{path}: cannot tell what it is; expected one of {', '.join(SUFFIXES)}",
            next_step="call a table .csv, or write it as that; `weald look` knows one by its lines",
        )
    if not keep_sparse and not _is_dense(table):
        table = replace(table, values=table.values.toarray())
    chosen = table if columns is None else selected(path, table, columns)
    slips = [slip for slip in chosen.slips if slip[1] is None or slip[1] in chosen.names]
    tell_refused(path, [refusal for _, _, refusal in slips], table.values.shape[0])
    return checked(path, chosen.without([row for row, _, _ in slips]), missing=missing)


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


def open_bytes(path: Path) -> BinaryIO:
    """Open a file, decompressing it if its name says so."""
    return cast("BinaryIO", gzip.open(path)) if path.name.endswith(".gz") else path.open("rb")


def open_text(path: Path) -> TextIO:
    """Open a text file, decompressing it if its name says so.

    It may begin with a byte order mark, which also says UTF-16. Bytes that are no UTF-8 are taken
    for the characters of Windows-1252, as spreadsheets write them.

    Raises
    ------
    UsageError
        If there is no text in it.
    """
    with open_bytes(path) as file:
        beginning = file.read(_BEGINNING)
    is_utf_16 = beginning.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    if not is_utf_16 and (beginning.startswith(_ARCHIVE) or b"\0" in beginning):
        what = "a workbook or another archive" if beginning.startswith(_ARCHIVE) else "bytes"
        raise UsageError(
            f"{path}: it is {what}, not text",
            next_step="write it as CSV in UTF-8, as spreadsheets do under Save as, or as Parquet",
        )
    encoding = "utf-16" if is_utf_16 else "utf-8-sig"
    return TextIOWrapper(open_bytes(path), encoding=encoding, errors=_LENIENT, newline="")


def _as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    odd = error.object[error.start : error.end]
    return odd.decode("cp1252", "replace"), error.end


register_error(_LENIENT, _as_windows_1252)


def _from_csv(path: Path) -> Table:
    with open_text(path) as lines:
        try:
            text = text_table(lines, SEPARATORS)
            rows = list(text.rows)
        except csv.Error as error:
            raise UsageError(f"{path}: a cell has no end: {error}") from error
    if not rows:
        raise UsageError(f"{path}: no rows")
    names = text.names
    for number, row in rows:
        if len(row) != len(names):
            raise UsageError(f"{path}: line {number} has {len(row)} cells, expected {len(names)}")
    head = [dict(enumerate(row)) for _, row in rows[:LOOKED_AT]]
    if writings := writings_of(head, text.separator):
        tell_writings(path, {names[at]: writing for at, writing in writings.items()})
        rows = [(line, list(plain(dict(enumerate(row)), writings).values())) for line, row in rows]
    # Rows that are none have their places, too.
    rows = sorted([*rows, *((each.line, [""] * len(names)) for each in text.refused)])
    numbers = [line for line, _ in rows]
    table = _by_columns(path, names, [row for _, row in rows], numbers)
    refused = [(numbers.index(each.line), None, each) for each in text.refused]
    return replace(table, slips=sorted([*table.slips, *refused], key=lambda slip: slip[2].line))


def _from_jsonl(path: Path) -> Table:
    records: list[tuple[int, dict[str, Any]]] = []
    broken: list[tuple[int, None, RefusedRow]] = []
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            record = _record(line)
            if isinstance(record, str):
                broken.append((len(records), None, RefusedRow(number, record)))
                record = {}
            records.append((number, record))
    if not records:
        raise UsageError(f"{path}: no records")
    if len(broken) == len(records):
        first = broken[0][2]
        raise UsageError(f"{path}: no line is a record: line {first.line} {first.detail}")
    names = list(next(record for _, record in records if record))
    rows = [[record.get(name, "") for name in names] for _, record in records]
    table = _by_columns(path, names, rows, [number for number, _ in records])
    return replace(table, slips=sorted([*table.slips, *broken], key=lambda slip: slip[2].line))


def _record(line: str) -> dict[str, Any] | str:
    """The numbers or the fields of a line by name, or why it has none."""
    try:
        record = json.loads(line)
    except UNREADABLE as error:
        return f"is not JSON: {error}"
    if isinstance(record, list):
        return dict(zip(_numbered(len(record)), record, strict=True))
    return record if isinstance(record, dict) else "is neither an object nor a list"


def _from_parquet(path: Path) -> Table:
    from weald.stream.optional import optional_library
    from weald.stream.source.table_reader import in_microseconds

    parquet = optional_library("pyarrow.parquet", f"{path}: reading Parquet", "parquet")
    table = in_microseconds(parquet.read_table(path))
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return _by_columns(path, list(table.column_names), rows, range(1, len(rows) + 1))


def _by_columns(
    path: Path, names: list[str], rows: Sequence[Sequence[Any]], lines: Sequence[int]
) -> Table:
    """Keep the columns of numbers, with those few of their cells that are none as slips."""
    import numpy as np

    from weald.stream.record.refused import cut

    columns = list(zip(*rows, strict=True))
    odd = [[at for at, cell in enumerate(column) if _is_odd(cell)] for column in columns]
    numeric = [j for j, column in enumerate(columns) if _is_numeric(column, len(odd[j]))]
    left_out = [name + _why(columns[j], odd[j]) for j, name in enumerate(names) if j not in numeric]
    if not numeric:
        raise UsageError(f"{path}: no column holds numbers only; found {', '.join(names)}")
    values = np.full((len(rows), len(numeric)), np.nan)
    slips = []
    for index, j in enumerate(numeric):
        slipped = set(odd[j])
        values[:, index] = [
            np.nan if at in slipped or is_gap(cell, number=True) else float(cell)
            for at, cell in enumerate(columns[j])
        ]
        for at in odd[j]:
            detail = f"column {names[j]!r} should be a number, is {cut(repr(columns[j][at]))}"
            slips.append((at, names[j], RefusedRow(lines[at], detail)))
    table = Table(values, [names[j] for j in numeric], left_out)
    return replace(table, slips=sorted(slips))


def _why(column: Sequence[object], odd: Sequence[int]) -> str:
    """The first cell that is no number, where most of them are: it may be a slip."""
    if 2 * len(odd) > len(column) or not odd:
        return ""
    cell = column[odd[0]]
    return f" (in row {odd[0]} it is {cell!r}, one of {len(odd)} that are no numbers)"


def _is_odd(cell: object) -> bool:
    return not is_gap(cell, number=True) and not _is_number(cell)


def _is_number(cell: object) -> bool:
    try:
        float(cell)  # type: ignore[arg-type]  # whatever it is, the answer is yes or no
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _is_numeric(column: Sequence[object], n_odd: int) -> bool:
    n_filled = sum(not is_gap(cell, number=True) for cell in column)
    return n_filled > n_odd and n_odd <= MOST_ODD * n_filled


def selected(path: Path, table: Table, columns: Sequence[str]) -> Table:
    """These columns of a table, in this order; raises UsageError where one is not there."""
    missing = [name for name in columns if name not in table.names]
    if missing:
        raise UsageError(
            f"{path}: no column of numbers named {', '.join(missing)}; "
            f"there are {', '.join(table.names)}"
        )
    order = [table.names.index(name) for name in columns]
    return replace(table, values=table.values[:, order], names=list(columns))


def checked(path: Path, table: Table, *, missing: bool) -> Table:
    """The table; raises UsageError where it has no rows, or a value that no family takes."""
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
            f"{path}: {len(bad)} values are missing or not finite, the first in row "
            f"{table.place_of(row)}, column {table.names[column]}; drop such rows "
            "or choose other columns",
            next_step="weald fit --family diagonal (which takes missing values), or --columns "
            "NAME,NAME ...",
        )
    if table.values.shape[0] == 0:
        raise UsageError(f"{path}: no rows")
    return table
