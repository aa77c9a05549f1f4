"""The writer's state where a stream is a mixture: observations are atoms, alone or compacted."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.chain.chain import MixtureChain
from weald.mcmc.chain.concurrent_refinement import ConcurrentRefinement
from weald.mcmc.chain.growing import taken_from
from weald.mcmc.hyperparameters.learner import hyperprior_of, learner_of_hyperprior
from weald.mcmc.leases.leases import Budget
from weald.mcmc.leases.outstanding import Lent
from weald.mcmc.offline.base_from_sample import clusters_elsewhere
from weald.mcmc.offline.resolution import moved
from weald.mcmc.schedule.kernel_report import Refinement
from weald.mcmc.settings import RefinementSettings
from weald.storage.commit.commit import Certainty, Departure, ModelRow, Revision, StreamSpec
from weald.stream.publication.certainty import RecentDraws
from weald.stream.publication.judgement import say_more_than_one, warnings_of
from weald.stream.publication.publication import births
from weald.stream.record.record import Batch
from weald.stream.record.schema import Schema
from weald.stream.settings import MemorySettings, SchemaSettings
from weald.stream.tables.atom_table import AtomTable
from weald.stream.telemetry.steps import Step, untimed
from weald.stream.warm_up.stored_family import family_of
from weald.stream.warm_up.stored_transformation import log_moves_of, moves_of, transformation_of
from weald.treecore.family import spec_of
from weald.treecore.family.interface.base import Family
from weald.treecore.family.same_kind import with_parameters

from .batch_outcome import BatchOutcome
from .lease_rounds import LeaseRounds
from .left_out import MOST_SEEN_ANEW, SAMPLE_RECORDS, LeftOut, begun_to_vary
from .rows import IncomingRows
from .shard import Arrays, Ids, Shard

__all__ = ["FEW_ATOMS", "MixtureShard"]

Values = NDArray[np.float64]

PUBLISHED_FAMILY, LEFT_OUT, NEXT_LOOK = "published_family", "left_out.", "next_look"
# Observations after which clusters are looked for elsewhere, where those that there are say no more
# than one of all; and again after twice as many.
FIRST_LOOK = 500
# Of so many atoms every refinement moves all.
FEW_ATOMS = 5000


class _Anew(NamedTuple):
    """A model of these atoms (n), as it sees them (n, q), and their blocks (n) as it begins."""

    family: Family
    learner: Any
    atoms: Ids
    values: Values
    labels: Ids
    spec: StreamSpec | None
    reason: str


class MixtureShard(Shard):
    """One mixture's model in memory; see :class:`~weald.stream.model.shard.Shard`."""

    chain: MixtureChain

    def __init__(
        self,
        chain: MixtureChain,
        family: Family,
        cadence: RefinementSettings,
        memory: MemorySettings | None = None,
    ) -> None:
        super().__init__(chain, family, cadence, memory)
        self.left_out = LeftOut()
        self.next_look = FIRST_LOOK
        # Records taken in when the refinement beside arrivals began.
        self._begun_taken = 0

    @property
    def first_family(self) -> Family:
        """The family with which the stream began: it says what the stream takes."""
        family: Family = self.chain.first_family
        return family

    def state(self) -> Arrays:
        """Named arrays from which `restore` continues, bit for bit."""
        arrays = super().state()
        arrays |= {LEFT_OUT + name: array for name, array in self.left_out.state().items()}
        arrays[NEXT_LOOK] = np.array([self.next_look])
        if self.chain.learner is not None:
            family = self.table.family
            words = json.dumps(spec_of(family).parameters(family)).encode()
            arrays[PUBLISHED_FAMILY] = np.frombuffer(words, dtype=np.uint8)
        return arrays

    @classmethod
    def restore(cls, state: Arrays, family: Family) -> Self:
        """Undo `state`; cadence and memory are those under which it was saved, for the replay."""
        shard = super().restore(state, family)
        shard.left_out = LeftOut.restore(taken_from(state, LEFT_OUT))
        if NEXT_LOOK in state:  # an earlier Weald looked at nothing
            shard.next_look = int(state[NEXT_LOOK][0])
        if PUBLISHED_FAMILY in state:
            shard.show_under(json.loads(state[PUBLISHED_FAMILY].tobytes()))
        return shard

    def show_under(self, parameters: Mapping[str, Any]) -> None:
        """Take what is shown to be of a publication with these hyperparameters of the family."""
        self.table.family = with_parameters(self.chain.family, parameters)

    @classmethod
    def chain_of(cls, saved: Arrays) -> MixtureChain:
        """The chain whose state this is."""
        return MixtureChain.restore(saved)

    def digest(
        self, batch: Batch, now: float, step: Step, replaces: Ids | None = None
    ) -> tuple[Batch, BatchOutcome]:
        """Apply decoded records, each of which is a row."""
        times = batch.event_time
        return batch, self.apply(batch.values, now, step, times=times, replaces=replaces)

    def lend(self, number: int, rng: Generator, budgets: Sequence[Budget]) -> list[Lent]:
        """Give the partition out to workers, as round ``number``."""
        self.rounds.begin(number, self.seq, self.publication)
        return self.chain.lend(rng, budgets)

    def take_back(self, returns: Sequence[tuple[Ids, Ids]]) -> Refinement:
        """Take the round that is out back: atoms and labels of each lease that was returned."""
        refinement = self.chain.adopt(returns)
        self.rounds.end()
        self._arrivals = None
        self._draws.add(self.chain.labels, self._n_taken)
        return refinement

    def note_lent(self) -> None:
        """Replay `lend`, as far as the chain itself is concerned."""
        self.chain.note_lent()

    def forget_lent(self) -> None:
        """Go on as if no round were out; its returns are late from now on."""
        self.chain.forget_lent()
        if self.concurrent is not None:
            self.concurrent.stop()
            self.chain.drop_concurrent()
            self.concurrent = None
        super().forget_lent()

    @property
    def refines_concurrently(self) -> bool:
        """Whether refinements of all atoms may go on beside arrivals: of many that stay apart."""
        alone = self.forgetting.settings.bundle_budget is None
        inline = self.cadence.mode == "inline" and self.cadence.rounds > 0
        return inline and alone and not self.few

    def begin_concurrent(self, number: int) -> ConcurrentRefinement:
        """Begin a refinement of all atoms beside arrivals, as round ``number``."""
        rounds = self._rounds_of_all(publishing=True)
        self.begun = LeaseRounds(number, self.rounds.taken, self.seq, self.publication)
        self.concurrent = self.chain.begin_concurrent(number, *rounds, self.cadence.kernels)
        self._begun_taken = self._n_taken
        return self.concurrent

    def adopt_concurrent(self, step: Step = untimed) -> BatchOutcome:
        """Take over what the refinement beside arrivals has arrived at, to be published next."""
        if self.concurrent is None:
            raise RuntimeError("no refinement goes on beside arrivals")
        done, self.concurrent = self.concurrent, None
        applied = BatchOutcome()
        with step("adopt"):
            refinement, draws = self.chain.adopt_concurrent(done)
            self.rounds = self.begun
            self.rounds.end()
            for draw in draws:
                self._draws.add(draw, self._begun_taken)
            self._arrivals = None
            self.owed = max(self.owed - 1, 0)
            held = self.atom_table.n_observations
            applied.refined(refinement, done.n_rounds, self.seq, held)
        self.unshown = True
        return applied

    def remove(self, seqs: Ids, applied: BatchOutcome, now: float) -> None:
        """Take observations out of the model, by number; those that are not there are passed over.

        What happened is added to `applied`. Clusters without any left are retired.
        """
        self._leave(self.atom_table.atoms_of(seqs), applied, now)

    def _insert(self, rows: IncomingRows, now: float, applied: BatchOutcome) -> None:
        values, times, _ = rows
        seqs = self.seq + 1 + np.arange(len(values))
        leaves_out = self.transformation is not None and self.transformation.base.size > 0
        asked_for = leaves_out or self.forgetting.settings.bundle_budget is not None
        if self.archive is not None and asked_for:
            self.archive.arrived(self.seq + 1, values, times)
        if self.transformation is not None:
            self.left_out.note(self.transformation, values)
        values = self._seen(values, seqs)
        if self.forgetting.settings.samples and self.sample.selects:
            applied.clusters.append(self._select(seqs, values, times, applied, now))
        else:
            applied.clusters.append(self._take_in(seqs, values, times, applied, now))
        self.seq += len(values)

    def _select(
        self, seqs: Ids, values: Values, times: Values, applied: BatchOutcome, now: float
    ) -> Ids:
        """Take in those that the sample takes, let the others pass; returns clusters of all (n)."""
        # Before any of them is in: it must not matter where the stream is cut.
        self.sample.look(self.table, self.chain.prior)
        taken = self.sample.takes(seqs)
        passed, clusters = ~taken, np.empty(len(seqs), dtype=np.int64)
        if taken.any():
            clusters[taken] = self._take_in(seqs[taken], values[taken], times[taken], applied, now)
        if passed.any():
            clusters[passed] = self.sample.place(self.chain.family, values[passed])
            self.table.count_beside(clusters[passed])
            applied.passed.append(seqs[passed])
        return clusters

    def _take_in(
        self, seqs: Ids, values: Values, times: Values, applied: BatchOutcome, now: float
    ) -> Ids:
        """Insert observations (n, q) as the family sees them; returns their clusters (n)."""
        arrivals, at = self._homes(), 0
        shown = np.empty(len(values), dtype=np.int64)

        def entered(atoms: Ids, slots: Ids, likeliest: Ids) -> None:
            nonlocal at
            part = slice(at, at + len(atoms))
            shown[part], born = arrivals.place(
                slots, likeliest, lambda i: self._home_elsewhere(int(atoms[i]))
            )
            applied.lineage += births(self.publication, seqs[part][born], shown[part][born], now)
            self._next_cluster += self._cluster_step * len(born)
            self.atom_table.enter(atoms, seqs[part], times[part], shown[part])
            at += len(atoms)

        atoms = self.chain.insert(values, entered, self._moved, by_trees=self._unrefined)
        self.table.add(shown, self.chain.atom_rows(atoms), self.publication)
        if self.sample.selects:
            self.sample.entered(atoms, seqs)
        return shown

    def _home_elsewhere(self, _atom: int) -> int | None:
        """Cluster of an atom that has opened a block, if it is one that other shards have."""
        return None

    @property
    def _unrefined(self) -> bool:
        """Whether refinement is put off, or nobody refines."""
        return self.owed > 0 or self.cadence.rounds == 0

    def _moved(self, atoms: Ids, before: Ids, after: Ids) -> None:
        """Let arrivals follow these atoms from slot to slot."""
        table = self.atom_table
        self._homes().moved((before, after), table.cluster[atoms], table.size[atoms])

    def _seen(self, values: Values, seqs: Ids) -> Values:
        """Observations (n, d) of these numbers (n) as the family sees them (n, q)."""
        if self.log_moves is not None:
            values = self.log_moves.moved(values, seqs, self.sample.seed)
        if self.transformation is not None:
            values = self.transformation.seen(values)
        if self.moves is not None:
            values = moved(values, self.moves, seqs, self.sample.seed)
        return values

    def _forget(self, applied: BatchOutcome, now: float) -> None:
        """Let time pass: what is too old leaves."""
        self.remove(self.forgetting.take_replaced(), applied, now)
        if self.forgetting.settings.samples:
            self._resample(applied, now)
        if not self.forgetting.settings.forgets:
            self.forgetting.go_on(self.seq, np.empty(0), 0)
            return
        if not self.forgetting.settings.samples:
            # What a sample was shown beside is to a window like all that has left it.
            applied.lineage += self._retirements(set(self.table.emptied.tolist()), now)
            self.table.forget_beside()
        self.forgetting.advance(self.atom_table, self.seq)
        self._leave(self.forgetting.leaving(self.atom_table, self.sample.seed), applied, now)

    def _resample(self, applied: BatchOutcome, now: float) -> None:
        """Keep the sample within the budget, with room until the next refinement."""
        self.sample.renew()
        budget = self.forgetting.settings.leaf_budget or 0
        kept = max(budget - self.cadence.every_records, 0)
        leaving = self.sample.last(self.atom_table, self.chain.n_atoms - kept)
        self._leave(leaving, applied, now)

    def _leave(self, atoms: Ids, applied: BatchOutcome, now: float) -> None:
        if len(atoms) == 0:
            return
        atoms = atoms[np.argsort(self.atom_table.seq[atoms])]
        seqs, clusters = self.atom_table.seq[atoms], self.atom_table.cluster[atoms]
        applied.departures.append(Departure(self.seq, seqs))
        samples = self.forgetting.settings.samples
        emptied = self.table.take_off(clusters, self.chain.atom_rows(atoms), shown=samples)
        if self._arrivals is not None:
            sizes = self.atom_table.size[atoms]
            self._arrivals.left(self.chain.labels_of(atoms), clusters, sizes)
        for part in (self.chain.remove, self.atom_table.leave, self._draws.forget):
            part(atoms)
        if samples:
            # They are shown as before: the next publication says where those of a cluster go of
            # which nothing is held any more.
            self.sample.let_go(seqs)
            self.table.count_beside(clusters)
        else:
            applied.lineage += self._retirements(set(emptied.tolist()), now)

    @property
    def few(self) -> bool:
        """Whether every refinement may look at all atoms."""
        return self.chain.n_atoms <= FEW_ATOMS

    def _refine_in_between(self, applied: BatchOutcome) -> None:
        """Refine in windows; arrivals follow the blocks of what they moved."""
        rounds = self.cadence.rounds
        self._homes()  # as they are before anything moves
        refinement = self.chain.refine_in_windows(rounds, self._moved)
        applied.refined(refinement, rounds, self.seq, self.atom_table.n_observations)

    def _compact(self, applied: BatchOutcome) -> None:
        """Make room for the observations until the next refinement."""
        budget, room = self.forgetting.settings.bundle_budget, self.cadence.every_records
        if budget is None or self.chain.n_atoms + room <= budget:
            return
        made, gone = self.bounding.compact(
            self.chain, self.atom_table, self.publication, budget, room
        )
        self._draws.forget(gone)
        applied.reassigned += made
        if (archive := self.archive) is not None:
            archive.bundled(made)

    def _expand(self, applied: BatchOutcome) -> None:
        """Take apart again what no longer looks like one."""
        budget = self.forgetting.settings.bundle_budget
        if budget is None or self.archive is None:
            return
        ended, atoms = self.bounding.expand(
            self.chain, self.atom_table, self.archive, budget, self._seen
        )
        self._draws.forget(atoms)
        applied.reassigned += ended
        self.uncrossable |= len(ended) > 0

    def _look_again(self, applied: BatchOutcome, now: float) -> None:
        """Model all observations anew where what was learned of the first ones hides clusters.

        That is where columns that are left out have begun to say something, or where clusters say
        no more than one of all while there are others, elsewhere, that do. The chain goes on from
        its partition, or from that one; clusters and groups keep their names, and the publication
        that comes next tells what becomes of them.
        """
        if self.chain.lent:
            return
        earlier = self.spec
        if (anew := self._begun_to_vary() or self._clusters_elsewhere()) is None:
            return
        self._begin_anew(anew)
        self.uncrossable = True
        if anew.spec is None or earlier is None:
            return
        row = ModelRow(
            seq=self.seq,
            publication=self.publication,
            decided_at=now,
            family=anew.spec.family,
            seen_as=anew.spec.seen_as,
            earlier_family=earlier.family,
            earlier_seen_as=earlier.seen_as,
            reason=anew.reason,
        )
        applied.revisions.append(Revision(anew.spec, row))

    def _begun_to_vary(self) -> _Anew | None:
        """Look whether what is left out of the observations says something."""
        learned = self.transformation
        due = self.left_out.take_due(self.atom_table.n_observations)
        if not due or self.revise is None or self.spec is None or learned is None:
            return None
        atoms = self.atom_table.singles
        if self.archive is None or not self._plain(atoms):
            return None
        seqs = self.atom_table.seq[atoms]
        values = self.archive.values_of(seqs)
        if values is None:
            return None
        names = Schema.of(msgspec.convert(self.spec.schema, SchemaSettings)).features
        if (reason := begun_to_vary(learned, values, names)) is None:
            return None
        rows = np.linspace(0, len(values) - 1, min(len(values), SAMPLE_RECORDS)).astype(np.int64)
        spec = self.revise(values[rows])
        seen_by = transformation_of(spec)
        if seen_by is not None and not np.setdiff1d(seen_by.kept, learned.kept).size:
            return None
        self.see_by(spec)
        family, labels = family_of(spec), self.chain.labels_of(atoms)
        learner = learner_of_hyperprior(family, spec.hyperprior)
        return _Anew(family, learner, atoms, self._seen(values, seqs), labels, spec, reason)

    def _clusters_elsewhere(self) -> _Anew | None:
        """Look for other clusters where those that there are say nothing."""
        chain, spec = self.chain, self.spec
        if self.seq < self.next_look or chain.learner is None:
            return None
        self.next_look = 2 * self.seq
        atoms, kind = self.atom_table.singles, spec_of(chain.family)
        inline = self.cadence.mode == "inline" and self.cadence.rounds > 0
        alone = self.forgetting.settings.bundle_budget is None and self._plain(atoms)
        if kind.observations is None or not (inline and alone):
            return None
        if say_more_than_one(chain.family, self.atom_table, chain.atom_rows, self.table.totals):
            return None
        values = kind.observations(chain.family, chain.atom_rows(atoms))
        if not np.isfinite(values).all():
            return None
        there = chain.family, chain.labels_of(atoms)
        found = clusters_elsewhere(*there, kind.build({}, values), chain.prior, values)
        if found is None:
            return None
        if spec is not None:
            params, hyperprior = kind.parameters(found.family), hyperprior_of(found.learner)
            spec = replace(spec, family_params=params, hyperprior=hyperprior)
            self.see_by(spec)
        begun = found.family, found.learner, atoms, values, found.labels
        return _Anew(*begun, spec, found.reason)

    def _plain(self, atoms: Ids) -> bool:
        """Whether the model is these atoms (n), each one whole observation, and not too many."""
        whole = (self.chain.atom_rows(atoms)[:, 1] == 1.0).all()
        held = len(atoms) == self.chain.n_atoms and not len(self.table.beside[0])
        return bool(whole) and held and len(atoms) <= MOST_SEEN_ANEW

    def _begin_anew(self, anew: _Anew) -> None:
        """Put a chain of these atoms, in order of arrival, in place of the one that there is."""
        self.forget_lent()
        before, family, atoms = self.atom_table, anew.family, anew.atoms
        self.chain = self.chain.seen_anew(family, anew.learner, anew.values, anew.labels)
        ids, clusters = np.arange(len(atoms)), before.cluster[atoms]
        self.atom_table = AtomTable()
        self.atom_table.enter(ids, before.seq[atoms], before.time[atoms], clusters)
        self.table.see_under(family, clusters, self.chain.atom_rows(ids))
        self._draws = RecentDraws()
        self.groups.forget_valleys()
        self.left_out = LeftOut()
        self._arrivals = None

    def see_by(self, spec: StreamSpec) -> None:
        """Take observations as a stream's row says."""
        self.spec, self.sample.seed = spec, spec.seed
        self.transformation = transformation_of(spec)
        self.moves, self.log_moves = moves_of(spec), log_moves_of(spec)

    def _base_measure(self) -> tuple[dict[str, float], dict[str, Any]]:
        """Let what is shown be told under what has been learned; returns words and all of it."""
        family, learner = self.chain.family, self.chain.learner
        if learner is None:
            return super()._base_measure()
        self.table.measure_under(family)
        return learner.shown(family), spec_of(family).parameters(family)

    def _warnings(self) -> list[str] | None:
        """What speaks against the partition that is shown; None where nobody can say."""
        family, chain = self.chain.family, self.chain
        drawn = self._draws.timely(self._n_taken, self._n_held)
        agree = self.groups.agreement(family, self.atom_table, chain.atom_rows, drawn)
        return warnings_of(family, self.atom_table, chain.atom_rows, self.table.totals, agree)

    def _told(self, moved: Ids) -> Certainty:
        """How sure the draws are of what is shown, and which clusters make a group."""
        groups, chain = self.groups, self.chain
        groups.publish(self.publication, chain.family, self.atom_table, chain.atom_rows, moved)
        told = self._draws.certainty(self.atom_table)
        return replace(told, group=groups.group, group_born=groups.born)
