"""A schema that fits a sample of records, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Any, Literal

from weald.stream.errors import SchemaError

from .field_inference import (
    MOST_EMPTY,
    FieldProposal,
    Identifies,
    is_filled,
    judged,
    of_two_numbers,
)

__all__ = ["SchemaProposal", "declared", "named", "proposed"]

TIME_NAMES = ("time", "timestamp", "ts", "event_time", "created_at", "date", "datetime")
# Of columns of dates without a clock: a date of birth is called otherwise.
DAY_NAMES = ("day", "datum", "fecha", "data")
# So many different dates do not rise or fall along a file by chance.
LEAST_DAYS = 10
KEY_NAMES = ("id", "key", "uuid", "event_id")
# Seconds since the epoch of a time in 1973: smaller numbers count something else.
LEAST_EPOCH = 1e8
# Share of the records that have a field which the first one is without.
LEAST_RECORDS = 0.1
Moments = Literal["clustered", "told", "left out"]
_SELDOM = "hours and days seldom tell kinds apart"


@dataclass(frozen=True)
class SchemaProposal:
    """A schema that fits the sample.

    Parameters
    ----------
    fields : list of (str or mapping)
        Paths of plain numbers, and settings of other fields with their ``path``; or with their
        ``name``, where nothing is nested.
    key, time : str or None
        Paths of the record's key and time.
    reasons : mapping of str to str
        Why each path was taken or left out.
    identifiers : mapping of str to str
        Paths that are left out as they say which record it is, and how.
    """

    fields: list[str | dict[str, Any]]
    key: str | None
    time: str | None
    reasons: Mapping[str, str] = field(default_factory=dict)
    identifiers: Mapping[str, Identifies] = field(default_factory=dict)


def proposed(
    records: Sequence[Mapping[str, Any]],
    name: str,
    *,
    most_empty: float = MOST_EMPTY,
    needed: bool = True,
    stated: Mapping[str, FieldProposal] | None = None,
    moments: Moments = "left out",
) -> SchemaProposal:
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
    stated : mapping of str to Verdict, optional
        What is known of some fields without looking at their values.
    moments : str
        What becomes of moments that no field's name calls the record's. Where they are not
        "clustered", the first field that has one in every record is its time: records of an hour
        are no kind. Where none has a clock, so is the first field of dates that is called day, or
        whose dates are in order. Others are fields as well if they are "told", and else "left out"
        beside anything else: each day of the week is a cluster to a density, while few kinds of
        things are told by it.

    Raises
    ------
    SchemaError
        If there is no record, or none of them holds anything to cluster by.
    """
    if not records:
        raise SchemaError(f"{name}: no records")
    columns = {path: [record.get(path) for record in records] for path in _paths(records)}
    time = None
    odd_times = {}
    for path in [each for each in columns if each.rpartition(".")[2].lower() in TIME_NAMES]:
        odd = _no_time(columns[path])
        if odd is None:
            time = time or path
        else:
            odd_times[path] = f"; not taken as the time: {odd}"
    by = "its name and values"
    if time is None and moments != "clustered" and (time := _moment(columns)) is not None:
        by = "its values"
    key = _key(columns, time)
    verdicts = {
        path: (stated or {}).get(path) or judged(path, values, most_empty)
        for path, values in columns.items()
        if path not in (key, time)
    }
    verdicts |= _coded(columns, verdicts)
    kept = [each for each in verdicts.values() if each.settings is not None]
    if moments == "left out" and not all(_is_moment(each) for each in kept):
        verdicts = {path: _without_moment(verdict) for path, verdict in verdicts.items()}
    roles = {key: "key, by its name and values", time: f"time, by {by}"}
    reasons = {
        path: roles.get(path) or verdicts[path].reason + odd_times.get(path, "") for path in columns
    }
    taken = {path: each.settings for path, each in verdicts.items() if each.settings is not None}
    if needed and not taken:
        told = "; ".join(f"{path}: {reason}" for path, reason in reasons.items())
        raise SchemaError(f"{name}: no field holds anything to cluster by: {told}")
    return SchemaProposal(
        [{"path": path, **settings} if settings else path for path, settings in taken.items()],
        key,
        time,
        reasons,
        {path: each.identifies for path, each in verdicts.items() if each.identifies is not None},
    )


