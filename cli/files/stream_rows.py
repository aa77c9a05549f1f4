"""A file as its stream reads it, and which of its rows that sets aside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .refused_rows import RefusedRow

if TYPE_CHECKING:
    from weald.stream.settings import SchemaSettings

__all__ = ["StreamRows", "stream_rows"]

_AT_ONCE = 1000


class StreamRows(NamedTuple):
    """Observations that a stream makes of a file.

    Attributes
    ----------
    values:
        Observations (n, d).
    features:
        Names of the d features.
    places:
        Of the n among all records.
    refused:
        The other records, as the stream would set them aside.
    """

    values: NDArray[np.float64]
    features: tuple[str, ...]
    places: NDArray[np.int64]
    refused: list[RefusedRow]


def stream_rows(path: Path, settings: SchemaSettings, n_records: int | None = None) -> StreamRows:
    """Read a file, or its first records, as a stream of this schema does."""
    from weald.stream.record.decode import NUMBER_BYTES, decode
    from weald.stream.record.formats import format_of, schema_for
    from weald.stream.settings import StreamSettings
    from weald.stream.source.file_source import FileSource

    at_once = _AT_ONCE if n_records is None else min(n_records, _AT_ONCE)
    stream = StreamSettings(source="file", path=str(path), batch_records=at_once)
    schema = schema_for(stream, settings)
    source = FileSource(stream, settings.max_bytes, NUMBER_BYTES * schema.dimension)
    source.seek({})
    parts, places, letters, n = [np.empty((0, schema.dimension))], [np.empty(0, np.int64)], [], 0
    try:
        while not source.exhausted and (n_records is None or n < n_records):
            messages = source.poll(0.0)
            batch, refused = decode(messages, schema)
            parts.append(batch.values)
            places.append(batch.offset)
            letters += refused
            n += len(messages)
    finally:
        source.close()
    last = letters[-1].offset if letters else -1
    lines = list(islice(_lines(path, format_of(stream), settings.max_bytes), last + 1))
    told = [RefusedRow(lines[each.offset], each.detail) for each in letters]
    return StreamRows(np.concatenate(parts), schema.features, np.concatenate(places), told)


def _lines(path: Path, form: str, longest: int) -> Iterator[int]:
    """Line that each record ends on, from 1; of columnar files its row."""
    from weald.stream.record.formats import separator_of
    from weald.stream.source.file_source import goes_on
    from weald.stream.source.lines import LineReader

    if form not in ("csv", "jsonl", "lines"):
        yield from count(1)
        return
    number, row, is_header = 0, b"", form == "csv"
    separator = separator_of(path.name)
    with closing(LineReader(str(path), longest)) as reader:
        while not reader.ended:
            for line in reader.take(_AT_ONCE, 0.0):
                number += 1
                opened = form == "csv" and goes_on(line, separator, opened=bool(row))
                row += line
                if opened and len(row) <= longest:
                    row += b"\n"
                    continue
                if row.strip() and not is_header:
                    yield number
                is_header &= not row.strip()
                row = b""
    if row:
        yield number
