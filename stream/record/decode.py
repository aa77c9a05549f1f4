"""Raw messages into observations: pure, and never an exception because of data.

Two paths give the same answer. The fast one decodes a whole record with the schema's compiled type.
What it refuses goes through the slow one (`weald.stream.record.explain`), which says exactly which
field is wrong and why; schemas with nested paths always take the slow one.
"""

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from weald.stream.record.fields.event_time import LATEST_TIME, NO_TIME, time_of

from .explain import Parsed, broker_key, checked_key, parse, shown_text, wrong_length
from .record import STORED_BYTES, Batch, DeadLetter, Message, Reason
from .refused import LONGEST_DETAIL, Refused
from .schema import Schema

__all__ = ["LARGEST", "decode", "set_aside"]

# Squares of accepted numbers, sums of many of them, and determinants of those stay finite. Units
# in which a measurement is larger do not exist; a number that is was not measured.
LARGEST = 1e30

# Of a packed record.
NUMBER_BYTES = 8

# Possessive, and with an optional closing quote, so that hostile input cannot make it backtrack.
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


def decode(
    messages: Sequence[Message], schema: Schema, *, received_at: float = 0.0
) -> tuple[Batch, list[DeadLetter]]:
    """Decode and validate messages of one topic.

    Parameters
    ----------
    messages : sequence of Message
    schema : Schema
    received_at : float
        Seconds since the epoch: written on the dead letters, and the event time of a record for
        which neither it nor the broker has one.

    Returns
    -------
    Batch
        The good records, in order.
    list of DeadLetter
        The others, in order. Nothing is lost: both lengths add up to that of `messages`.
    """
    verdicts = [_verdict(message, schema) for message in messages]
    rows, parsed = [], []
    for i, verdict in enumerate(verdicts):
        if isinstance(verdict, Parsed):
            rows.append(i)
            parsed.append(verdict)
    values = _values(parsed, schema)
    times = _times(parsed, [messages[i].timestamp_ms for i in rows], received_at)
    scaled = values if schema.scaling is None else schema.scaling(values)
    sound = (np.abs(values) <= LARGEST).all(axis=1) & (times < LATEST_TIME)
    sound &= ~np.isnan(scaled).any(axis=1)
    for row in np.flatnonzero(~sound):
        verdicts[rows[row]] = _unsound(values[row], scaled[row], schema)
    kept = [i for i, good in zip(rows, sound, strict=True) if good]
    batch = Batch(
        topic=messages[0].topic if messages else "",
        partition=np.array([messages[i].partition for i in kept], dtype=np.int32),
        offset=np.array([messages[i].offset for i in kept], dtype=np.int64),
        key=[record.key for record, good in zip(parsed, sound, strict=True) if good],
        event_time=times[sound],
        values=np.ascontiguousarray(scaled[sound]),
        text=[record.text for record, good in zip(parsed, sound, strict=True) if good]
        if schema.has_text
        else None,
        ends=[record.ends for record, good in zip(parsed, sound, strict=True) if good]
        if schema.network
        else None,
    )
    dead = [
        set_aside(message, (verdict.reason, verdict.detail), received_at)
        for message, verdict in zip(messages, verdicts, strict=True)
        if isinstance(verdict, Refused)
    ]
    return batch, dead


def _verdict(message: Message, schema: Schema) -> Parsed | Refused:
    if schema.packed:
        return _packed(message, schema)
    try:
        value = message.value if schema.unwrap is None else _unwrapped(message.value, schema)
        value = _admitted(value, schema)
        broker = broker_key(message.key) if schema.key is None else None
        if schema.compiled is not None:
            try:
                return _from_struct(schema.compiled(value), broker, schema)
            except (msgspec.DecodeError, ValueError, Refused):
                pass  # the slow path says which field
        return parse(value, broker, schema)
    except Refused as refused:
        return refused


def _packed(message: Message, schema: Schema) -> Parsed | Refused:
    """Take a message of packed numbers as it is; its columns are made of all of them at once."""
    value, size = message.value, NUMBER_BYTES * schema.dimension
    if value is None:
        return Refused(Reason.TOMBSTONE, "the record has no value")
    if len(value) != size:
        detail = f"the record has {len(value)} bytes, {schema.dimension} numbers take {size}"
        return Refused(Reason.WRONG_LENGTH, detail)
    try:
        return Parsed(value, broker_key(message.key), NO_TIME)
    except Refused as refused:
        return refused


