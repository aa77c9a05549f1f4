"""What happened, in order: lineage, publications, rounds of refinement and those put off."""

from __future__ import annotations

import math
from typing import Any

import sqlalchemy as sa

from weald.storage.commit.commit import LineageRow, PublicationRow, RoundRow
from weald.storage.sql.schema import (
    lineage_events,
    lineage_parents,
    postponements,
    publications,
    rounds,
)

__all__ = [
    "learned_family",
    "lineage_rows",
    "postponed_after",
    "publication_rows",
    "publication_times",
    "round_rows",
]

# How many numbers one statement names; SQLite stops at 32,766.
_CHUNK = 500


def lineage_rows(
    connection: sa.Connection,
    stream_id: int,
    since: float | None,
    cluster: int | None,
    limit: int | None,
) -> list[LineageRow]:
    """Return lineage events in order; with ``limit`` the newest."""
    events, parents = lineage_events, lineage_parents
    statement = (
        sa.select(events)
        .where(events.c.stream_id == stream_id)
        .order_by(events.c.number.desc())
        .limit(limit)
    )
    if since is not None:
        statement = statement.where(events.c.happened_at >= since)
    if cluster is not None:
        as_parent = sa.select(parents.c.number).where(
            parents.c.stream_id == stream_id, parents.c.parent == cluster
        )
        statement = statement.where(
            sa.or_(events.c.cluster == cluster, events.c.number.in_(as_parent))
        )
    rows = list(reversed(connection.execute(statement).all()))
    told = _parents_of(connection, stream_id, [row.number for row in rows])
    return [
        LineageRow(
            kind=row.kind,
            publication=row.publication,
            seq=row.seq,
            time=row.happened_at,
            cluster=row.cluster,
            parents=tuple(told.get(row.number, ())),
            size=row.size,
            n_moved=row.n_moved,
        )
        for row in rows
    ]


def _parents_of(
    connection: sa.Connection, stream_id: int, numbers: list[int]
) -> dict[int, list[int]]:
    parents = lineage_parents
    told: dict[int, list[int]] = {}
    for start in range(0, len(numbers), _CHUNK):
        statement = (
            sa.select(parents.c.number, parents.c.parent)
            .where(
                parents.c.stream_id == stream_id,
                parents.c.number.in_(numbers[start : start + _CHUNK]),
            )
            .order_by(parents.c.number, parents.c.ordinal)
        )
        for number, parent in connection.execute(statement):
            told.setdefault(number, []).append(parent)
    return told


def publication_rows(
    connection: sa.Connection, stream_id: int, limit: int | None
) -> list[PublicationRow]:
    """Return publications in order; with ``limit`` the newest."""
    statement = (
        sa.select(*(each for each in publications.c if each.name != "family_params"))
        .where(publications.c.stream_id == stream_id)
        .order_by(publications.c.number.desc())
        .limit(limit)
    )
    return [
        PublicationRow(
            number=row.number,
            seq=row.seq,
            time=row.published_at,
            log_joint_before=_number(row.log_joint_before),
            log_joint=_number(row.log_joint),
            n_clusters=row.n_clusters,
            n_observations=row.n_observations,
            prior_params=row.prior_params or {},
            base_measure=row.base_measure or {},
            n_atoms=row.n_atoms,
            disruption=row.disruption,
            warnings=row.warnings,
        )
        for row in reversed(connection.execute(statement).all())
    ]


def publication_times(connection: sa.Connection, stream_id: int) -> dict[int, float]:
    """Return when each publication was made, by number, of those that are kept."""
    statement = sa.select(publications.c.number, publications.c.published_at).where(
        publications.c.stream_id == stream_id
    )
    return {row.number: row.published_at for row in connection.execute(statement)}


def learned_family(connection: sa.Connection, stream_id: int) -> dict[str, Any]:
    """Return the family's hyperparameters by the newest publication; empty where none has any."""
    found = connection.execute(
        sa.select(publications.c.family_params)
        .where(publications.c.stream_id == stream_id)
        .order_by(publications.c.number.desc())
        .limit(1)
    ).scalar_one_or_none()
    return found or {}


def round_rows(connection: sa.Connection, stream_id: int, limit: int | None) -> list[RoundRow]:
    """Return refinement rounds in order; with ``limit`` the newest."""
    statement = (
        sa.select(rounds)
        .where(rounds.c.stream_id == stream_id)
        .order_by(rounds.c.id.desc())
        .limit(limit)
    )
    return [
        RoundRow(
            seq=row.seq,
            kernel=row.kernel,
            proposed=row.proposed,
            accepted=row.accepted,
            log_joint_before=_number(row.log_joint_before),
            log_joint_after=_number(row.log_joint_after),
            seconds=row.seconds,
        )
        for row in reversed(connection.execute(statement).all())
    ]


def postponed_after(connection: sa.Connection, stream_id: int, seq: int) -> list[int]:
    """Return the later numbers of observations at which a refinement was put off, in order."""
    statement = (
        sa.select(postponements.c.seq)
        .where(postponements.c.stream_id == stream_id, postponements.c.seq > seq)
        .order_by(postponements.c.seq)
    )
    return list(connection.execute(statement).scalars())


def _number(stored: float | None) -> float:
    return math.nan if stored is None else stored
