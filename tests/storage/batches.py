"""Batches for the tests: small, valid, and telling one observation from another."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from weald.storage.commit.commit import CERTAINTY_CHUNK
from weald.storage.queries.base import (
    BatchCommit,
    Certainty,
    ClusterRow,
    DeadLetterRow,
    LineageRow,
    ObservationBlock,
    OffsetAdvance,
    PublicationRow,
    Reassignment,
    RoundRow,
    Snapshot,
    StreamSpec,
)

STREAM = "quakes"
TOPIC = "earthquakes"
OWNER = "member-1"
D = 3

SPEC = StreamSpec(
    name=STREAM,
    family="gaussian",
    family_params={"mean": [0.1, 0.2, 0.3], "kappa": 0.01, "nu": 5.0},
    prior="dp",
    prior_params={"alpha": 1.0},
    schema={"fields": ["x", "y", "z"], "key": "id"},
    seed=2**63 - 1,
)


def observations(
    first_seq: int,
    n: int,
    *,
    partition: int = 0,
    first_offset: int | None = None,
    cluster: int = 1,
    topic: str = TOPIC,
) -> ObservationBlock:
    """Return n observations whose numbers, offsets, keys and values all follow from ``seq``."""
    seq = np.arange(first_seq, first_seq + n, dtype=np.int64)
    offset = seq - 1 if first_offset is None else first_offset + np.arange(n)
    return ObservationBlock(
        seq=seq,
        topic=topic,
        partition=np.full(n, partition, dtype=np.int32),
        offset=offset.astype(np.int64),
        key=[f"key-{number}" for number in seq.tolist()],
        event_time=1e9 + seq.astype(np.float64),
        values=seq[:, None] + np.arange(D) / 7.0,
        cluster=np.full(n, cluster, dtype=np.int64),
        received_at=2e9 + float(first_seq),
        text=[f"text {number}" if number % 2 else None for number in seq.tolist()],
    )


def advance(block: ObservationBlock, *, n_duplicate: int = 0, n_dead: int = 0) -> OffsetAdvance:
    """Return how far the block's one partition moves."""
    return OffsetAdvance(
        topic=block.topic,
        partition=int(block.partition[0]),
        next_offset=int(block.offset[-1]) + 1 + n_dead,
        n_received=len(block) + n_duplicate + n_dead,
        n_inserted=len(block),
        n_duplicate=n_duplicate,
        n_dead=n_dead,
    )


def batch(epoch: int, first_seq: int, n: int, **changes: Any) -> BatchCommit:
    """Return commit number ``epoch`` with n observations; ``changes`` replaces fields of it."""
    block = observations(first_seq, n)
    made = BatchCommit(
        stream=STREAM,
        owner=OWNER,
        generation=1,
        epoch=epoch,
        offsets=[advance(block)],
        observations=block,
    )
    return replace(made, **changes)


def full_batch() -> BatchCommit:
    """Return a first commit that has something in every part."""
    block = observations(1, 10)
    return BatchCommit(
        stream=STREAM,
        owner=OWNER,
        generation=1,
        epoch=1,
        offsets=[advance(block, n_duplicate=2, n_dead=1)],
        observations=block,
        dead_letters=[dead_letter(10)],
        publications=[publication(1, seq=10)],
        lineage=[
            lineage("birth", cluster=1, parents=(), publication=0),
            lineage("split", cluster=2, parents=(1,), publication=1),
        ],
        reassigned=[reassigned(1, {4: 2, 5: 2})],
        clusters=[cluster_row(1, 8), cluster_row(2, 2)],
        rounds=[RoundRow(10, "gibbs", 10, 9, -20.5, -19.25, 0.125)],
        certainties=[certainty(0, 10, {1: 0.75, 2: 1.0})],
        snapshot=snapshot(1, seq=10),
    )


def dead_letter(offset: int, reason: str = "not-json", detail: str = "") -> DeadLetterRow:
    """Return the dead letter of the record at that offset of partition 0."""
    return DeadLetterRow(TOPIC, 0, offset, b"\x00k", b"\xff\x00{", reason, detail, 2e9 + offset)


def publication(number: int, seq: int) -> PublicationRow:
    """Return publication ``number``, one hundred seconds after the one before."""
    learned = {"alpha": 0.5 + number}
    return PublicationRow(number, seq, 3e9 + 100.0 * number, -20.5, -19.25, 2, seq, learned)


def lineage(kind: str, cluster: int, parents: tuple[int, ...], publication: int) -> LineageRow:
    """Return a lineage event at the publication's time."""
    time = 3e9 + 100.0 * publication
    return LineageRow(kind, publication, 10, time, cluster, parents, 2, 2)


def certainty(number: int, n: int, clusters: dict[int, float]) -> Certainty:
    """Return what makes the i-th observation of a chunk i % probable and 100 - i % stable."""
    percent = np.arange(n, dtype=np.uint8)
    means = np.array(list(clusters.values()))
    seq = number * CERTAINTY_CHUNK + 1 + np.arange(n)
    told = np.stack([percent, 100 - percent])
    ids = np.array(list(clusters))
    return Certainty(seq, told, ids, means, means / 2, group=10 + ids, group_born=ids - 1)


def reassigned(publication: int, moves: dict[int, int]) -> Reassignment:
    """Return the change that gives observation ``seq`` to the cluster ``moves[seq]``."""
    return Reassignment(
        publication,
        np.array(list(moves), dtype=np.int64),
        np.array(list(moves.values()), dtype=np.int64),
    )


def cluster_row(
    cluster: int, n: int, version: int = 1, *, retired: int | None = None
) -> ClusterRow:
    """Return a cluster of n observations, with statistics that only float64 keeps exactly."""
    statistics = np.array([n, 1 / 3, 1e300, -0.0, cluster], dtype=np.float64)
    return ClusterRow(cluster, n, -1.5 * n, statistics, version, 1, retired)


def snapshot(number: int, seq: int) -> Snapshot:
    """Return a snapshot of two arrays that say which one it is."""
    arrays = {"labels": np.full(50, number, dtype=np.int32), "alpha": np.array(0.1 + number)}
    return Snapshot(number, seq, arrays, 4e9 + number)


def same_block(a: ObservationBlock, b: ObservationBlock) -> bool:
    """Whether two blocks agree in everything, bit for bit."""
    columns: Sequence[str] = ("seq", "partition", "offset", "event_time", "values", "cluster")
    plain = ("topic", "key", "text", "received_at")
    return all(getattr(a, name) == getattr(b, name) for name in plain) and all(
        np.array_equal(getattr(a, name), getattr(b, name))
        and getattr(a, name).dtype == getattr(b, name).dtype
        for name in columns
    )
