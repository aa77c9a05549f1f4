"""The port of this room: what the engine writes through, and what questions are asked through.

``Store`` has one user at a time, the stream's owner, on one thread. ``Reader`` may have any
number, anywhere, and never writes. ``weald.storage.writing.store`` implements both over SQLite and
PostgreSQL. Every call may raise ``StorageUnavailable``; every call that names a stream raises
``StreamNotFound`` for one that was never written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from weald.storage.commit.commit import (
    AdoptionRow,
    BatchCommit,
    Bundled,
    Certainty,
    ClusterRow,
    DeadLetterLike,
    DeadLetterRow,
    Departure,
    LeaseRow,
    LineageRow,
    ObservationBlock,
    OffsetAdvance,
    PublicationRow,
    Reassignment,
    Rewind,
    RoundRow,
    Snapshot,
    StreamSpec,
    Unbundled,
)
from weald.storage.commit.log_marks import LogReplacement
from weald.storage.settings import RetentionSettings

from .answers import (
    LedgerRow,
    ObservationRow,
    Position,
    Shown,
    SnapshotInfo,
    StreamStatus,
    Sureness,
)

__all__ = [
    "AdoptionRow",
    "AsOf",
    "BatchCommit",
    "Bundled",
    "Certainty",
    "ClusterRow",
    "DeadLetterLike",
    "DeadLetterRow",
    "Departure",
    "LeaseRow",
    "LedgerRow",
    "Letters",
    "LineageRow",
    "ObservationBlock",
    "ObservationRow",
    "OffsetAdvance",
    "Position",
    "PublicationRow",
    "Reader",
    "Reassignment",
    "Rewind",
    "RoundRow",
    "Shown",
    "Snapshot",
    "SnapshotInfo",
    "Store",
    "StreamSpec",
    "StreamStatus",
    "Unbundled",
]


@dataclass(frozen=True)
class AsOf:
    """A moment in the past: give one of the two.

    Attributes
    ----------
    time
        Seconds since 1970: what was shown then, about the observations received by then.
    publication
        Number of a publication: what it showed, about the observations that it covered.
    """

    time: float | None = None
    publication: int | None = None

    def __post_init__(self) -> None:
        if (self.time is None) == (self.publication is None):
            raise ValueError("AsOf takes a time or a publication, one of the two")


@dataclass(frozen=True)
class Letters:
    """Which dead letters are meant: those that meet every condition that is given.

    Attributes
    ----------
    numbers
        Their numbers, as ``DeadLetterRow.number`` tells them.
    reason
        Code of the reason.
    partition
        Partition of the topic.
    received_before
        Seconds since 1970.
    requested
        Whether a replay was asked for.
    """

    numbers: Sequence[int] | None = None
    reason: str | None = None
    partition: int | None = None
    received_before: float | None = None
    requested: bool | None = None


class Reader(Protocol):
    """Questions. None of them writes, and a role that may only read is enough for them."""

    def streams(self) -> list[str]:
        """Return the names of all streams, sorted."""

    def spec(self, stream: str) -> StreamSpec:
        """Return what the stream is."""

    def position(self, stream: str) -> Position:
        """Return where the stream stands, without claiming it."""

    def offsets(self, stream: str) -> dict[tuple[str, int], int]:
        """Return the next offset to read, by (topic, partition)."""

    def newest_snapshot(self, stream: str) -> Snapshot | None:
        """Return the newest snapshot that is whole, or None; damaged ones are logged and passed."""

    def newest_of_keys(self, stream: str, keys: Collection[str]) -> dict[str, int]:
        """Return the number of the newest observation of each of the keys that one has."""

    def snapshot(self, stream: str, number: int) -> Snapshot | None:
        """Return the snapshot of that number, or None.

        Raises
        ------
        SnapshotCorrupt
            If it is damaged.
        """

    def shown(self, stream: str, publication: int, after_seq: int, limit: int) -> Shown:
        """Return what a publication shows of the next observations after ``after_seq``, in order.

        One that came later has the cluster that it arrived in. No observations mean the end.
        """

    def snapshots(self, stream: str) -> list[SnapshotInfo]:
        """Return the stored snapshots, newest first."""

    def observations(self, stream: str, after_seq: int, limit: int) -> ObservationBlock | None:
        """Return the next observations after ``after_seq`` in order, at most ``limit``, for replay.

        A block has one topic, so it may be shorter than ``limit``; only None means the end.
        """

    def bundled(self, stream: str, bundle: int) -> NDArray[np.int64]:
        """Return the numbers of the observations in a bundle, rising."""

    def values_of(
        self, stream: str, seqs: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return values (n, d) and event times (n) of observations by number, those that exist."""

    def status(self, stream: str) -> StreamStatus:
        """Return the stream at a glance."""

    def ledger(self, stream: str) -> list[LedgerRow]:
        """Return the account of each partition."""

    def clusters(
        self, stream: str, *, include_retired: bool = False, limit: int | None = None
    ) -> list[ClusterRow]:
        """Return the clusters, largest first."""

    def cluster(self, stream: str, cluster: int) -> ClusterRow | None:
        """Return one cluster, retired or not, or None if that id was never used."""

    def members(self, stream: str, cluster: int, *, limit: int = 20) -> list[ObservationRow]:
        """Return the newest observations that the cluster has now."""

    def assignments(
        self, stream: str, keys: Iterable[str], *, as_of: AsOf | None = None, limit: int = 1
    ) -> list[ObservationRow]:
        """Return for each key its newest ``limit`` observations, with the cluster now or then."""

    def changes(self, stream: str, *, after: int = 0) -> NDArray[np.int64]:
        """Return publication, seq, old and new cluster, int64[n, 4], of each change after one."""

    def newest(self, stream: str, *, limit: int) -> list[ObservationRow]:
        """Return the newest observations, newest first."""

    def observed(self, stream: str, seqs: Sequence[int]) -> list[ObservationRow]:
        """Return the observations with these numbers, oldest first."""

    def sureness(self, stream: str, seqs: Iterable[int]) -> dict[int, Sureness]:
        """Return how sure the newest publication is of these observations, by number."""

    def member_seqs(self, stream: str, cluster: int) -> list[int]:
        """Return the numbers of all observations that the cluster has now, in order."""

    def births(self, stream: str) -> dict[int, float]:
        """Return when each cluster was first told of, seconds since 1970."""

    def arrivals(self, stream: str, *, newest: int) -> dict[int, int]:
        """Return how many of the ``newest`` observations each cluster has now."""

    def cluster_ids(self, stream: str) -> list[int]:
        """Return the ids of the clusters that are shown, largest first."""

    def keys_like(self, stream: str, start: str, *, limit: int) -> list[str]:
        """Return keys of records that begin with ``start``, in order."""

    def lineage(
        self,
        stream: str,
        *,
        since: float | None = None,
        cluster: int | None = None,
        limit: int | None = None,
    ) -> list[LineageRow]:
        """Return lineage events in order; with ``limit`` the newest ones.

        ``cluster`` selects the events in which it takes part, as the subject or as a parent.
        """

    def publications(self, stream: str, *, limit: int | None = None) -> list[PublicationRow]:
        """Return publications in order; with ``limit`` the newest ones."""

    def rounds(self, stream: str, *, limit: int | None = None) -> list[RoundRow]:
        """Return refinement rounds in order; with ``limit`` the newest ones."""

    def dead_letters(
        self, stream: str, letters: Letters | None = None, *, limit: int = 100
    ) -> list[DeadLetterRow]:
        """Return the newest dead letters, newest first."""

    def replay_requests(self, stream: str, *, limit: int) -> list[DeadLetterRow]:
        """Return the dead letters that somebody asked for again, oldest first."""

    def dead_letter_counts(self, stream: str) -> dict[str, int]:
        """Return how many dead letters there are for each reason."""

    def leases(
        self, stream: str, *, outcome: str | None = None, limit: int | None = None
    ) -> list[LeaseRow]:
        """Return leases, newest round first; with ``outcome`` only those of that outcome."""

    def lease_counts(self, stream: str) -> dict[str, int]:
        """Return how many of the leases that are kept have each outcome."""

    def log_decisions(self, stream: str) -> list[LogReplacement]:
        """Return what was decided about logs that others had taken the place of, oldest first."""

    def last_round(self, stream: str) -> int:
        """Return the number of the newest round of leases, 0 if there was none."""

    def adoptions(self, stream: str, after_round: int) -> list[AdoptionRow]:
        """Return the rounds of leases later than this one that were taken back, in order."""

    def close(self) -> None:
        """Close the connections."""


