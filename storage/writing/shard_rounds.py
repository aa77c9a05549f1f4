"""Rounds of the shards of one stream: what was asked, and what was answered.

They are rows of the whole, and written behind the fence of a shard: who writes shard 0 asks, and
each shard answers for itself. What was asked stays until all shards have taken their turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields

import sqlalchemy as sa

from weald.storage.commit.shard_rows import ASKED, ShardMessageRow, ShardRoundRow
from weald.storage.encoding.snapshot import decode, encode
from weald.storage.errors import InvariantBroken
from weald.storage.sql.bulk import upsert
from weald.storage.sql.failpoints import failpoint
from weald.storage.sql.schema import shard_messages, shard_rounds, streams

__all__ = ["messages", "round_row", "steps", "write_shard_rounds"]

# Rounds that are over are kept for people to look at, so many.
_ROUNDS_KEPT = 100


def write_shard_rounds(
    connection: sa.Connection,
    stream_id: int,
    row: ShardRoundRow | None,
    said: Sequence[ShardMessageRow],
) -> None:
    """Write how a round stands and what is said in it; inside a shard's transaction.

    Raises
    ------
    InvariantBroken
        If the stream is no shard, or asks and is not the first, or answers for another one.
    """
    if row is None and not said:
        return
    part = connection.execute(
        sa.select(streams.c.part_of, streams.c.shard).where(streams.c.id == stream_id)
    ).one()
    asks = row is not None or any(each.direction == ASKED for each in said)
    others = [each.shard for each in said if each.direction != ASKED and each.shard != part.shard]
    if part.part_of is None or (asks and part.shard != 0) or others:
        raise InvariantBroken(
            f"shard {part.shard} asks, or answers for {others}: shard 0 asks, and each answers "
            "for itself"
        )
    if row is not None:
        _write_round(connection, part.part_of, row)
    failpoint("commit.shard_round")
    if said:
        records = [
            {name: getattr(each, name) for name in ShardMessageRow.__dataclass_fields__}
            | {"stream_id": part.part_of, "payload": encode(each.payload)}
            for each in said
        ]
        connection.execute(sa.insert(shard_messages), records)


def _write_round(connection: sa.Connection, whole: int, row: ShardRoundRow) -> None:
    insert = upsert(connection.dialect.name, shard_rounds)
    going = {name: insert.excluded[name] for name in ("step", "next_name", "next_group")}
    connection.execute(
        insert.on_conflict_do_update(index_elements=["stream_id", "number"], set_=going),
        {"stream_id": whole, **asdict(row)},
    )
    # All have reported for this one, so that they have taken their turns in those before.
    before = shard_rounds.c.stream_id == whole, shard_rounds.c.number < row.number
    closed = connection.execute(
        sa.update(shard_rounds)
        .where(*before, shard_rounds.c.closed_at.is_(None))
        .values(closed_at=row.opened_at)
    )
    if not closed.rowcount:
        # It was opened before, and what was said in earlier ones went then.
        return
    connection.execute(
        sa.delete(shard_messages).where(
            shard_messages.c.stream_id == whole, shard_messages.c.round_number < row.number
        )
    )
    old = shard_rounds.c.number <= row.number - _ROUNDS_KEPT
    connection.execute(sa.delete(shard_rounds).where(before[0], old))


def round_row(connection: sa.Connection, whole: int, number: int | None) -> ShardRoundRow | None:
    """Return the round of that number, or the newest; None where there is none."""
    columns = [shard_rounds.c[each.name] for each in fields(ShardRoundRow)]
    found = sa.select(*columns).where(shard_rounds.c.stream_id == whole)
    if number is not None:
        found = found.where(shard_rounds.c.number == number)
    row = connection.execute(found.order_by(shard_rounds.c.number.desc()).limit(1)).one_or_none()
    return None if row is None else ShardRoundRow(*row)


def messages(
    connection: sa.Connection, whole: int, which: tuple[int, str], shard: int | None, since: int
) -> list[ShardMessageRow]:
    """Return what was said in a round in that direction, of one shard or all, by step and shard.

    ``since`` is the first step that is asked for.
    """
    found = sa.select(shard_messages).where(*_said(whole, which), shard_messages.c.step >= since)
    if shard is not None:
        found = found.where(shard_messages.c.shard == shard)
    rows = connection.execute(found.order_by(shard_messages.c.step, shard_messages.c.shard))
    return [
        ShardMessageRow(row.round_number, row.step, row.shard, row.direction, decode(row.payload))
        for row in rows
    ]


def steps(connection: sa.Connection, whole: int, which: tuple[int, str]) -> list[tuple[int, int]]:
    """Return step and shard of what was said in a round in that direction."""
    found = sa.select(shard_messages.c.step, shard_messages.c.shard).where(*_said(whole, which))
    order = shard_messages.c.step, shard_messages.c.shard
    return [(row.step, row.shard) for row in connection.execute(found.order_by(*order))]


def _said(whole: int, which: tuple[int, str]) -> tuple[sa.ColumnElement[bool], ...]:
    number, direction = which
    return (
        shard_messages.c.stream_id == whole,
        shard_messages.c.round_number == number,
        shard_messages.c.direction == direction,
    )
