"""A chain on a growing set of observations: atoms, the forest over them, their partition.

Deterministic: the same family, prior and seed, the same observations in the same order and the same
calls of :meth:`Chain.refine` between them give the same partition, bit for bit, however the
observations were cut into batches, and across :meth:`Chain.state` and :meth:`Chain.restore`.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from weald.mcmc.estimate.consensus import Draws
from weald.mcmc.estimate.relabelling import relabelled_draws
from weald.mcmc.gibbs.gibbs import sweep as gibbs_sweep
from weald.mcmc.hyperparameters.learner import (
    Hyperprior,
    hyperprior_of,
    learner_of_hyperprior,
    stepped,
)
from weald.mcmc.leases.leases import Budget, Lease, coin_groups, concurrency, make_lease
from weald.mcmc.leases.outstanding import Lent, OutstandingLeases, merged_labels
from weald.mcmc.schedule.kernel_report import KernelReport, Refinement
from weald.mcmc.schedule.stream_kernels import stream_kernels
from weald.mcmc.state.atom_state import set_labels
from weald.treecore.errors import ObservationError
from weald.treecore.family import FAMILIES, spec_of
from weald.treecore.family.interface.base import Family, workspace
from weald.treecore.family.same_kind import n_features_of, with_parameters
from weald.treecore.forest.consolidation import consolidate
from weald.treecore.forest.forest import empty_forest, reserve
from weald.treecore.guide.guide import (
    Guide,
    copy_topology,
    freeze,
    guide_of_topology,
    measure_again,
)
from weald.treecore.partition.partition import Atoms, Model, make_atoms, require_finite
from weald.treecore.prior import PartitionPrior, build_prior
from weald.treecore.prior.base import Seating
from weald.treecore.prior.sequential import canonical_labels
from weald.treecore.statistics.room import longer, next_length
from weald.treecore.statistics.rows import Rows

from .arrival import arrive, depart, joint_weights, log_alone, replace_block
from .atom_ids import AtomIds
from .co_occurrence import CoOccurrence
from .compacting import Compaction, compact, numbered_pairs
from .concurrent_refinement import ConcurrentRefinement
from .growing import (
    empty_state,
    enlarged_state,
    forest_arrays,
    mark_all,
    restored_forest,
    restored_state,
    state_arrays,
    taken_from,
    under,
)
from .position import Position
from .refinement_run import LEARNED_EACH_ROUND, RefinementRun
from .window import Moved, WindowPosition, log_joint

__all__ = ["Entered", "MixtureChain", "Note"]

_FIRST_CAPACITY = 1024
# Of all atoms, what Gibbs sampling redraws in a round. Draws between which few atoms were redrawn
# agree without being sure.
_REDRAWN = 0.5

Arrays = dict[str, NDArray[Any]]
# What is told the atoms of arrivals, the block slot that each came into, and the one that was most
# probable for it (-1 for a new block).
Entered = Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]], None]
# Atoms, and their log marginals under some family.
Measured = tuple[NDArray[np.int64], NDArray[np.float64]]
# What is told each draw of a refinement.
Note = Callable[[NDArray[np.int64]], None]


class MixtureChain:
    """One chain; see the module. Made by :meth:`start` or :meth:`restore`."""

    def __init__(
        self,
        family: Family,
        prior: PartitionPrior,
        rng: Generator,
        learner: Hyperprior | None = None,
    ) -> None:
        self.family: Any = family
        self.prior = prior
        self.learner = learner
        self._rng = rng
        self._work = workspace(family)
        # The forest, what it takes, and the scale of reported log joints keep base measure and
        # prior as they were at the start.
        self.first_family: Any = family
        self._first_prior = prior
        self._ids = AtomIds()
        self._state = empty_state(family, _FIRST_CAPACITY)
        self._forest = empty_forest(family, _FIRST_CAPACITY)
        self._co_occurrence = CoOccurrence()
        self._doubt = np.zeros(_FIRST_CAPACITY)
        self._lending: OutstandingLeases | None = None
        # The same for a refinement that goes on beside the chain.
        self._meanwhile: OutstandingLeases | None = None

    @classmethod
    def start(
        cls,
        family: Family,
        prior: PartitionPrior,
        *,
        seed: int,
        learner: Hyperprior | None = None,
    ) -> Self:
        """An empty chain; ``learner`` learns its base measure, None where it stays."""
        return cls(family, prior, Generator(PCG64(seed)), learner)

    # Questions about it, and room.

    @property
    def n_atoms(self) -> int:
        """Atoms that are there."""
        return len(self._ids)

    @property
    def n_observations(self) -> int:
        """Observations in the atoms that are there."""
        # Each of them is in a block, and there are fewer of these.
        partition = self._state.partition
        return int(partition.size[partition.slots[: self.n_blocks]].sum())

    @property
    def n_blocks(self) -> int:
        """Open blocks of the partition."""
        return int(self._state.partition.n_blocks[0])

    @property
    def labels(self) -> NDArray[np.int64]:
        """Block slot of each atom by its id, -1 for an id that no atom has."""
        return self._state.partition.label[: self._ids.end].copy()

    def labels_of(self, atoms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Block slot of each of these atoms."""
        return self._state.partition.label[atoms]

    @property
    def atom_sizes(self) -> NDArray[np.int64]:
        """Observations in each atom by its id, 0 for an id that no atom has."""
        return self._state.atoms.size[: self._ids.end].copy()

    def atom_rows(self, atoms: NDArray[np.int64]) -> Rows:
        """Statistics rows (n, m) of these atoms; column 0 counts, column 1 sums weights."""
        return self._state.atoms.rows[atoms]

    @property
    def disruption(self) -> float:
        """Estimated total variation between the posterior and what is sampled since compactions.

        The sum of what Bayesian hierarchical clustering says against every compacted atom: an
        estimate and no bound, for it knows partitions along the trees only.
        """
        return min(float(self._doubt.sum()), 1.0)

    def torn(self) -> NDArray[np.int64]:
        """Compacted atoms that look as if they should be several, by id.

        Those that none of the other atoms has accompanied through the newest sweeps: what was
        compacted had been together with its like for long, and no longer is.
        """
        present = self._present()
        return present[
            self._co_occurrence.wanderers(present) & (self._state.atoms.size[present] > 1)
        ]

    def _model(self, n_more: int, n_opened: int = 0) -> Model:
        """What places ``n_more`` observations beside those that are there.

        So many blocks may be opened by others than these.
        """
        return Model(self.family, self._seating(self.prior, n_more, n_opened), self._work)

    def _first_model(self, n_more: int) -> Model:
        """The same as it was at the start: the forest knows nothing of what has been learned."""
        return Model(self.first_family, self._seating(self._first_prior, n_more), self._work)

    def _seating(self, prior: PartitionPrior, n_more: int, n_opened: int = 0) -> Seating:
        n = self.n_observations + n_more
        return prior.seating(max(n, 1), self.n_blocks + n_more + n_opened)

    def _use_family(self, family: Family, measured: Measured | None = None) -> None:
        """Go on under the family with another base measure, under which some are ``measured``."""
        if family is self.family:
            return
        self.family = family
        mark_all(self._state.partition)
        lacking = self._forest.leaf >= 0
        if measured is not None:
            ids, log_marginals = measured
            self._state.atoms.log_marginal[ids] = log_marginals
            lacking[ids] = False
        self._weigh(np.flatnonzero(lacking))

    def _weigh(self, ids: NDArray[np.int64]) -> None:
        """Bring the log marginals of these atoms in order, where they are not the forest's."""
        if self.family is not self.first_family:
            atoms = self._state.atoms
            weighed = make_atoms(self.family, atoms.rows[ids], atoms.size[ids], self._work)
            atoms.log_marginal[ids] = weighed.log_marginal

    def _in_forest(self) -> NDArray[np.int64]:
        """Ids of the atoms that are there, those included that are in no block for the moment."""
        return np.flatnonzero(self._forest.leaf >= 0)

    def _reserve(self, n: int) -> None:
        # One row beyond the last atom is kept for questions.
        capacity = self._state.atoms.size.shape[0]
        if n + 1 > capacity:
            capacity = next_length(capacity, n + 1)
            self._state = enlarged_state(self._state, capacity)
            self._doubt = longer(self._doubt, capacity)
        self._forest = reserve(self._forest, n)

    def _present(self) -> NDArray[np.int64]:
        """Ids of the atoms that are there, rising."""
        return np.flatnonzero(self._state.partition.label[: self._ids.end] >= 0)

    def _give_back(self, ids: NDArray[np.int64]) -> None:
        self._doubt[ids] = 0.0
        self._ids.give_back(ids)

    @property
    def _outstanding(self) -> list[OutstandingLeases]:
        """What has to hear of atoms that come and go."""
        return [each for each in (self._lending, self._meanwhile) if each is not None]

    # Observations come and go.

    def insert(
        self,
        values: NDArray[np.float64],
        entered: Entered | None = None,
        moved: Moved | None = None,
        *,
        by_trees: bool = False,
    ) -> NDArray[np.int64]:
        """Insert observations (n, d) in order; returns their atoms' ids, valid until removed.

        Each gets a leaf of the forest, and a block by one draw from its conditional. With
        ``by_trees``, and unless leases are out, those that are in one tree and block with it may
        then move as one (`tree_placement`): it makes up for refinement that does not come.
        ``entered`` is told of arrivals, in order, with the blocks that they came into and those
        that were most probable for them, and ``moved`` in between of older atoms that one of them
        moved.

        Raises ObservationError, with nothing inserted, when the family cannot take one of them.
        """
        values = np.ascontiguousarray(values, dtype=np.float64)
        # What is refused does not depend on what has been learned.
        refused = spec_of(self.first_family).validate(self.first_family, values)
        if refused is not None:
            raise ObservationError(f"observation {refused[0]}: {refused[1]}")
        n = values.shape[0]
        forest_model = self._first_model(n)
        # Before anything is reserved: a refused batch leaves the chain as it was, bit for bit.
        require_finite(log_alone(forest_model, self._state, values))
        ids = self._ids.take(n)
        self._reserve(self._ids.end)
        # A prior that is no product weighs blocks by how many observations there are: each arrival
        # needs a table of its own, or its block would depend on how the stream was cut.
        is_product = forest_model.seating.is_product
        at, label = 0, self._state.partition.label
        likeliest = np.empty(n, dtype=np.int64)
        while at < n:
            part = slice(at, n if is_product else at + 1)
            # One that comes may open a block, and one may be opened by its tree.
            model = self._model(ids[part].shape[0], n_opened=1)
            done, n_moved, before, after = arrive(
                self._rng,
                forest_model,
                model,
                self._forest,
                self._state,
                values[part],
                ids[part],
                likeliest[part],
                by_trees and self._lending is None,
            )
            come, best, at = ids[at : at + done], likeliest[at : at + done], at + done
            if n_moved == 0:
                if entered is not None:
                    entered(come, label[come], best)
                continue
            # The last of them moved these, and maybe itself; the others came before that.
            older = self._state.members[:n_moved]
            older = older[older != come[-1]]
            best[-1] = label[come[-1]]
            if entered is not None:
                slots = np.where(np.isin(come[:-1], older), before, label[come[:-1]])
                entered(come[:-1], slots, best[:-1])
            if moved is not None and older.shape[0]:
                moved(older.copy(), np.full(older.shape, before), np.full(older.shape, after))
            if entered is not None:
                entered(come[-1:], label[come[-1:]], best[-1:])
        self._co_occurrence.arrive(ids)
        for outstanding in self._outstanding:
            outstanding.insert(ids)
        return ids

    def remove(self, atoms: NDArray[np.int64]) -> None:
        """Take atoms out, exactly: as if their observations had never been in their blocks.

        The forest's statistics are sums of what is left, so nothing of the observations stays; the
        blocks' are differences until the next refinement sums them afresh. What is left of the
        partition is a valid state of a chain for the remaining observations, not a draw from their
        posterior: refinement makes up for it (``tgmcmc-ibhc.md`` section 7).

        Parameters
        ----------
        atoms : ndarray of int64, shape (n,)
            Ids from :meth:`insert`. They are given to later atoms.

        Raises
        ------
        ObservationError
            With nothing removed, when an id is named twice or no atom has it.
        """
        ids = np.ascontiguousarray(atoms, dtype=np.int64)
        self._ids.require(ids)
        depart(self._first_model(0), self._forest, self._state, ids)
        self._give_back(ids)
        for outstanding in self._outstanding:
            outstanding.remove(ids)

    def seen_anew(
        self,
        family: Family,
        learner: Hyperprior | None,
        values: NDArray[np.float64],
        labels: NDArray[np.int64],
    ) -> Self:
        """Return the chain that goes on with the same observations, seen otherwise.

        The random numbers go on, and so does what has been learned of the prior. The partition is
        the one that is there, or that which the observations come to as they arrive anew, whichever
        is more probable.

        Parameters
        ----------
        family, learner
            As for :meth:`start`.
        values : ndarray of float64, shape (n, d)
            All observations, in order: their atoms get the ids from 0 to n - 1.
        labels : ndarray of int64, shape (n,)
            The block that each is in.
        """
        chain = type(self)(family, self._first_prior, self._rng, learner)
        chain.prior = self.prior
        chain.insert(values)
        chain.prefer(canonical_labels(labels))
        return chain

    def prefer(self, labels: NDArray[np.int64]) -> None:
        """Go on from these canonical labels (n) by atom id where they are at least as probable."""
        here, log_joint = self.labels, self.log_joint()
        self._settle(labels)
        if self.log_joint() < log_joint:
            self._settle(here)

    # Making less of it: here no random number is drawn.

    def compact(self, n_atoms: int, tags: NDArray[np.int64], n_most: int) -> Compaction:
        """Make fewer atoms of those that are there, where they are in one block.

        The partition stays. What is sampled from then on is the posterior given that the
        observations in an atom stay together; :attr:`disruption` estimates what that costs.

        Parameters
        ----------
        n_atoms : int
            How many should be left. More are where more than so many subtrees are in several
            blocks.
        tags : ndarray of int64, shape (n,)
            By atom id: only atoms with equal tags become one.
        n_most : int
            How many may be left: to get there leaves are joined that are in one block, but are no
            neighbours in the forest. More are where there are more blocks and tags: the partition
            is never bent to save memory.
        """
        fewer = self.n_atoms - n_atoms, self.n_atoms - n_most
        if fewer[0] <= 0:
            return Compaction([], 0)
        present = self._present()
        groups = np.full((2, self._ids.end), -1, dtype=np.int64)
        groups[0, present] = numbered_pairs(self.labels[present], tags[present])
        groups[1, present] = numbered_pairs(groups[0, present], self._co_occurrence.groups(present))
        models = (
            self._first_model(0),
            self._first_model(0)._replace(seating=self._seating(self.prior, 0)),
        )
        done = compact(models, self._forest, self._state, groups, self._doubt, fewer)
        stand = np.array([each.atom for each in done.compacted], dtype=np.int64)
        self._weigh(stand)
        members = [each.members[1:] for each in done.compacted]
        self._give_back(np.concatenate([np.empty(0, dtype=np.int64), *members]))
        self._co_occurrence.compacted(stand)
        return done

    def expand(self, atom: int, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Put the observations (n, d) that were compacted into an atom in its place.

        The partition stays: they are in the block where it was. Returns their ids, which may
        include the atom's own. Raises ObservationError when they are not as many as it stands for.
        """
        size = int(self.atom_sizes[atom]) if 0 <= atom < self._ids.end else 0
        if size == 0 or values.shape[0] != size:
            raise ObservationError(f"atom {atom} has {size} observations, not {values.shape[0]}")
        self._give_back(np.array([atom]))
        ids = self._ids.take(size)
        self._reserve(self._ids.end)
        models = self._first_model(0), self._model(0)
        values = np.ascontiguousarray(values, dtype=np.float64)
        replace_block(*models, self._forest, self._state, atom, values, ids)
        self._co_occurrence.arrive(ids)
        return ids

    # Refinement.

    def _freeze(self, model: Model) -> Guide:
        # Topology from the first model's potentials: the guide must not follow the chain.
        first_model = self._first_model(0)._replace(work=model.work)
        consolidate(first_model, self._forest)
        guide, present = freeze(first_model, self._forest), self._present()
        atom = self._places(present)[guide.atom]
        return guide._replace(atom=atom, position=guide.position[present])

    def _places(self, present: NDArray[np.int64]) -> NDArray[np.int64]:
        """The place of each atom, by its id, among those that are there; -1 for the others."""
        place = np.full(self._forest.leaf.shape[0], -1, dtype=np.int64)
        place[present] = np.arange(present.shape[0])
        return place

    def _copied_atoms(self, present: NDArray[np.int64]) -> Atoms:
        """The atoms that are there, without gaps, in the order of their ids."""
        atoms = self._state.atoms
        return Atoms(
            atoms.size[present],
            atoms.rows[present],
            atoms.log_marginal[present],
            atoms.single[present],
        )

    def _position(self) -> Position:
        """Where the chain stands, its atoms numbered without gaps in the order of their ids."""
        present = self._present()
        return self._position_of(present, self._copied_atoms(present), self._freeze)

    def _position_of(
        self, present: NDArray[np.int64], atoms: Atoms, make_guide: Callable[[Model], Guide]
    ) -> Position:
        return Position(
            self.family,
            atoms,
            self.labels[present],
            self.prior,
            make_guide,
            learner=self.learner,
            first_family=self.first_family,
        )

    def _by_id(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Labels of the atoms that are there, put at their ids."""
        full = np.full(self._ids.end, -1, dtype=np.int64)
        full[self._present()] = labels
        return full

    def relabelled(self, draws: Draws) -> Draws:
        """Draws (t, n) of the atoms that are there with each where it is most probable.

        See :func:`~weald.mcmc.estimate.relabelling.relabelled_draws`; no random number is drawn.
        """
        atoms, present, end = self._state.atoms, self._present(), self._ids.end
        # Nothing of them changes: they need no copy.
        rows, log_marginal = atoms.rows[:end], atoms.log_marginal[:end]
        every = Atoms(atoms.size[:end], rows, log_marginal, atoms.single[:end])
        seating = self.prior.seating(self.n_observations, present.shape[0])
        places = None if present.shape[0] == end else present
        return relabelled_draws(draws, every, Model(self.family, seating, self._work), places)

    def log_joint(self) -> float:
        """Log of prior times likelihood of the partition, under what it started with."""
        if not self.n_atoms:
            return 0.0
        # By the sums that blocks keep: whoever publishes asks, however many atoms there are.
        partition, family = self._state.partition, self.first_family
        return log_joint(self._model(0), partition, family, self._first_prior)

    def refine(
        self, rounds: int = 1, note: Note | None = None, kernels: str = "auto"
    ) -> Refinement:
        """Rounds of hyperparameter updates and every kernel; deterministic given the RNG.

        ``kernels`` are the comma-joined names that `stream_kernels` knows.
        ``note`` is told the draw that each round ends in: the block of every atom by its id, -1
        for an id that none has.
        """
        walk = RefinementRun(self._first_prior)
        if self.n_atoms:
            position, present = self._position(), self._present()
            schedule = stream_kernels(kernels, _REDRAWN)
            for _ in walk.rounds(self._rng, position, schedule, rounds):
                self._co_occurrence.note(present, position.labels())
                if note is not None:
                    note(self._by_id(position.labels()))
                if present.shape[0] > LEARNED_EACH_ROUND:
                    position.learner = None
            self.prior = position.prior
            self._settle(self._by_id(position.labels()))
            self._use_family(position.family)
        return walk.refinement(self.n_blocks)

    def refine_in_windows(self, rounds: int, moved: Moved) -> Refinement:
        """Rounds of hyperparameter updates and Gibbs sampling on a window of the atoms, in place.

        What a round costs does not depend on how many atoms there are. `CoOccurrence` is told
        nothing: a window is no sweep. ``moved`` is told what each round moved.
        """
        began, n_steps = time.perf_counter(), 0
        before = after = 0.0
        if self.n_atoms and rounds:
            model = self.family, self.prior, self._work
            first = self.first_family, self._first_prior
            position = WindowPosition(model, self._state, self._ids.end, moved)
            before = position.log_joint(*first)
            for _ in range(rounds):
                position.resample(self._rng)
                n_steps += position.sweep(self._rng)
            self.prior = position.prior
            after = position.log_joint(*first)
        seconds = time.perf_counter() - began
        report = KernelReport("gibbs", "exact", n_steps, n_steps, 0.0, after - before, seconds)
        return Refinement(before, after, self.n_blocks, (report,), seconds)

    def lend(self, rng: Generator, budgets: Sequence[Budget]) -> list[Lent]:
        """Deal the blocks out by coins to a lease for each budget, or as many as the prior allows.

        Draws from ``rng``, not from the chain's generator; each lease gets its budget with a seed
        of its own. The budgets are fixed before the coins are thrown, so that which kernels a block
        meets says nothing about it. Until :meth:`adopt` the chain takes arrivals and removals as
        ever.
        """
        position = self._position()
        guide = self._freeze(position.model)
        self._lending = OutstandingLeases()
        labels, present = position.labels(), self._present()
        n_leases = concurrency(self.prior, self.n_observations, len(budgets))
        lent = []
        for budget, atoms in zip(budgets, coin_groups(rng, labels, n_leases), strict=False):
            seed = int(rng.integers(2**63))
            if atoms.shape[0]:
                own = budget._replace(seed=seed)
                model = (self.family, self.prior)
                lease = make_lease(model, guide, labels, (atoms, n_leases), own)
                lent.append(Lent(present[atoms], lease))
        return lent

    def note_lent(self) -> None:
        """Replay :meth:`lend`, as far as the chain itself is concerned."""
        self._freeze(self._position().model)
        self._lending = OutstandingLeases()

    def forget_lent(self) -> None:
        """Go on as if nothing had been lent."""
        self._lending = None

    @property
    def lent(self) -> bool:
        """Whether leases are out."""
        return self._lending is not None

    def hold(self) -> None:
        """Begin a round whose leases are made later, of atoms that are there now."""
        self._lending = OutstandingLeases()

    @property
    def held(self) -> NDArray[np.int64]:
        """Atoms that were there when the round began and still are; all where none is out."""
        present = self._present()
        if self._lending is None:
            return present
        arrived = np.fromiter(self._lending.arrived, dtype=np.int64)
        return present[~np.isin(present, arrived)]

    def learn(self, family: Family, prior: PartitionPrior) -> None:
        """Go on under hyperparameters that were drawn elsewhere."""
        self.prior = prior
        self._use_family(family)

    def tidy(self) -> None:
        """Put the trees in order, as it is done for a lease."""
        self._freeze(self._model(0))

    def lease_of(
        self,
        atoms: NDArray[np.int64],
        labels: NDArray[np.int64],
        n_leases: int,
        budget: Budget,
    ) -> Lease:
        """Lease of these atoms (u) with these labels (u), as one of ``n_leases`` by coins."""
        present = self._present()
        guide, own = self._freeze(self._model(0)), np.searchsorted(present, atoms)
        every = np.zeros(present.shape[0], dtype=np.int64)
        every[own] = labels
        return make_lease((self.family, self.prior), guide, every, (own, n_leases), budget)

    def adopt(
        self,
        returns: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
        *,
        learns: bool = True,
    ) -> Refinement:
        """End the round that :meth:`lend` or :meth:`hold` began.

        See :mod:`weald.mcmc.leases.outstanding`.

        Parameters
        ----------
        returns:
            For each lease that came back its atoms and their labels (u each); the blocks of the
            others stay as they were.
        learns:
            Whether hyperparameters are drawn; not where these are drawn elsewhere.
        """
        if self._lending is None:
            raise ValueError("nothing is lent")
        began = time.perf_counter()
        lending, self._lending = self._lending, None
        before = self.log_joint()
        self._settle(merged_labels(lending, self.labels, returns))
        partition = self._state.partition
        sizes = partition.size[partition.slots[: self.n_blocks]]
        if learns and sizes.shape[0]:
            self.prior = self.prior.resample(self._rng, sizes)
        if learns and sizes.shape[0] and self.learner is not None:
            rows = self.block_statistics()[1]
            self._use_family(stepped(self.learner, self._rng, self.family, rows))
        self._insert_again(lending)
        after = self.log_joint()
        seconds = time.perf_counter() - began
        return Refinement(before, after, self.n_blocks, (), seconds)

    def _insert_again(self, outstanding: OutstandingLeases) -> None:
        """Give those that came meanwhile a block, in their order, by one draw each."""
        arrived = np.fromiter(outstanding.arrived, dtype=np.int64, count=len(outstanding.arrived))
        # As in insert: a prior that is no product needs a table for each number of observations.
        n, at, size = self.n_observations, 0, self._state.atoms.size
        while at < arrived.shape[0]:
            rest = arrived.shape[0] - at
            seating = self.prior.seating(n + int(size[arrived[at]]), self.n_blocks + rest)
            part = arrived[at : at + (rest if seating.is_product else 1)]
            gibbs_sweep(self._rng, self._state, Model(self.family, seating, self._work), part)
            n += int(size[part].sum())
            at += part.shape[0]

    # Refinement of all atoms beside arrivals.

    def begin_concurrent(
        self, number: int, rounds: int, every: int, kernels: str = "auto"
    ) -> ConcurrentRefinement:
        """Make what refines all atoms, of which there must be some, on copies of them.

        The chain is left as it was, so that a refinement that is dropped has never been; what it
        needs of likelihoods it computes where it runs. Its random numbers are its own: they follow
        from where the chain's stand and from ``number``, which no other refinement has. Until
        :meth:`adopt_concurrent` or :meth:`drop_concurrent` the chain takes arrivals and removals
        as ever.

        Parameters
        ----------
        number : int
        rounds : int
        every : int
            Rounds from one draw that is kept to the next.
        kernels : str
            As for :meth:`refine`.
        """
        entropy = int(self._rng.bit_generator.state["state"]["state"])
        topology = copy_topology(self._first_model(0), self._forest)
        present = self._present()
        places, atoms = self._places(present), self._copied_atoms(present)
        learned = self.family is not self.first_family

        def measured(first_model: Model) -> Guide:
            # The position holds this. Were it held here, it would wait for Python's collector.
            atom = np.where(topology.atom < 0, topology.atom, places[topology.atom])
            guide = guide_of_topology(topology._replace(atom=atom), atoms)
            # Under what has been learned the position measures it in any case.
            if not learned:
                measure_again(first_model, guide)
            return guide

        position = self._position_of(present, atoms, measured)
        self._meanwhile = OutstandingLeases()
        return ConcurrentRefinement(
            position,
            present,
            Generator(PCG64(SeedSequence([entropy, number]))),
            stream_kernels(kernels, _REDRAWN),
            self._first_prior,
            (rounds, every),
        )

    def drop_concurrent(self) -> None:
        """Go on as if no refinement had begun beside arrivals."""
        self._meanwhile = None

    def adopt_concurrent(
        self, done: ConcurrentRefinement
    ) -> tuple[Refinement, list[NDArray[np.int32]]]:
        """Take over what a refinement has arrived at; returns what it did, and its draws.

        It counts as having happened when it began, as a round of leases does: see
        :mod:`weald.mcmc.leases.outstanding`. A draw is the block of every atom by its id, -1 for
        an id that none had then, or that it has no more. Log joints are told of all that is here.
        """
        if self._meanwhile is None:
            raise ValueError("no refinement goes on beside arrivals")
        meanwhile, self._meanwhile = self._meanwhile, None
        consolidate(self._first_model(0), self._forest)
        self._settle(merged_labels(meanwhile, self.labels, [(done.atoms, done.labels)]))
        self.prior = done.prior
        self._use_family(done.family, self._measured_alike(meanwhile, done))
        self._insert_again(meanwhile)
        here = WindowPosition(
            (self.family, self.prior, self._work), self._state, self._ids.end, lambda *_: None
        )
        after = here.log_joint(self.first_family, self._first_prior)
        gain = done.refinement.log_joint_after - done.refinement.log_joint_before
        told = replace(
            done.refinement,
            log_joint_before=after - gain,
            log_joint_after=after,
            n_blocks=self.n_blocks,
        )
        gone = np.fromiter(meanwhile.gone, dtype=np.int64, count=len(meanwhile.gone))
        return told, done.draws_without(gone)

    def _measured_alike(self, meanwhile: OutstandingLeases, done: ConcurrentRefinement) -> Measured:
        """Atoms that were there when the refinement began, with their log marginals."""
        stayed = meanwhile.stayed(done.atoms)
        return done.atoms[stayed], done.measured.log_marginal[stayed]

    def _settle(self, labels: NDArray[np.int64]) -> None:
        """Take over a partition, with every block's statistics summed afresh."""
        fresh = empty_state(self.family, self._state.atoms.size.shape[0])
        self._state = fresh._replace(atoms=self._state.atoms)
        set_labels(self._state.atoms, self._state.partition, labels)

    # Predictions.

    def block_statistics(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Slots (k) of the open blocks and their statistics rows (k, m)."""
        partition = self._state.partition
        slots = partition.slots[: self.n_blocks].copy()
        return slots, partition.rows[slots].copy()

    def log_weights(
        self, values: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Slots (k) of the blocks, and for each of the observations (q, d) log weights (q, k + 1).

        A weight is prior times predictive density of joining that block, the last that of a new
        one; normalised over a row they are the probabilities of the assignment. Nothing changes.
        """
        values = np.ascontiguousarray(values, dtype=np.float64)
        self._reserve(self._ids.end)
        k = self.n_blocks
        weights = np.empty((values.shape[0], k + 1))
        joint_weights(self._model(1), self._state, values, weights)
        return self._state.partition.slots[:k].copy(), weights

    # Saving.

    def state(self) -> Arrays:
        """Everything, as plain arrays; :meth:`restore` continues bit for bit."""
        spec = spec_of(self.family)
        about = {
            "family": spec.name,
            "prior": [self.prior.name, self.prior.parameters()],
            "first_prior": [self._first_prior.name, self._first_prior.parameters()],
            "rng": self._rng.bit_generator.state,
            # An empty chain is saved with its family too, which cannot be built without it.
            "n_features": n_features_of(self.family),
            "end": self._ids.end,
        }
        if self.learner is not None:
            about["hyperprior"] = hyperprior_of(self.learner)
        if self.family is self.first_family:
            about["parameters"] = spec.parameters(self.family)
        else:
            # A Weald that knows of one family only must not take it for the forest's.
            about["learned_parameters"] = spec.parameters(self.family)
            about["first_parameters"] = spec.parameters(self.first_family)
        # Integers of 128 bits survive JSON as they are.
        encoded = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
        saved: Arrays = {"about": encoded, "free": self._ids.free}
        saved["doubt"] = self._doubt[: self._ids.end].copy()
        saved |= under("forest_", forest_arrays(self.first_family, self._forest))
        saved |= under("state_", state_arrays(self._state, self._ids.end))
        # Streams saved it by that name before it had its present one.
        saved |= under("company_", self._co_occurrence.state(self._ids.end))
        if self._lending is not None:
            saved |= self._lending.arrays()
        return saved

    @classmethod
    def restore(cls, saved: Arrays) -> Self:
        """The chain whose :meth:`state` this is."""
        about = json.loads(saved["about"].tobytes())
        sample = np.empty((0, about["n_features"]))
        learned = "learned_parameters" in about
        parameters = about["learned_parameters" if learned else "parameters"]
        family = FAMILIES[about["family"]].build(parameters, sample)
        bits = PCG64()
        bits.state = about["rng"]
        # A stream that was saved before it could learn its base measure goes on without.
        learner = learner_of_hyperprior(family, about.get("hyperprior"))
        chain = cls(family, build_prior(*about["prior"]), Generator(bits), learner)
        if learned:
            chain.first_family = with_parameters(family, about["first_parameters"])
        chain._first_prior = build_prior(*about["first_prior"])
        chain._ids = AtomIds(about["end"], saved["free"])
        chain._lending = OutstandingLeases.restore(saved)
        first_model = chain._first_model(0)
        chain._forest = restored_forest(family, first_model, taken_from(saved, "forest_"))
        chain._state = restored_state(family, chain._forest, taken_from(saved, "state_"))
        chain._weigh(chain._in_forest())
        room = chain._state.atoms.size.shape[0]
        chain._doubt = np.pad(saved["doubt"], (0, room - saved["doubt"].shape[0]))
        chain._co_occurrence = CoOccurrence.restore(taken_from(saved, "company_"))
        return chain
