"""The slow path of decoding: one field at a time, so that a refusal says which field and why.

It accepts what the fast path of `weald.stream.decode` accepts, with the same numbers.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from math import isfinite
from typing import Any, NamedTuple

import msgspec

from .record import Reason
from .schema import Field, Path, Schema

__all__ = [
    "LATEST_TIME",
    "LONGEST_DETAIL",
    "NO_TIME",
    "Parsed",
    "Refused",
    "broker_key",
    "checked_key",
    "parse",
    "time_of",
    "wrong_length",
]

LONGEST_KEY = 512
LONGEST_DETAIL = 240
# Above this a number of the epoch counts milliseconds: as seconds it would be the year 5138.
MILLISECONDS_FROM = 1e11
EARLIEST_TIME, LATEST_TIME = -62_135_596_800.0, 253_402_300_800.0
NO_TIME = float("nan")

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_ANY = msgspec.json.Decoder()


class Refused(Exception):  # noqa: N818  a verdict on one record, not an error of the program
    """One record cannot become an observation.

    Parameters
    ----------
    reason : Reason
    detail : str
        The field and the value that offended; cut to a length that tables can show.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail[:LONGEST_DETAIL]


class Parsed(NamedTuple):
    """What one record says: d numbers, a key, and a time (NaN where it has none)."""

    numbers: Sequence[float]
    key: str | None
    time: float


def parse(value: bytes, broker: str | None, schema: Schema) -> Parsed:
    """Read one record field by field.

    Parameters
    ----------
    value : bytes
        UTF-8, not nested deeper than the schema allows.
    broker : str or None
        The message's key, used where the schema declares none.
    schema : Schema

    Raises
    ------
    Refused
        Naming the first field that is missing or wrong.
    """
    members = _members(value)
    if schema.settings.forbid_unknown:
        _refuse_unknown(members, schema)
    numbers: list[float] = []
    for field in schema.fields:
        numbers.extend(_numbers(_required(members, field.path, field.name), field, schema))
    key = broker
    if schema.key is not None:
        name = ".".join(schema.key)
        key = checked_key(_plain(_required(members, schema.key, name), name))
    if schema.time is None:
        return Parsed(numbers, key, NO_TIME)
    raw = _found(members, schema.time)
    time = None if raw is None else _plain(raw, ".".join(schema.time))
    return Parsed(numbers, key, time_of(time, text=schema.text))


