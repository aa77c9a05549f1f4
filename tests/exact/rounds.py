"""One round of leases on a small posterior, in one process: right, and wrong in known ways."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.exact.cases import Problem
from tests.exact.enumeration import Paths, Shape
from weald.mcmc.chain.position import Position
from weald.mcmc.contract import Kernel
from weald.mcmc.gibbs import gibbs
from weald.mcmc.leases import lease_work
from weald.mcmc.leases.lease_work import work
from weald.mcmc.leases.leases import Budget, Lease, Pair, coin_groups, make_lease, pair_groups
from weald.mcmc.split_merge import sams, sdds
from weald.mcmc.state.atom_state import make_tally
from weald.mcmc.sweeps import Sampler, moves_of
from weald.mcmc.tree_guided import tgmcmc
from weald.treecore.guide.guide import Guide, guide_of_atoms
from weald.treecore.prior import PartitionPrior, build_prior

Ids = NDArray[np.int64]


def scans_of(names: str) -> list[Kernel[Position]]:
    """Gibbs on the atoms that a budget lists in place of kernels; draws no subset of them."""
    visited = np.array(json.loads(names), dtype=np.int64)

    def sweep(rng: Any, position: Position) -> NDArray[np.float64]:
        gibbs.sweep(rng, position.flat(), position.model, visited)
        n = float(visited.shape[0])
        return np.array([[n, n, 0.0]])

    return [Sampler("gibbs", "exact", ("gibbs",), sweep)]


def one_step(name: str) -> Kernel[Position]:
    """One step of ``sams`` or ``sdds`` in place of a sweep, which has too many paths."""

    def step(rng: Any, position: Position) -> NDArray[np.float64]:
        tally, live = make_tally(), np.arange(position.n_atoms, dtype=np.int64)
        if name == "sdds":
            sdds.sweep(rng, position.flat(), position.model, sdds.SddsPlan(), live, tally)
        else:
            sams.sweep(rng, position.flat(), position.model, sams.SamsPlan(), live, tally)
        return moves_of(tally)

    return Sampler(name, "exact", (name,), step)


# One tree-guided move alone; the fifth has too many paths.
TREE_GUIDED = np.delete(np.eye(len(tgmcmc.KERNELS), dtype=int), 5, axis=0).tolist()


def tree_guided(moves: list[int]) -> Kernel[Position]:
    """A sweep of so many of each tree-guided move."""

    def sweep(rng: Any, position: Position) -> NDArray[np.float64]:
        guide, pieces, picks = position.tree()
        tally = np.zeros((len(tgmcmc.KERNELS), 3))
        tgmcmc.sweep(rng, guide, pieces, position.model, picks, np.array(moves), tally)
        return tally

    return Sampler("tgmcmc", "exact", tgmcmc.KERNELS, sweep)


def visiting(atoms: list[int]) -> Budget:
    """A lease's budget for one scan of ``scans_of``."""
    return Budget(json.dumps(atoms), 1, 0)


def shape_of(labels: Iterable[Any]) -> Shape:
    """Restricted growth string of any labels."""
    seen: dict[int, int] = {}
    return tuple(seen.setdefault(int(k), len(seen)) for k in labels)


class Ends(defaultdict[Any, float]):
    """Probability of each outcome."""

    def __init__(self, known: Mapping[Any, float] | None = None) -> None:
        super().__init__(float, known or {})


def outcomes(run: Callable[[Any], Any]) -> Ends:
    """Follow every path."""
    found = Ends()
    for outcome, p in Paths().every_outcome(run):
        found[outcome] += p
    return found


