"""Looks at the first records of a file and proposes a schema, saying why."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weald.answers.field_inference import judged
from weald.cli.errors import NotFoundError, UsageError

from .table import open_text

__all__ = ["Proposal", "propose"]

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
    if not path.is_file():
        raise NotFoundError(f"{path}: no such file")
    records = list(itertools.islice(_records(path), LOOKED_AT))
    if not records:
        raise UsageError(f"{path}: no records")
    columns = {name: [record.get(name) for record in records] for name in records[0]}
    reasons = []
    time = None
    for name in [each for each in columns if each.rpartition(".")[2].lower() in TIME_NAMES]:
        odd = _no_time(columns[name])
        if odd is None:
            time = time or name
        else:
            reasons.append(f"{name}: not taken as the time: {odd}")
    key = _key(columns, time)
    fields: list[str | dict[str, Any]] = []
    for name, values in columns.items():
        if name in (key, time):
            role = "key" if name == key else "time"
            reasons.append(f"{name}: {role}, by its name and values")
            continue
        verdict = judged(name, values)
        if verdict.settings is not None:
            fields.append({"path": name, **verdict.settings} if verdict.settings else name)
        reasons.append(f"{name}: {verdict.reason}")
    if not fields:
        raise UsageError(f"{path}: no field holds anything to cluster by")
    return Proposal(fields, key, time, reasons)


def _records(path: Path) -> Iterator[dict[str, Any]]:
    from weald.stream.record.formats import format_of
    from weald.stream.settings import StreamSettings

    form = format_of(StreamSettings(source="file", path=str(path)))
    if form == "packed":
        raise UsageError(
            f"{path}: packed numbers have no names", next_step="weald init --fields A,B"
        )
    if form in ("parquet", "arrow", "avro"):
        yield from _rows(path, form)
        return
    with open_text(path) as lines:
        if form == "csv":
            yield from csv.DictReader(lines)
            return
        for number, line in enumerate(lines, start=1):
            if line.strip():
                whole = {"line": line} if form == "lines" else _object(path, number, line)
                yield dict(_flattened(whole))


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
