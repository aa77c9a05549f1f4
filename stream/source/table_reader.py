"""Rows of columnar and binary files, with the same manners as the lines of a text file."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from weald.stream.errors import LibraryMissing, SourceError
from weald.stream.optional import optional_library
from weald.stream.record.formats import Format

__all__ = ["RowReader", "in_microseconds", "open_rows"]

ROWS_AT_ONCE = 4096


class RowReader:
    """Rows as JSON objects or as bytes, one after the other.

    Parameters
    ----------
    name : str
    rows : iterator of bytes
    file : file object, optional
        Closed with this reader.
    """

    def __init__(self, name: str, rows: Iterator[bytes], file: BinaryIO | None = None) -> None:
        self.name = name
        self._rows = rows
        self._file = file
        self._next: bytes | None = None
        self._advance()

    @property
    def ended(self) -> bool:
        """Whether every row has been taken."""
        return self._next is None

    def take(self, n_rows: int, timeout_s: float) -> list[bytes]:  # noqa: ARG002 - as of lines
        """Return up to `n_rows` rows; a file never keeps anybody waiting."""
        taken: list[bytes] = []
        while self._next is not None and len(taken) < n_rows:
            taken.append(self._next)
            self._advance()
        return taken

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _advance(self) -> None:
        try:
            self._next = next(self._rows, None)
        except Exception as error:
            # Three libraries, each with errors of its own, and none of them a record's fault.
            raise SourceError(f"{self.name} cannot be read on: {error}") from error


def open_rows(path: str, form: Format, record_bytes: int) -> RowReader:
    """Open a file of rows.

    Parameters
    ----------
    path : str
    form : {"parquet", "arrow", "avro", "packed"}
    record_bytes : int
        Size of a packed record.

    Raises
    ------
    SourceError
        When it cannot be opened, or is of another format.
    LibraryMissing
        When its library is not installed.
    """
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - the reader closes it
    except OSError as error:
        raise SourceError(f"{path} cannot be opened: {error.strerror}") from error
    try:
        if form == "packed":
            return RowReader(path, _packed(path, file, record_bytes), file)
        rows = {"parquet": _parquet, "arrow": _arrow, "avro": _avro}[form](file)
        return RowReader(path, (msgspec.json.encode(row) for row in rows), file)
    except (LibraryMissing, SourceError):
        file.close()
        raise
    except Exception as error:
        file.close()
        raise SourceError(f"{path} is no {form} file: {error}") from error


def _parquet(file: BinaryIO) -> Iterator[Any]:
    opened = optional_library("pyarrow.parquet", "reading Parquet", "parquet").ParquetFile(file)
    batches = opened.iter_batches(ROWS_AT_ONCE)
    return (row for batch in batches for row in in_microseconds(batch).to_pylist())


def _arrow(file: BinaryIO) -> Iterator[Any]:
    ipc = optional_library("pyarrow.ipc", "reading Arrow", "parquet")
    magic = file.read(6)
    file.seek(0)
    if magic == b"ARROW1":
        opened = ipc.open_file(file)
        batches = (opened.get_batch(i) for i in range(opened.num_record_batches))
    else:
        batches = iter(ipc.open_stream(file))
    return (row for batch in batches for row in in_microseconds(batch).to_pylist())


def in_microseconds(rows: Any) -> Any:
    """Rows of Arrow with times of nanoseconds in microseconds: Python's own have no more.

    pandas writes such times. Arrow makes pandas' objects of them, which JSON has not, and refuses
    them where pandas is not installed.

    Parameters
    ----------
    rows : pyarrow.RecordBatch or pyarrow.Table
    """
    arrow = optional_library("pyarrow", "reading Parquet", "parquet")
    fields = [_coarser(arrow, field) for field in rows.schema]
    return rows if fields == list(rows.schema) else rows.cast(arrow.schema(fields), safe=False)


def _coarser(arrow: Any, field: Any) -> Any:
    kind, types = field.type, arrow.types
    if types.is_struct(kind):
        inner = [_coarser(arrow, kind.field(i)) for i in range(kind.num_fields)]
        return field.with_type(arrow.struct(inner))
    if types.is_list(kind):
        return field.with_type(arrow.list_(_coarser(arrow, kind.value_field)))
    if getattr(kind, "unit", None) != "ns":
        return field
    if types.is_timestamp(kind):
        return field.with_type(arrow.timestamp("us", kind.tz))
    return field.with_type(arrow.duration("us") if types.is_duration(kind) else arrow.time64("us"))


def _avro(file: BinaryIO) -> Iterator[Any]:
    rows: Iterator[Any] = optional_library("fastavro", "reading Avro", "avro").reader(file)
    return rows


def _packed(path: str, file: BinaryIO, size: int) -> Iterator[bytes]:
    for number in itertools.count():
        record = file.read(size)
        if not record:
            return
        if len(record) < size:
            raise SourceError(
                f"{path} ends within record {number}: a record has {size} bytes, 8 a number"
            )
        yield record
