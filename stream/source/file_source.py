"""Files and standard input as topics of one partition, whose offset is the row's number.

A CSV row becomes a JSON object of texts, so that one decoder serves every source. Rows appended
to a file later are read when the stream is run again; standard input goes on counting from where
SQL stands.
"""

import csv
import logging
import os
import re
import time
import uuid
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from weald.storage.commit.log_marks import LogMark
from weald.stream.errors import SourceError
from weald.stream.record.formats import format_of, separator_of
from weald.stream.record.record import STORED_BYTES, Message, TopicPartition, checksum_of
from weald.stream.settings import StreamSettings

from .lines import LineReader
from .recognition import FoundLog
from .source import Change
from .table_reader import RowReader, open_rows

__all__ = ["FileSource", "goes_on"]

STDIN = "stdin"
TEXTUAL = frozenset({"jsonl", "csv", "lines"})

_log = logging.getLogger(__name__)


class FileSource:
    """A finite source: `exhausted` once the last row was polled.

    Parameters
    ----------
    settings : StreamSettings
        Its `path`, None for standard input, and its `format`.
    max_bytes : int
        Longest row that the decoder takes. A longer one, which it refuses, is cut, and not before
        what a dead letter holds of it: that may be replayed when more is allowed.
    record_bytes : int
        Size of a record of a packed file.

    Raises
    ------
    SourceError
        When the file cannot be opened, or a CSV file has no header.
    """

    def __init__(
        self, settings: StreamSettings, max_bytes: int = 1_048_576, record_bytes: int = 8
    ) -> None:
        self._path = None if settings.source == "stdin" else settings.path
        if settings.source == "file" and self._path is None:
            raise SourceError("the stream's source is a file: name it with [stream] path")
        self._max_bytes = max_bytes
        self._kept_bytes = max(max_bytes, STORED_BYTES)
        self._batch_records = settings.most_polled
        self._format = format_of(settings)
        self._csv = self._format == "csv"
        self._record_bytes = record_bytes
        self._separator = separator_of(self._path or "")
        topic = STDIN if self._path is None else Path(self._path).name
        self._partition = TopicPartition(topic, 0)
        self._member = f"{topic}-{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self._changes = [Change("assigned", (self._partition,))]
        self._paused = False
        self._sought = False
        self._open()

    def _open(self) -> None:
        self._lines = self._reader()
        modified = time.time() if self._path is None else Path(self._path).stat().st_mtime
        self._timestamp_ms = int(modified * 1000)
        self._next = 0
        self._row = b""
        self._header: list[str] | None = None

    def _reader(self) -> LineReader | RowReader:
        if self._format in TEXTUAL:
            return LineReader(self._path, self._kept_bytes)
        if self._path is None:
            raise SourceError(f"standard input cannot be read as {self._format}: name a file")
        return open_rows(self._path, self._format, self._record_bytes)

    @property
    def exhausted(self) -> bool:
        """Whether the last row was polled."""
        return self._lines.ended

    def poll(self, timeout_s: float) -> list[Message]:
        """Return the next rows, at most ``batch_records``."""
        if self._paused or (self._path is None and not self._sought):
            # What is taken before the first `seek` doesn't count, and a pipe says nothing twice.
            time.sleep(min(timeout_s, 0.05))
            return []
        rows: list[bytes] = []
        for line in self._lines.take(self._batch_records, timeout_s):
            rows += self._rows(line)
        if self._lines.ended and self._row:
            rows.append(self._value(self._row))
            self._row = b""
        first, self._next = self._next, self._next + len(rows)
        topic, number = self._partition
        return [
            Message(topic, number, first + i, self._timestamp_ms, None, value)
            for i, value in enumerate(rows)
        ]

    def _rows(self, line: bytes) -> list[bytes]:
        if self._format not in TEXTUAL:
            return [line]
        if not self._csv:
            # Blank lines are no records: every second editor ends a file with one.
            return [line] if line.strip() else []
        row = self._row + line
        opened = goes_on(line, self._separator, opened=bool(self._row))
        if opened and len(row) <= self._max_bytes:
            self._row = row + b"\n"
            return []
        self._row = b""
        if not row.strip():
            return []
        if self._header is None:
            self._header = self._names(row)
            return []
        return [self._value(row)]

    def _names(self, row: bytes) -> list[str]:
        try:
            return _cells(row, self._separator)
        except (UnicodeDecodeError, csv.Error) as error:
            raise SourceError(f"{self._path or STDIN} has no CSV header: {error}") from error

    def _value(self, row: bytes) -> bytes:
        """Turn a CSV row into an object; what cannot be one is left for the decoder to refuse."""
        if not self._csv or self._header is None or len(row) > self._kept_bytes:
            return row
        try:
            cells = _cells(row, self._separator)
        except (UnicodeDecodeError, csv.Error):
            return row
        while len(cells) > len(self._header) and not cells[-1]:
            cells.pop()  # every row of some files ends with a separator
        if len(cells) > len(self._header):
            return msgspec.json.encode(cells)
        return msgspec.json.encode(dict(zip(self._header, cells, strict=False)))

    def pause(self) -> None:
        """Yield nothing until `resume`."""
        self._paused = True

    def resume(self) -> None:
        """Undo `pause`."""
        self._paused = False

    def take_changes(self) -> list[Change]:
        """Return the one assignment, the first time."""
        changes, self._changes = self._changes, []
        return changes

    def assignment(self) -> set[TopicPartition]:
        """Return the file's one partition."""
        return {self._partition}

    def look(self, marks: Mapping[TopicPartition, LogMark]) -> dict[TopicPartition, FoundLog]:
        """Read the row again that was the last one; standard input has none twice."""
        if self._path is None:
            return {}
        mark = marks.get(self._partition, LogMark())
        if mark.last_offset is None:
            return {self._partition: FoundLog(None, 0, None)}
        self._move_to(mark.last_offset)
        row = self._one_row()
        end = None if row else self._next
        return {self._partition: FoundLog(None, 0, end, checksum_of(row[0]) if row else None)}

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Go on with this row; standard input cannot go back, so its rows are renumbered."""
        self._sought = True
        target = offsets.get(self._partition, 0)
        if self._path is None:
            self._next = target
            return
        if target:
            _log.info("%s: %d rows were read before", self._path, target)
        self._move_to(target)

    def _move_to(self, target: int) -> None:
        if target < self._next:
            self._lines.close()
            self._open()
        while self._next < target and not self.exhausted:
            # A line is at most one row, so this never goes too far.
            self._rows_now(target - self._next)

    def _one_row(self) -> list[Message]:
        """Return the next row, if there is one; a header or a blank line is none."""
        row: list[Message] = []
        while not row and not self.exhausted:
            row = self._rows_now(1)
        return row

    def _rows_now(self, at_most: int) -> list[Message]:
        """Poll so many rows, paused or not."""
        size, paused = self._batch_records, self._paused
        self._batch_records, self._paused = min(size, at_most), False
        rows = self.poll(0.0)
        self._batch_records, self._paused = size, paused
        return rows

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Do nothing: nobody watches a file's lag."""

    def generation(self) -> int:
        """Zero: a file has no group."""
        return 0

    def member_id(self) -> str:
        """Identity of this process."""
        return self._member

    def lag(self) -> dict[TopicPartition, int]:
        """Unknown, but for the end: a file's rows are not counted beforehand."""
        return {self._partition: 0} if self.exhausted else {}

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


def goes_on(line: bytes, separator: str, *, opened: bool) -> bool:
    """Whether a cell in quotes goes on in the next line of a CSV file.

    A quote inside a cell that does not begin with one is a character, as in ``5" wide``.

    Parameters
    ----------
    line : bytes
    separator : str
    opened : bool
        Whether such a cell goes on in this line.
    """
    if b'"' not in line:
        return opened
    return _open_end(separator).fullmatch(b'"' + line if opened else line) is not None


@cache
def _open_end(separator: str) -> re.Pattern[bytes]:
    part = re.escape(separator).encode()
    inside = rb'"(?:[^"]++|"")*+'  # of quotes, two of which stand for one
    cell = rb'(?:%b"[^%b]*+|[^"%b][^%b]*+)?+' % (inside, part, part, part)
    return re.compile(rb"(?:%b%b)*+%b" % (cell, part, inside))


def _cells(row: bytes, separator: str) -> list[str]:
    text = row.decode()
    return [cell.strip() for cell in next(csv.reader([text], delimiter=separator, strict=True))]
