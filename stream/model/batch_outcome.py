"""What happened while observations were applied to the model."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.schedule.kernel_report import Refinement
from weald.storage.commit.commit import (
    Bundled,
    Certainty,
    Departure,
    Handover,
    PublicationRow,
    Reassignment,
    Revision,
    RoundRow,
    Unbundled,
    WholeShown,
)
from weald.storage.commit.refinement_rows import AdoptionRow, LeaseRow
from weald.storage.commit.shard_rows import ShardMessageRow, ShardRoundRow
from weald.stream.publication.publication import LineageEvent

__all__ = ["BatchOutcome"]

Ids = NDArray[np.int64]


@dataclass
class BatchOutcome:
    """What happened while observations were applied: the contents of a commit.

    Parameters
    ----------
    clusters : list of ndarray of int64
        Cluster of each observation on arrival, in pieces.
    lineage, publications, reassigned, rounds, certainties, departures
        In the order in which they happened.
    refinements : list of Refinement
    n_rounds, n_refined : list of int
        Rounds of each refinement, and the observations that the model then held.
    leases, adoptions
        Leases offered or closed, and the round that was taken back.
    postponed : list of int
        Numbers of observations after which a refinement had its turn and was put off.
    revisions : list of Revision
        How the stream was seen anew.
    shard_messages : list of ShardMessageRow
        What this shard asks or answers in the round of all shards.
    shard_round : ShardRoundRow, optional
        That round as it stands, where it is this shard that asks.
    whole : WholeShown, optional
        A publication of all shards, in the same case.
    passed : list of ndarray of int64
        Numbers of those that the model, which holds a sample, did not take in, in pieces.
    """

    clusters: list[Ids] = field(default_factory=list)
    lineage: list[LineageEvent] = field(default_factory=list)
    publications: list[PublicationRow] = field(default_factory=list)
    reassigned: list[Reassignment | Handover | Bundled | Unbundled] = field(default_factory=list)
    rounds: list[RoundRow] = field(default_factory=list)
    certainties: list[Certainty] = field(default_factory=list)
    departures: list[Departure] = field(default_factory=list)
    refinements: list[Refinement] = field(default_factory=list)
    n_rounds: list[int] = field(default_factory=list)
    n_refined: list[int] = field(default_factory=list)
    leases: list[LeaseRow] = field(default_factory=list)
    adoptions: list[AdoptionRow] = field(default_factory=list)
    postponed: list[int] = field(default_factory=list)
    revisions: list[Revision] = field(default_factory=list)
    passed: list[Ids] = field(default_factory=list)
    shard_messages: list[ShardMessageRow] = field(default_factory=list)
    shard_round: ShardRoundRow | None = None
    whole: WholeShown | None = None

    @property
    def says_anything(self) -> bool:
        """Whether there is anything to commit."""
        return any(bool(happened) for happened in vars(self).values())

    def refined(self, refinement: Refinement, n_rounds: int, seq: int, n_held: int) -> None:
        """Append a refinement after observation number `seq`, when the model held `n_held`."""
        self.refinements.append(refinement)
        self.n_rounds.append(n_rounds)
        self.n_refined.append(n_held)
        self.rounds += _rounds_of(seq, refinement)

    def extend(self, later: "BatchOutcome") -> None:
        """Append what happened later."""
        self.shard_round = later.shard_round or self.shard_round
        self.whole = later.whole or self.whole
        for name, happened in vars(later).items():
            if isinstance(happened, list):
                getattr(self, name).extend(happened)


def _rounds_of(seq: int, refinement: Refinement) -> list[RoundRow]:
    """What a refinement after observation number `seq` did, kernel by kernel."""
    rows = []
    before = refinement.log_joint_before
    for kernel in refinement.kernels:
        after = before + kernel.log_joint_gain
        rows.append(
            RoundRow(
                seq=seq,
                kernel=kernel.name,
                proposed=kernel.proposed,
                accepted=kernel.accepted,
                log_joint_before=before,
                log_joint_after=after,
                seconds=kernel.seconds,
            )
        )
        before = after
    return rows
