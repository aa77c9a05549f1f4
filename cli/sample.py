"""Looks at the first records of a file and proposes a schema, saying why."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import NotFoundError, UsageError
from .load import open_text

__all__ = ["Proposal", "propose"]

LOOKED_AT = 1000
TIME_NAMES = ("time", "timestamp", "ts", "event_time", "created_at", "date", "datetime")
KEY_NAMES = ("id", "key", "uuid", "event_id")


@dataclass(frozen=True)
class Proposal:
    """A schema that fits the sample.

    Parameters
    ----------
    fields : list of str
        Paths of the numbers.
    key, time : str or None
        Paths of the record's key and time.
    reasons : list of str
        Why each path was taken or left, one line each.
    """

    fields: list[str]
    key: str | None
    time: str | None
    reasons: list[str]


def propose(path: Path) -> Proposal:
    """Propose a schema for the records of a CSV or JSONL file.

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
    time = next((name for name in columns if name.rpartition(".")[2].lower() in TIME_NAMES), None)
    key = _key(columns, time)
    fields, reasons = [], []
    for name, values in columns.items():
        if name in (key, time):
            role = "key" if name == key else "time"
            reasons.append(f"{name}: {role}, by its name and values")
            continue
        problem = _not_a_feature(values)
        if problem is None:
            fields.append(name)
        reasons.append(f"{name}: {problem or 'a number in every record'}")
    if not fields:
        raise UsageError(f"{path}: no field holds a number in every record")
    return Proposal(fields, key, time, reasons)


def _records(path: Path) -> Iterator[dict[str, Any]]:
    with open_text(path) as lines:
        if path.name.removesuffix(".gz").endswith(".csv"):
            yield from csv.DictReader(lines)
            return
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield dict(_flattened(_object(path, number, line)))


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


def _key(columns: Mapping[str, list[Any]], time: str | None) -> str | None:
    for name, values in columns.items():
        named = name.rpartition(".")[2].lower() in KEY_NAMES
        whole = all(isinstance(value, str | int) and value != "" for value in values)
        if named and name != time and whole and len(set(values)) == len(values):
            return name
    return None


def _not_a_feature(values: list[Any]) -> str | None:
    """Return why the values cannot be a feature, or None if they can."""
    empty = sum(value is None or value == "" for value in values)
    filled = [value for value in values if value is not None and value != ""]
    if not filled or not all(map(_is_number, filled)):
        return "left out: not a number"
    # Few gaps: such records become dead letters. Many: the field would lose most of the stream.
    if empty > len(values) // 10:
        return f"left out: empty in {empty} of {len(values)} records"
    if len(set(filled)) == 1:
        return "left out: the same in every record"
    return None


def _is_number(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
