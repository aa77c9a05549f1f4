"""Which observation is in which cluster, now and as of any moment.

The table of observations says what is; the table of changes says what each publication took an
observation from. What an observation had at some moment is therefore what the first change
after that moment took it from, or what it has now if nothing has changed since.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from weald.storage.encoding.row_bytes import from_bytes, offset_of_record
from weald.storage.errors import MomentForgotten
from weald.storage.sql.database import walk_indexes
from weald.storage.sql.schema import (
    assignment_changes,
    bundle_changes,
    bundles,
    observations,
    offsets,
    publications,
    streams,
)

from .answers import MembershipCertainty, ObservationRow, Shown
from .base import AsOf
from .certainty import certainty_of

__all__ = [
    "assignments",
    "changes",
    "in_bundle",
    "is_member",
    "members",
    "newest",
    "newest_of_keys",
    "observed",
    "shown",
    "shown_cluster",
]

# A compacted observation is where its bundle is.
in_bundle = sa.and_(
    bundles.c.stream_id == observations.c.stream_id, bundles.c.bundle == observations.c.bundle
)
shown_cluster = sa.func.coalesce(bundles.c.cluster, observations.c.cluster)

# How many numbers one statement names; SQLite stops at 32,766.
_CHUNK = 500


def _observation_select(stream_id: int) -> sa.Select[Any]:
    return (
        sa.select(observations, offsets.c.topic, offsets.c.partition, shown_cluster.label("shown"))
        .join_from(observations, offsets, observations.c.source_id == offsets.c.id)
        .outerjoin(bundles, in_bundle)
        .where(observations.c.stream_id == stream_id)
        .order_by(observations.c.seq.desc())
    )


def _observation_row(row: Any, cluster: int, sure: MembershipCertainty | None) -> ObservationRow:
    return ObservationRow(
        seq=row.seq,
        topic=row.topic,
        partition=row.partition,
        offset=offset_of_record(row.record_offset),
        key=row.record_key,
        event_time=row.event_at,
        received_at=row.received_at,
        cluster=cluster,
        values=from_bytes(row.value_bytes),
        text=row.record_text,
        probability=None if sure is None else sure.probability,
        stability=None if sure is None else sure.stability,
        left_seq=row.left_seq,
    )


def is_member(stream_id: int, cluster: int) -> sa.ColumnElement[bool]:
    """Say of an observation that it is in the model and in this cluster now."""
    o = observations.c
    single = sa.and_(o.cluster == cluster, o.bundle.is_(None))
    those = sa.select(bundles.c.bundle).where(
        bundles.c.stream_id == stream_id, bundles.c.cluster == cluster
    )
    return sa.and_(sa.or_(single, o.bundle.in_(those)), o.left_seq.is_(None))


def members(
    connection: sa.Connection, stream_id: int, cluster: int, limit: int
) -> list[ObservationRow]:
    """Return the newest observations in the model that the cluster has now."""
    statement = _observation_select(stream_id).where(is_member(stream_id, cluster)).limit(limit)
    rows = connection.execute(statement).all()
    sure = certainty_of(connection, stream_id, (row.seq for row in rows))
    return [_observation_row(row, row.shown, sure.get(row.seq)) for row in rows]


def changes(connection: sa.Connection, stream_id: int, after: int) -> NDArray[np.int64]:
    """Return ``publication, seq, old cluster, new cluster`` of each change after a publication.

    In order of publications, int64 (n, 4).
    """
    own, theirs, o = assignment_changes.c, bundle_changes.c, observations.c
    of_bundles = (
        sa.select(theirs.publication, o.seq, theirs.old_cluster, theirs.new_cluster)
        .join_from(
            bundle_changes,
            observations,
            sa.and_(o.stream_id == theirs.stream_id, o.bundle == theirs.bundle),
        )
        .where(
            theirs.stream_id == stream_id,
            theirs.publication > after,
            theirs.publication > o.bundle_since,
        )
    )
    statement = (
        sa.select(own.publication, own.seq, own.old_cluster, own.new_cluster)
        .where(own.stream_id == stream_id, own.publication > after)
        .union_all(of_bundles)
        .order_by("publication", "seq")
    )
    rows = [tuple(row) for row in connection.execute(statement)]
    return np.array(rows, dtype=np.int64).reshape(-1, 4)


def observed(
    connection: sa.Connection, stream_id: int, seqs: Sequence[int]
) -> list[ObservationRow]:
    """Return these observations, oldest first."""
    rows: list[Any] = []
    for start in range(0, len(seqs), _CHUNK):
        chosen = observations.c.seq.in_(seqs[start : start + _CHUNK])
        rows += connection.execute(_observation_select(stream_id).where(chosen)).all()
    sure = certainty_of(connection, stream_id, seqs)
    return sorted(
        (_observation_row(row, row.shown, sure.get(row.seq)) for row in rows),
        key=lambda row: row.seq,
    )


def newest(connection: sa.Connection, stream_id: int, limit: int) -> list[ObservationRow]:
    """Return the newest observations that are in a cluster, newest first."""
    clustered = _observation_select(stream_id).where(observations.c.cluster > 0)
    rows = connection.execute(clustered.limit(limit)).all()
    sure = certainty_of(connection, stream_id, (row.seq for row in rows))
    return [_observation_row(row, row.shown, sure.get(row.seq)) for row in rows]


def assignments(
    connection: sa.Connection,
    stream_id: int,
    keys: Iterable[str],
    as_of: AsOf | None,
    limit: int,
) -> list[ObservationRow]:
    """Return for each key its newest observations, with the cluster now or as of a moment.

    Raises
    ------
    MomentForgotten
    """
    statement = _observation_select(stream_id).limit(limit)
    publication: int | None = None
    if as_of is not None and as_of.time is not None:
        statement = statement.where(observations.c.received_at <= as_of.time)
        _refuse_forgotten(connection, stream_id, as_of.time)
        publication = _publication_at(connection, stream_id, as_of.time)
    elif as_of is not None and as_of.publication is not None:
        publication = as_of.publication
        covered = _covered_by(connection, stream_id, publication)
        statement = statement.where(observations.c.seq <= covered)
    with_key = statement.where(observations.c.record_key == sa.bindparam("key"))
    rows = [row for key in keys for row in connection.execute(with_key, {"key": key})]
    then: dict[int, int] = {}
    if publication is not None:
        then = _clusters_at(connection, stream_id, rows, publication)
    # Certainties are those of the newest publication; they say nothing of the past.
    sure = certainty_of(connection, stream_id, () if as_of else (row.seq for row in rows))
    return [_observation_row(row, then.get(row.seq, row.shown), sure.get(row.seq)) for row in rows]


def newest_of_keys(
    connection: sa.Connection, stream_id: int, keys: Collection[str]
) -> dict[str, int]:
    """Return the number of the newest observation of each of the keys that one has."""
    walk_indexes(connection)
    asked = sorted(keys)
    known: dict[str, int] = {}
    for start in range(0, len(asked), _CHUNK):
        statement = (
            sa.select(observations.c.record_key, sa.func.max(observations.c.seq))
            .where(
                observations.c.stream_id == stream_id,
                observations.c.record_key.in_(asked[start : start + _CHUNK]),
            )
            .group_by(observations.c.record_key)
        )
        known.update((key, seq) for key, seq in connection.execute(statement))
    return known


def shown(
    connection: sa.Connection, stream_id: int, publication: int, after_seq: int, limit: int
) -> Shown:
    """Return the clusters of the next observations in order, as of that publication.

    An observation that came later has the cluster that it arrived in.
    """
    rows = connection.execute(
        sa.select(
            observations.c.seq,
            observations.c.bundle,
            observations.c.bundle_since,
            shown_cluster.label("cluster"),
        )
        .outerjoin(bundles, in_bundle)
        .where(observations.c.stream_id == stream_id, observations.c.seq > after_seq)
        .order_by(observations.c.seq)
        .limit(limit)
    ).all()
    seq = np.array([row.seq for row in rows], dtype=np.int64)
    cluster = np.array([row.cluster for row in rows], dtype=np.int64)
    if len(seq):
        moved = _bundle_changes(connection, stream_id, publication)
        for place, row in enumerate(rows if moved else ()):
            theirs = moved.get(row.bundle, ())
            first = next((old for number, old in theirs if number > row.bundle_since), None)
            if first is not None:
                cluster[place] = first
        changes = assignment_changes
        since = connection.execute(
            sa.select(changes.c.seq, changes.c.old_cluster)
            .where(
                changes.c.stream_id == stream_id,
                changes.c.seq.between(int(seq[0]), int(seq[-1])),
                changes.c.publication > publication,
            )
            .order_by(changes.c.publication.desc())
        ).all()
        # Newest first, so that the oldest change, which tells what it took away, is written last.
        places = np.searchsorted(seq, [change.seq for change in since])
        for place, change in zip(places.tolist(), since, strict=True):
            cluster[place] = change.old_cluster
    return Shown(seq, cluster)


def _refuse_forgotten(connection: sa.Connection, stream_id: int, time: float) -> None:
    """Refuse a time before the oldest publication that is kept, unless none came before that."""
    # A shard need not have had anything to show at the first publications of the whole.
    whole = sa.select(sa.func.coalesce(streams.c.part_of, streams.c.id)).where(
        streams.c.id == stream_id
    )
    oldest = connection.execute(
        sa.select(publications.c.number, publications.c.published_at)
        .where(publications.c.stream_id == whole.scalar_subquery())
        .order_by(publications.c.number)
        .limit(1)
    ).one_or_none()
    if oldest is not None and oldest.number > 1 and time < oldest.published_at:
        # Rounded up: at the moment that is named there is an answer.
        first = datetime.fromtimestamp(math.ceil(oldest.published_at), UTC)
        raise MomentForgotten(
            "what was shown then is not known any more (retention.publications): the oldest time "
            f"that can be asked for is {first:%Y-%m-%dT%H:%M:%SZ}"
        )


def _publication_at(connection: sa.Connection, stream_id: int, time: float) -> int:
    """Return the number of the newest publication at that time; 0 before the first."""
    newest = sa.select(sa.func.max(publications.c.number)).where(
        publications.c.stream_id == stream_id, publications.c.published_at <= time
    )
    return connection.execute(newest).scalar_one() or 0


def _covered_by(connection: sa.Connection, stream_id: int, number: int) -> int:
    covered = sa.select(publications.c.seq).where(
        publications.c.stream_id == stream_id, publications.c.number == number
    )
    return connection.execute(covered).scalar_one_or_none() or 0


def _clusters_at(
    connection: sa.Connection, stream_id: int, rows: list[Any], publication: int
) -> dict[int, int]:
    """Return the cluster at that publication of each observation that changed it since."""
    changes = assignment_changes
    then: dict[int, int] = {}
    seqs = [row.seq for row in rows]
    for start in range(0, len(seqs), _CHUNK):
        statement = (
            sa.select(changes.c.seq, changes.c.old_cluster)
            .where(
                changes.c.stream_id == stream_id,
                changes.c.seq.in_(seqs[start : start + _CHUNK]),
                changes.c.publication > publication,
            )
            .order_by(changes.c.publication)
        )
        for seq, old_cluster in connection.execute(statement):
            then.setdefault(seq, old_cluster)
    moved = _bundle_changes(connection, stream_id, publication)
    for row in rows:
        if row.bundle is not None and row.seq not in then:
            # In a bundle its own changes ended; those of the bundle hold from when it came in.
            theirs = moved.get(row.bundle, ())
            first = next((old for number, old in theirs if number > row.bundle_since), None)
            if first is not None:
                then[row.seq] = first
    return then


def _bundle_changes(
    connection: sa.Connection, stream_id: int, publication: int
) -> dict[int, list[tuple[int, int]]]:
    """Return for each bundle its changes after a publication, in order: number, old cluster."""
    c = bundle_changes.c
    statement = (
        sa.select(c.bundle, c.publication, c.old_cluster)
        .where(c.stream_id == stream_id, c.publication > publication)
        .order_by(c.publication)
    )
    moved: dict[int, list[tuple[int, int]]] = {}
    for bundle, number, old in connection.execute(statement):
        moved.setdefault(bundle, []).append((number, old))
    return moved
