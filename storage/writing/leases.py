"""Leases and adopted rounds in SQL: who holds what, checked where it counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import sqlalchemy as sa

from weald.storage.commit.commit import AdoptionRow, LeaseRow
from weald.storage.encoding.snapshot import decode, encode
from weald.storage.errors import Fenced
from weald.storage.sql.failpoints import failpoint
from weald.storage.sql.schema import adoptions, leases, snapshots

__all__ = ["adoption_rows", "last_round", "lease_counts", "lease_rows", "prune", "write_leases"]

OFFERED = "offered"
# Payload of a round that the writer made by itself. A replay from the beginning makes it again.
_OWN = encode({})
# Closed leases are kept for people to look at, so many rounds of them.
_ROUNDS_KEPT = 100
_OF_THE_END = (
    *("outcome", "closed_at", "worker"),
    *("proposed", "accepted", "squared_jump", "processor_seconds"),
)


def write_leases(
    connection: sa.Connection,
    stream_id: int,
    rows: Sequence[LeaseRow],
    adopted: Sequence[AdoptionRow],
) -> None:
    """Close and offer leases, and keep what came back; inside the batch's transaction.

    Raises
    ------
    Fenced
        If a lease that is closed is not open under that token; nothing must be committed then.
    """
    for row in rows:
        if row.outcome == OFFERED:
            connection.execute(sa.insert(leases), {"stream_id": stream_id, **asdict(row)})
        else:
            _close(connection, stream_id, row)
    if adopted:
        failpoint("commit.adopting")
    for each in adopted:
        record = {name: getattr(each, name) for name in AdoptionRow.__dataclass_fields__}
        record |= {"stream_id": stream_id, "payload": encode(each.payload)}
        connection.execute(sa.insert(adoptions), record)


def _close(connection: sa.Connection, stream_id: int, row: LeaseRow) -> None:
    closed = connection.execute(
        sa.update(leases)
        .where(
            leases.c.stream_id == stream_id,
            leases.c.round_number == row.round_number,
            leases.c.number == row.number,
            leases.c.token == row.token,
            leases.c.outcome == OFFERED,
        )
        .values({name: getattr(row, name) for name in _OF_THE_END})
    )
    if closed.rowcount != 1:
        raise Fenced(
            f"lease {row.number} of round {row.round_number} is not open under token {row.token}"
        )


def prune(connection: sa.Connection, stream_id: int) -> None:
    """Forget rounds of leases that no snapshot needs for its replay, and old closed leases."""
    oldest = connection.execute(
        sa.select(sa.func.min(snapshots.c.seq)).where(snapshots.c.stream_id == stream_id)
    ).scalar_one()
    if oldest is not None:
        connection.execute(
            sa.delete(adoptions).where(
                adoptions.c.stream_id == stream_id,
                adoptions.c.seq < oldest,
                adoptions.c.payload != _OWN,
            )
        )
    last = last_round(connection, stream_id)
    connection.execute(
        sa.delete(leases).where(
            leases.c.stream_id == stream_id,
            leases.c.round_number <= last - _ROUNDS_KEPT,
            leases.c.outcome != OFFERED,
        )
    )


def last_round(connection: sa.Connection, stream_id: int) -> int:
    """Return the number of the newest round, 0 if there was none."""
    # Rounds that the writer made by itself had no lease.
    newest = [
        connection.execute(
            sa.select(sa.func.max(table.c.round_number)).where(table.c.stream_id == stream_id)
        ).scalar_one()
        for table in (leases, adoptions)
    ]
    return max(number or 0 for number in newest)


def lease_rows(
    connection: sa.Connection, stream_id: int, *, outcome: str | None, limit: int | None
) -> list[LeaseRow]:
    """Return leases, newest first, with ``outcome`` only those of that outcome."""
    columns = [leases.c[name] for name in LeaseRow.__dataclass_fields__]
    statement = sa.select(*columns).where(leases.c.stream_id == stream_id)
    if outcome is not None:
        statement = statement.where(leases.c.outcome == outcome)
    newest = (leases.c.round_number.desc(), leases.c.number)
    return [LeaseRow(*row) for row in connection.execute(statement.order_by(*newest).limit(limit))]


def lease_counts(connection: sa.Connection, stream_id: int) -> dict[str, int]:
    """Return how many of the leases that are kept have each outcome."""
    statement = (
        sa.select(leases.c.outcome, sa.func.count().label("n"))
        .where(leases.c.stream_id == stream_id)
        .group_by(leases.c.outcome)
        .order_by(leases.c.outcome)
    )
    return {row.outcome: row.n for row in connection.execute(statement)}


def adoption_rows(connection: sa.Connection, stream_id: int, after_round: int) -> list[AdoptionRow]:
    """Return the rounds later than this one that were taken back, in order."""
    statement = (
        sa.select(adoptions)
        .where(adoptions.c.stream_id == stream_id, adoptions.c.round_number > after_round)
        .order_by(adoptions.c.round_number)
    )
    return [
        AdoptionRow(
            round_number=row.round_number,
            begun_seq=row.begun_seq,
            begun_publication=row.begun_publication,
            seq=row.seq,
            publication=row.publication,
            payload=decode(row.payload),
        )
        for row in connection.execute(statement)
    ]
