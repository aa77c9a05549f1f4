"""Dead letters: which there are, which are to be tried again, and which may go.

Asking for a replay only marks the rows. The stream's owner takes them up in a commit of its own,
which removes each letter and writes what became of it under the same partition and offset: so a
record is an observation or a dead letter at every moment, and never both.

Of a stream in shards these are the letters of all its shards: numbers are one space of all streams.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from weald.storage.commit.commit import STORED_BYTES, DeadLetterLike, DeadLetterRow
from weald.storage.errors import InvariantBroken
from weald.storage.sql.schema import dead_letters, offsets, streams

from .base import Letters
from .status_statements import REASONS

__all__ = ["counts", "purge", "request_replay", "rows", "take_back"]


def rows(
    connection: sa.Connection, stream_id: int, letters: Letters, limit: int, *, oldest: bool = False
) -> list[DeadLetterRow]:
    """Return dead letters, newest first unless the oldest are asked for."""
    number = dead_letters.c.id
    statement = (
        sa.select(dead_letters, offsets.c.topic, offsets.c.partition)
        .join_from(dead_letters, offsets, dead_letters.c.source_id == offsets.c.id)
        .where(*_conditions(letters, stream_id))
        .order_by(number if oldest else number.desc())
        .limit(limit)
    )
    return [
        DeadLetterRow(
            topic=row.topic,
            partition=row.partition,
            offset=row.record_offset,
            key=row.record_key,
            value=row.record_value,
            reason=row.reason,
            detail=row.detail,
            received_at=row.received_at,
            number=row.id,
            replay_at=row.replay_at,
        )
        for row in connection.execute(statement)
    ]


def counts(connection: sa.Connection, stream_id: int) -> dict[str, int]:
    """Return the number of dead letters for each reason, by reason."""
    found = connection.execute(sa.text(REASONS), {"stream": stream_id})
    return {row.reason: row.n for row in found}


def request_replay(connection: sa.Connection, stream_id: int, letters: Letters) -> tuple[int, int]:
    """Mark the letters; return how many, and how many cannot be since their value was cut."""
    whole = sa.func.length(dead_letters.c.record_value) < STORED_BYTES
    conditions = _conditions(letters, stream_id)
    marked = connection.execute(
        sa.update(dead_letters).where(*conditions, whole).values(replay_at=time.time())
    )
    cut = connection.execute(
        sa.select(sa.func.count()).select_from(dead_letters).where(*conditions, ~whole)
    )
    return marked.rowcount, cut.scalar_one()


def purge(connection: sa.Connection, stream_id: int, letters: Letters) -> int:
    """Forget the letters, but not those that are about to be replayed; return how many went."""
    waiting = dead_letters.c.replay_at.is_not(None)
    return connection.execute(
        sa.delete(dead_letters).where(*_conditions(letters, stream_id), ~waiting)
    ).rowcount


def take_back(
    connection: sa.Connection,
    sources: dict[tuple[str, int], int],
    letters: Iterable[DeadLetterLike],
) -> None:
    """Remove letters that a commit decides anew.

    Raises
    ------
    InvariantBroken
        If one of them is not there.
    """
    for letter in letters:
        place: dict[str, Any] = {
            "source_id": sources[letter.topic, letter.partition],
            "record_offset": letter.offset,
        }
        gone = connection.execute(sa.delete(dead_letters).filter_by(**place)).rowcount
        if gone != 1:
            raise InvariantBroken(
                f"{letter.topic}[{letter.partition}] has no dead letter at offset {letter.offset}"
            )


def _conditions(letters: Letters, stream_id: int) -> list[sa.ColumnElement[bool]]:
    """Return what is asked of a letter in SQL."""
    asked_of = sa.select(streams.c.id).where(
        (streams.c.id == stream_id) | (streams.c.part_of == stream_id)
    )
    found: list[sa.ColumnElement[bool]] = [dead_letters.c.stream_id.in_(asked_of)]
    if letters.numbers is not None:
        found.append(dead_letters.c.id.in_(letters.numbers))
    if letters.reason is not None:
        found.append(dead_letters.c.reason == letters.reason)
    if letters.partition is not None:
        sources = sa.select(offsets.c.id).where(
            offsets.c.stream_id.in_(asked_of), offsets.c.partition == letters.partition
        )
        found.append(dead_letters.c.source_id.in_(sources))
    if letters.received_before is not None:
        found.append(dead_letters.c.received_at < letters.received_before)
    if letters.requested is not None:
        asked = dead_letters.c.replay_at.is_not(None)
        found.append(asked if letters.requested else ~asked)
    return found
