"""Compacted observations: one row says which cluster all of a bundle are in.

An observation in a bundle keeps the cluster that it had before as its own; what it has now is the
bundle's, and what it had in between the bundle's changes say, from the publication on after which
it came in. When a bundle ends, in another one or because it is expanded, its changes become those
of its observations. A smaller bundle goes into a larger one, so that an observation is rewritten
at most as often as its bundle can double.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from weald.storage.commit.commit import Bundled, Unbundled
from weald.storage.encoding.row_bytes import matrix_from_bytes

from .database import walk_indexes
from .schema import bundles, observations

__all__ = ["bundle_together", "bundled", "move_bundles", "unbundle", "values_of"]

Ids = NDArray[np.int64]

# How many numbers one statement names; SQLite stops at 32,766.
_CHUNK = 500


class _Both(NamedTuple):
    """One change of many rows: SQLite takes it row by row, PostgreSQL by arrays."""

    sqlite: str
    postgresql: str

    def run(self, connection: sa.Connection, stream_id: int, **columns: list[Any]) -> None:
        """Make the change; the columns have one length, and stand in the order of SQLite's."""
        rows = list(zip(*columns.values(), strict=True))
        if not rows:
            return
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql(self.sqlite, [(stream_id, *row) for row in rows])
        else:
            walk_indexes(connection)
            connection.exec_driver_sql(self.postgresql, {"stream_id": stream_id, **columns})


# What the bundle's changes did to each observation in it becomes the observation's own history.
_HISTORY = """
    INSERT INTO assignment_changes (stream_id, seq, publication, old_cluster, new_cluster)
    SELECT o.stream_id, o.seq, c.publication, c.old_cluster, c.new_cluster"""
_KEEP_HISTORY = _Both(
    # By itself SQLite reads all of the stream.
    f"""{_HISTORY}
    FROM observations o INDEXED BY ix_observations_bundle CROSS JOIN bundle_changes c
    ON c.stream_id = ?1 AND c.bundle = ?2 AND c.publication > o.bundle_since
    WHERE o.stream_id = ?1 AND o.bundle = ?2""",
    f"""{_HISTORY}
    FROM observations o JOIN bundle_changes c
    ON c.stream_id = %(stream_id)s AND c.bundle = o.bundle AND c.publication > o.bundle_since
    WHERE o.stream_id = %(stream_id)s AND o.bundle = ANY(%(bundle)s::bigint[])
    AND c.bundle = ANY(%(bundle)s::bigint[])""",
)
_TAKE_OVER = _Both(
    """
    UPDATE observations SET bundle = ?3, bundle_since = ?4, cluster = ?5
    WHERE stream_id = ?1 AND bundle = ?2""",
    """
    UPDATE observations o SET bundle = into_it.bundle, bundle_since = into_it.since,
    cluster = into_it.cluster
    FROM unnest(%(other)s::bigint[], %(bundle)s::bigint[], %(since)s::bigint[],
                %(cluster)s::bigint[]) AS into_it (other, bundle, since, cluster)
    WHERE o.stream_id = %(stream_id)s AND o.bundle = into_it.other
    AND o.bundle = ANY(%(other)s::bigint[])""",
)
_FORGET = [
    _Both(
        f"DELETE FROM {table} WHERE stream_id = ?1 AND bundle = ?2",  # noqa: S608 - names of our own
        f"DELETE FROM {table} "  # noqa: S608 - the same
        "WHERE stream_id = %(stream_id)s AND bundle = ANY(%(bundle)s::bigint[])",
    )
    for table in ("bundle_changes", "bundles")
]
_JOIN = _Both(
    "UPDATE observations SET bundle = ?3, bundle_since = ?4 WHERE stream_id = ?1 AND seq = ?2",
    """
    UPDATE observations o SET bundle = into_it.bundle, bundle_since = into_it.since
    FROM unnest(%(seq)s::bigint[], %(bundle)s::bigint[], %(since)s::bigint[])
    AS into_it (seq, bundle, since)
    WHERE o.stream_id = %(stream_id)s AND o.seq = into_it.seq""",
)
_TELL = _Both(
    """
    INSERT INTO bundles (stream_id, bundle, cluster, n_observations, doubt)
    VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (stream_id, bundle) DO UPDATE SET cluster = excluded.cluster,
    n_observations = excluded.n_observations, doubt = excluded.doubt""",
    """
    INSERT INTO bundles (stream_id, bundle, cluster, n_observations, doubt)
    SELECT %(stream_id)s, made.* FROM unnest(%(bundle)s::bigint[], %(cluster)s::bigint[],
    %(n_observations)s::bigint[], %(doubt)s::float8[]) AS made
    ON CONFLICT (stream_id, bundle) DO UPDATE SET cluster = excluded.cluster,
    n_observations = excluded.n_observations, doubt = excluded.doubt""",
)
_NOTE_MOVE = _Both(
    """
    INSERT INTO bundle_changes (stream_id, bundle, publication, old_cluster, new_cluster)
    SELECT stream_id, bundle, ?4, cluster, ?3 FROM bundles WHERE stream_id = ?1 AND bundle = ?2""",
    """
    INSERT INTO bundle_changes (stream_id, bundle, publication, old_cluster, new_cluster)
    SELECT b.stream_id, b.bundle, move.publication, b.cluster, move.cluster
    FROM unnest(%(bundle)s::bigint[], %(cluster)s::bigint[], %(publication)s::bigint[])
    AS move (bundle, cluster, publication)
    JOIN bundles b ON b.stream_id = %(stream_id)s AND b.bundle = move.bundle""",
)
_MOVE = _Both(
    "UPDATE bundles SET cluster = ?3 WHERE stream_id = ?1 AND bundle = ?2",
    """
    UPDATE bundles b SET cluster = move.cluster
    FROM unnest(%(bundle)s::bigint[], %(cluster)s::bigint[]) AS move (bundle, cluster)
    WHERE b.stream_id = %(stream_id)s AND b.bundle = move.bundle""",
)