def _coded(
    columns: Mapping[str, list[Any]], verdicts: Mapping[str, FieldProposal]
) -> dict[str, FieldProposal]:
    """Plain numbers that stand for two things, such as 0 and 1 for no and yes.

    Not where there are so many that they are looked at along principal components, as are those of
    a picture in black and white, of which one by itself says little.
    """
    from weald.mcmc.settings import MOST_COLUMNS

    plain = [path for path, each in verdicts.items() if each.settings == {}]
    if len(plain) > MOST_COLUMNS:
        return {}
    found = {path: of_two_numbers(columns[path]) for path in plain}
    return {path: each for path, each in found.items() if each is not None}


def _is_moment(verdict: FieldProposal) -> bool:
    return (verdict.settings or {}).get("kind") == "time"


def _without_moment(verdict: FieldProposal) -> FieldProposal:
    if not _is_moment(verdict):
        return verdict
    takes = verdict.reason.partition(": ")[2]
    told = f'left out, as {_SELDOM} (`kind = "time"` would take {takes})'
    return FieldProposal(None, told)


def _moment(columns: Mapping[str, list[Any]]) -> str | None:
    """The first column that has a day and a time of it in every record, or else the record's day.

    Dates of births and contracts are no record's: its own are called so, or in order.
    """
    day = None
    for path, values in columns.items():
        if not all(isinstance(value, str) for value in values):
            continue
        if not any(value[:1].isdigit() for value in values):
            continue  # each time begins so, and that is known at once
        if not _begins_with_moment(values):
            continue  # so is that a number is none
        settings = judged(path, values).settings or {}
        if settings.get("kind") != "time":
            continue
        is_readable = _no_time(values) is None
        if "periods" not in settings:
            return path if is_readable else None
        if day is None and is_readable and _is_day(path, values):
            day = path
    return day


def _begins_with_moment(values: Sequence[str]) -> bool:
    """Whether the first text that is some is a moment, as all are in a field of moments."""
    try:
        datetime.fromisoformat(next(filter(is_filled, values), ""))
    except ValueError:
        return False
    return True


def _is_day(path: str, values: list[Any]) -> bool:
    """Whether every record has a date, and these are called the records' or rise or fall."""
    if not all(values):
        return False
    if path.rpartition(".")[2].lower() in DAY_NAMES:
        return True
    days = [datetime.fromisoformat(value).date() for value in values]
    in_order = sorted(days)
    return len(set(days)) >= LEAST_DAYS and days in (in_order, in_order[::-1])


def _paths(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Fields of the first record, and others that a tenth of the records have.

    Where keys are values, as in counts by user, each is in few records.
    """
    n_with = Counter(chain.from_iterable(records))
    often = LEAST_RECORDS * len(records)
    return [path for path, n in n_with.items() if path in records[0] or n >= often]


def declared(fields: Sequence[str | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the settings of fields: of each its name first, and its path where that is another.

    Nested ones are called by their paths with `_` between the parts, or as these stand where
    another field is called so.
    """
    given = [{"path": each} if isinstance(each, str) else dict(each) for each in fields]
    names = Counter(each.get("name") or _joined(each["path"]) for each in given)
    return [_declared(each, names) for each in given]


def _declared(given: dict[str, Any], names: Counter[str]) -> dict[str, Any]:
    if "name" in given:
        return given
    path = given.pop("path")
    name = _joined(path)
    if name == path:
        return {"name": name, **given}
    return {"name": name if names[name] == 1 else path, "path": path, **given}


def _joined(path: str) -> str:
    return path.replace(".", "_")


def named(field: str | Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a field of flat records, in which a name may have dots."""
    if isinstance(field, str):
        return {"name": field}
    return {"name": field["path"], **{key: each for key, each in field.items() if key != "path"}}


def _no_time(values: list[Any]) -> str | None:
    """Why a record of this time would be set aside, or None if all can be read."""
    from weald.stream.record.fields.event_time import time_of
    from weald.stream.record.refused import Refused

    try:
        times = [time_of(value, text=True) for value in values]
    except Refused as refused:
        return refused.detail
    counted = [_counts(*pair) for pair in zip(values, times, strict=True) if pair[1] == pair[1]]
    return "its numbers are no seconds since the epoch" if counted and all(counted) else None


def _counts(value: Any, seconds: float) -> bool:
    """Whether a value is a number, and one too small to be of our days."""
    try:
        return float(value) == seconds < LEAST_EPOCH
    except ValueError:
        return False


def _key(columns: Mapping[str, list[Any]], time: str | None) -> str | None:
    for name, values in columns.items():
        if name == time or name.rpartition(".")[2].lower() not in KEY_NAMES:
            continue
        whole = all(isinstance(value, str | int) and value != "" for value in values)
        if whole and len(set(values)) == len(values):
            return name
    return None
