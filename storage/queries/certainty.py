"""How sure the chain's draws are: written with a publication, read with an assignment."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from weald.storage.commit.commit import CERTAINTY_CHUNK, Certainty
from weald.storage.sql.bulk import upsert
from weald.storage.sql.schema import certainties, clusters, observations

from .answers import MembershipCertainty

__all__ = ["certainty_of", "write_certainty"]

PERCENT = 100.0
# Of an observation between others that are told of, but of which nothing was said yet.
_UNTOLD = 255

_CLUSTER = (
    sa.update(clusters)
    .where(
        clusters.c.stream_id == sa.bindparam("of_stream"),
        clusters.c.cluster == sa.bindparam("of_cluster"),
    )
    .values(
        probability=sa.bindparam("sure"),
        stability=sa.bindparam("stable"),
        cluster_group=sa.bindparam("in_group"),
        group_born_publication=sa.bindparam("since"),
    )
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
    """Put what changed into its chunks, and replace what is said of every cluster."""
    numbers = (certainty.seq - 1) // CERTAINTY_CHUNK
    chunks = []
    for number in np.unique(numbers).tolist():
        here = numbers == number
        places = (certainty.seq[here] - 1) % CERTAINTY_CHUNK
        stored = _stored(connection, stream_id, number)
        length = max(stored.shape[1], int(places.max()) + 1)
        told = np.full((2, length), _UNTOLD, dtype=np.uint8)
        told[:, : stored.shape[1]] = stored
        told[:, places] = certainty.percent[:, here]
        row = {"probability_bytes": told[0].tobytes(), "stability_bytes": told[1].tobytes()}
        chunks.append({"stream_id": stream_id, "chunk": number, **row})
    if chunks:
        connection.execute(_chunk_statement(connection.dialect.name), chunks)
    columns = [certainty.cluster, certainty.probability, certainty.stability]
    none = [None] * len(certainty.cluster)
    groups = none if certainty.group is None else certainty.group.tolist()
    born = none if certainty.group_born is None else certainty.group_born.tolist()
    told_of = [
        {
            "of_stream": stream_id,
            "of_cluster": cluster,
            "sure": None if math.isnan(sure) else sure,
            "stable": None if math.isnan(stable) else stable,
            "in_group": group or None,
            "since": since or None,
        }
        for cluster, sure, stable, group, since in zip(
            *(column.tolist() for column in columns), groups, born, strict=True
        )
    ]
    if told_of:
        connection.execute(_CLUSTER, told_of)


def _stored(connection: sa.Connection, stream_id: int, number: int) -> NDArray[np.uint8]:
    """Return what a chunk says, uint8 (2, n)."""
    row = connection.execute(
        sa.select(certainties).where(
            certainties.c.stream_id == stream_id, certainties.c.chunk == number
        )
    ).one_or_none()
    pair = (b"", b"") if row is None else (row.probability_bytes, row.stability_bytes)
    return np.stack([np.frombuffer(each, dtype=np.uint8) for each in pair])


def certainty_of(
    connection: sa.Connection, stream_id: int, seqs: Iterable[int]
) -> dict[int, MembershipCertainty]:
    """Return what the newest publication says of these observations.

    Newer ones are left out, and such as have left the model: no draw tells of those any more,
    wherever they are shown since.
    """
    wanted: dict[int, list[int]] = {}
    for seq in seqs:
        wanted.setdefault((seq - 1) // CERTAINTY_CHUNK, []).append(seq)
    found: dict[int, MembershipCertainty] = {}
    for number, members in wanted.items():
        told = _stored(connection, stream_id, number)
        left = _left(connection, stream_id, min(members), max(members)) if told.size else set()
        for seq in members:
            if seq in left:
                continue
            place = (seq - 1) % CERTAINTY_CHUNK
            if place < told.shape[1] and told[0, place] != _UNTOLD:
                found[seq] = MembershipCertainty(*(told[:, place] / PERCENT).tolist())
    return found


def _left(connection: sa.Connection, stream_id: int, first: int, last: int) -> set[int]:
    """Return which observations from one to another are not in the model any more."""
    o = observations.c
    statement = sa.select(o.seq).where(
        o.stream_id == stream_id, o.seq.between(first, last), o.left_seq.is_not(None)
    )
    return set(connection.execute(statement).scalars())
