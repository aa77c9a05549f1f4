"""A file's rows as a look sees them: columns to cluster by, and columns to tell of."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.cli.errors import UsageError
from weald.cli.files.sample import Proposal, declared, proposed, records_of
from weald.cli.terminal.output import note

if TYPE_CHECKING:
    from weald.stream.record.originals import Original
    from weald.stream.record.schema import Schema

__all__ = ["Rows", "read_rows"]

# Rows that are read, and of these those that are fitted.
MOST_READ, MOST_FITTED = 1_000_000, 10_000
FEWEST = 3
# What people write where there is nothing.
GAPS = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
MOST_EMPTY = 0.9

Record = Mapping[str, Any]


class Rows(NamedTuple):
    """Rows of a file.

    Attributes
    ----------
    name:
        Of the file.
    n_read:
        Rows of the file; more than these where they are a sample.
    numbers:
        Place of each row (n) in the file, from 0.
    schema:
        What rows are clustered by.
    values:
        Its features (n, d), NaN where there is a gap.
    columns:
        What is told of rows: also times, by which they are not clustered.
    texts:
        Of each row, where there is a column of texts; else empty.
    """

    name: str
    n_read: int
    numbers: NDArray[np.int64]
    schema: Schema
    values: NDArray[np.float64]
    columns: list[Original]
    texts: list[str]


def read_rows(data: str, seed: int) -> Rows:
    """Read a file, or standard input for ``-``, infer its schema, and say so.

    Raises
    ------
    NotFoundError, UsageError
        If there is no such file, or nothing in it to cluster by.
    """
    if data == "-":
        with tempfile.TemporaryDirectory() as folder:
            return _rows(_spooled(Path(folder)), "standard input", seed)
    return _rows(Path(data), Path(data).name, seed)


def _spooled(folder: Path) -> Path:
    """Standard input as a file whose name tells what it looks like."""
    content = sys.stdin.buffer.read()
    suffix = ".csv"
    if content.startswith(b"PAR1"):
        suffix = ".parquet"
    elif content.lstrip()[:1] == b"{":
        suffix = ".jsonl"
    path = folder / f"stdin{suffix}"
    path.write_bytes(content)
    return path


def _rows(path: Path, name: str, seed: int) -> Rows:
    from weald.stream.record.gaps import rows_with_gaps
    from weald.stream.record.originals import originals_of

    whole = list(islice(map(_without_gaps, records_of(path, ",;\t")), MOST_READ))
    if len(whole) < FEWEST:
        raise UsageError(f"{name}: {len(whole)} rows; a look takes {FEWEST} at least")
    numbers = np.arange(len(whole))
    if len(whole) > MOST_FITTED:
        numbers = np.sort(
            np.random.default_rng(seed).choice(len(whole), MOST_FITTED, replace=False)
        )
        note(f"{len(whole)} rows, of which {MOST_FITTED} drawn at random are looked at")
    records = [whole[at] for at in numbers.tolist()]
    proposal = _proposal(whole, records, name)
    fields = [declared(each) for each in proposal.fields]
    times = [each for each in fields if each.get("kind") == "time"]
    if proposal.time is not None:
        times.append(declared({"path": proposal.time, "kind": "time"}))
    clustered = [each for each in fields if each.get("kind") != "time"] or times
    schema = _schema(clustered)
    values = rows_with_gaps(schema, records)
    columns = originals_of(schema, values)
    if times and clustered is not times:
        note(f"  not clustered by, only told: {', '.join(each['name'] for each in times)}")
        with_times = _schema(times)
        columns += originals_of(with_times, rows_with_gaps(with_times, records))
    return Rows(name, len(whole), numbers, schema, values, columns, _texts(schema, records))


def _proposal(whole: Sequence[Record], records: Sequence[Record], name: str) -> Proposal:
    proposal = proposed(records, name, most_empty=MOST_EMPTY)
    if len(whole) > len(records):
        # Numbers that follow each other do so in the file's order only.
        head = proposed(whole[:1000], name, most_empty=MOST_EMPTY, needed=False)
        counted = {reason.partition(":")[0] for reason in head.reasons if "one by one" in reason}
        fields = [each for each in proposal.fields if declared(each)["name"] not in counted]
        proposal = Proposal(fields, proposal.key, proposal.time, proposal.reasons)
    for reason in proposal.reasons:
        note(f"  {reason}")
    return proposal


def _schema(fields: Sequence[Mapping[str, Any]]) -> Schema:
    import msgspec

    from weald.stream.record.schema import Schema
    from weald.stream.settings import SchemaSettings

    return Schema.of(msgspec.convert({"fields": list(fields)}, SchemaSettings), text=True)


def _without_gaps(record: Record) -> Record:
    return {
        name: None if isinstance(value, str) and value.strip().lower() in GAPS else value
        for name, value in record.items()
    }


def _texts(schema: Schema, records: Sequence[Record]) -> list[str]:
    paths = [".".join(field.path) for field in schema.fields if field.kind == "text"]
    return [str(record.get(paths[0]) or "") for record in records] if paths else []