def bundle_together(connection: sa.Connection, stream_id: int, made: Sequence[Bundled]) -> None:
    """Put observations, and those of other bundles, into new or larger ones, in this order."""
    for run in _without_repeats(made):
        _bundle_at_once(connection, stream_id, run)


def _without_repeats(made: Sequence[Bundled]) -> Iterator[list[Bundled]]:
    """Cut the changes into runs in which no bundle comes twice; a compaction is one."""
    run: list[Bundled] = []
    seen: set[int] = set()
    for each in made:
        names = {each.bundle, *each.absorbed}
        if names & seen:
            yield run
            run, seen = [], set()
        run.append(each)
        seen |= names
    if run:
        yield run


def _bundle_at_once(connection: sa.Connection, stream_id: int, made: list[Bundled]) -> None:
    taken = [(other, each) for each in made for other in each.absorbed]
    others = [other for other, _ in taken]
    _KEEP_HISTORY.run(connection, stream_id, bundle=others)
    _TAKE_OVER.run(
        connection,
        stream_id,
        other=others,
        bundle=[each.bundle for _, each in taken],
        since=[each.publication for _, each in taken],
        cluster=[each.cluster for _, each in taken],
    )
    for forget in _FORGET:
        forget.run(connection, stream_id, bundle=others)
    single = [(seq, each) for each in made for seq in each.seq.tolist()]
    _JOIN.run(
        connection,
        stream_id,
        seq=[seq for seq, _ in single],
        bundle=[each.bundle for _, each in single],
        since=[each.publication for _, each in single],
    )
    _TELL.run(
        connection,
        stream_id,
        bundle=[each.bundle for each in made],
        cluster=[each.cluster for each in made],
        n_observations=[each.n_observations for each in made],
        doubt=[each.doubt for each in made],
    )


def move_bundles(
    connection: sa.Connection, stream_id: int, publication: int, moves: tuple[Ids, Ids]
) -> None:
    """Give bundles to other clusters; ``moves`` are the bundles and where each goes."""
    bundle, cluster = (column.tolist() for column in moves)
    number = [publication] * len(bundle)
    _NOTE_MOVE.run(connection, stream_id, bundle=bundle, cluster=cluster, publication=number)
    _MOVE.run(connection, stream_id, bundle=bundle, cluster=cluster)


def unbundle(connection: sa.Connection, stream_id: int, ended: Unbundled) -> None:
    """Make the observations of a bundle ones of their own again."""
    o, b = observations.c, bundles.c
    _KEEP_HISTORY.run(connection, stream_id, bundle=[ended.bundle])
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
    for forget in _FORGET:
        forget.run(connection, stream_id, bundle=[ended.bundle])


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
