"""From one field of a record to its columns of an observation, by the kind that is declared.

Plain numbers have no reader: they are decoded and scaled by the column. Every other kind has one,
which takes the decoded value and returns the numbers, or refuses the record and says why.
"""

from collections.abc import Callable, Sequence
from math import cos, isnan, pi, sin
from typing import Any
from zlib import crc32

import msgspec

from weald.stream.errors import SchemaError
from weald.stream.record.record import Reason
from weald.stream.record.refused import Refused, cut
from weald.stream.settings import FieldSettings

from .event_time import time_of
from .words import counts_of

__all__ = ["NETWORK_KINDS", "Reader", "column_names", "reader_of", "stated_type", "vertex_name"]

Reader = Callable[[Any], Sequence[float]]

# Of the fields of an edge; their columns say nothing to people.
NETWORK_KINDS = frozenset({"vertex", "weight"})
LONGEST_NAME = 512

BUCKETS = 256  # of a text
LEVELS = 32  # of a category whose values are not listed
DAY = 86_400.0
# A week begins on Monday; the epoch was a Thursday. A year is the mean one.
PERIODS = {"hour": (3600.0, 0.0), "day": (DAY, 0.0), "week": (7 * DAY, 3 * DAY)}
PERIODS["year"] = (365.2425 * DAY, 0.0)

_TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "off", "0"})


def column_names(settings: FieldSettings) -> tuple[str, ...]:
    """Names of the columns that a field fills."""
    name = settings.name
    if settings.kind == "time":
        return tuple(
            f"{name}.{each}.{wave}" for each in settings.periods for wave in ("sin", "cos")
        )
    if settings.kind == "text":
        return tuple(f"{name}.{i}" for i in range(settings.size or BUCKETS))
    if settings.kind == "number" and settings.size is not None:
        return tuple(f"{name}.{i}" for i in range(settings.size))
    return (name,)


def n_levels(settings: FieldSettings) -> int:
    """Levels of a category: those listed and one for all others, or so many to hash into."""
    return len(settings.values) + 1 if settings.values else (settings.size or LEVELS)


def reader_of(settings: FieldSettings) -> Reader | None:
    """Reader of a field's values; None for plain numbers.

    Raises
    ------
    SchemaError
        When the settings contradict each other.
    """
    _check(settings)
    name = settings.name
    if settings.kind == "text":
        size, kind = settings.size or BUCKETS, settings.tokens
        return lambda value: counts_of(_text(value, name), size, kind)
    if settings.kind == "category":
        return _category(settings)
    if settings.kind == "time":
        return _cycles(settings)
    single = _SINGLE.get(settings.kind)
    return None if single is None else lambda value: (single(value, name),)


def stated_type(settings: FieldSettings, *, text: bool) -> Any:
    """Type by which the fast decoder checks a field."""
    if settings.kind == "number":
        return float if settings.size is None else list[float]
    if settings.kind == "count":
        return float
    if settings.kind == "text" or text:
        return str
    return Any


def _check(settings: FieldSettings) -> None:
    scaled = settings.scale != "linear" or (settings.center, settings.spread) != (0.0, 1.0)
    stray = {
        "scale, center and spread are for kind = 'number'": scaled and settings.kind != "number",
        "values are for kind = 'category'": bool(settings.values) and settings.kind != "category",
        "size is not for this kind": settings.size is not None
        and settings.kind not in {"number", "text", "category"},
        "give values or size, not both": bool(settings.values) and settings.size is not None,
    }
    for problem in (text for text, wrong in stray.items() if wrong):
        raise SchemaError(f"field {settings.name!r} of kind {settings.kind!r}: {problem}")


def _text(value: Any, name: str) -> str:
    if isinstance(value, str):
        return value
    raise _wrong(value, name, "text")


def _category(settings: FieldSettings) -> Reader:
    codes = {value: (float(code),) for code, value in enumerate(settings.values)}
    others, levels, name = (float(len(codes)),), n_levels(settings), settings.name

    def read(value: Any) -> Sequence[float]:
        if not isinstance(value, str | int | float):
            raise _wrong(value, name, "a text, a number or a flag")
        word = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        if codes:
            return codes.get(word, others)
        return (float(crc32(word.encode("utf-8", "replace")) % levels),)

    return read


def _flag(value: Any, name: str) -> float:
    word = str(value).strip().lower() if isinstance(value, str | int | float) else ""
    if word in _TRUE or word == "1.0":
        return 1.0
    if word in _FALSE or word == "0.0":
        return 0.0
    raise _wrong(value, name, "a flag")


def _count(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _wrong(value, name, "a count")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise _wrong(value, name, "a count") from None
    if number < 0 or number != number // 1:
        detail = f"field {name!r} is {cut(repr(value))}; a count is whole, from 0"
        raise Refused(Reason.OUT_OF_RANGE, detail)
    return number


def vertex_name(value: Any, name: str) -> str:
    """Name of a vertex, the value of field `name`.

    Raises
    ------
    Refused
        When it is neither text nor an integer, is empty or too long, or has a NUL.
    """
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise _wrong(value, name, "the name of a vertex, text or an integer")
    text = str(value)
    if len(text) > LONGEST_NAME or "\0" in text:
        why = "has a NUL" if "\0" in text else f"is longer than {LONGEST_NAME} characters"
        raise Refused(Reason.BAD_KEY, f"field {name!r}: the name {cut(repr(text))} {why}")
    return text


def _weight(value: Any, name: str) -> float:
    if value is None or value == "":
        return 1.0
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _wrong(value, name, "a number")
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise _wrong(value, name, "a number") from None


def _cycles(settings: FieldSettings) -> Reader:
    name = settings.name
    turns = [PERIODS[each] for each in settings.periods]

    def read(value: Any) -> Sequence[float]:
        seconds = time_of(value, text=True)
        if isnan(seconds):
            raise _wrong(value, name, "a time")
        angles = [2 * pi * ((seconds + shift) % period) / period for period, shift in turns]
        return [wave(angle) for angle in angles for wave in (sin, cos)]

    return read


def _wrong(value: Any, name: str, expected: str) -> Refused:
    missing = value is None or value == ""
    reason = Reason.MISSING_VALUE if missing else Reason.WRONG_TYPE
    return Refused(reason, f"field {name!r} should be {expected}, is {cut(repr(value))}")


def _no_number(_value: Any, _name: str) -> float:
    """Of a vertex: the number of its own row comes to stand here once it is known."""
    return 0.0


# Kinds of one number each.
_SINGLE = {"flag": _flag, "count": _count, "vertex": _no_number, "weight": _weight}
