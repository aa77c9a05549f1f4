"""One round of leases on a small posterior, in one process: right, and wrong in known ways."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from weald.mcmc import gibbs
from weald.mcmc.kernels import Kernel
from weald.mcmc.lease_work import work
from weald.mcmc.leases import Budget, Lease, Pair, coin_groups, make_lease, pair_groups
from weald.treecore.guide import Guide, guide_of_atoms
from weald.treecore.prior import PartitionPrior, build_prior

from tests.exact.cases import Problem
from tests.exact.enumeration import Paths, Shape

Ids = NDArray[np.int64]
BUDGET = Budget("gibbs", 1, 0)


def _scan(rng: Any, position: Any) -> NDArray[np.float64]:
    atoms = np.arange(position.n_atoms, dtype=np.int64)
    gibbs.sweep(rng, position.flat(), position.model, atoms)
    return np.array([[1.0, 1.0, 0.0]])


# Draws no subset of the atoms, so that every path of it can be followed.
SCAN = Kernel("gibbs", "exact", ("gibbs",), _scan)


def shape_of(labels: NDArray[Any]) -> Shape:
    """Restricted growth string of any labels."""
    seen: dict[int, int] = {}
    return tuple(seen.setdefault(int(k), len(seen)) for k in labels)


class Ends(defaultdict[Any, float]):
    """Probability of each outcome."""

    def __init__(self) -> None:
        super().__init__(float)


class Rounds:
    """Rounds on the partitions of a small problem under a prior."""

    def __init__(self, small: Problem, prior: tuple[str, dict[str, Any]]) -> None:
        self.prior: PartitionPrior = build_prior(*prior)
        self.model = (small.family, self.prior)
        self.guide: Guide = guide_of_atoms(small.family, small.model, small.atoms)
        self._ends: dict[Any, Ends] = {}

    def lease(self, labels: Ids, group: Any) -> Lease:
        return make_lease(self.model, self.guide, labels, group, BUDGET)

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
                after = {state: p}
                for group in groups:
                    lease = spoil(self.lease(labels, group))
                    atoms = group.atoms if isinstance(group, Pair) else group[0]
                    after = spread(after, atoms, self.ends(lease, atoms))
                for reached, q in after.items():
                    matrix[at, index[reached]] += q
        return matrix

    def ends(self, lease: Lease, atoms: Ids) -> "Ends":
        """What may come back of a lease, with its probability."""
        key = (tuple(atoms), tuple(lease.labels), lease.log_share, tuple(lease.anchors))
        if key not in self._ends:
            found = Ends()
            for outcome, p in Paths().every_outcome(lambda rng: shape_of(work(lease, rng).labels)):
                found[outcome] += p
            self._ends[key] = found
        return self._ends[key]

    def one_pair(self, rng: Any, state: Shape) -> tuple[tuple[int, ...], Shape]:
        """Atoms of one pair lease, and the labels that come back for them."""
        start = np.array(state, dtype=np.int64)
        pair = pair_groups(rng, start, 1)[0]
        returned = work(self.lease(start, pair), rng).labels
        return tuple(pair.atoms.tolist()), shape_of(returned)


def by_coins(n_leases: int, n_returned: int | None = None) -> Callable[..., list[Any]]:
    """Deal by law A; only the first ``n_returned`` leases come back, by default all."""

    def deal(rng: Any, labels: Ids) -> list[Any]:
        groups = coin_groups(rng, labels, n_leases)[:n_returned]
        return [(atoms, n_leases) for atoms in groups if atoms.shape[0]]

    return deal


def by_pairs(n_pairs: int) -> Callable[..., list[Any]]:
    """Deal by law B."""
    return lambda rng, labels: list(pair_groups(rng, labels, n_pairs))


def spread(law: dict[Shape, float], atoms: Any, ends: Ends) -> dict[Shape, float]:
    """The law of the partition after a return is written into each partition of ``law``."""
    after = Ends()
    for before, p in law.items():
        for end, q in ends.items():
            after[shape_of(overwritten(before, atoms, end))] += p * q
    return after


def overwritten(state: Shape, atoms: Any, returned: Any) -> Ids:
    """Labels after a return is written over the partition as it is now."""
    labels = np.array(state, dtype=np.int64)
    labels[list(atoms)] = np.asarray(returned) + 10 + labels.max()
    return labels


def blocks_over(state: Shape, atoms: tuple[int, ...]) -> set[frozenset[int]]:
    """The blocks that hold any of the atoms."""
    held = {state[i] for i in atoms}
    return {frozenset(i for i, k in enumerate(state) if k == block) for block in held}


def optimistic_matrix(rounds: Rounds, states: list[Shape]) -> NDArray[np.float64]:
    """Wrong: two workers start at once; the second's return counts if its blocks did not change."""
    index = {state: at for at, state in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for at, state in enumerate(states):
        single = Ends()
        for outcome, p in Paths().every_outcome(partial(rounds.one_pair, state=state)):
            single[outcome] += p
        for (first, new), p in single.items():
            between = shape_of(overwritten(state, first, new))
            for (second, other), q in single.items():
                same = blocks_over(state, second) == blocks_over(between, second)
                after = shape_of(overwritten(between, second, other)) if same else between
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

    def scan(rng: Any, state: Shape, atoms: Ids, number: int) -> tuple[int, ...]:
        held = small.prepare(state)
        gibbs.sweep(rng, held, small.model, atoms)
        return own_labels(state, held.partition.label, atoms, number)

    for at, state in enumerate(small.states):
        ends = []
        for number, atoms in enumerate(shards):
            found = Ends()
            for outcome, p in Paths().every_outcome(
                partial(scan, state=state, atoms=atoms, number=number)
            ):
                found[outcome] += p
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
        for groups, p in Paths().every_outcome(deal):
            ends = [
                rounds.ends(rounds.lease(labels, (g, n_leases)), g) if len(g) else None
                for g in groups
            ]
            after = {state: p}
            for atoms, end in zip(groups[:-1], ends[:-1], strict=True):
                after = spread(after, atoms, end) if end else after
            law = np.asarray(sum(r * whole[index[before]] for before, r in after.items()))
            after = dict(zip(states, law.tolist(), strict=True))
            for reached, q in (spread(after, groups[-1], ends[-1]) if ends[-1] else after).items():
                matrix[at, index[reached]] += q
    return matrix


def full_share(lease: Lease) -> Lease:
    """Wrong: a block weighs as much in a lease as it does in the whole."""
    return replace(lease, log_share=0.0)
