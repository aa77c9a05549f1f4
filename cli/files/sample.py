"""Looks at the first records of a file and proposes a schema, saying why."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weald.cli.errors import NotFoundError, UsageError
from weald.stream.record.field_inference import MOST_EMPTY, judged

from .table import open_text

if TYPE_CHECKING:
    from weald.stream.record.formats import Format

__all__ = ["Proposal", "declared", "numbered_records", "propose", "proposed", "records_of"]

LOOKED_AT = 1000
TIME_NAMES = ("time", "timestamp", "ts", "event_time", "created_at", "date", "datetime")
KEY_NAMES = ("id", "key", "uuid", "event_id")


@dataclass(frozen=True)
class Proposal:
    """A schema that fits the sample.

    Parameters
    ----------
    fields : list of (str or mapping)
        Paths of plain numbers, and settings of other fields with their ``path``.
    key, time : str or None
        Paths of the record's key and time.
    reasons : list of str
        Why each path was taken or left, one line each, and why the family.
    """

    fields: list[str | dict[str, Any]]
    key: str | None
    time: str | None
    reasons: list[str]


def propose(path: Path) -> Proposal:
    """Propose a schema for the records of a file in any of a stream's formats.

    Raises
    ------
    NotFoundError, UsageError
        If there is no such file, or no record in it that can be read.
    """
    return proposed(list(itertools.islice(records_of(path), LOOKED_AT)), str(path))


def proposed(
    records: Sequence[Mapping[str, Any]],
    name: str,
    *,
    most_empty: float = MOST_EMPTY,
    needed: bool = True,
) -> Proposal:
    """Propose a schema for records whose nested fields are named by their dotted paths.

    Parameters
    ----------
    records : sequence of mapping
    name : str
        Of what they are from.
    most_empty : float
        A field that is empty in a larger share of the records is left out.
    needed : bool
        Whether there has to be a field to cluster by.

    Raises
    ------
    UsageError
        If there is no record, or none of them holds anything to cluster by.
    """
    if not records:
        raise UsageError(f"{name}: no records")
    columns = {name: [record.get(name) for record in records] for name in records[0]}
    reasons = []
    time = None
    for path in [each for each in columns if each.rpartition(".")[2].lower() in TIME_NAMES]:
        odd = _no_time(columns[path])
        if odd is None:
            time = time or path
        else:
            reasons.append(f"{path}: not taken as the time: {odd}")
    key = _key(columns, time)
    fields: list[str | dict[str, Any]] = []
    for path, values in columns.items():
        if path in (key, time):
            role = "key" if path == key else "time"
            reasons.append(f"{path}: {role}, by its name and values")
            continue
        verdict = judged(path, values, most_empty)
        if verdict.settings is not None:
            fields.append({"path": path, **verdict.settings} if verdict.settings else path)
        reasons.append(f"{path}: {verdict.reason}")
    if needed and not fields:
        raise UsageError(f"{name}: no field holds anything to cluster by")
    return Proposal(fields, key, time, reasons)


def declared(field: str | Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a field: its name first, and its path where that is another."""
    given = {"path": field} if isinstance(field, str) else dict(field)
    path = given.pop("path")
    name = path.replace(".", "_")
    return {"name": name, **({} if name == path else {"path": path}), **given}


def records_of(path: Path, separators: str = ",") -> Iterator[dict[str, Any]]:
    """Yield the records of a file in any of a stream's formats, nested fields by dotted paths.

    ``separators`` are those that a text table may have; the one that its header has most of is.

    Raises
    ------
    NotFoundError, UsageError
        If there is no such file, or a record in it that cannot be read.
    """
    from weald.stream.record.formats import format_of
    from weald.stream.settings import StreamSettings

    form = format_of(StreamSettings(source="file", path=str(path)))
    return (record for _, record in numbered_records(path, separators, form))


def numbered_records(
    path: Path, separators: str, form: Format
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield as `records_of` does, each after the line it ends on (of columnar files: its row)."""
    if not path.is_file():
        raise NotFoundError(f"{path}: no such file")
    if form == "packed":
        raise UsageError(
            f"{path}: packed numbers have no names", next_step="weald init --fields A,B"
        )
    if form in ("parquet", "arrow", "avro"):
        yield from enumerate(_rows(path, form), start=1)
        return
    # A log may hold bytes of any program; a table that does is not read on.
    with open_text(path, "replace" if form == "lines" else "strict") as lines:
        if form == "csv":
            header = next(lines, "")
            separator = max(separators, key=header.count)
            reader = csv.DictReader(itertools.chain([header], lines), delimiter=separator)
            for record in reader:
                yield reader.line_num, record
            return
        for number, line in enumerate(lines, start=1):
            if line.strip():
                whole = {"line": line} if form == "lines" else _object(path, number, line)
                yield number, dict(_flattened(whole))


def _rows(path: Path, form: Any) -> Iterator[dict[str, Any]]:
    from weald.stream.source.table_reader import open_rows

    reader = open_rows(str(path), form, record_bytes=8)
    try:
        while rows := reader.take(LOOKED_AT, 0.0):
            for row in rows:
                yield dict(_flattened(json.loads(row)))
    finally:
        reader.close()


def _object(path: Path, number: int, line: str) -> Mapping[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}: line {number} is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise UsageError(f"{path}: line {number} is not an object")
    return record


def _flattened(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _no_time(values: list[Any]) -> str | None:
    """Why a record of this time would be set aside, or None if all can be read."""
    from weald.stream.record.event_time import time_of
    from weald.stream.record.refused import Refused

    try:
        for value in values:
            time_of(value, text=True)
    except Refused as refused:
        return refused.detail
    return None


def _key(columns: Mapping[str, list[Any]], time: str | None) -> str | None:
    for name, values in columns.items():
        named = name.rpartition(".")[2].lower() in KEY_NAMES
        whole = all(isinstance(value, str | int) and value != "" for value in values)
        if named and name != time and whole and len(set(values)) == len(values):
            return name
    return None
