"""Who may write a stream, and whose turn it is.

The fence is the stream's row. It names the owner, the group generation and the number of the
last commit (the epoch). ``claim`` puts a new owner there; a commit moves generation and epoch
by one guarded UPDATE. When that touches no row, the batch either is there already (its answer
was lost and it came again) or was sent by someone who no longer owns the stream. The row stays
locked until the transaction ends, so whatever follows in it is the owner's alone.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import sqlalchemy as sa

from weald.storage.commit.commit import BatchCommit
from weald.storage.commit.log_marks import LogMark
from weald.storage.errors import Fenced, StreamNotFound
from weald.storage.queries.answers import StreamPosition
from weald.storage.sql.schema import offsets, streams

__all__ = ["Turn", "claim", "position", "take_turn"]


class Turn(NamedTuple):
    """What the fence hands out: the stream's id and the first numbers that are free."""

    stream_id: int
    next_seq: int
    next_event: int


def claim(
    connection: sa.Connection, stream: str, owner: str, generation: int, *, takeover: bool
) -> StreamPosition:
    """Make ``owner`` the only one whose commits pass, and return where it goes on from.

    Raises
    ------
    Fenced
        If the stream was claimed under a later generation, and this is no takeover.
    """
    statement = sa.update(streams).where(streams.c.name == stream)
    if not takeover:
        statement = statement.where(streams.c.generation <= generation)
    claimed = connection.execute(
        statement.values(owner=owner, generation=generation).returning(streams.c.id)
    ).scalar_one_or_none()
    if claimed is not None:
        return position(connection, claimed)
    held = connection.execute(
        sa.select(streams.c.owner, streams.c.generation).where(streams.c.name == stream)
    ).one_or_none()
    if held is None:
        raise StreamNotFound(f"stream {stream!r} does not exist")
    raise Fenced(
        f"stream {stream!r} was claimed by {held.owner!r} under generation {held.generation}; "
        f"{owner!r} asks under the older generation {generation}",
        held.owner,
    )


def position(connection: sa.Connection, stream_id: int) -> StreamPosition:
    """Return where the stream stands."""
    row = connection.execute(sa.select(streams).where(streams.c.id == stream_id)).one()
    sources = connection.execute(sa.select(offsets).where(offsets.c.stream_id == stream_id)).all()
    return StreamPosition(
        epoch=row.epoch,
        next_seq=row.next_seq,
        generation=row.generation,
        owner=row.owner,
        offsets={(each.topic, each.partition): each.next_offset for each in sources},
        marks={
            (each.topic, each.partition): LogMark(
                each.topic_id, each.log_start, each.last_offset, each.last_checksum
            )
            for each in sources
        },
        reverted_epoch=row.reverted_epoch,
    )


def take_turn(connection: sa.Connection, batch: BatchCommit) -> Turn | None:
    """Move the stream on by one commit; return None if the batch had its turn before.

    Raises
    ------
    Fenced
        If the stream's owner, generation or epoch is no longer the batch's.
    """
    n_new = 0 if batch.observations is None else len(batch.observations)
    put_back = {"reverted_epoch": batch.epoch} if batch.reverts else {}
    row = connection.execute(
        sa.update(streams)
        .where(
            streams.c.name == batch.stream,
            streams.c.owner == batch.owner,
            streams.c.generation <= batch.generation,
            streams.c.epoch == batch.epoch - 1,
        )
        .values(
            generation=batch.generation,
            epoch=batch.epoch,
            next_seq=streams.c.next_seq + n_new,
            next_event=streams.c.next_event + len(batch.lineage),
            committed_at=time.time(),
            **put_back,
        )
        .returning(streams.c.id, streams.c.next_seq, streams.c.next_event)
    ).one_or_none()
    if row is None:
        _explain(connection, batch)
        return None
    return Turn(row.id, row.next_seq - n_new, row.next_event - len(batch.lineage))


def _explain(connection: sa.Connection, batch: BatchCommit) -> None:
    """Raise what kept the batch from its turn, or return if it had its turn before."""
    held = connection.execute(
        sa.select(streams.c.owner, streams.c.generation, streams.c.epoch).where(
            streams.c.name == batch.stream
        )
    ).one_or_none()
    if held is None:
        raise StreamNotFound(f"stream {batch.stream!r} does not exist")
    if (held.owner, held.epoch) == (batch.owner, batch.epoch):
        return
    raise Fenced(
        f"stream {batch.stream!r} is held by {held.owner!r} (generation {held.generation}, epoch "
        f"{held.epoch}); the batch came from {batch.owner!r} (generation {batch.generation}, "
        f"epoch {batch.epoch})",
        held.owner,
    )
