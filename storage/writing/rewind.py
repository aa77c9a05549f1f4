"""Back to a snapshot: everything later leaves the tables, and the offsets go back with it."""

from __future__ import annotations

import time

import numpy as np
import sqlalchemy as sa

from weald.storage.commit.commit import Rewind
from weald.storage.errors import StreamConflict, StreamNotFound
from weald.storage.sql.schema import (
    adoptions,
    assignment_changes,
    certainties,
    clusters,
    dead_letters,
    lineage_events,
    lineage_parents,
    log_decisions,
    observations,
    offsets,
    postponements,
    publications,
    rounds,
    snapshots,
    streams,
)

from .writer import write_clusters

__all__ = ["rewind"]

# Vertices of a network came with a record and are in nobody's account.
is_record = observations.c.record_offset >= 0


def rewind(connection: sa.Connection, back: Rewind) -> int:
    """Undo what came after the snapshot; return how many observations that took out.

    The row of the stream is changed first: it stays locked until the end, and the owner that it
    names no longer is the writer's.

    Raises
    ------
    StreamNotFound
    StreamConflict
        If records would be lost by it.
    """
    row = connection.execute(
        sa.update(streams)
        .where(streams.c.name == back.stream)
        .values(
            owner=back.owner,
            epoch=streams.c.epoch + 1,
            reverted_epoch=streams.c.epoch + 1,
            next_seq=back.seq + 1,
        )
        .returning(streams.c.id, streams.c.epoch)
    ).one_or_none()
    if row is None:
        raise StreamNotFound(f"stream {back.stream!r} does not exist")
    stream_id, epoch = row
    _refuse_what_is_gone(connection, stream_id, back)
    _refuse_another_log(connection, stream_id, back)
    _give_back(connection, stream_id, back)
    n_taken = _move_offsets_back(connection, stream_id, back)
    _restore_clusters(connection, stream_id, epoch, back)
    _forget_history(connection, stream_id, back)
    return n_taken


def _refuse_what_is_gone(connection: sa.Connection, stream_id: int, back: Rewind) -> None:
    """Refuse a snapshot that was there when it was read: what came after it may be gone, too."""
    there = sa.select(snapshots.c.number).where(
        snapshots.c.stream_id == stream_id,
        snapshots.c.number == back.snapshot,
        # A number is given again after a way back, under a later epoch.
        snapshots.c.epoch == back.epoch,
    )
    if connection.execute(there).one_or_none() is None:
        raise StreamConflict(
            f"snapshot {back.snapshot} of stream {back.stream!r} went while it was read: a newer "
            "one took its place, or the stream was put back. Look at the list, and choose again"
        )


def _refuse_another_log(connection: sa.Connection, stream_id: int, back: Rewind) -> None:
    """Refuse to go back to offsets of a log that is there no more."""
    decided = log_decisions.c
    later = connection.execute(
        sa.select(decided.topic, decided.partition, decided.kept_as)
        .where(decided.stream_id == stream_id, decided.epoch > back.epoch)
        .limit(1)
    ).one_or_none()
    if later is not None:
        raise StreamConflict(
            f"{later.topic}[{later.partition}] has been another log since that snapshot, and what "
            f"was read before is kept as {later.kept_as}: it could not be read again. Keep the "
            "later results, or choose a later snapshot"
        )


def _give_back(connection: sa.Connection, stream_id: int, back: Rewind) -> None:
    """Put every observation back into the cluster that the first later publication took it from."""
    changes = assignment_changes
    later = sa.and_(
        changes.c.stream_id == stream_id,
        changes.c.seq == observations.c.seq,
        changes.c.publication > back.publication,
    )
    before = (
        sa.select(changes.c.old_cluster)
        .where(later)
        .order_by(changes.c.publication)
        .limit(1)
        .scalar_subquery()
    )
    connection.execute(
        sa.update(observations)
        .where(
            observations.c.stream_id == stream_id,
            observations.c.seq <= back.seq,
            sa.exists().where(later),
        )
        .values(cluster=before)
    )
    connection.execute(
        sa.update(observations)
        .where(observations.c.stream_id == stream_id, observations.c.left_seq > back.seq)
        .values(left_seq=None)
    )
    _bring_in(connection, stream_id, back)
    connection.execute(
        sa.delete(changes).where(
            changes.c.stream_id == stream_id,
            sa.or_(changes.c.publication > back.publication, changes.c.seq > back.seq),
        )
    )


def _bring_in(connection: sa.Connection, stream_id: int, back: Rewind) -> None:
    """Bring back what the snapshot holds and what left at its own observation, but after it.

    A publication out of turn lets go without a further observation: the number does not tell.
    """
    left = connection.execute(
        sa.select(observations.c.seq).where(
            observations.c.stream_id == stream_id, observations.c.left_seq == back.seq
        )
    ).scalars()
    held = np.intersect1d(np.array(left.all(), dtype=np.int64), back.held).tolist()
    if held:
        connection.execute(
            sa.update(observations)
            .where(
                observations.c.stream_id == stream_id, observations.c.seq == sa.bindparam("number")
            )
            .values(left_seq=None),
            [{"number": number} for number in held],
        )


