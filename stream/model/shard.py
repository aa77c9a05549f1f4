"""The writer's state: the chain, the published partition, and what is told of both.

Deterministic. `apply` refines and publishes where the numbers of observations say so, never at a
time or at the end of a batch; so a stream that is cut into other batches, or killed and replayed,
arrives at the same partition, bit for bit. Only whether a refinement is made in its turn is for a
`Pace` to say, and what it has put off is in SQL.

What looks at all atoms happens at a publication, and publications come more rarely as there are
more atoms: in between, refinement looks at windows of them. So a record costs as much after a
million others as after ten thousand.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import count
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.chain.concurrent_refinement import ConcurrentRefinement
from weald.mcmc.chain.growing import taken_from
from weald.mcmc.contract import Chain
from weald.mcmc.leases.leases import Budget
from weald.mcmc.leases.outstanding import Lent
from weald.mcmc.offline.resolution import Moves
from weald.mcmc.offline.transformation import Transformation
from weald.mcmc.schedule.kernel_report import Refinement
from weald.mcmc.settings import RefinementSettings
from weald.storage.commit.commit import (
    AdoptionRow,
    Certainty,
    ClusterRow,
    Handover,
    PublicationRow,
    StreamSpec,
)
from weald.stream.publication.arrival_router import Arrivals
from weald.stream.publication.certainty import RecentDraws
from weald.stream.publication.groups import PublishedGroups
from weald.stream.publication.publication import (
    Beside,
    LineageEvent,
    Moment,
    Published,
    publish,
)
from weald.stream.record.record import Batch
from weald.stream.settings import MemorySettings
from weald.stream.tables.atom_table import AtomTable
from weald.stream.tables.cluster_table import ClusterTable
from weald.stream.telemetry.steps import Step, untimed
from weald.stream.warm_up.log_moves import LogMoves
from weald.treecore.errors import ParameterError
from weald.treecore.family.interface.base import Family

from .batch_outcome import BatchOutcome
from .compacted_atoms import Archive
from .forgetting import REPLACED_RECORDS, Forgetting
from .leaf_budget import Bounding
from .lease_rounds import LeaseRounds, unpacked
from .left_out import Revise
from .pace import COUNTED, Pace, cadence_of, cadence_row
from .rows import IncomingRows
from .sample import Sample

__all__ = ["MOST_ROUNDS_APART", "MOVED_BETWEEN_DRAWS", "Arrays", "Shard"]

Ids = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

# What snapshots call the parts of a shard: "roster" is the table of atoms.
CHAIN, TABLE, DRAWS, ATOMS, MEMORY = "chain.", "clusters.", "draws.", "roster.", "memory."
GROUPS, SAMPLE = "groups.", "sample."
# `settle` refuses the settings under which anybody would ask.
_NOT_LENT = "all clusters of this model are coupled: none can be lent to a worker"
# A publication of more than a few atoms, with the refinement before it that moves all of them,
# comes when a share of them is new.
_NEW_SHARE = 0.1
# Where that refinement was put off, when this is: what is shown changes little then.
_NEW_SHARE_PUT_OFF = 0.5
# It stands for those that it replaces by so many times the rounds. With fewer, blocks that overlap
# are told apart less well than by moving all atoms every time.
_WHOLE_ROUNDS = 3
# Before a publication of fewer atoms, draws are so many rounds apart that about these are moved: a
# few hundred leave a poor mode of the base measure within tens of rounds, which cost little. Of a
# few atoms they are at most so many rounds apart: one that is alone has nowhere to go.
MOVED_BETWEEN_DRAWS, MOST_ROUNDS_APART = 1200, 60
# The first publications come after these parts of a turn's records, where they are so many:
# arrivals join what is published, and before the first one each of them was looked at once.
_EARLY, _FEWEST_PUBLISHED = (2, 4, 8), 125

# Whoever sums clusters looks at the statistics of no more atoms at once.
SUMMED_AT_A_TIME = 1 << 16


class Shard(ABC):
    """One stream's model in memory; its one writer calls `digest`.

    What mixtures and networks do alike; see :class:`~weald.stream.model.mixture_shard.MixtureShard`
    and :class:`~weald.stream.model.network_shard.NetworkShard` for the rest.

    Parameters
    ----------
    chain : Chain
        Without observations.
    family : NamedTuple
        The chain's family.
    cadence : RefinementSettings
    memory : MemorySettings
        What the model keeps.

    Attributes
    ----------
    pace : Pace
        Whether refinements are made in their turn; by default all are.
    owed : int
        Refinements of all atoms that were put off and not made up for; until then trees place
        arrivals.
    """

    def __init__(
        self,
        chain: Chain,
        family: Family,
        cadence: RefinementSettings,
        memory: MemorySettings | None = None,
    ) -> None:
        self.chain = chain
        self.table = ClusterTable(family)
        self.atom_table = AtomTable()
        self.forgetting = Forgetting(memory or MemorySettings())
        self.settle(cadence, self.forgetting.settings)
        self.bounding = Bounding()
        self.sample = Sample()
        # Without them nothing is expanded or seen anew, as in a replay: a commit of either has a
        # snapshot.
        self.archive: Archive | None = None
        self.revise: Revise | None = None
        self.spec: StreamSpec | None = None
        # Through which the family sees observations; None where as they are.
        self.transformation: Transformation | None = None
        # Of the values that it sees, and before that of those that are seen by their logarithm.
        self.moves: Moves | None = None
        self.log_moves: LogMoves | None = None
        self.uncrossable = False
        self._draws = RecentDraws()
        self.groups = PublishedGroups()
        self.seq = 0
        self._arrivals: Arrivals | None = None
        self.publication = 0
        self._next_cluster = 1
        self._published_seq = self._published_taken = 0
        # Records taken in when a publication had its turn last.
        self._turn_taken = 0
        self.rounds = LeaseRounds()
        # The refinement of all atoms that goes on beside arrivals.
        self.concurrent: ConcurrentRefinement | None = None
        # Where it began: nothing that is saved knows of it before it is taken over.
        self.begun = LeaseRounds()
        self.pace: Pace = COUNTED
        self.owed = 0
        # Whether what a refinement beside arrivals has arrived at is taken over, and not shown yet.
        self.unshown = False

    def settle(self, cadence: RefinementSettings, memory: MemorySettings) -> None:
        """Go on under these settings.

        Raises
        ------
        ParameterError
            When the budget is too small for the cadence, or comes with another policy too late.
        """
        Bounding.check(memory.leaf_budget, cadence.every_records)
        if memory.samples and self.bundled:
            raise ParameterError(
                'memory.policy is "sample", its default, and observations of this stream have '
                'become one with others already: set memory.policy = "bundles"'
            )
        self.cadence, self.forgetting.settings = cadence, memory

    @property
    def bundled(self) -> bool:
        """Whether observations have become one with others."""
        return bool((self.atom_table.seq < 0).any())

    @property
    def clusters(self) -> Ids:
        """Published cluster of each observation that is an atom of its own, in order of arrival."""
        return self.atom_table.cluster[self.atom_table.singles]

    def apply(
        self,
        values: NDArray[np.float64],
        now: float,
        step: Step = untimed,
        *,
        times: NDArray[np.float64] | None = None,
        replaces: Ids | None = None,
        keys: Sequence[str | None] = (),
    ) -> BatchOutcome:
        """Insert observations, refining and publishing where their numbers say so.

        Parameters
        ----------
        values : ndarray of float64, shape (n, d)
        now : float
            Seconds since the epoch, written on publications and events; it decides nothing.
        step : callable
            Context manager around each labelled step: "insert", "refine", "publish".
        times : ndarray of float64, shape (n,), optional
            When each observation happened, by its record, in seconds since the epoch. Without
            them the stream's clock stands still.
        replaces : ndarray of int64, shape (n,), optional
            Number of the earlier observation that leaves for each; 0 for none.
        keys : sequence of str or None, length n, optional
            Names of vertices, where the rows are those of a network.
        """
        applied = BatchOutcome()
        rows = IncomingRows(values, np.zeros(len(values)) if times is None else times, keys)
        replaces = np.zeros(len(values), dtype=np.int64) if replaces is None else replaces
        replacing = self.forgetting.replacing or replaces.any()
        start = 0
        while start < len(values):
            # Every publication is at a refinement, too.
            stop = min(len(values), start + self._n_until_refinement)
            if replacing:
                stop = min(stop, start + REPLACED_RECORDS - self.seq % REPLACED_RECORDS)
            with step("insert"):
                self._insert(rows.part(start, stop), now, applied)
                self.forgetting.replace(replaces[start:stop])
            start = stop
            if self.seq % REPLACED_RECORDS == 0:
                self.remove(self.forgetting.take_replaced(), applied, now)
            if self._refinement_due:
                with step("refine"):
                    self._forget(applied, now)
                    if self._publication_due:
                        self._look_again(applied, now)
                    if self.cadence.mode == "inline":
                        self._refine_in_turn(applied)
            if self._publication_due:
                self._turn_taken = self._n_taken
                if self._worth_publishing(applied):
                    with step("publish"):
                        self._publish(applied, now)
                        self._expand(applied)
            if self.seq % self.cadence.every_records == 0:
                with step("compact"):
                    self._compact(applied)
        return applied

    def conclude(self, now: float, step: Step = untimed) -> BatchOutcome:
        """Refine and publish what is not published yet, at the end of a finite source.

        Where workers refine, the chain is published as it stands: the forest, which guides inline
        refinement, may have been tidied up for a round that SQL never heard of.
        """
        if not self.unpublished:
            return BatchOutcome()
        self.forget_lent()
        return self.go_on(now, step)

    def go_on(self, now: float, step: Step = untimed) -> BatchOutcome:
        """Refine and publish out of turn; only publish what a refinement beside arrivals has left.

        Replay does the same where SQL holds a publication that is out of turn.
        """
        applied = BatchOutcome()
        if self.concurrent is not None:
            self.forget_lent()
        if not self.unshown:
            with step("refine"):
                self._forget(applied, now)
                if self.cadence.mode == "inline":
                    self._refine(applied, publishing=True)
                    self.owed = max(self.owed - 1, 0)
        with step("publish"):
            self._publish(applied, now)
        return applied

    @property
    def numbers(self) -> Ids:
        """Numbers of the rows that the model holds, each for itself."""
        return self.atom_table.seq[self.atom_table.singles]

    @property
    def next_cluster(self) -> int:
        """The id that the next new cluster gets."""
        return self._next_cluster

    @property
    def unpublished(self) -> bool:
        """Whether observations came since the last publication."""
        return self._published_seq < self.seq

    @property
    def few(self) -> bool:
        """Whether every refinement may look at all atoms."""
        return True

    @property
    def _n_held(self) -> int:
        """Records that the model holds."""
        return self.atom_table.n_observations

    @property
    def _first_publications(self) -> list[int]:
        """Numbers of records after which publications come before any has its turn."""
        parts = [self.cadence.publish_every_records // part for part in _EARLY]
        return [n for n in parts if n >= _FEWEST_PUBLISHED]

    @property
    def _n_until_refinement(self) -> int:
        """Records until the next refinement has its turn."""
        every = self.cadence.every_records
        early = [n - self.seq for n in self._first_publications if n > self.seq]
        return min([every - self.seq % every, *early])

    @property
    def _refinement_due(self) -> bool:
        """Whether it is the turn of a refinement."""
        in_turn = self.seq % self.cadence.every_records == 0
        return in_turn or self.seq in self._first_publications

    @property
    def _n_taken(self) -> int:
        """Records that the model has taken in."""
        return self.seq - self.sample.n_passed

    @property
    def _publication_due(self) -> bool:
        """Whether it is the turn of a publication."""
        in_turn = self.seq % self.cadence.publish_every_records == 0
        turn = in_turn or self.seq in self._first_publications
        return turn and self._is_new(_NEW_SHARE, self._turn_taken)

    def _is_new(self, share: float, taken: int) -> bool:
        """Whether such a share of what is held came since so many records had been taken in."""
        enough = self._n_taken - taken >= share * self.chain.n_atoms
        # Of a sample that is full few that come are in, and say something new.
        return enough or (self.few and not self.sample.selects)

    def _worth_publishing(self, applied: BatchOutcome) -> bool:
        """Whether a publication whose turn it is says enough to be made."""
        if self.seq not in applied.postponed[-1:]:
            return True
        return self._is_new(_NEW_SHARE_PUT_OFF, self._published_taken)

    def adopt(self, shown: Published, covered: int, live: Sequence[ClusterRow]) -> None:
        """Show another partition than the model's own, as if it had been published.

        Parameters
        ----------
        shown : Published
            Of the observations in `singles`, those included that came after the publication.
        covered : int
            Observations that the publication covers.
        live : sequence of ClusterRow
            The clusters that are shown, whether the model holds any of them or not.
        """
        atoms = self.atom_table.singles
        self.atom_table.cluster[atoms] = shown.clusters
        self.publication, self._next_cluster = shown.number, shown.next_cluster
        self._published_seq, self._published_taken = covered, covered - self.sample.n_passed
        self._turn_taken = self._published_taken
        self._arrivals = None
        self.sample.renew()
        rows = self.chain.atom_rows(atoms)
        self.table.renew(shown.clusters, rows, live, beside=self.sample.selects)

    def state(self) -> Arrays:
        """Named arrays from which `restore` continues, bit for bit; they stay as they are."""
        shown = [self.publication, self._next_cluster, self._published_seq, self.seq]
        shown += [self.bounding.next_bundle, self.bounding.n_early]
        parts = {
            CHAIN: self.chain.state(),
            TABLE: self.table.state(),
            DRAWS: self._draws.state(),
            GROUPS: self.groups.state(),
            ATOMS: self.atom_table.state(),
            MEMORY: self.forgetting.state(),
            SAMPLE: self.sample.state(),
        }
        return {
            "shown": np.array(shown),
            "cadence": cadence_row(self.cadence),
            "kernels": np.frombuffer(self.cadence.kernels.encode(), dtype=np.uint8),
            "lease_rounds": self.rounds.row(),
            "owed": np.array([self.owed, self.unshown]),
            "published_taken": np.array([self._published_taken, self._turn_taken]),
            **{
                under + name: array for under, part in parts.items() for name, array in part.items()
            },
        }

    @classmethod
    def restore(cls, state: Arrays, family: Family) -> Self:
        """Undo `state`; cadence and memory are those under which it was saved, for the replay."""
        # A stream that was saved before its kernels could be chosen had what is "auto" now.
        kernels = state["kernels"].tobytes().decode() if "kernels" in state else "auto"
        cadence = cadence_of(state["cadence"], kernels)
        shard = cls(cls.chain_of(taken_from(state, CHAIN)), family, cadence)
        shard.table = ClusterTable.restore(shard.table.family, taken_from(state, TABLE))
        shard._draws = RecentDraws.restore(taken_from(state, DRAWS))
        shard.groups = PublishedGroups.restore(taken_from(state, GROUPS))
        shard.atom_table = AtomTable.restore(taken_from(state, ATOMS))
        shard.forgetting = Forgetting.restore(taken_from(state, MEMORY))
        shard.rounds = LeaseRounds(*state["lease_rounds"].tolist())
        # An earlier Weald put nothing off, and one before this showed at once.
        owed = state["owed"].tolist() if "owed" in state else [0]
        shard.owed, shard.unshown = owed[0], bool(sum(owed[1:]))
        shown = state["shown"].tolist()
        shard.publication, shard._next_cluster, shard._published_seq, shard.seq = shown[:4]
        shard.bounding.next_bundle, shard.bounding.n_early = shown[4:]
        shard.sample = Sample.restore(taken_from(state, SAMPLE))
        # An earlier Weald took everything in, and one before this published at every turn.
        taken = state.get("published_taken", np.array([shard._published_seq]))
        shard._published_taken, shard._turn_taken = int(taken[0]), int(taken[-1])
        return shard

    def _beside(self) -> Beside:
        """What is shown beside what the model holds."""
        clusters, sizes = self.table.beside
        followed, emptied = clusters.copy(), self.table.emptied
        if len(emptied):
            held = np.setdiff1d(self.table.ids, emptied)
            rows = self.table.totals(emptied), self.table.totals(held)
            heirs = Sample.heirs(self.chain.family, self.chain.prior, *rows)
            followed[np.searchsorted(clusters, emptied)] = held[heirs]
        return Beside(clusters, sizes, followed)

    def _homes(self) -> Arrivals:
        """Where the blocks' arrivals go until something else is published."""
        if self._arrivals is None:
            self._arrivals = Arrivals.settled(
                self.chain.labels, self.atom_table, self._next_cluster, self._cluster_step
            )
        return self._arrivals

    @property
    def _cluster_step(self) -> int:
        """By which the ids of new clusters count up."""
        return 1

    def _retirements(self, touched: set[int], now: float) -> list[LineageEvent]:
        """Renew the table's rows of these clusters; events of those that have no member left."""
        return [
            LineageEvent("retire", self.publication, self.seq, now, cluster, (), size, n_moved=0)
            for cluster, size in self._regroup(touched)
        ]

    def _regroup(self, clusters: set[int]) -> list[tuple[int, int]]:
        """Sum up anew what is shown of these clusters; returns those that are retired."""
        if not clusters:
            return []
        atoms = self.atom_table.present
        atoms = atoms[np.isin(self.atom_table.cluster[atoms], list(clusters))]
        shown = self.atom_table.cluster[atoms]
        retired = self.table.clear(clusters, np.unique(shown), self.publication)
        for start in range(0, len(atoms), SUMMED_AT_A_TIME):
            part = slice(start, start + SUMMED_AT_A_TIME)
            self.table.add(shown[part], self.chain.atom_rows(atoms[part]), self.publication)
        return retired

    def _refine_in_turn(self, applied: BatchOutcome) -> None:
        """Refine, or put it off where records come first."""
        publishing = self._publication_due
        whole = self.few or publishing
        of_many = self.chain.n_atoms if publishing and not self.few else 0
        concurrent = self.refines_concurrently
        if self.pace.postpones(self.seq, of_many=of_many, concurrent=concurrent):
            applied.postponed.append(self.seq)
            # One of all atoms stands for those of a few that were put off before it.
            self.owed += whole
            return
        if whole:
            self._refine(applied, publishing=publishing)
        else:
            self._refine_in_between(applied)
        self.pace.refined(applied.refinements[-1].seconds, of_many=of_many)

    def _refine(self, applied: BatchOutcome, *, publishing: bool) -> None:
        """Refine with all kernels on all atoms, and keep the draws.

        Before a publication there are as many rounds as make up the draws that it is told from:
        how many lack, follows from the numbers of the observations, in a replay as well.
        """
        rounds, between = self._rounds_of_all(publishing=publishing)
        made = count(1)

        def keep(labels: Ids) -> None:
            if next(made) % between == 0:
                self._draws.add(labels, self._n_taken)

        refinement = self.chain.refine(rounds, keep, self.cadence.kernels)
        self._arrivals = None
        applied.refined(refinement, rounds, self.seq, self.atom_table.n_observations)

    def _rounds_of_all(self, *, publishing: bool) -> tuple[int, int]:
        """How many rounds a refinement of all atoms has, and from one draw to the next."""
        rounds = self.cadence.rounds * (1 if self.few else _WHOLE_ROUNDS)
        if not publishing or not rounds:
            return rounds, 1
        apart = MOVED_BETWEEN_DRAWS // max(self.chain.n_atoms, 1)
        between = min(max(apart, 1), MOST_ROUNDS_APART)
        return between * max(rounds, self._draws.lacking(self._n_taken, self._n_held)), between

    def _refine_in_between(self, applied: BatchOutcome) -> None:
        """Refine at a cost that does not depend on how many atoms there are."""
        raise NotImplementedError  # nobody asks where there are few

    def _publish(self, applied: BatchOutcome, now: float) -> None:
        """Show the partition that the newest draws support.

        Where workers refine, or records come first, there need not be a refinement just before.
        """
        atom_table, present = self.atom_table, self.atom_table.present
        shown = atom_table.cluster[present]
        put_off = self.cadence.mode == "workers" or self.seq in applied.postponed[-1:]
        if applied.refinements and not put_off:
            refinement = applied.refinements[-1]
            log_joints = refinement.log_joint_before, refinement.log_joint_after
        else:
            log_joints = (self.chain.log_joint(),) * 2
        beside = self._beside()
        labels = self._draws.best(
            atom_table, self.chain.labels, self._n_taken, self._n_held, self.chain.relabelled
        )
        published, events, changed = publish(
            Published(self.publication, shown, self._next_cluster),
            labels,
            Moment(self.seq, now),
            atom_table.size[present],
            beside,
        )
        parted = np.flatnonzero(published.heirs != beside.clusters)
        parting, heirs = beside.clusters[parted], published.heirs[parted]
        moved = np.concatenate([shown[changed], published.clusters[changed], parting])
        touched = set(moved.tolist())
        atom_table.cluster[present] = published.clusters
        self.publication, self._next_cluster = published.number, published.next_cluster
        self._published_seq, self.unshown = self.seq, False
        self._published_taken = self._turn_taken = self._n_taken
        self._arrivals = None
        self.sample.renew()
        base_measure, family_params = self._base_measure()
        applied.lineage += events
        applied.reassigned.append(atom_table.reassignment(self.publication, present[changed]))
        if len(parted):
            self.table.hand_over(parting, heirs)
            applied.reassigned.append(Handover(self.publication, self.seq, parting, heirs))
        self._regroup(touched | self.table.worn)
        # Groups come before the judgement, which looks at them.
        applied.certainties.append(self._told(moved))
        applied.publications.append(
            PublicationRow(
                number=self.publication,
                seq=self.seq,
                time=now,
                log_joint_before=log_joints[0],
                log_joint=log_joints[1],
                n_clusters=len(self.table),
                n_observations=atom_table.n_observations,
                prior_params=self.chain.prior.parameters(),
                base_measure=base_measure,
                family_params=family_params,
                n_atoms=self.chain.n_atoms,
                disruption=self.chain.disruption,
                warnings=self._warnings(),
            )
        )

    # What differs between mixtures and networks.

    @property
    def first_family(self) -> Family:
        """The family with which the stream began: it says what the stream takes."""
        return self.chain.family

    @property
    def judges_arrivals(self) -> bool:
        """Whether one observation may look unlike all that is known."""
        return True

    @abstractmethod
    def digest(
        self, batch: Batch, now: float, step: Step, replaces: Ids | None = None
    ) -> tuple[Batch, BatchOutcome]:
        """Apply decoded records; returns the rows that they became, and what happened."""
        ...

    def lend(self, number: int, rng: Generator, budgets: Sequence[Budget]) -> list[Lent]:
        """Give the partition out to workers, as round ``number``."""
        raise NotImplementedError(_NOT_LENT)

    def note_lent(self) -> None:
        """Replay `lend`, as far as the chain itself is concerned."""
        raise NotImplementedError(_NOT_LENT)

    def take_back(self, returns: Sequence[tuple[Ids, Ids]]) -> Refinement:
        """Take the round that is out back: atoms and labels of each lease that was returned."""
        raise NotImplementedError(_NOT_LENT)

    @property
    def round_out(self) -> int:
        """Number of the round that is out, of leases or the writer's own; 0 for none."""
        return self.rounds.out if self.concurrent is None else self.begun.out

    @property
    def refines_concurrently(self) -> bool:
        """Whether refinements of all atoms may go on beside arrivals."""
        return False

    def begin_concurrent(self, number: int) -> ConcurrentRefinement:
        """Begin a refinement of all atoms beside arrivals, as round ``number``."""
        raise NotImplementedError  # nobody asks where none may go on

    def adopt_concurrent(self, step: Step = untimed) -> BatchOutcome:
        """Take over what the refinement beside arrivals has arrived at, to be published next."""
        raise NotImplementedError  # nobody asks where none may go on

    def begin_round(self, row: AdoptionRow) -> None:
        """Replay the beginning of a round that SQL has taken back."""
        if row.is_own:
            self.begin_concurrent(row.round_number)
        else:
            self.rounds.begin(row.round_number, self.seq, self.publication)
            self.note_lent()

    def adopt_round(self, payload: Arrays) -> None:
        """Take back the round that is out as SQL keeps it."""
        if self.concurrent is None:
            self.take_back(unpacked(payload))
        else:
            self.concurrent.run()
            self.adopt_concurrent()

    def forget_lent(self) -> None:
        """Go on as if no round were out; its returns are late from now on."""
        self.rounds.abandon()

    @abstractmethod
    def remove(self, seqs: Ids, applied: BatchOutcome, now: float) -> None:
        """Take observations out of the model, by number; those that are not there are passed over.

        What happened is added to `applied`. Clusters without any left are retired.
        """
        ...

    @classmethod
    @abstractmethod
    def chain_of(cls, saved: Arrays) -> Chain:
        """The chain whose state this is."""
        ...

    @abstractmethod
    def _insert(self, rows: IncomingRows, now: float, applied: BatchOutcome) -> None:
        """Take rows in, and give each the cluster that its block is shown in."""

    @abstractmethod
    def _forget(self, applied: BatchOutcome, now: float) -> None:
        """Let time pass: weights shrink, and what is too old or weighs too little leaves."""
        ...

    @abstractmethod
    def _compact(self, applied: BatchOutcome) -> None:
        """Make room for the observations until the next refinement."""

    @abstractmethod
    def _expand(self, applied: BatchOutcome) -> None:
        """Take apart again what no longer looks like one."""

    def _base_measure(self) -> tuple[dict[str, float], dict[str, Any]]:
        """What has been learned of the family's base measure: in a few numbers, and all of it."""
        return {}, {}

    def _look_again(self, _applied: BatchOutcome, _now: float) -> None:
        """See all observations anew, where what is left out of them has begun to say something."""
        return

    def _warnings(self) -> list[str] | None:
        """What speaks against the partition that is shown; None where nobody can say."""
        return None

    def _told(self, _moved: Ids) -> Certainty:
        """How sure the draws are of what is shown, and which clusters make a group."""
        return self._draws.certainty(self.atom_table)
