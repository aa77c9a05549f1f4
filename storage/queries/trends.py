"""What moves: when clusters began, where the newest observations went, which keys there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from weald.storage.encoding.row_bytes import matrix_from_bytes
from weald.storage.sql.database import walk_indexes
from weald.storage.sql.schema import bundles, clusters, lineage_events, observations, streams

from .assignments import in_bundle, is_member, shown_cluster

__all__ = [
    "arrivals",
    "births",
    "cluster_ids",
    "keys_like",
    "last_cluster",
    "member_seqs",
    "member_values",
]


def births(connection: sa.Connection, stream_id: int) -> dict[int, float]:
    """Return when each cluster was first told of, seconds since 1970."""
    events = lineage_events
    statement = (
        sa.select(events.c.cluster, sa.func.min(events.c.happened_at))
        .where(events.c.stream_id == stream_id, events.c.kind.in_(("birth", "split")))
        .group_by(events.c.cluster)
    )
    return {row[0]: row[1] for row in connection.execute(statement)}


def arrivals(connection: sa.Connection, stream_id: int, newest: int) -> dict[int, int]:
    """Return how many of the ``newest`` observations each cluster has now."""
    walk_indexes(connection)
    statement = (
        sa.select(shown_cluster, sa.func.count())
        .select_from(observations)
        .outerjoin(bundles, in_bundle)
        .where(
            observations.c.stream_id == stream_id,
            observations.c.seq > _last_seq(connection, stream_id) - newest,
            observations.c.cluster > 0,  # the edges of a network are in none
        )
        .group_by(shown_cluster)
    )
    return {row[0]: row[1] for row in connection.execute(statement)}


def keys_like(connection: sa.Connection, stream_id: int, start: str, limit: int) -> list[str]:
    """Return keys that begin with ``start``, in order."""
    key = observations.c.record_key
    statement = (
        sa.select(key)
        .where(observations.c.stream_id == stream_id, key >= start, key < start + "\U0010ffff")
        .distinct()
        .order_by(key)
        .limit(limit)
    )
    return [found for found in connection.execute(statement).scalars() if found is not None]


def _last_seq(connection: sa.Connection, stream_id: int) -> int:
    statement: Any = sa.select(streams.c.next_seq).where(streams.c.id == stream_id)
    return int(connection.execute(statement).scalar_one()) - 1


def cluster_ids(connection: sa.Connection, stream_id: int) -> list[int]:
    """Return the ids of the clusters that are shown, largest first."""
    statement = (
        sa.select(clusters.c.cluster)
        .where(clusters.c.stream_id == stream_id, clusters.c.retired_publication.is_(None))
        .order_by(clusters.c.n_observations.desc(), clusters.c.cluster)
    )
    return list(connection.execute(statement).scalars())


def last_cluster(connection: sa.Connection, stream_id: int, multiple_of: int) -> int:
    """Return the largest id of a cluster that is a multiple of that number; 0 of none."""
    statement = sa.select(sa.func.max(clusters.c.cluster)).where(
        clusters.c.stream_id == stream_id, clusters.c.cluster % multiple_of == 0
    )
    return connection.execute(statement).scalar_one() or 0


def member_seqs(connection: sa.Connection, stream_id: int, cluster: int) -> list[int]:
    """Return the numbers of all observations in the model that the cluster has now, in order."""
    statement = (
        sa.select(observations.c.seq)
        .where(observations.c.stream_id == stream_id, is_member(stream_id, cluster))
        .order_by(observations.c.seq)
    )
    return list(connection.execute(statement).scalars())


def member_values(
    connection: sa.Connection, stream_id: int, cluster: int
) -> NDArray[np.float64] | None:
    """Return the values (n, d) of all observations in the model that the cluster has now."""
    statement = sa.select(observations.c.value_bytes).where(
        observations.c.stream_id == stream_id, is_member(stream_id, cluster)
    )
    found = list(connection.execute(statement).scalars())
    return matrix_from_bytes(found) if found else None