def _unwrapped(value: bytes | None, schema: Schema) -> bytes | None:
    if value is None or schema.unwrap is None:
        return value
    if len(value) > schema.settings.max_bytes:
        return value  # refused for its length
    try:
        return schema.unwrap(value)
    except UnicodeDecodeError as error:
        raise Refused(Reason.BAD_UTF8, f"byte {error.start}: {error.reason}") from None


def _admitted(value: bytes | None, schema: Schema) -> bytes:
    if value is None:
        raise Refused(Reason.TOMBSTONE, "the record has no value")
    settings = schema.settings
    if len(value) > (limit := settings.max_bytes):
        raise Refused(Reason.TOO_LARGE, f"the record is longer than max_bytes = {limit}")
    if not value.isascii():
        try:
            value.decode()
        except UnicodeDecodeError as error:
            raise Refused(Reason.BAD_UTF8, f"byte {error.start}: {error.reason}") from None
    limit = settings.max_depth
    if value.count(b"[") + value.count(b"{") > limit and _depth(value) > limit:
        raise Refused(Reason.TOO_DEEP, f"the record is nested deeper than max_depth = {limit}")
    if not value or value.isspace():
        raise Refused(Reason.EMPTY, "the record is empty")
    return value


def _depth(value: bytes) -> int:
    characters = np.frombuffer(_STRINGS.sub(b"", value), dtype=np.uint8)
    opening = (characters == ord("[")) | (characters == ord("{"))
    closing = (characters == ord("]")) | (characters == ord("}"))
    return int(np.cumsum(opening.astype(np.int64) - closing).max(initial=0))


def _from_struct(struct: msgspec.Struct, broker: str | None, schema: Schema) -> Parsed:
    members = msgspec.structs.astuple(struct)
    n = len(schema.fields)
    numbers: Sequence[float]
    numbers = members[:n] if schema.scalar else _flattened(members, schema)
    key = broker if schema.key is None else checked_key(members[n])
    time = NO_TIME if schema.time is None else time_of(members[-1], text=schema.text)
    text = shown_text([members[i] for i in schema.texts]) if schema.texts else None
    return Parsed(numbers, key, time, text)


def _flattened(members: Sequence[Any], schema: Schema) -> list[float]:
    numbers: list[float] = []
    for field, member in zip(schema.fields, members, strict=False):
        if field.read is not None:
            numbers.extend(field.read(member))
        elif field.size is None:
            numbers.append(member)
        elif len(member) == field.size:
            numbers.extend(member)
        else:
            raise wrong_length(field, len(member))
    return numbers


def _values(parsed: Sequence[Parsed], schema: Schema) -> NDArray[np.float64]:
    if schema.packed:
        joined = b"".join(map(bytes, (record.numbers for record in parsed)))  # type: ignore[arg-type]  # the message itself
        return np.frombuffer(joined, dtype="<f8").reshape(len(parsed), schema.dimension)
    flat = chain.from_iterable([record.numbers for record in parsed])
    n, d = len(parsed), schema.dimension
    return np.fromiter(flat, dtype=np.float64, count=n * d).reshape(n, d)


def _times(
    parsed: Sequence[Parsed], broker_ms: Sequence[int], received_at: float
) -> NDArray[np.float64]:
    own = np.array([record.time for record in parsed], dtype=np.float64)
    broker = np.array(broker_ms, dtype=np.float64) / 1000
    return np.where(np.isnan(own), np.where(broker < 0, received_at, broker), own)


def _unsound(row: NDArray[np.float64], scaled: NDArray[np.float64], schema: Schema) -> Refused:
    bad = np.flatnonzero(~(np.abs(row) <= LARGEST) | np.isnan(scaled))
    if not len(bad):
        return Refused(Reason.BAD_TIME, "the broker's timestamp is beyond the year 9999")
    number = float(row[bad[0]])
    reason = Reason.OUT_OF_RANGE if np.isfinite(number) else Reason.NOT_FINITE
    why = ", which has no log(1 + x)" if np.abs(number) <= LARGEST else ""
    return Refused(reason, f"field {schema.features[bad[0]]!r} is {number!r}{why}")


def set_aside(message: Message, verdict: tuple[Reason, str], received_at: float) -> DeadLetter:
    """Make a dead letter of a message.

    Parameters
    ----------
    message : Message
    verdict : Reason, str
        Why, in a code and in words.
    received_at : float
        Seconds since the epoch.
    """
    reason, detail = verdict
    return DeadLetter(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        key=None if message.key is None else message.key[:STORED_BYTES],
        value=(message.value or b"")[:STORED_BYTES],
        reason=str(reason),
        detail=detail[:LONGEST_DETAIL],
        received_at=received_at,
    )
