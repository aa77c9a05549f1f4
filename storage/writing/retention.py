"""What may be forgotten, and forgetting it: oldest first, a bounded number of rows at a time.

Nothing that a replay needs ever goes, whatever the settings: rows after the oldest snapshot that is
kept, and the history since, stay. So do the rows of a network's vertices for as long as the model
holds them: they tell the vertices' names. Accounts stay for ever: they are one row a partition.
"""

from __future__ import annotations

import time
from typing import Any

import sqlalchemy as sa

from weald.storage.commit.commit import CERTAINTY_CHUNK
from weald.storage.settings import RetentionSettings
from weald.storage.sql.schema import (
    adoptions,
    assignment_changes,
    bundle_changes,
    certainties,
    clusters,
    dead_letters,
    lineage_events,
    lineage_parents,
    observations,
    postponements,
    publications,
    rounds,
    snapshots,
    streams,
)

__all__ = ["prune"]

SECONDS_A_DAY = 86_400.0
_EVERY: sa.ColumnElement[bool] = sa.true()
# Rows of vertices that the model holds; only those have an offset below 0.
_NAMED = sa.and_(observations.c.record_offset < 0, observations.c.left_seq.is_(None))


def prune(
    connection: sa.Connection, stream_id: int, retention: RetentionSettings, at_most: int
) -> dict[str, int]:
    """Delete what the policy lets go, about `at_most` rows of each table; return how many went.

    Parameters
    ----------
    connection
        In a transaction.
    stream_id
    retention
    at_most
        Call again while any table had so many to give.
    """
    before = time.time() - retention.days * SECONDS_A_DAY if retention.days else 0.0
    seq, publication = _replayable(connection, stream_id)
    newest = connection.execute(
        sa.select(streams.c.next_seq - 1).where(streams.c.id == stream_id)
    ).scalar_one()
    last = connection.execute(
        sa.select(sa.func.coalesce(sa.func.max(publications.c.number), 0)).where(
            publications.c.stream_id == stream_id
        )
    ).scalar_one()
    told = min(last - retention.publications, publication) if retention.publications else 0
    shedding = _Shedding(connection, stream_id, at_most)
    old = observations.c.received_at < before
    if retention.observations:
        old = sa.or_(old, observations.c.seq <= newest - retention.observations)
    gone = {
        "observations": shedding.prefix(
            observations.c.seq, sa.and_(observations.c.seq <= seq, old), _NAMED
        ),
        # Those of many observations lie in one row: it goes when all of them have gone.
        "certainties": shedding.prefix(
            certainties.c.chunk, (certainties.c.chunk + 1) * CERTAINTY_CHUNK < _first(shedding)
        ),
        # A replay from the beginning asks for them as long as it has all observations.
        "postponements": shedding.prefix(
            postponements.c.seq, postponements.c.seq <= min(seq, _first(shedding) - 1)
        ),
        # So are rounds; one of the snapshot's own moment may have been taken back after it.
        "adoptions": shedding.prefix(
            adoptions.c.round_number, adoptions.c.seq < min(seq, _first(shedding))
        ),
        "assignment_changes": shedding.prefix(
            assignment_changes.c.publication, assignment_changes.c.publication <= told
        ),
        "bundle_changes": shedding.prefix(
            bundle_changes.c.publication, bundle_changes.c.publication <= told
        ),
        "lineage_events": _lineage(shedding, told),
        "publications": shedding.prefix(publications.c.number, publications.c.number <= told),
        "clusters": _retired(shedding, told),
        "rounds": shedding.beyond(rounds.c.id, retention.rounds),
        "dead_letters": _dead_letters(shedding, retention.dead_letters, before),
        "publications of all shards": _of_the_whole(shedding, retention.publications),
    }
    return {name: n for name, n in gone.items() if n}


def _replayable(connection: sa.Connection, stream_id: int) -> tuple[int, int]:
    """Return the newest observation and the newest publication that no replay asks for again."""
    seq = connection.execute(
        sa.select(sa.func.coalesce(sa.func.min(snapshots.c.seq), 0)).where(
            snapshots.c.stream_id == stream_id
        )
    ).scalar_one()
    # A publication of the snapshot's own moment may have come after it.
    publication = connection.execute(
        sa.select(sa.func.coalesce(sa.func.max(publications.c.number), 0)).where(
            publications.c.stream_id == stream_id, publications.c.seq < seq
        )
    ).scalar_one()
    return seq, publication


def _first(shedding: _Shedding) -> int:
    """Return the oldest observation whose row is kept; where there is none, beyond all."""
    oldest = sa.select(sa.func.min(observations.c.seq)).where(
        observations.c.stream_id == shedding.stream_id
    )
    first: int | None = shedding.connection.execute(oldest).scalar_one()
    return 2**62 if first is None else first


