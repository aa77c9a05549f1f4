"""What flows through this room: raw messages, batches of observations, dead letters.

A batch is columnar: after decoding no Python object exists per observation, except for its key.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.storage.commit.commit import STORED_BYTES

__all__ = [
    "STORED_BYTES",
    "Batch",
    "DeadLetter",
    "Message",
    "Reason",
    "TopicPartition",
    "checksum_of",
    "joined",
]

# Of a checksum: collisions need not be feared, and people can compare it by eye.
_CHECKSUM_BYTES = 8


class TopicPartition(NamedTuple):
    """One partition of a topic; a file is a topic of one partition."""

    topic: str
    partition: int


class Message(NamedTuple):
    """A record as the source handed it over, undecoded.

    Parameters
    ----------
    topic : str
    partition : int
    offset : int
        Position in the partition; with topic and partition it identifies the record for ever.
    timestamp_ms : int
        Broker's time, milliseconds since the epoch; -1 where it is unknown.
    key : bytes or None
    value : bytes or None
        None is a tombstone of a compacted topic.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


def checksum_of(message: Message) -> str:
    """Return a checksum of a record's key and value."""
    made = blake2b(digest_size=_CHECKSUM_BYTES)
    for part in (message.key, message.value):
        # Nothing and an empty text differ, and so do a key's end and a value's beginning.
        made.update(b"-" if part is None else b"%d:" % len(part))
        made.update(part or b"")
    return made.hexdigest()


class Reason(StrEnum):
    """Why a record was set aside; the value is the code that tables and metrics show."""

    TOMBSTONE = "tombstone"
    EMPTY = "empty"
    TOO_LARGE = "too_large"
    TOO_DEEP = "too_deep"
    BAD_UTF8 = "bad_utf8"
    NOT_JSON = "not_json"
    NOT_OBJECT = "not_object"
    MISSING_FIELD = "missing_field"
    MISSING_VALUE = "missing_value"
    UNKNOWN_FIELD = "unknown_field"
    WRONG_TYPE = "wrong_type"
    WRONG_LENGTH = "wrong_length"
    NOT_FINITE = "not_finite"
    OUT_OF_RANGE = "out_of_range"
    BAD_KEY = "bad_key"
    BAD_TIME = "bad_time"
    UNFIT = "unfit"


@dataclass(frozen=True)
class Batch:
    """Decoded records of one topic, in the order in which they arrived.

    Parameters
    ----------
    topic : str
    partition : ndarray of int32, shape (n,)
    offset : ndarray of int64, shape (n,)
    key : list of (str or None), length n
    event_time : ndarray of float64, shape (n,)
        Seconds since the epoch: the record's own time, or the broker's where it has none.
    values : ndarray of float64, shape (n, d)
    text : list of (str or None), length n, optional
        What people are shown of records with a text; None where the schema has no text.
    ends : list of tuple of str, length n, optional
        Names of an edge's source and target; None where records are no edges.
    """

    topic: str
    partition: NDArray[np.int32]
    offset: NDArray[np.int64]
    key: list[str | None]
    event_time: NDArray[np.float64]
    values: NDArray[np.float64]
    text: list[str | None] | None = None
    ends: list[tuple[str, ...]] | None = None

    def __len__(self) -> int:
        return len(self.key)

    def without(self, rows: Collection[int]) -> "Batch":
        """All rows but these."""
        kept = np.ones(len(self), dtype=bool)
        kept[list(rows)] = False
        return Batch(
            topic=self.topic,
            partition=self.partition[kept],
            offset=self.offset[kept],
            key=[key for key, keep in zip(self.key, kept, strict=True) if keep],
            event_time=self.event_time[kept],
            values=self.values[kept],
            text=None
            if self.text is None
            else [text for text, keep in zip(self.text, kept, strict=True) if keep],
            ends=None
            if self.ends is None
            else [ends for ends, keep in zip(self.ends, kept, strict=True) if keep],
        )


def joined(batches: Sequence[Batch]) -> Batch:
    """All rows of batches of one topic, in their order; texts and ends where each has them."""
    return Batch(
        topic=batches[0].topic if batches else "",
        partition=np.concatenate([batch.partition for batch in batches]),
        offset=np.concatenate([batch.offset for batch in batches]),
        key=[key for batch in batches for key in batch.key],
        event_time=np.concatenate([batch.event_time for batch in batches]),
        values=np.concatenate([batch.values for batch in batches]),
        text=[text for batch in batches for text in batch.text or ()]
        if all(batch.text is not None for batch in batches)
        else None,
        ends=[ends for batch in batches for ends in batch.ends or ()]
        if all(batch.ends is not None for batch in batches)
        else None,
    )


@dataclass(frozen=True)
class DeadLetter:
    """A record that was set aside, with the reason.

    Parameters
    ----------
    topic, partition, offset
        Where it came from.
    key : bytes or None
    value : bytes
        The first 64 KiB of each; empty for a tombstone.
    reason : str
        A code of `Reason`.
    detail : str
        The field and the value that offended, cut short.
    received_at : float
        Seconds since the epoch.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes
    reason: str
    detail: str
    received_at: float