class Store(Reader, Protocol):
    """The one writer's side.

    The order of calls: ``ensure_stream`` once the model is known, ``claim`` whenever the group
    assigns the stream to this process, then ``commit`` with epochs that follow on.
    """

    def ensure_stream(self, spec: StreamSpec) -> StreamSpec:
        """Create the stream if it is new and return what is stored.

        Raises
        ------
        StreamConflict
            If the stream exists and anything in its spec is different.
        """

    def claim(
        self, stream: str, owner: str, generation: int, *, takeover: bool = False
    ) -> Position:
        """Make ``owner`` the only process whose commits are accepted; return where to go on from.

        Parameters
        ----------
        takeover
            Accept a generation older than the last owner's. For groups whose count has started
            over (a new broker, an expired group, a file). Safe in itself: the previous owner's
            next commit is fenced.

        Raises
        ------
        Fenced
            If the stream was claimed under a later generation, and this is no takeover.
        """

    def commit(self, batch: BatchCommit) -> None:
        """Write the batch in one transaction, or nothing.

        Raises
        ------
        Fenced
            If the stream's owner, generation or epoch is no longer the batch's.
        InvariantBroken
            If the batch contradicts the tables (a repeated offset, a gap in ``seq``).
        StorageUnavailable
            If the outcome is unknown: commit the same batch again.
        """

    def prune(self, stream: str, retention: RetentionSettings) -> dict[str, int]:
        """Forget some of what the policy lets go; return how many rows went of each table.

        Bounded work: call again until nothing went.
        """

    def save_snapshot(self, stream: str, snapshot: Snapshot) -> int:
        """Keep an image that was made beside the writer; return the number that it got."""

    def rewind(self, rewind: Rewind) -> int:
        """Take out of the tables everything that came after a snapshot, in one transaction.

        The offsets go back with it, so that the records are read again, and the writer, if there
        is one, is fenced.

        Returns
        -------
        int
            Observations taken out.
        """

    def delete_snapshots(self, stream: str, numbers: Sequence[int]) -> None:
        """Forget the snapshots with these numbers."""