class _Shedding:
    """Deletes the oldest rows of one stream, by a column that grows with age's opposite."""

    def __init__(self, connection: sa.Connection, stream_id: int, at_most: int) -> None:
        self.connection = connection
        self.stream_id = stream_id
        self.at_most = at_most

    def prefix(
        self,
        key: sa.Column[Any],
        condition: sa.ColumnElement[bool],
        spared: sa.ColumnElement[bool] | None = None,
    ) -> int:
        """Delete rows from the lowest key on, as far as the condition holds of them.

        What is ``spared`` stays, and does not stand in the way of others.
        """
        others = _EVERY if spared is None else sa.not_(spared)
        end = self.last_of(key, condition, others)
        return 0 if end is None else self.up_to(key, end, others)

    def beyond(self, key: sa.Column[Any], kept: int) -> int:
        """Delete rows from the lowest key on, but never the newest `kept`; 0 keeps all."""
        oldest = self.oldest_kept(key, kept)
        return 0 if oldest is None else self.prefix(key, key < oldest)

    def oldest_kept(self, key: sa.Column[Any], kept: int) -> int | None:
        """Return the lowest key of the newest `kept` rows; None where none may go: 0 keeps all."""
        if not kept:
            return None
        found: int | None = self.connection.execute(
            sa.select(key)
            .where(key.table.c.stream_id == self.stream_id)
            .order_by(key.desc())
            .offset(kept - 1)
            .limit(1)
        ).scalar_one_or_none()
        return found

    def up_to(self, key: sa.Column[Any], end: int, among: sa.ColumnElement[bool] = _EVERY) -> int:
        """Delete every row up to that key."""
        table = key.table
        return self.connection.execute(
            sa.delete(table).where(table.c.stream_id == self.stream_id, key <= end, among)
        ).rowcount

    def last_of(
        self,
        key: sa.Column[Any],
        condition: sa.ColumnElement[bool],
        among: sa.ColumnElement[bool] = _EVERY,
    ) -> int | None:
        """Return the highest of the oldest keys of which the condition holds, or None."""
        oldest = (
            sa.select(key.label("key"), condition.label("may_go"))
            .where(key.table.c.stream_id == self.stream_id, among)
            .order_by(key)
            .limit(self.at_most)
            .subquery()
        )
        end: int | None = self.connection.execute(
            sa.select(sa.func.max(oldest.c.key)).where(oldest.c.may_go)
        ).scalar_one()
        return end


def _lineage(shedding: _Shedding, told: int) -> int:
    """Delete events whose publication is forgotten, those between two publications included."""
    number = lineage_events.c.number
    end = shedding.last_of(number, lineage_events.c.publication <= told)
    if end is None or told <= 0:
        return 0
    shedding.up_to(lineage_parents.c.number, end)
    return shedding.up_to(number, end)


def _retired(shedding: _Shedding, told: int) -> int:
    """Delete clusters that ended with a forgotten publication; the newest id always stays."""
    newest = sa.select(sa.func.max(clusters.c.cluster)).where(
        clusters.c.stream_id == shedding.stream_id
    )
    return shedding.connection.execute(
        sa.delete(clusters).where(
            clusters.c.stream_id == shedding.stream_id,
            clusters.c.retired_publication <= told,
            clusters.c.cluster < newest.scalar_subquery(),
        )
    ).rowcount


def _of_the_whole(part: _Shedding, kept: int) -> int:
    """Delete what earlier publications of a stream in shards tell; its first shard sees to it.

    No replay asks for any of it; but of the ids that publications give the newest always stays.
    """
    whole = streams.alias()
    found = part.connection.execute(
        sa.select(whole.c.id, whole.c.shards)
        .join(streams, streams.c.part_of == whole.c.id)
        .where(streams.c.id == part.stream_id, streams.c.shard == 0)
    ).one_or_none()
    if found is None or not kept:
        return 0
    shedding = _Shedding(part.connection, found.id, part.at_most)
    oldest = shedding.oldest_kept(publications.c.number, kept)
    if oldest is None:
        return 0
    own = clusters.c.stream_id == found.id, clusters.c.cluster % (found.shards + 1) == 0
    newest = sa.select(sa.func.max(clusters.c.cluster)).where(*own)
    gone = part.connection.execute(
        sa.delete(clusters).where(
            own[0],
            clusters.c.retired_publication < oldest,
            clusters.c.cluster != sa.func.coalesce(newest.scalar_subquery(), 0),
        )
    ).rowcount
    told = shedding.prefix(publications.c.number, publications.c.number < oldest)
    return gone + told + _lineage(shedding, oldest - 1)


def _dead_letters(shedding: _Shedding, kept: int, before: float) -> int:
    """Delete old letters, but none that waits to be decided anew."""
    number = dead_letters.c.id
    waiting = sa.select(sa.func.coalesce(sa.func.min(number), 2**62)).where(
        dead_letters.c.stream_id == shedding.stream_id, dead_letters.c.replay_at.is_not(None)
    )
    free = number < shedding.connection.execute(waiting).scalar_one()
    gone = shedding.prefix(number, sa.and_(free, dead_letters.c.received_at < before))
    oldest = shedding.oldest_kept(number, kept)
    if oldest is None:
        return gone
    return gone + shedding.prefix(number, sa.and_(free, number < oldest))
