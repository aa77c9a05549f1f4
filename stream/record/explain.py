"""The slow path of decoding: one field at a time, so that a refusal says which field and why.

It accepts what the fast path of `weald.stream.record.decode` accepts, with the same numbers.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from weald.stream.record.fields.event_time import LATEST_TIME, NO_TIME, time_of
from weald.stream.record.fields.features import vertex_name

from .record import Reason
from .refused import LONGEST_DETAIL, Refused
from .refused import cut as _cut
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
    "shown_text",
    "time_of",
    "wrong_length",
]

LONGEST_KEY = 512
LONGEST_TEXT = 1000

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_ANY = msgspec.json.Decoder()


class Parsed(NamedTuple):
    """What one record says: d numbers, a key, a time (NaN where it has none), and its text.

    Of an edge also the names of its ends.
    """

    numbers: Sequence[float]
    key: str | None
    time: float
    text: str | None = None
    ends: tuple[str, ...] = ()


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
    texts: list[str] = []
    ends: list[str] = []
    for field in schema.fields:
        if field.kind == "weight" and _found(members, field.path) is None:
            numbers.extend((1.0,))
            continue
        raw = _required(members, field.path, field.name)
        if field.read is None:
            numbers.extend(_numbers(raw, field, schema))
            continue
        member = _plain(raw, field.name)
        numbers.extend(field.read(member))
        if field.kind == "text":
            texts.append(member)
        elif field.kind == "vertex":
            ends.append(vertex_name(member, field.name))
    if ends and ends[0] == ends[1]:
        detail = f"an edge from {_cut(repr(ends[0]))} to itself: the model has none"
        raise Refused(Reason.UNFIT, detail)
    text = shown_text(texts)
    key = broker
    if schema.key is not None:
        name = ".".join(schema.key)
        key = checked_key(_plain(_required(members, schema.key, name), name))
    if schema.time is None:
        return Parsed(numbers, key, NO_TIME, text, tuple(ends))
    found = _found(members, schema.time)
    time = None if found is None else _plain(found, ".".join(schema.time))
    return Parsed(numbers, key, time_of(time, text=schema.text), text, tuple(ends))


def shown_text(texts: Sequence[str]) -> str | None:
    """What people are shown of a record's texts: cut short, and without what tables refuse."""
    if not texts:
        return None
    joined = " | ".join(texts)[:LONGEST_TEXT].replace("\0", "\\0")
    return joined.encode("utf-8", "backslashreplace").decode()


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
        if text and not beyond and (number := _written(raw)) is not None:
            return number
        reason = Reason.OUT_OF_RANGE if beyond else _missing_or(Reason.WRONG_TYPE, raw)
        detail = f"field {name!r} should be a number, is {_shown(raw)}"
        raise Refused(reason, detail) from None
    except msgspec.DecodeError as error:
        raise Refused(Reason.NOT_JSON, f"field {name!r}: {error} in {_shown(raw)}") from None


def _written(raw: bytes) -> float | None:
    """A number in a cell as programs write it that JSON has not: ``.165``, ``5.``, ``+1``, 007."""
    try:
        cell = _ANY.decode(raw)
        return float(cell) if isinstance(cell, str) else None
    except (msgspec.DecodeError, ValueError):
        return None


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
    if isinstance(key, str):  # first, since most are, and every record comes through here
        text = key
    elif isinstance(key, int) and not isinstance(key, bool):
        text = str(key)
    else:
        reason = Reason.MISSING_VALUE if key is None else Reason.BAD_KEY
        raise Refused(reason, f"the key should be text or an integer, is {_cut(repr(key))}")
    if len(text) > LONGEST_KEY or "\0" in text:
        why = "has a NUL" if "\0" in text else f"is longer than {LONGEST_KEY} characters"
        raise Refused(Reason.BAD_KEY, f"the key {_cut(repr(text))} {why}")
    return text


def _shown(raw: bytes) -> str:
    return _cut(repr(raw[:100].decode("utf-8", "backslashreplace")))
