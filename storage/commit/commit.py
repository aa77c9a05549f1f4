"""What one SQL transaction carries: plain frozen data, filled by the engine, read by the store.

Numbering. ``seq`` counts the observations of a stream from 1 without gaps, so the ``seq`` of a
snapshot or a publication is also the number of observations that it has seen. ``epoch`` counts
the commits of a stream from 1 without gaps. Times are seconds since 1970, UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .changes import (
    CERTAINTY_CHUNK,
    Bundled,
    Certainty,
    Departure,
    Handover,
    Reassignment,
    Unbundled,
)
from .log_marks import LogMark, LogReplacement
from .refinement_rows import AdoptionRow, LeaseRow, RoundRow
from .shard_rows import ShardMessageRow, ShardRoundRow

__all__ = [
    "CERTAINTY_CHUNK",
    "REVISED",
    "STORED_BYTES",
    "AdoptionRow",
    "BatchCommit",
    "Bundled",
    "Certainty",
    "ClusterRow",
    "DeadLetterLike",
    "DeadLetterRow",
    "Departure",
    "Handover",
    "LeaseRow",
    "LineageRow",
    "ModelRow",
    "ObservationBlock",
    "OffsetAdvance",
    "PublicationRow",
    "Reassignment",
    "Revision",
    "Rewind",
    "RoundRow",
    "Snapshot",
    "StreamSpec",
    "Unbundled",
    "WholeShown",
]

Arrays = dict[str, NDArray[Any]]

# Of a dead letter's value, and of its key, so many bytes are kept.
STORED_BYTES = 65_536


@dataclass(frozen=True)
class StreamSpec:
    """What a stream is: fixed when its first batch is committed.

    Only a `Revision` changes it: how the family sees the observations, and what comes of that.

    Attributes
    ----------
    name
        The stream's name, also its consumer group's.
    family, family_params
        The family's short name and every one of its hyperparameters, as JSON-able values. Those
        that came from the warm-up sample are here too, so that a restart does not guess again.
    prior, prior_params
        The partition prior's short name and its parameters at the start.
    schema
        The declared schema of the records (fields, key, time) as JSON-able values.
    seed
        The seed from which every draw of the stream follows.
    transformation, seen_as
        Through which the family sees the observations' values, as bytes, and the words for it;
        None where it sees them as they are.
    hyperprior, resolution, moves
        Under which the family's hyperparameters are learned on, as JSON-able values, steps to which
        the values that it sees are known, and by which law they are moved; None where they stay as
        they are here.
    log_steps
        Steps, in the units that came in, by which what is seen by its logarithm is moved before
        that; 0 of columns that stay, None where all do.
    shards, shard
        Of how many shards it is; and of a part, which one it is. See `parts`.
    """

    name: str
    family: str
    family_params: dict[str, Any]
    prior: str
    prior_params: dict[str, Any]
    schema: dict[str, Any]
    seed: int
    transformation: bytes | None = None
    seen_as: str | None = None
    hyperprior: dict[str, Any] | None = None
    resolution: list[float] | None = None
    moves: str | None = None
    log_steps: list[float] | None = None
    shards: int = 1
    shard: int | None = None


# Of a `StreamSpec`, what a `Revision` changes.
REVISED = (
    "family",
    "family_params",
    "transformation",
    "seen_as",
    "hyperprior",
    "resolution",
    "moves",
    "log_steps",
)

_NO_MARK = LogMark()


@dataclass(frozen=True)
class OffsetAdvance:
    """How far one partition of the topic moves with this commit, and where its records went.

    ``n_received = n_inserted + n_duplicate + n_dead`` always; the table refuses anything else. A
    dead letter that is taken back was received before: it counts as -1 dead, then as what it is
    now. What ``mark`` does not say stays as it was.
    """

    topic: str
    partition: int
    next_offset: int
    n_received: int
    n_inserted: int
    n_duplicate: int = 0
    n_dead: int = 0
    mark: LogMark = _NO_MARK


@dataclass(frozen=True, eq=False)
class ObservationBlock:
    """Observations in columns, one row per observation, ordered by ``seq``.

    Attributes
    ----------
    seq : int64[n]
        Their numbers in the stream: in a commit, the next n numbers.
    topic : str
        The topic that they all came from.
    partition, offset : int32[n], int64[n]
        Where each was in the topic. Unique together with the topic, for ever.
    key : list of str or None, length n
        The records' own keys. Text that UTF-8 can carry and without NUL, which PostgreSQL refuses.
    event_time : float64[n]
        When it happened, by the record.
    values : float64[n, d]
        The observations themselves.
    cluster : int64[n]
        The published cluster it was given *on arrival*. Publications of the same commit come
        after all of its observations and change it through ``BatchCommit.reassigned``. Read
        back, the cluster it has now.
    received_at : float
        When the batch was received. Read back, that of the last row.
    text : list of (str or None), length n, optional
        What people are shown of records with a text; None where no record has one.
    replaces : int64[n], optional
        Number of the earlier observation with the same key that leaves the model for each; 0 for
        those that replace none, None where none does.
    passed : bool[n], optional
        Whether the model did not take each in: it has left as it came. None where all were.
    """

    seq: NDArray[np.int64]
    topic: str
    partition: NDArray[np.int32]
    offset: NDArray[np.int64]
    key: list[str | None]
    event_time: NDArray[np.float64]
    values: NDArray[np.float64]
    cluster: NDArray[np.int64]
    received_at: float
    text: list[str | None] | None = None
    replaces: NDArray[np.int64] | None = None
    passed: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.seq)


class DeadLetterLike(Protocol):
    """The shape of a dead letter; the stream room has its own class of this shape."""

    @property
    def topic(self) -> str:
        """Topic it was read from."""

    @property
    def partition(self) -> int:
        """Partition of the topic."""

    @property
    def offset(self) -> int:
        """Offset in the partition."""

    @property
    def key(self) -> bytes | None:
        """The record's raw key."""

    @property
    def value(self) -> bytes:
        """The record's raw value, perhaps cut short."""

    @property
    def reason(self) -> str:
        """A short code from a closed list."""

    @property
    def detail(self) -> str:
        """What exactly was wrong."""

    @property
    def received_at(self) -> float:
        """When it was received."""


