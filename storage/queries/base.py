"""What questions over SQL are asked with, and the rows that they and commits are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weald.storage.commit.commit import (
    AdoptionRow,
    BatchCommit,
    Bundled,
    Certainty,
    ClusterRow,
    DeadLetterLike,
    DeadLetterRow,
    Departure,
    Handover,
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

from .answers import (
    LedgerRow,
    ObservationRow,
    Shown,
    SnapshotInfo,
    StreamPosition,
    StreamStatus,
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
    "Handover",
    "LeaseRow",
    "LedgerRow",
    "Letters",
    "LineageRow",
    "ObservationBlock",
    "ObservationRow",
    "OffsetAdvance",
    "PublicationRow",
    "Reassignment",
    "Rewind",
    "RoundRow",
    "Shown",
    "Snapshot",
    "SnapshotInfo",
    "StreamPosition",
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
