"""A stream at a glance: where it stands, its account, its clusters."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from weald.storage.commit.commit import ClusterRow
from weald.storage.commit.log_marks import LogReplacement
from weald.storage.encoding.row_bytes import from_bytes
from weald.storage.sql import schema
from weald.storage.sql.schema import clusters, offsets, publications, snapshots, streams

from .answers import LedgerRow, StreamStatus

__all__ = ["cluster_rows", "ledger", "log_decisions", "status"]


def status(connection: sa.Connection, stream_id: int) -> StreamStatus:
    """Return the stream at a glance."""
    stream = connection.execute(sa.select(streams).where(streams.c.id == stream_id)).one()
    counts = ("n_received", "n_inserted", "n_duplicate", "n_dead")
    account = connection.execute(
        sa.select(*(sa.func.coalesce(sa.func.sum(offsets.c[name]), 0) for name in counts)).where(
            offsets.c.stream_id == stream_id
        )
    ).one()
    of_live = sa.case((clusters.c.retired_publication.is_(None), clusters.c.cluster_group))
    shown, retired, groups = connection.execute(
        sa.select(
            sa.func.count(),
            sa.func.count(clusters.c.retired_publication),
            sa.func.count(of_live.distinct()),
        ).where(clusters.c.stream_id == stream_id)
    ).one()
    published = _newest(connection, publications, stream_id)
    image = _newest(connection, snapshots, stream_id)
    return StreamStatus(
        name=stream.name,
        family=stream.family,
        prior=stream.prior,
        seed=stream.seed,
        owner=stream.owner,
        generation=stream.generation,
        epoch=stream.epoch,
        committed_at=stream.committed_at,
        **{name: int(total) for name, total in zip(counts, account, strict=True)},
        n_clusters=shown - retired,
        n_groups=groups,
        n_clusters_retired=retired,
        publication=published.number if published else 0,
        published_at=published.published_at if published else None,
        log_joint_before=published.log_joint_before if published else None,
        log_joint=published.log_joint if published else None,
        snapshot_seq=image.seq if image else None,
        snapshot_at=image.created_at if image else None,
        n_observations=published.n_observations if published else None,
        n_atoms=published.n_atoms if published else None,
        estimated_disruption=published.disruption if published else None,
        warnings=published.warnings if published else None,
    )


def _newest(connection: sa.Connection, table: sa.Table, stream_id: int) -> Any:
    columns = [column for column in table.c if column.name != "payload"]
    return connection.execute(
        sa.select(*columns)
        .where(table.c.stream_id == stream_id)
        .order_by(table.c.number.desc())
        .limit(1)
    ).one_or_none()


def ledger(connection: sa.Connection, stream_id: int) -> list[LedgerRow]:
    """Return the account of each partition, by topic and partition."""
    columns = [offsets.c[name] for name in LedgerRow.__dataclass_fields__]
    statement = (
        sa.select(*columns)
        .where(offsets.c.stream_id == stream_id)
        .order_by(offsets.c.topic, offsets.c.partition)
    )
    return [LedgerRow(*row) for row in connection.execute(statement)]


def log_decisions(connection: sa.Connection, stream_id: int) -> list[LogReplacement]:
    """Return what was decided about logs that others had taken the place of, oldest first."""
    names = [name for name in LogReplacement.__dataclass_fields__ if name != "mark"]
    table = schema.log_decisions
    statement = (
        sa.select(*(table.c[name] for name in names))
        .where(table.c.stream_id == stream_id)
        .order_by(table.c.id)
    )
    return [LogReplacement(*row) for row in connection.execute(statement)]


def cluster_rows(
    connection: sa.Connection,
    stream_id: int,
    *,
    cluster: int | None = None,
    include_retired: bool = True,
    limit: int | None = None,
) -> list[ClusterRow]:
    """Return clusters, largest first."""
    names = ["cluster", "n_observations", "log_marginal", "statistics_bytes", "version"]
    names += ["born_publication", "retired_publication", "probability", "stability"]
    names.append("cluster_group")
    statement = (
        sa.select(*(clusters.c[name] for name in names))
        .where(clusters.c.stream_id == stream_id)
        .order_by(clusters.c.n_observations.desc(), clusters.c.cluster)
        .limit(limit)
    )
    if cluster is not None:
        statement = statement.where(clusters.c.cluster == cluster)
    if not include_retired:
        statement = statement.where(clusters.c.retired_publication.is_(None))
    return [
        ClusterRow(
            cluster=row.cluster,
            n_observations=row.n_observations,
            log_marginal=row.log_marginal,
            statistics=from_bytes(row.statistics_bytes),
            version=row.version,
            born_publication=row.born_publication,
            retired_publication=row.retired_publication,
            probability=row.probability,
            stability=row.stability,
            group=row.cluster_group,
        )
        for row in connection.execute(statement)
    ]
