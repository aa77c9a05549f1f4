"""A stream at a glance: where it stands, its account, its clusters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from weald.storage.commit.commit import ClusterRow, ModelRow
from weald.storage.commit.log_marks import LogReplacement
from weald.storage.commit.refinement_rows import RoleRow
from weald.storage.encoding.row_bytes import from_bytes
from weald.storage.sql.schema import clusters

from .answers import LedgerRow, ShardStatus, StreamStatus
from .status_statements import DECISIONS, LEDGER, MODELS, OF_JSON, ROLES, SHARDS, status_of

__all__ = ["cluster_rows", "ledger", "log_decisions", "model_rows", "role_rows", "shards", "status"]


def status(connection: sa.Connection, stream_id: int) -> StreamStatus:
    """Return the stream at a glance."""

    def ask(statement: str) -> Mapping[str, Any] | None:
        row = connection.execute(sa.text(statement), {"stream": stream_id}).first()
        return None if row is None else row._asdict()

    told = status_of(ask)
    for name in OF_JSON:
        # PostgreSQL's driver has read it already.
        found = told[name]
        told[name] = json.loads(found) if isinstance(found, str) else found
    # Sums are decimals in PostgreSQL, of nothing too.
    counts = {name for name in told if name.startswith("n_") and told[name] is not None}
    told |= {name: int(told[name]) for name in counts}
    return StreamStatus(**told)


def shards(connection: sa.Connection, stream_id: int) -> list[ShardStatus]:
    """Return the shards of the stream that have begun, in order."""
    rows = connection.execute(sa.text(SHARDS), {"stream": stream_id}).mappings()
    # Sums are decimals in PostgreSQL.
    counts = ("n_received", "n_inserted", "n_duplicate", "n_dead")
    return [
        ShardStatus(**row | {name: int(row[name]) for name in counts}) for row in map(dict, rows)
    ]


def ledger(connection: sa.Connection, stream_id: int) -> list[LedgerRow]:
    """Return the account of each partition, by topic and partition."""
    rows = connection.execute(sa.text(LEDGER), {"stream": stream_id})
    return [LedgerRow(**row) for row in rows.mappings()]


def log_decisions(connection: sa.Connection, stream_id: int) -> list[LogReplacement]:
    """Return what was decided about logs that others had taken the place of, oldest first."""
    rows = connection.execute(sa.text(DECISIONS), {"stream": stream_id})
    return [LogReplacement(**row) for row in rows.mappings()]


def model_rows(connection: sa.Connection, stream_id: int) -> list[ModelRow]:
    """Return when and why the stream was seen anew, oldest first."""
    rows = connection.execute(sa.text(MODELS), {"stream": stream_id})
    return [ModelRow(**row) for row in rows.mappings()]


def role_rows(connection: sa.Connection, stream_id: int) -> list[RoleRow]:
    """Return what the adopted leases that are kept came to, by whom they were meant for."""
    rows = connection.execute(sa.text(ROLES), {"stream": stream_id}).mappings()
    counts = ("leases", "proposed", "accepted")
    return [RoleRow(**row | {name: int(row[name]) for name in counts}) for row in map(dict, rows)]


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
    names += ["cluster_group", "group_born_publication"]
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
            group_born=row.group_born_publication,
        )
        for row in connection.execute(statement)
    ]
