"""Another log under a topic's name: the earlier one keeps its rows, under a name of its own."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from weald.storage.commit.log_marks import LogReplacement
from weald.storage.errors import InvariantBroken
from weald.storage.sql.schema import log_decisions, offsets

__all__ = ["replace_logs"]


def replace_logs(
    connection: sa.Connection, stream_id: int, epoch: int, replaced: Sequence[LogReplacement]
) -> None:
    """Rename what was read of the earlier logs, and begin an account of those that are there."""
    o = offsets.c
    for each in replaced:
        renamed = connection.execute(
            sa.update(offsets)
            .where(o.stream_id == stream_id, o.topic == each.topic, o.partition == each.partition)
            .values(topic=each.kept_as)
        )
        if renamed.rowcount != 1:
            raise InvariantBroken(f"nothing was read of {each.topic}[{each.partition}]")
        connection.execute(
            sa.insert(offsets).values(
                stream_id=stream_id,
                topic=each.topic,
                partition=each.partition,
                next_offset=each.next_offset,
                n_received=0,
                n_inserted=0,
                n_duplicate=0,
                n_dead=0,
                updated_at=each.decided_at,
                topic_id=each.mark.topic_id,
                log_start=each.mark.log_start,
            )
        )
        connection.execute(
            sa.insert(log_decisions).values(
                stream_id=stream_id,
                epoch=epoch,
                decided_at=each.decided_at,
                topic=each.topic,
                partition=each.partition,
                kept_as=each.kept_as,
                next_offset=each.next_offset,
                difference=each.difference,
            )
        )
