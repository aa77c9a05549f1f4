"""Compacted observations: one row says which cluster all of a bundle are in.

An observation in a bundle keeps the cluster that it had before as its own; what it has now is the
bundle's, and what it had in between the bundle's changes say, from the publication on after which
it came in. When a bundle ends, in another one or because it is expanded, its changes become those
of its observations. A smaller bundle goes into a larger one, so that an observation is rewritten
at most as often as its bundle can double.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from weald.storage.commit.commit import Bundled, Unbundled
from weald.storage.encoding.row_bytes import matrix_from_bytes

from .schema import assignment_changes, bundle_changes, bundles, observations

__all__ = ["bundle_together", "bundled", "move_bundles", "unbundle", "values_of"]

Ids = NDArray[np.int64]

# How many numbers one statement names; SQLite stops at 32,766.
_CHUNK = 500


def bundle_together(connection: sa.Connection, stream_id: int, made: Bundled) -> None:
    """Put observations, and those of other bundles, into one."""
    o, b = observations.c, bundles.c
    for other in made.absorbed:
        _keep_history(connection, stream_id, other)
        connection.execute(
            sa.update(observations)
            .where(o.stream_id == stream_id, o.bundle == other)
            .values(bundle=made.bundle, bundle_since=made.publication, cluster=made.cluster)
        )
        _forget(connection, stream_id, other)
    join = (
        sa.update(observations)
        .where(o.stream_id == sa.bindparam("of_stream"), o.seq == sa.bindparam("of_seq"))
        .values(bundle=made.bundle, bundle_since=made.publication)
    )
    rows = [{"of_stream": stream_id, "of_seq": seq} for seq in made.seq.tolist()]
    if rows:
        connection.execute(join, rows)
    told = {"cluster": made.cluster, "n_observations": made.n_observations, "doubt": made.doubt}
    known = b.stream_id == stream_id, b.bundle == made.bundle
    if connection.execute(sa.update(bundles).where(*known).values(**told)).rowcount == 0:
        connection.execute(
            sa.insert(bundles).values(stream_id=stream_id, bundle=made.bundle, **told)
        )


def move_bundles(
    connection: sa.Connection, stream_id: int, publication: int, moves: tuple[Ids, Ids]
) -> None:
    """Give bundles to other clusters; ``moves`` are the bundles and where each goes."""
    b = bundles.c
    for bundle, cluster in zip(*(column.tolist() for column in moves), strict=True):
        known = b.stream_id == stream_id, b.bundle == bundle
        connection.execute(
            sa.insert(bundle_changes).from_select(
                ["stream_id", "bundle", "publication", "old_cluster", "new_cluster"],
                sa.select(
                    b.stream_id, b.bundle, sa.literal(publication), b.cluster, sa.literal(cluster)
                ).where(*known),
            )
        )
        connection.execute(sa.update(bundles).where(*known).values(cluster=cluster))


def unbundle(connection: sa.Connection, stream_id: int, ended: Unbundled) -> None:
    """Make the observations of a bundle ones of their own again."""
    o, b = observations.c, bundles.c
    _keep_history(connection, stream_id, ended.bundle)
    cluster = (
        sa.select(b.cluster)
        .where(b.stream_id == stream_id, b.bundle == ended.bundle)
        .scalar_subquery()
    )
    connection.execute(
        sa.update(observations)
        .where(o.stream_id == stream_id, o.bundle == ended.bundle)
        .values(cluster=cluster, bundle=None, bundle_since=None)
    )
    _forget(connection, stream_id, ended.bundle)


def _keep_history(connection: sa.Connection, stream_id: int, bundle: int) -> None:
    """Write down for each observation what the bundle's changes did to it."""
    o, c = observations.c, bundle_changes.c
    changes = (
        sa.select(o.stream_id, o.seq, c.publication, c.old_cluster, c.new_cluster)
        .join_from(
            observations,
            bundle_changes,
            sa.and_(c.stream_id == o.stream_id, c.bundle == o.bundle),
        )
        .where(o.stream_id == stream_id, o.bundle == bundle, c.publication > o.bundle_since)
    )
    names = [column.name for column in assignment_changes.columns]
    connection.execute(sa.insert(assignment_changes).from_select(names, changes))


def _forget(connection: sa.Connection, stream_id: int, bundle: int) -> None:
    for table in (bundle_changes, bundles):
        known = table.c.stream_id == stream_id, table.c.bundle == bundle
        connection.execute(sa.delete(table).where(*known))


def bundled(connection: sa.Connection, stream_id: int, bundle: int) -> Ids:
    """Return the numbers of the observations in a bundle, rising."""
    o = observations.c
    known = o.stream_id == stream_id, o.bundle == bundle
    found = connection.execute(sa.select(o.seq).where(*known).order_by(o.seq)).scalars()
    return np.array(list(found), dtype=np.int64)


def values_of(
    connection: sa.Connection, stream_id: int, seqs: Ids
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return values (n, d) and event times (n) of observations by rising number."""
    o = observations.c
    rows: list[Any] = []
    for start in range(0, len(seqs), _CHUNK):
        chunk = seqs[start : start + _CHUNK].tolist()
        known = o.stream_id == stream_id, o.seq.in_(chunk)
        rows += connection.execute(
            sa.select(o.value_bytes, o.event_at).where(*known).order_by(o.seq)
        ).all()
    times = np.array([row.event_at for row in rows], dtype=np.float64)
    return matrix_from_bytes([row.value_bytes for row in rows]), times
