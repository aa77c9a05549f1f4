"""Rows of columnar and binary files, with the same manners as the lines of a text file."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from weald.stream.errors import SourceError
from weald.stream.record.formats import Format

__all__ = ["RowReader", "open_rows"]

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
        When it cannot be opened, is of another format, or a library is missing.
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
    except ImportError as error:
        file.close()
        extra = "avro" if form == "avro" else "parquet"
        raise SourceError(f"{path} needs {error.name}: pip install 'weald[{extra}]'") from error
    except SourceError:
        file.close()
        raise
    except Exception as error:
        file.close()
        raise SourceError(f"{path} is no {form} file: {error}") from error


def _parquet(file: BinaryIO) -> Iterator[Any]:
    opened = import_module("pyarrow.parquet").ParquetFile(file)
    return (row for batch in opened.iter_batches(ROWS_AT_ONCE) for row in batch.to_pylist())


def _arrow(file: BinaryIO) -> Iterator[Any]:
    ipc = import_module("pyarrow.ipc")
    magic = file.read(6)
    file.seek(0)
    if magic == b"ARROW1":
        opened = ipc.open_file(file)
        batches = (opened.get_batch(i) for i in range(opened.num_record_batches))
    else:
        batches = iter(ipc.open_stream(file))
    return (row for batch in batches for row in batch.to_pylist())


def _avro(file: BinaryIO) -> Iterator[Any]:
    rows: Iterator[Any] = import_module("fastavro").reader(file)
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
