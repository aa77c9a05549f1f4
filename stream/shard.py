"""The writer's state: the chain, the published partition, and what is told of both.

Deterministic. Refinements and publications happen after fixed numbers of observations, never at a
time or at the end of a batch; so a stream that is cut into other batches, or killed and replayed,
arrives at the same partition, bit for bit.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..mcmc.chain import Chain, Refinement
from ..mcmc.leases import Budget
from ..mcmc.lending import Lent
from ..mcmc.settings import RefinementSettings
from ..storage.commit import (
    AdoptionRow,
    Certainty,
    LeaseRow,
    PublicationRow,
    Reassignment,
    RoundRow,
)
from .arrivals import Arrivals
from .certainty import RecentDraws
from .clusters import ClusterTable
from .columns import Column
from .lease_rounds import LeaseRounds
from .publication import LineageEvent, Moment, Published, publish

__all__ = ["Applied", "Shard", "Step", "round_rows"]

Ids = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]
Step = Callable[[str], AbstractContextManager[None]]

_MODES: tuple[Literal["inline", "workers"], ...] = ("inline", "workers")
CHAIN, TABLE, DRAWS = "chain.", "clusters.", "draws."


@dataclass
class Applied:
    """What happened while observations were applied: the contents of a commit.

    Parameters
    ----------
    clusters : list of ndarray of int64
        Cluster of each observation on arrival, in pieces.
    lineage, publications, reassigned, rounds, certainties
        In the order in which they happened.
    refinements : list of Refinement
    n_rounds : list of int
        Rounds of each refinement.
    leases, adoptions
        Leases offered or closed, and the round that was taken back.
    """

    clusters: list[Ids] = field(default_factory=list)
    lineage: list[LineageEvent] = field(default_factory=list)
    publications: list[PublicationRow] = field(default_factory=list)
    reassigned: list[Reassignment] = field(default_factory=list)
    rounds: list[RoundRow] = field(default_factory=list)
    certainties: list[Certainty] = field(default_factory=list)
    refinements: list[Refinement] = field(default_factory=list)
    n_rounds: list[int] = field(default_factory=list)
    leases: list[LeaseRow] = field(default_factory=list)
    adoptions: list[AdoptionRow] = field(default_factory=list)

    def extend(self, later: "Applied") -> None:
        """Append what happened later."""
        for name, happened in vars(later).items():
            getattr(self, name).extend(happened)


def _untimed(_: str) -> AbstractContextManager[None]:
    return nullcontext()


class Shard:
    """One stream's model in memory; its one writer calls `apply`.

    Parameters
    ----------
    chain : Chain
        Without observations.
    family : NamedTuple
        The chain's family.
    cadence : RefinementSettings
    """

    def __init__(self, chain: Chain, family: Any, cadence: RefinementSettings) -> None:
        self.chain = chain
        self.table = ClusterTable(family)
        self.cadence = cadence
        self._draws = RecentDraws()
        self._clusters = Column(np.empty(0, dtype=np.int64))
        self._values: Column | None = None
        self._arrivals: Arrivals | None = None
        self.publication = 0
        self._next_cluster = 1
        self._published_seq = 0
        self.rounds = LeaseRounds()

    @property
    def seq(self) -> int:
        """Number of the last observation, counted from 1."""
        return len(self._clusters)

    @property
    def clusters(self) -> Ids:
        """Published cluster of every observation; valid until the next `apply`."""
        return self._clusters.rows

    def apply(self, values: NDArray[np.float64], now: float, step: Step = _untimed) -> Applied:
        """Insert observations, refining and publishing where their numbers say so.

        Parameters
        ----------
        values : ndarray of float64, shape (n, d)
        now : float
            Seconds since the epoch, written on publications and events; it decides nothing.
        step : callable
            Context manager around each labelled step: "insert", "refine", "publish".
        """
        applied = Applied()
        start = 0
        while start < len(values):
            stop = min(len(values), start + self._room())
            with step("insert"):
                self._insert(values[start:stop], now, applied)
            start = stop
            if self.seq % self.cadence.every_records == 0 and self.cadence.mode == "inline":
                with step("refine"):
                    self._refine(applied)
            if self.in_turn(self.seq):
                with step("publish"):
                    self._publish(applied, now)
        return applied

    def lend(self, number: int, rng: Generator, n_leases: int, budget: Budget) -> list[Lent]:
        """Give the partition out to workers, as round ``number``."""
        self.rounds.begin(number, self)
        return self.chain.lend(rng, n_leases, budget)

    def take_back(self, returns: Sequence[tuple[Ids, Ids]]) -> Refinement:
        """Take the round that is out back: atoms and labels of each lease that was returned."""
        refinement = self.chain.adopt(returns)
        self.rounds.end()
        self._arrivals = None
        self._draws.add(self.chain.labels)
        return refinement

    def conclude(self, now: float, step: Step = _untimed) -> Applied:
        """Refine and publish out of turn, at the end of a finite source.

        Where workers refine, the chain is published as it stands: the forest, which guides inline
        refinement, may have been tidied up for a round that SQL never heard of.
        Replay does the same where SQL holds a publication that is out of turn.
        """
        applied = Applied()
        if not self.unpublished:
            return applied
        self.forget_lent()
        if self.cadence.mode == "inline":
            with step("refine"):
                self._refine(applied)
        with step("publish"):
            self._publish(applied, now)
        return applied

    def forget_lent(self) -> None:
        """Go on as if no round were out; its returns are late from now on."""
        self.chain.forget_lent()
        self.rounds.abandon()

    @property
    def unpublished(self) -> bool:
        """Whether observations came since the last publication."""
        return self._published_seq < self.seq

    def in_turn(self, seq: int) -> bool:
        """Whether a publication after this observation is a regular one."""
        return seq % self.cadence.publish_every_records == 0

    def adopt(self, shown: Published, covered: int, born: Mapping[int, int]) -> None:
        """Show another partition than the model's own, as if it had been published.

        Parameters
        ----------
        shown : Published
            Of all observations, those included that came after the publication.
        covered : int
            Observations that the publication covers.
        born : mapping of int to int
            For each cluster the publication when it was born.
        """
        self._clusters.replace(shown.clusters)
        self.publication, self._next_cluster = shown.number, shown.next_cluster
        self._published_seq = covered
        self._arrivals = None
        if self._values is not None:
            self.table.renew(self.clusters, self._values.rows, born)

    def faults(self) -> list[str]:
        """Say what does not agree between the model's parts; nothing when all is well.

        Linear in the observations, and fast enough for every start.
        """
        n = self.seq
        n_values = 0 if self._values is None else len(self._values)
        if (self.chain.n_atoms, n_values) != (n, n):
            return [f"{self.chain.n_atoms} atoms and {n_values} rows for {n} observations"]
        if self._values is None:
            return []
        faults = []
        if not np.isfinite(self._values.rows).all():
            faults.append("an observation is not finite")
        labels = self.chain.labels
        if (labels < 0).any() or len(np.unique(labels)) != self.chain.n_blocks:
            faults.append("the chain's blocks are not those that its observations are in")
        return faults + self.table.faults(self.clusters, self._values.rows)

    def state(self) -> Arrays:
        """Named arrays from which `restore` continues, bit for bit."""
        values = np.empty((0, 0)) if self._values is None else self._values.rows
        return {
            "shown": np.array([self.publication, self._next_cluster, self._published_seq]),
            "cadence": _cadence_row(self.cadence),
            "lease_rounds": self.rounds.row(),
            "assigned": self._clusters.rows,
            "values": values,
            **{CHAIN + name: array for name, array in self.chain.state().items()},
            **{TABLE + name: array for name, array in self.table.state().items()},
            **{DRAWS + name: array for name, array in self._draws.state().items()},
        }

    @classmethod
    def restore(cls, state: Arrays, family: Any) -> "Shard":
        """Undo `state`; the cadence is that under which it was saved, and replay needs it."""
        every, publish_every, rounds, mode = (*state["cadence"].tolist(), 0)[:4]
        cadence = RefinementSettings(every, publish_every, rounds, _MODES[mode])
        shard = cls(Chain.restore(_under(state, CHAIN)), family, cadence)
        shard.table = ClusterTable.restore(family, _under(state, TABLE))
        shard._draws = RecentDraws.restore(_under(state, DRAWS))
        shard.publication, shard._next_cluster, shard._published_seq = state["shown"].tolist()
        # Snapshots of earlier versions know nothing of leases.
        shard.rounds = LeaseRounds(*state.get("lease_rounds", np.zeros(4, np.int64)).tolist())
        shard._clusters = Column(state["assigned"])
        shard._values = Column(state["values"]) if len(state["values"]) else None
        return shard

    def _room(self) -> int:
        """Observations until the next refinement; every publication is at one, too."""
        return self.cadence.every_records - self.seq % self.cadence.every_records

    def _insert(self, values: NDArray[np.float64], now: float, applied: Applied) -> None:
        if self._arrivals is None:
            self._arrivals = Arrivals(self.chain.labels, self.clusters, self._next_cluster)
        atoms = self.chain.insert(values)
        slots = self.chain.labels[atoms]
        clusters, born = self._arrivals.place(slots)
        applied.lineage += [self._birth(int(clusters[i]), self.seq + i + 1, now) for i in born]
        applied.clusters.append(clusters)
        self._next_cluster += len(born)
        if self._values is None:
            self._values = Column(values[:0])
        self._values.extend(values)
        self._clusters.extend(clusters)
        self.table.add(clusters, values, self.publication)

    def _birth(self, cluster: int, seq: int, now: float) -> LineageEvent:
        return LineageEvent("birth", self.publication, seq, now, cluster, (), size=1, n_moved=0)

    def _refine(self, applied: Applied) -> None:
        refinement = self.chain.refine(self.cadence.rounds)
        self._arrivals = None
        self._draws.add(self.chain.labels)
        applied.refinements.append(refinement)
        applied.n_rounds.append(self.cadence.rounds)
        applied.rounds += round_rows(self.seq, refinement)

    def _publish(self, applied: Applied, now: float) -> None:
        """Show the best partition that the refinement just before has seen.

        Where workers refine there need not be one just before; the chain is shown as it stands.
        """
        previous = Published(self.publication, self.clusters, self._next_cluster)
        by_workers = self.cadence.mode == "workers" and not applied.refinements
        refinement = self.chain.refine(0) if by_workers else applied.refinements[-1]
        published, events, changed = publish(
            previous, self.chain.best_labels, Moment(self.seq, now)
        )
        touched = set(self.clusters[changed].tolist()) | set(published.clusters[changed].tolist())
        self._clusters.replace(published.clusters)
        self.publication, self._next_cluster = published.number, published.next_cluster
        self._published_seq = self.seq
        self._arrivals = None
        if self._values is not None:
            self.table.regroup(touched, self.clusters, self._values.rows, self.publication)
        applied.lineage += events
        applied.reassigned.append(
            Reassignment(self.publication, changed + 1, published.clusters[changed])
        )
        applied.publications.append(
            PublicationRow(
                number=self.publication,
                seq=self.seq,
                time=now,
                log_joint_before=refinement.log_joint_before,
                log_joint=refinement.best_log_joint,
                n_clusters=len(self.table),
                n_observations=self.seq,
                prior_params=self.chain.prior.parameters(),
            )
        )
        applied.certainties.append(self._draws.certainty(self.clusters))


def _cadence_row(cadence: RefinementSettings) -> Ids:
    counts = (cadence.every_records, cadence.publish_every_records, cadence.rounds)
    return np.array([*counts, _MODES.index(cadence.mode)], dtype=np.int64)


def round_rows(seq: int, refinement: Refinement) -> list[RoundRow]:
    """Rows of SQL about what each kernel did in a refinement after ``seq`` observations."""
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


def _under(state: Arrays, prefix: str) -> Arrays:
    return {
        name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)
    }