class Rounds:
    """Rounds on the partitions of a small problem under a prior."""

    def __init__(self, small: Problem, prior: tuple[str, dict[str, Any]]) -> None:
        self.prior: PartitionPrior = build_prior(*prior)
        self.model = (small.family, self.prior)
        self.guide: Guide = guide_of_atoms(small.family, small.model, small.atoms)
        self._ends: dict[Any, Ends] = {}

    def lease(self, labels: Ids, group: Any) -> Lease:
        """The lease of a group of the partition's atoms, with a scan of them all to do."""
        n_atoms = len(group.atoms if isinstance(group, Pair) else group[0])
        budget = visiting(list(range(n_atoms)))
        return make_lease(self.model, self.guide, labels, group, budget)

    def matrix(
        self,
        states: list[Shape],
        deal: Callable[..., list[Any]],
        spoil: Callable[[Lease], Lease] = lambda lease: lease,
    ) -> NDArray[np.float64]:
        """Transition matrix of a round whose leases ``deal`` names, all of which return.

        Leases don't see each other, so what may come back of each is found for each alone.
        """
        index = {state: at for at, state in enumerate(states)}
        matrix = np.zeros((len(states), len(states)))
        for at, state in enumerate(states):
            labels = np.array(state, dtype=np.int64)
            for groups, p in Paths().every_outcome(partial(deal, labels=labels)):
                after = Ends({state: p})
                for group in groups:
                    lease = spoil(self.lease(labels, group))
                    atoms = group.atoms if isinstance(group, Pair) else group[0]
                    after = spread(after, atoms, self.ends(lease, atoms))
                for reached, q in after.items():
                    matrix[at, index[reached]] += q
        return matrix

    def ends(self, lease: Lease, atoms: Ids) -> "Ends":
        """What may come back of a lease, with its probability.

        Every path of the work is followed; where the work is a scan, of each visit of it, since a
        scan is its visits one after the other and has too many paths as a whole.
        """
        if lease_work.lease_kernels is not scans_of or len(lease.anchors):
            return self._paths(lease, atoms)

        def visit(labels: Shape, atom: int) -> Ends:
            step = replace(lease, labels=np.array(labels), budget=visiting([atom]))
            return self._paths(step, atoms)

        return in_turn(visit, shape_of(lease.labels), json.loads(lease.budget.kernels))

    def ends_of(self, labels: Ids, atoms: Ids, n_leases: int) -> "Ends":
        """The same of a lease by coins; nothing comes back of none."""
        if len(atoms) == 0:
            return Ends({(): 1.0})
        return self.ends(self.lease(labels, (atoms, n_leases)), atoms)

    def _paths(self, lease: Lease, atoms: Ids) -> "Ends":
        key = (
            tuple(atoms),
            tuple(lease.labels),
            lease.log_share,
            tuple(lease.anchors),
            lease.budget.kernels,
        )
        if key not in self._ends:
            self._ends[key] = outcomes(lambda rng: shape_of(work(lease, rng).labels))
        return self._ends[key]

    def one_pair(self, rng: Any, state: Shape) -> tuple[tuple[int, ...], Shape]:
        """Atoms of one pair lease, and the labels that come back for them."""
        start = np.array(state, dtype=np.int64)
        pair = pair_groups(rng, start, 1)[0]
        returned = work(self.lease(start, pair), rng).labels
        return tuple(pair.atoms.tolist()), shape_of(returned)


def in_turn(visits: Callable[[Shape, int], Ends], state: Shape, atoms: list[int]) -> Ends:
    """Where visits of some atoms, one after the other, lead from a partition."""
    law = Ends({state: 1.0})
    for atom in atoms:
        after = Ends()
        for before, p in law.items():
            for end, q in visits(before, atom).items():
                after[end] += p * q
        law = after
    return law


def by_coins(n_leases: int, n_returned: int | None = None) -> Callable[..., list[Any]]:
    """Deal by law A; only the first ``n_returned`` leases come back, by default all."""

    def deal(rng: Any, labels: Ids) -> list[Any]:
        groups = coin_groups(rng, labels, n_leases)[:n_returned]
        return [(atoms, n_leases) for atoms in groups if atoms.shape[0]]

    return deal


def by_pairs(n_pairs: int) -> Callable[..., list[Any]]:
    """Deal by law B."""
    return lambda rng, labels: list(pair_groups(rng, labels, n_pairs))


def spread(law: Mapping[Shape, float], atoms: Iterable[Any], ends: Ends) -> Ends:
    """The law of the partition after a return is written into each partition of ``law``."""
    after, places = Ends(), [int(atom) for atom in atoms]
    for before, p in law.items():
        for end, q in ends.items():
            after[overwritten(before, places, end)] += p * q
    return after


def overwritten(state: Shape, atoms: Iterable[int], returned: Iterable[int]) -> Shape:
    """The partition once a return is written over it as it is now."""
    labels, new = list(state), len(state)
    for atom, label in zip(atoms, returned, strict=True):
        labels[atom] = new + label
    return shape_of(labels)


