"""What the queries return: frozen data, as a person or a program asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.storage.commit.log_marks import LogMark

__all__ = [
    "LedgerRow",
    "MembershipCertainty",
    "ObservationRow",
    "ShardStatus",
    "Shown",
    "SnapshotInfo",
    "StreamPosition",
    "StreamStatus",
]


@dataclass(frozen=True)
class StreamPosition:
    """Where a stream stands: what a new owner continues from.

    Attributes
    ----------
    epoch
        Number of the last commit; 0 before the first.
    next_seq
        Number that the next observation gets.
    generation, owner
        Who may commit.
    offsets
        Next offset to read of each (topic, partition) that was ever read.
    marks
        By what the log of each is known again.
    reverted_epoch
        Number of the commit that last put the stream back to a snapshot; 0 if none did.
    """

    epoch: int
    next_seq: int
    generation: int
    owner: str
    offsets: dict[tuple[str, int], int]
    marks: dict[tuple[str, int], LogMark]
    reverted_epoch: int = 0


@dataclass(frozen=True)
class LedgerRow:
    """One partition's account: received = inserted + duplicate + dead."""

    topic: str
    partition: int
    next_offset: int
    n_received: int
    n_inserted: int
    n_duplicate: int
    n_dead: int
    updated_at: float


@dataclass(frozen=True, eq=False)
class ObservationRow:
    """One observation with the cluster that was asked for: now, or as of a moment.

    ``probability`` and ``stability`` tell how sure the newest publication is of it; None for a
    moment in the past, and for what came after that publication. ``left_seq`` is the number of the
    observation after which this one left the model, None while it is there.
    """

    seq: int
    topic: str
    partition: int
    offset: int
    key: str | None
    event_time: float
    received_at: float
    cluster: int
    values: NDArray[np.float64]
    probability: float | None = None
    stability: float | None = None
    text: str | None = None
    left_seq: int | None = None


class Shown(NamedTuple):
    """In which cluster each of a run of observations was, as of one publication.

    Attributes
    ----------
    seq, cluster : int64[n]
    """

    seq: NDArray[np.int64]
    cluster: NDArray[np.int64]


@dataclass(frozen=True)
class SnapshotInfo:
    """A stored snapshot, without its arrays."""

    number: int
    seq: int
    epoch: int
    created_at: float
    n_bytes: int
    label: str | None = None


@dataclass(frozen=True)
class StreamStatus:
    """A stream at a glance. Times are seconds since 1970, or None where nothing happened yet.

    ``seen_as`` says how the family sees the values, where not as they are. ``n_clustered`` counts
    what is in the clusters that are shown; of shards, by the newest publication.
    ``n_observations``, ``n_atoms`` and ``estimated_disruption`` are of the newest publication: what
    is in the model, as how many atoms, and the estimated total variation between the posterior and
    what is sampled because some are compacted. ``n_moved`` counts those that it put into another
    cluster, and ``warnings`` are reasons not to believe it.
    ``base_measure`` tells of the base measure as it was learned; None or empty where it stays.
    """

    name: str
    family: str
    prior: str
    seed: int
    owner: str
    generation: int
    epoch: int
    committed_at: float | None
    n_received: int
    n_inserted: int
    n_duplicate: int
    n_dead: int
    n_clusters: int
    n_groups: int
    n_clusters_retired: int
    n_clustered: int
    publication: int
    published_at: float | None
    log_joint_before: float | None
    log_joint: float | None
    snapshot_seq: int | None
    snapshot_at: float | None
    n_moved: int
    n_observations: int | None = None
    n_atoms: int | None = None
    estimated_disruption: float | None = None
    warnings: list[str] | None = None
    seen_as: str | None = None
    base_measure: dict[str, float] | None = None


@dataclass(frozen=True)
class ShardStatus:
    """One shard of a stream at a glance; its clusters are its own."""

    shard: int
    owner: str
    committed_at: float | None
    n_received: int
    n_inserted: int
    n_duplicate: int
    n_dead: int
    n_clusters: int


class MembershipCertainty(NamedTuple):
    """Membership probability and stability of one observation, between 0 and 1."""

    probability: float
    stability: float