def _members(value: bytes) -> dict[str, msgspec.Raw]:
    try:
        return _OBJECT.decode(value)
    except msgspec.ValidationError:
        raise Refused(Reason.NOT_OBJECT, f"not an object but {_shown(value)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(Reason.NOT_JSON, f"{error} in {_shown(value)}") from None


def _refuse_unknown(members: dict[str, msgspec.Raw], schema: Schema) -> None:
    paths = [field.path for field in schema.fields]
    known = {path[0] for path in (*paths, schema.key, schema.time) if path is not None}
    unknown = sorted(members.keys() - known)
    if unknown:
        name = _cut(repr(unknown[0]))
        raise Refused(Reason.UNKNOWN_FIELD, f"field {name} is not in the schema")


def _required(members: dict[str, msgspec.Raw], path: Path, name: str) -> msgspec.Raw:
    raw = _found(members, path)
    if raw is None:
        raise Refused(Reason.MISSING_FIELD, f"field {name!r} is missing")
    return raw


def _found(members: dict[str, msgspec.Raw], path: Path) -> msgspec.Raw | None:
    raw: msgspec.Raw | None = members.get(path[0])
    for part in path[1:]:
        if raw is None:
            return None
        raw = _member(raw, part)
    return raw


def _member(raw: msgspec.Raw, part: str) -> msgspec.Raw | None:
    try:
        if part.isdecimal() and bytes(raw).startswith(b"["):
            items = _ARRAY.decode(raw)
            return items[int(part)] if len(part) < 10 and int(part) < len(items) else None
        return _OBJECT.decode(raw).get(part)
    except msgspec.DecodeError:
        return None


def _plain(raw: msgspec.Raw, name: str) -> Any:
    try:
        return _ANY.decode(raw)
    except (msgspec.DecodeError, ValueError):
        detail = f"field {name!r} cannot be read: {_shown(bytes(raw))}"
        raise Refused(Reason.WRONG_TYPE, detail) from None


def _numbers(raw: msgspec.Raw, field: Field, schema: Schema) -> list[float]:
    if field.size is None:
        return [_number(bytes(raw), field.name, text=schema.text)]
    try:
        items = _ARRAY.decode(raw)
    except msgspec.ValidationError:
        detail = f"field {field.name!r} should be an array, is {_shown(bytes(raw))}"
        raise Refused(_missing_or(Reason.WRONG_TYPE, bytes(raw)), detail) from None
    if len(items) != field.size:
        raise wrong_length(field, len(items))
    return [
        _number(bytes(item), f"{field.name}.{i}", text=schema.text) for i, item in enumerate(items)
    ]


def _number(raw: bytes, name: str, *, text: bool) -> float:
    try:
        return float(msgspec.json.decode(raw, type=float, strict=not text))
    except msgspec.ValidationError as error:
        beyond = "out of range" in str(error)
        reason = Reason.OUT_OF_RANGE if beyond else _missing_or(Reason.WRONG_TYPE, raw)
        detail = f"field {name!r} should be a number, is {_shown(raw)}"
        raise Refused(reason, detail) from None
    except msgspec.DecodeError as error:
        raise Refused(Reason.NOT_JSON, f"field {name!r}: {error} in {_shown(raw)}") from None


def _missing_or(reason: Reason, raw: bytes) -> Reason:
    return Reason.MISSING_VALUE if raw in {b"null", b'""'} else reason


def wrong_length(field: Field, length: int) -> Refused:
    """Verdict on an array of another length than the schema's."""
    detail = f"field {field.name!r} has {length} numbers, the schema says {field.size}"
    return Refused(Reason.WRONG_LENGTH, detail)


def broker_key(key: bytes | None) -> str | None:
    """Text of a message's key; bytes that are not text are shown escaped.

    Raises
    ------
    Refused
        When it is too long to be indexed.
    """
    if key is None:
        return None
    return checked_key(key.decode("utf-8", "backslashreplace").replace("\0", "\\x00"))


def checked_key(key: object) -> str:
    """Text of a record's own key.

    Raises
    ------
    Refused
        When it is neither text nor an integer, is too long, or has a NUL, which PostgreSQL's
        text cannot hold.
    """
    if isinstance(key, bool) or not isinstance(key, str | int):
        reason = Reason.MISSING_VALUE if key is None else Reason.BAD_KEY
        raise Refused(reason, f"the key should be text or an integer, is {_cut(repr(key))}")
    text = key if isinstance(key, str) else str(key)
    if len(text) > LONGEST_KEY or "\0" in text:
        why = "has a NUL" if "\0" in text else f"is longer than {LONGEST_KEY} characters"
        raise Refused(Reason.BAD_KEY, f"the key {_cut(repr(text))} {why}")
    return text


def time_of(value: object, *, text: bool) -> float:
    """Seconds since the epoch, or NaN for an absent time.

    Raises
    ------
    Refused
        When it is neither a number of the epoch nor ISO 8601, or no date of our calendar.
    """
    if value is None or (text and value == ""):
        return NO_TIME
    seconds = _seconds(value, text=text)
    if not EARLIEST_TIME <= seconds < LATEST_TIME:
        detail = f"{_cut(repr(value))} is no ISO 8601 time, nor seconds, nor milliseconds"
        raise Refused(Reason.BAD_TIME, detail)
    return seconds


def _seconds(value: object, *, text: bool) -> float:
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
            return aware.timestamp()
        except (ValueError, OverflowError):
            return _epoch(value) if text else NO_TIME
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _epoch(value)
    return NO_TIME


def _epoch(value: str | float) -> float:
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return NO_TIME
    return number / 1000 if isfinite(number) and abs(number) >= MILLISECONDS_FROM else number


def _shown(raw: bytes) -> str:
    return _cut(repr(raw[:100].decode("utf-8", "backslashreplace")))


def _cut(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"
