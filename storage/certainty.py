"""How sure the chain's draws are: written with a publication, read with an assignment."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import sqlalchemy as sa

from .answers import Sureness
from .bulk import upsert
from .commit import CERTAINTY_CHUNK, Certainty
from .schema import certainties, clusters

__all__ = ["sureness_of", "write_certainty"]

PERCENT = 100.0

_CLUSTER = (
    sa.update(clusters)
    .where(
        clusters.c.stream_id == sa.bindparam("of_stream"),
        clusters.c.cluster == sa.bindparam("of_cluster"),
    )
    .values(probability=sa.bindparam("sure"), stability=sa.bindparam("stable"))
)


@cache
def _chunk_statement(dialect: str) -> Any:
    insert = upsert(dialect, certainties)
    names = ("probability_bytes", "stability_bytes")
    return insert.on_conflict_do_update(
        index_elements=["stream_id", "chunk"],
        set_={name: insert.excluded[name] for name in names},
    )


def write_certainty(connection: sa.Connection, stream_id: int, certainty: Certainty) -> None:
    """Replace the chunks that changed, and what is said of every cluster."""
    chunks = [
        {
            "stream_id": stream_id,
            "chunk": chunk.number,
            "probability_bytes": chunk.probability.tobytes(),
            "stability_bytes": chunk.stability.tobytes(),
        }
        for chunk in certainty.chunks
    ]
    if chunks:
        connection.execute(_chunk_statement(connection.dialect.name), chunks)
    columns = (certainty.cluster, certainty.probability, certainty.stability)
    told = [
        {"of_stream": stream_id, "of_cluster": cluster, "sure": sure, "stable": stable}
        for cluster, sure, stable in zip(*(column.tolist() for column in columns), strict=True)
    ]
    if told:
        connection.execute(_CLUSTER, told)


def sureness_of(
    connection: sa.Connection, stream_id: int, seqs: Iterable[int]
) -> dict[int, Sureness]:
    """Return what the newest publication says of these observations; newer ones are left out."""
    wanted: dict[int, list[int]] = {}
    for seq in seqs:
        wanted.setdefault((seq - 1) // CERTAINTY_CHUNK, []).append(seq)
    found: dict[int, Sureness] = {}
    for number, members in wanted.items():
        row = connection.execute(
            sa.select(certainties).where(
                certainties.c.stream_id == stream_id, certainties.c.chunk == number
            )
        ).one_or_none()
        if row is None:
            continue
        for seq in members:
            place = (seq - 1) % CERTAINTY_CHUNK
            if place < len(row.probability_bytes):
                values = (row.probability_bytes[place], row.stability_bytes[place])
                found[seq] = Sureness(*(value / PERCENT for value in values))
    return found