@dataclass(frozen=True)
class DeadLetterRow:
    """A record that could not become an observation: its bytes, and why.

    ``number`` is its name in the table, 0 until it has one; ``replay_at`` says when somebody asked
    for it to be tried again, if so.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes
    reason: str
    detail: str
    received_at: float
    number: int = 0
    replay_at: float | None = None


@dataclass(frozen=True)
class PublicationRow:
    """The moment at which the shown partition was replaced.

    ``seq`` is the last observation that it covers, ``log_joint_before`` the log joint of the
    partition it replaces on the same observations, ``prior_params`` the partition prior's
    parameters as the chain had learned them; empty where they were not recorded. ``base_measure``
    has numbers that tell people of the base measure as it was learned, empty where it stays, and
    ``family_params`` all of the family's hyperparameters: they are many, so that a list of
    publications is read without them (`SqlReader.learned_family`). ``n_atoms``
    counts what the model holds, fewer than its observations where some were compacted, and
    ``disruption`` is the estimated total variation that this costs. ``warnings`` are reasons not to
    believe the partition, None where it was not judged.
    """

    number: int
    seq: int
    time: float
    log_joint_before: float
    log_joint: float
    n_clusters: int
    n_observations: int
    prior_params: dict[str, Any] = field(default_factory=dict)
    base_measure: dict[str, float] = field(default_factory=dict)
    family_params: dict[str, Any] = field(default_factory=dict)
    n_atoms: int | None = None
    disruption: float | None = None
    warnings: list[str] | None = None


@dataclass(frozen=True)
class LineageRow:
    """A birth, split, merge, move or retirement, in the order in which they are told.

    ``publication`` is the newest publication at that moment: a cluster may also be born between
    two, by the arrival of an observation. ``n_moved`` counts the observations that changed hands.
    """

    kind: str
    publication: int
    seq: int
    time: float
    cluster: int
    parents: tuple[int, ...]
    size: int
    n_moved: int


@dataclass(frozen=True, eq=False)
class ClusterRow:
    """A cluster as it is after this commit; only the clusters that changed travel.

    Attributes
    ----------
    statistics : float64[m]
        Its sufficient statistics, count first.
    version
        Grows by at least one whenever the row changes; Redis accepts newer versions only.
    born_publication, retired_publication
        The newest publication when it was born, and the one that retired it, if any.
    probability, stability, group, group_born
        Means over its observations, by the newest publication, the group of clusters that it is in,
        and the first publication that told of that; None before the first. Read only: a commit
        brings them as ``Certainty``.
    """

    cluster: int
    n_observations: int
    log_marginal: float
    statistics: NDArray[np.float64]
    version: int
    born_publication: int
    retired_publication: int | None = None
    probability: float | None = None
    stability: float | None = None
    group: int | None = None
    group_born: int | None = None


@dataclass(frozen=True)
class ModelRow:
    """When a stream was seen anew, as what, and why.

    Attributes
    ----------
    seq, publication
        The last observation that was there, and the number of the publication that was shown.
    decided_at
        Seconds since 1970.
    family, seen_as
        The family from then on, and the words for how it sees the values; None for as they are.
    earlier_family, earlier_seen_as
        What they were before.
    reason
        What speaks for it, in words and numbers.
    """

    seq: int
    publication: int
    decided_at: float
    family: str
    seen_as: str | None
    earlier_family: str
    earlier_seen_as: str | None
    reason: str


@dataclass(frozen=True)
class Revision:
    """A stream is seen anew: what it is from now on, and the row that tells it."""

    spec: StreamSpec
    row: ModelRow


@dataclass(frozen=True, eq=False)
class Snapshot:
    """An image of the engine after ``seq`` observations: named arrays and nothing else.

    ``number`` counts the snapshots of a stream from 1; one that is taken already makes the store
    give the next that is free. One with a ``label`` was asked for by a person, and stays until a
    person deletes it. One that was packed beside the records comes with a later commit than that of
    ``epoch``, after which it is an image: ``encoded`` are its bytes, and the payload is empty.
    """

    number: int
    seq: int
    payload: Arrays
    created_at: float
    label: str | None = None
    epoch: int | None = None
    encoded: bytes | None = None


@dataclass(frozen=True, eq=False)
class Rewind:
    """How a stream looked at a snapshot: everything later is to be taken out of the tables.

    Attributes
    ----------
    stream
        Name of the stream.
    owner
        In whose name; whoever writes the stream now is fenced by it, and begins again from there.
    snapshot, epoch
        Number of the snapshot, and of the last commit that it knows of. Later ones are deleted.
    seq, publication
        Observations that it had seen, and the newest publication.
    taken_round
        Last round of leases that had been taken back.
    clusters
        All clusters that were live.
    next_cluster
        The id that the next new cluster gets.
    held
        Numbers of the observations that the model held (n).
    offsets
        Next offset to read of each (topic, partition) that had been read.
    """

    stream: str
    owner: str
    snapshot: int
    epoch: int
    seq: int
    publication: int
    taken_round: int
    clusters: Sequence[ClusterRow]
    next_cluster: int
    held: NDArray[np.int64]
    offsets: dict[tuple[str, int], int]


@dataclass(frozen=True, eq=False)
class WholeShown:
    """A publication of all shards: what people are told of the whole.

    Attributes
    ----------
    clusters
        With a publication, all clusters that are shown, of which the count is all statistics as
        yet, and those that it has ended, with the statistics that they had. Once all shards show
        it, those clusters with the sums of all shards.
    publication
        Its row; ``seq`` counts the observations of all shards. None once all shards show it.
    lineage
        Its events.
    certainty
        Of the clusters; that of observations is told by their shards.
    judged
        Number of a publication that was written before, and the reasons not to believe it.
    """

    clusters: Sequence[ClusterRow]
    publication: PublicationRow | None = None
    lineage: Sequence[LineageRow] = ()
    certainty: Certainty | None = None
    judged: tuple[int, list[str]] | None = None


@dataclass(frozen=True, eq=False)
class BatchCommit:
    """Everything that one transaction writes: all of it, or none.

    Attributes
    ----------
    stream
        Name of a stream that ``ensure_stream`` has made.
    owner
        The writing process: an id that no other process ever had (the group's member id).
    generation
        The consumer group's generation under which the owner holds the stream.
    epoch
        Number of this commit in the stream's life: one more than the last, starting from the
        epoch that ``claim`` returned. A batch committed twice under one owner, generation and
        epoch is written once, which makes retrying after an unknown outcome safe.
    offsets
        One per partition that moved. Never backwards.
    replaced
        Partitions whose log is another one than was read, as a person decided.
    taken_back
        Dead letters of earlier commits that this one decides anew: they are removed, and what
        became of each is among the observations or the dead letters under the same offset.
    postponed
        Numbers of observations after which a refinement had its turn and was put off.
    revisions
        How the stream was seen anew; the commit has a snapshot then, and no replay comes across.
    reverts
        Whether its snapshot puts the model back: no older image may come after it.
    shard_round
        The round of the stream's shards, as it stands from now on; shard 0 writes it.
    shard_messages
        What shards are asked in it, or what this one answers.
    whole
        A publication of all shards; shard 0 writes it.
    """

    stream: str
    owner: str
    generation: int
    epoch: int
    offsets: Sequence[OffsetAdvance] = ()
    observations: ObservationBlock | None = None
    dead_letters: Sequence[DeadLetterLike] = ()
    taken_back: Sequence[DeadLetterLike] = ()
    publications: Sequence[PublicationRow] = ()
    lineage: Sequence[LineageRow] = ()
    reassigned: Sequence[Reassignment | Handover | Bundled | Unbundled] = ()
    clusters: Sequence[ClusterRow] = ()
    rounds: Sequence[RoundRow] = ()
    certainties: Sequence[Certainty] = ()
    departures: Sequence[Departure] = ()
    snapshot: Snapshot | None = None
    leases: Sequence[LeaseRow] = ()
    adoptions: Sequence[AdoptionRow] = ()
    postponed: Sequence[int] = ()
    replaced: Sequence[LogReplacement] = ()
    revisions: Sequence[Revision] = ()
    reverts: bool = False
    shard_round: ShardRoundRow | None = None
    shard_messages: Sequence[ShardMessageRow] = ()
    whole: WholeShown | None = None