def blocks_over(state: Shape, atoms: tuple[int, ...]) -> set[frozenset[int]]:
    """The blocks that hold any of the atoms."""
    held = {state[i] for i in atoms}
    return {frozenset(i for i, k in enumerate(state) if k == block) for block in held}


def optimistic_matrix(rounds: Rounds, states: list[Shape]) -> NDArray[np.float64]:
    """Wrong: two workers start at once; the second's return counts if its blocks did not change."""
    index = {state: at for at, state in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for at, state in enumerate(states):
        single = outcomes(partial(rounds.one_pair, state=state))
        for (first, new), p in single.items():
            between = overwritten(state, first, new)
            for (second, other), q in single.items():
                same = blocks_over(state, second) == blocks_over(between, second)
                after = overwritten(between, second, other) if same else between
                matrix[at, index[after]] += p * q
    return matrix


def own_labels(start: Any, returned: Any, mine: Ids, number: int) -> tuple[int, ...]:
    """Where a worker's own atoms go that saw the other atoms as they were at the start.

    Into the block of those of the others that it put them beside. A block of its own atoms only is
    the one that its first atom was in at the start if that atom was the first there and nobody
    else's atom was; any other is new, and this worker's (``number``).
    """
    n, own = len(start), set(mine.tolist())
    labels = []
    for atom in mine:
        block = [i for i in range(n) if returned[i] == returned[atom]]
        others = [i for i in block if i not in own]
        was = [i for i in range(n) if start[i] == start[block[0]]]
        if others:
            labels.append(int(start[others[0]]))
        elif was[0] == block[0] and own.issuperset(was):
            labels.append(int(start[was[0]]))
        else:
            labels.append(n * (number + 1) + block[0])
    return tuple(labels)


def stale_counts_matrix(small: Problem, shards: list[Ids]) -> NDArray[np.float64]:
    """Wrong: shards of the atoms are scanned at once, each against the counts as they began."""
    index = {state: at for at, state in enumerate(small.states)}
    matrix = np.zeros((len(small.states), len(small.states)))

    def visit(rng: Any, state: Shape, atom: int) -> Shape:
        held = small.prepare(state)
        gibbs.sweep(rng, held, small.model, np.array([atom]))
        return shape_of(held.partition.label[: len(state)])

    @cache
    def visits(state: Shape, atom: int) -> Ends:
        return outcomes(partial(visit, state=state, atom=atom))

    for at, state in enumerate(small.states):
        ends = []
        for number, atoms in enumerate(shards):
            law = in_turn(visits, state, atoms.tolist())
            found = Ends()
            for end, p in law.items():
                found[own_labels(state, end, atoms, number)] += p
            ends.append(found)
        for parts in product(*(found.items() for found in ends)):
            labels = np.empty(len(state), dtype=np.int64)
            for atoms, (outcome, _) in zip(shards, parts, strict=True):
                labels[atoms] = outcome
            matrix[at, index[shape_of(labels)]] += prod(p for _, p in parts)
    return matrix


def stale_return_matrix(
    rounds: Rounds, small: Problem, n_leases: int, whole: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Wrong: the last lease of a round comes back after the next one, ``whole``, and is taken."""
    states = small.states
    index = {state: at for at, state in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for at, state in enumerate(states):
        labels = np.array(state, dtype=np.int64)
        deal = partial(coin_groups, labels=labels, n_leases=n_leases)
        # By the atoms that are out for so long: the law of everything before their return.
        before: dict[Shape, Ends] = defaultdict(Ends)
        for groups, p in Paths().every_outcome(deal):
            after = Ends({state: p})
            for atoms in groups[:-1]:
                after = spread(after, atoms, rounds.ends_of(labels, atoms, n_leases))
            for reached, q in after.items():
                before[tuple(groups[-1].tolist())][reached] += q
        for asleep, law in before.items():
            last = rounds.ends_of(labels, np.array(asleep, dtype=np.int64), n_leases)
            now = np.asarray(sum(q * whole[index[reached]] for reached, q in law.items()))
            after = Ends(dict(zip(states, now.tolist(), strict=True)))
            for reached, q in spread(after, asleep, last).items():
                matrix[at, index[reached]] += q
    return matrix


def full_share(lease: Lease) -> Lease:
    """Wrong: a block weighs as much in a lease as it does in the whole."""
    return replace(lease, log_share=0.0)