def _move_offsets_back(connection: sa.Connection, stream_id: int, back: Rewind) -> int:
    """Set every partition to where it was, and take what came later out of its account."""
    now, n_taken = time.time(), 0
    sources = connection.execute(
        sa.select(
            offsets.c.id,
            offsets.c.topic,
            offsets.c.partition,
            offsets.c.next_offset,
            offsets.c.n_duplicate,
        ).where(offsets.c.stream_id == stream_id)
    ).all()
    for source_id, topic, partition, read_to, n_duplicate in sources:
        next_offset = back.offsets.get((topic, partition))
        if next_offset is None:
            next_offset = _first_offset(connection, source_id)
        later = (
            observations.c.stream_id == stream_id,
            observations.c.seq > back.seq,
            observations.c.source_id == source_id,
        )
        replayed = connection.execute(
            sa.select(sa.func.count())
            .select_from(observations)
            .where(*later, is_record, observations.c.record_offset < next_offset)
        ).scalar_one()
        if replayed:
            raise StreamConflict(
                f"{replayed} observations of {topic}[{partition}] were dead letters when the "
                "snapshot was made; the topic would not be asked for them again. Keep the later "
                "results, or choose a later snapshot"
            )
        inserted = connection.execute(sa.delete(observations).where(*later, is_record)).rowcount
        connection.execute(sa.delete(observations).where(*later))
        dead = connection.execute(
            sa.delete(dead_letters).where(
                dead_letters.c.stream_id == stream_id,
                dead_letters.c.source_id == source_id,
                dead_letters.c.record_offset >= next_offset,
            )
        ).rowcount
        # Duplicates have no rows: they are what else was read. Logs have gaps, too.
        others = max(read_to - next_offset - inserted - dead, 0)
        duplicates = min(others, n_duplicate)
        n_taken += inserted
        connection.execute(
            sa.update(offsets)
            .where(offsets.c.id == source_id)
            .values(
                next_offset=next_offset,
                n_received=offsets.c.n_received - inserted - duplicates - dead,
                n_inserted=offsets.c.n_inserted - inserted,
                n_duplicate=offsets.c.n_duplicate - duplicates,
                n_dead=offsets.c.n_dead - dead,
                updated_at=now,
            )
        )
    return n_taken


def _first_offset(connection: sa.Connection, source_id: int) -> int:
    """Where a partition began that was not known yet when the snapshot was made."""
    firsts = [
        connection.execute(
            sa.select(sa.func.min(table.c.record_offset)).where(
                table.c.source_id == source_id, table.c.record_offset >= 0
            )
        ).scalar_one()
        for table in (observations, dead_letters)
    ]
    return min((first for first in firsts if first is not None), default=0)


def _forget_history(connection: sa.Connection, stream_id: int, back: Rewind) -> None:
    # What is live again ended later, if at the snapshot's own observation.
    live = sa.select(clusters.c.cluster).where(
        clusters.c.stream_id == stream_id, clusters.c.retired_publication.is_(None)
    )
    later = (
        sa.select(lineage_events.c.number)
        .where(
            lineage_events.c.stream_id == stream_id,
            sa.or_(
                lineage_events.c.publication > back.publication,
                lineage_events.c.seq > back.seq,
                sa.and_(
                    lineage_events.c.kind == "retire",
                    lineage_events.c.seq == back.seq,
                    lineage_events.c.cluster.in_(live),
                ),
            ),
        )
        .scalar_subquery()
    )
    for table in (lineage_parents, lineage_events):
        connection.execute(
            sa.delete(table).where(table.c.stream_id == stream_id, table.c.number.in_(later))
        )
    for table, condition in (
        (publications, publications.c.number > back.publication),
        (rounds, rounds.c.seq > back.seq),
        (postponements, postponements.c.seq > back.seq),
        # By all three: one that was made beside the writer has a higher number than later ones.
        (
            snapshots,
            sa.or_(
                snapshots.c.number > back.snapshot,
                snapshots.c.seq > back.seq,
                snapshots.c.epoch > back.epoch,
            ),
        ),
        # By number: in a silence many rounds have the snapshot's own place.
        (adoptions, adoptions.c.round_number > back.taken_round),
        # What was said of how sure the chain is belongs to a publication that is no more.
        (certainties, certainties.c.chunk >= 0),
    ):
        connection.execute(sa.delete(table).where(table.c.stream_id == stream_id, condition))
    newest = sa.select(sa.func.coalesce(sa.func.max(lineage_events.c.number), 0) + 1).where(
        lineage_events.c.stream_id == stream_id
    )
    connection.execute(
        sa.update(streams)
        .where(streams.c.id == stream_id)
        .values(next_event=newest.scalar_subquery())
    )


def _restore_clusters(connection: sa.Connection, stream_id: int, epoch: int, back: Rewind) -> None:
    connection.execute(
        sa.delete(clusters).where(
            clusters.c.stream_id == stream_id,
            sa.or_(
                clusters.c.retired_publication.is_(None),
                clusters.c.retired_publication > back.publication,
                # Between two publications one may have begun and ended.
                clusters.c.cluster >= back.next_cluster,
            ),
        )
    )
    write_clusters(connection, stream_id, epoch, back.clusters)
