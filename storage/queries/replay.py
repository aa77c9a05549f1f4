"""Coming back: snapshots that can be trusted, and the observations after them."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import sqlalchemy as sa

from weald.storage.commit.commit import ObservationBlock, Snapshot
from weald.storage.encoding.row_bytes import matrix_from_bytes
from weald.storage.encoding.snapshot import decode
from weald.storage.errors import SnapshotCorrupt
from weald.storage.sql.database import walk_indexes
from weald.storage.sql.schema import bundles, observations, offsets, snapshot_pieces, snapshots

from .answers import SnapshotInfo
from .assignments import in_bundle, shown_cluster

__all__ = [
    "newest_snapshot",
    "observation_block",
    "snapshot_bytes",
    "snapshot_infos",
    "snapshot_numbered",
]

_log = logging.getLogger("weald.storage")


def newest_snapshot(connection: sa.Connection, stream_id: int) -> Snapshot | None:
    """Return the newest snapshot that is whole, or None.

    A damaged one is logged and passed over: the one before it and a longer replay give the same
    state.
    """
    for info in snapshot_infos(connection, stream_id):
        try:
            arrays = decode(_payload(connection, stream_id, info.number))
        except SnapshotCorrupt as error:
            _log.warning("snapshot %d (seq %d) is passed over: %s", info.number, info.seq, error)
            continue
        return Snapshot(info.number, info.seq, arrays, info.created_at)
    return None


def snapshot_numbered(connection: sa.Connection, stream_id: int, number: int) -> Snapshot | None:
    """Return one snapshot, or None if there is none of that number.

    Raises
    ------
    SnapshotCorrupt
        If it is damaged.
    """
    columns = (snapshots.c[name] for name in ("number", "seq", "created_at", "label"))
    row = connection.execute(
        sa.select(*columns).where(snapshots.c.stream_id == stream_id, snapshots.c.number == number)
    ).one_or_none()
    if row is None:
        return None
    arrays = decode(_payload(connection, stream_id, number))
    return Snapshot(row.number, row.seq, arrays, row.created_at, row.label)


def _payload(connection: sa.Connection, stream_id: int, number: int) -> bytes:
    """All bytes of a snapshot that there is."""
    first = sa.select(snapshots.c.payload).where(
        snapshots.c.stream_id == stream_id, snapshots.c.number == number
    )
    others = (
        sa.select(snapshot_pieces.c.payload)
        .where(snapshot_pieces.c.stream_id == stream_id, snapshot_pieces.c.number == number)
        .order_by(snapshot_pieces.c.piece)
    )
    return b"".join([connection.execute(first).scalar_one(), *connection.execute(others).scalars()])


def snapshot_infos(connection: sa.Connection, stream_id: int) -> list[SnapshotInfo]:
    """Return the stored snapshots without their arrays, newest first."""
    columns = [snapshots.c[name] for name in SnapshotInfo.__dataclass_fields__]
    statement = (
        sa.select(*columns)
        .where(snapshots.c.stream_id == stream_id)
        .order_by(snapshots.c.number.desc())
    )
    return [SnapshotInfo(*row) for row in connection.execute(statement)]


def snapshot_bytes(connection: sa.Connection, stream_id: int) -> int:
    """Return the length of the newest snapshot, without a look at it; 0 where there is none.

    SQLite would have to go through all of it to find what lies behind it in the row.
    """
    statement = (
        sa.select(snapshots.c.n_bytes)
        .where(snapshots.c.stream_id == stream_id)
        .order_by(snapshots.c.number.desc())
        .limit(1)
    )
    return connection.execute(statement).scalar_one_or_none() or 0


def observation_block(
    connection: sa.Connection, stream_id: int, after_seq: int, limit: int
) -> ObservationBlock | None:
    """Return the next observations after ``after_seq``, of one topic, at most ``limit``."""
    walk_indexes(connection)
    statement = (
        sa.select(observations, shown_cluster.label("shown"))
        .outerjoin(bundles, in_bundle)
        .where(observations.c.stream_id == stream_id, observations.c.seq > after_seq)
        .order_by(observations.c.seq)
        .limit(limit)
    )
    rows: list[Any] = list(connection.execute(statement))
    if not rows:
        return None
    sources: dict[int, tuple[str, int]] = {
        source_id: (topic, partition)
        for source_id, topic, partition in connection.execute(
            sa.select(offsets.c.id, offsets.c.topic, offsets.c.partition).where(
                offsets.c.stream_id == stream_id
            )
        )
    }
    topic = sources[rows[0].source_id][0]
    other = (at for at, row in enumerate(rows) if sources[row.source_id][0] != topic)
    return _block(topic, rows[: next(other, len(rows))], sources)


def _block(topic: str, rows: list[Any], sources: dict[int, tuple[str, int]]) -> ObservationBlock:
    return ObservationBlock(
        seq=np.array([row.seq for row in rows], dtype=np.int64),
        topic=topic,
        partition=np.array([sources[row.source_id][1] for row in rows], dtype=np.int32),
        offset=np.array([row.record_offset for row in rows], dtype=np.int64),
        key=[row.record_key for row in rows],
        event_time=np.array([row.event_at for row in rows], dtype=np.float64),
        values=matrix_from_bytes([row.value_bytes for row in rows]),
        cluster=np.array([row.shown for row in rows], dtype=np.int64),
        received_at=rows[-1].received_at,
        text=[row.record_text for row in rows]
        if any(row.record_text is not None for row in rows)
        else None,
        replaces=np.array([row.replaces or 0 for row in rows], dtype=np.int64)
        if any(row.replaces is not None for row in rows)
        else None,
    )
