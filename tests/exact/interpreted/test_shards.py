"""Shards that refine one partition leave the posterior over all observations invariant.

Two shards with atoms of their own; of the other's each sees sums only. Every path of a round is
followed: how the blocks are dealt, and what each shard's lease may come to.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.exact.cases import Problem
from tests.exact.enumeration import Paths, Shape, is_irreducible, stationary, transition_matrix
from tests.exact.posed import PRIORS, posed
from tests.exact.rounds import (
    TREE_GUIDED,
    Ends,
    Rounds,
    one_step,
    outcomes,
    overwritten,
    scans_of,
    shape_of,
    tree_guided,
    visiting,
)
from weald.mcmc.leases import lease_work
from weald.mcmc.leases.elsewhere import Deal, Elsewhere, deal_to_shards, with_elsewhere
from weald.mcmc.leases.lease_work import work
from weald.mcmc.leases.leases import Lease, make_lease
from weald.mcmc.schedule.kernels import KERNELS
from weald.mcmc.sharded.launches import LaunchedMove
from weald.mcmc.sharded.relay import allocate_own
from weald.treecore.compiled.draw import below, coin
from weald.treecore.errors import ParameterError
from weald.treecore.guide.guide import guide_of_atoms
from weald.treecore.partition.partition import Atoms
from weald.treecore.prior import apart

TOLERANCE = 1e-12
OWNERS = [0, 1, 1, 0]
PRODUCTS = ("dp", "nggp", "pitman-yor")

Ids = NDArray[np.int64]


@pytest.fixture(autouse=True)
def _every_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_work, "lease_kernels", scans_of)


class ShardRounds(Rounds):
    """Rounds of shards on a small problem, of which shard ``owner[i]`` has atom i."""

    def __init__(self, small: Problem, prior: tuple[str, dict[str, Any]], owner: list[int]) -> None:
        super().__init__(small, prior)
        self.small, self.owner = small, np.array(owner)

    def lease_of_shard(
        self, rng: Any, labels: Ids, shard: int, dealt: Deal
    ) -> tuple[Lease, list[Ids]] | None:
        """The lease of a shard, and what each of its atoms stands for; None where it has none."""
        given = dealt.shards[labels] == shard
        own = np.flatnonzero(given & (self.owner == shard))
        if own.shape[0] == 0:
            return None
        every = np.flatnonzero(self.owner == shard)
        size, rows, log_marginal, single = self.small.atoms
        mine = Atoms(size[every], rows[every], log_marginal[every], single[every])
        guide = guide_of_atoms(self.model[0], self.small.model, mine)
        group = np.searchsorted(every, own), dealt.n_leases
        lease = make_lease(self.model, guide, labels[every], group, visiting([]))
        blocks = dict.fromkeys([*labels[own].tolist(), *labels[given].tolist()])
        others = [np.flatnonzero((labels == k) & (self.owner != shard)) for k in blocks]
        has = np.array([len(each) > 0 for each in others])
        sizes = np.array([size[each].sum() for each in others])
        sums = np.array([rows[each].sum(axis=0) for each in others])
        elsewhere = Elsewhere(np.flatnonzero(has), sizes[has], sums[has])
        lease, among = self.joined(rng, lease, elsewhere)
        there = [each for each in others if len(each)]
        stands = [np.array([each]) for each in own] + [there[at] for at in among]
        return replace(lease, budget=visiting(list(range(len(stands))))), stands

    def joined(self, rng: Any, lease: Lease, elsewhere: Elsewhere) -> tuple[Lease, Ids]:
        return with_elsewhere(rng, lease, elsewhere)

    def round_matrix(
        self,
        n_returned: int = 2,
        deal: Callable[..., Deal] = deal_to_shards,
        spoil: Callable[[Lease], Lease] = lambda lease: lease,
    ) -> NDArray[np.float64]:
        """Transition matrix of a round; shards from ``n_returned`` on die in it."""
        states = self.small.states
        index = {state: at for at, state in enumerate(states)}
        matrix = np.zeros((len(states), len(states)))
        n_shards = int(self.owner.max()) + 1
        for at, state in enumerate(states):
            labels = np.array(state, dtype=np.int64)
            dealing = partial(deal, n_blocks=max(state) + 1, n_shards=n_shards)
            for dealt, p in Paths().every_outcome(dealing):
                after = Ends({state: p})
                for shard in range(n_returned):
                    after = self._returned(after, labels, shard, dealt, spoil)
                for reached, q in after.items():
                    matrix[at, index[reached]] += q
        return matrix

    def _returned(
        self, law: Ends, labels: Ids, shard: int, dealt: Deal, spoil: Callable[[Lease], Lease]
    ) -> Ends:
        leasing = partial(self.lease_of_shard, labels=labels, shard=shard, dealt=dealt)
        after = Ends()
        for found, chance in Paths().every_outcome(leasing):
            if found is None:
                return law
            lease, stands = found
            atoms, lengths = np.concatenate(stands), [len(each) for each in stands]
            ends = self.ends(spoil(lease), np.concatenate([[shard], lengths, atoms]))
            for before, p in law.items():
                for end, q in ends.items():
                    spread = np.repeat(end, lengths)
                    after[overwritten(before, atoms, spread)] += chance * p * q
        return after


def bern(owner: list[int]) -> ShardRounds:
    return ShardRounds(posed("bern", "dp", len(owner)), PRIORS["dp"], owner)


def residual(rounds: ShardRounds, matrix: NDArray[np.float64]) -> float:
    target = rounds.small.target
    return float(np.abs(target @ matrix - target).max())


def distance(rounds: ShardRounds, matrix: NDArray[np.float64]) -> float:
    return float(np.abs(stationary(matrix) - rounds.small.target).sum() / 2)


@pytest.mark.parametrize("prior", PRODUCTS)
def test_shards_leave_the_posterior_as_it_is(prior: str) -> None:
    rounds = ShardRounds(posed("bern", prior, 4), PRIORS[prior], OWNERS)
    matrix = rounds.round_matrix()
    assert residual(rounds, matrix) < TOLERANCE
    assert is_irreducible(matrix)
    assert distance(rounds, matrix) < TOLERANCE


@pytest.mark.parametrize("n_returned", [0, 1])
def test_shards_that_die_in_the_middle(n_returned: int) -> None:
    rounds = bern(OWNERS)
    assert residual(rounds, rounds.round_matrix(n_returned)) < TOLERANCE


def test_three_shards() -> None:
    rounds = bern([0, 1, 2, 0])
    assert residual(rounds, rounds.round_matrix(3)) < TOLERANCE


@pytest.mark.parametrize("prior", ["mfm", "emm"])
def test_a_prior_that_is_no_product_deals_to_one_shard(prior: str) -> None:
    rounds = ShardRounds(posed("bern", prior, 4), PRIORS[prior], OWNERS)
    matrix = rounds.round_matrix(deal=partial(deal_to_shards, is_product=False))
    assert residual(rounds, matrix) < TOLERANCE
    if prior == "mfm":  # two leases of at most three blocks each are no partition under the other
        assert residual(rounds, rounds.round_matrix()) > 1e-3


def test_atoms_elsewhere_that_may_be_joined_are_wrong() -> None:
    """What is joined elsewhere is one atom from then on, and never parted again."""
    rounds = bern(OWNERS)
    matrix = rounds.round_matrix(spoil=lambda lease: replace(lease, apart=lease.apart[:0]))
    assert distance(rounds, matrix) > 1e-2


def test_the_full_concentration_is_wrong() -> None:
    rounds = bern(OWNERS)
    matrix = rounds.round_matrix(spoil=lambda lease: replace(lease, log_share=0.0))
    assert distance(rounds, matrix) > 1e-2


@pytest.mark.parametrize("name", ["sams", "sdds"])
def test_splits_and_merges_of_shards(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_work, "lease_kernels", lambda _: [one_step(name)])
    rounds = bern(OWNERS)
    assert residual(rounds, rounds.round_matrix()) < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("moves", TREE_GUIDED)
def test_tree_guided_moves_of_shards(moves: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_work, "lease_kernels", lambda _: [tree_guided(moves)])
    # Uncompiled exponentials overflow where compiled ones are infinite; e^-100 is none either.
    monkeypatch.setattr(apart, "_SCALE", -8.0)
    rounds = bern(OWNERS)
    assert residual(rounds, rounds.round_matrix()) < TOLERANCE


class InOrder(ShardRounds):
    """Wrong: what is elsewhere is numbered in the order of the blocks as they are."""

    def joined(self, _: Any, lease: Lease, elsewhere: Elsewhere) -> tuple[Lease, Ids]:
        found, among = super().joined(np.random.default_rng(1), lease, elsewhere)
        own, back = lease.labels.shape[0], np.argsort(among)
        place = np.concatenate([np.arange(own), own + back])
        order = np.concatenate([np.arange(own), own + among])[found.form[1]]
        parts = {name: getattr(found, name)[place] for name in ("labels", "size", "rows")}
        return replace(found, form=(found.form[0], order), **parts), np.arange(len(among))


def test_numbers_that_say_how_blocks_lie_are_wrong() -> None:
    rounds = InOrder(posed("bern", "dp", 4), PRIORS["dp"], OWNERS)
    assert distance(rounds, rounds.round_matrix()) > 1e-4


def relayed(rng: Any, state: Shape, rounds: ShardRounds, *, judged: bool) -> Shape:
    """A split or merge of the blocks of two random atoms, their atoms allocated shard by shard."""
    labels, n = np.array(state), len(state)
    size, rows = rounds.small.atoms.size, rounds.small.atoms.rows
    i, j = rng.choice(n, 2, replace=False)
    pair, anchors, sides = labels[[i, j]], np.array([i, j]), rows[[i, j]]
    is_split, first, log_q = pair[0] == pair[1], below(rng, 2), 0.0
    side = np.zeros(n, dtype=np.int64)
    side[j] = 1
    free = np.isin(labels, pair) & ~np.isin(np.arange(n), anchors)
    for shard in (first, 1 - first):
        own = np.flatnonzero(free & (rounds.owner == shard))
        if own.shape[0]:
            forced = None if is_split else (labels[own] == pair[1]).astype(np.int64)
            atoms = size[own], rows[own]
            done = allocate_own(rng, rounds.small.model, atoms, sides, forced)
            side[own], log_q = done.side, log_q + done.log_q
            sides = sides + [rows[own][done.side == at].sum(axis=0) for at in range(2)]
    move = LaunchedMove(bool(is_split), sides, log_q if judged else 0.0)
    seating = rounds.small.model.seating
    ratio = move.log_ratio(rounds.small.model, seating, max(state) + 1)
    if not coin(rng, np.exp(min(ratio, 0.0))):
        return state
    contested = np.isin(labels, pair)
    labels[contested] = pair[0] if not is_split else np.where(side == 0, pair[0], n)[contested]
    return shape_of(labels)


@pytest.mark.parametrize("prior", [*PRODUCTS, "mfm", "emm"])
def test_splits_and_merges_that_go_from_shard_to_shard(prior: str) -> None:
    rounds = ShardRounds(posed("bern", prior, 4), PRIORS[prior], OWNERS)
    states, target = rounds.small.states, rounds.small.target
    matrix = transition_matrix(states, partial(relayed, rounds=rounds, judged=True))
    flow = target[:, None] * matrix
    assert np.abs(flow - flow.T).max() < TOLERANCE
    assert is_irreducible(matrix)
    wrong = transition_matrix(states, partial(relayed, rounds=rounds, judged=False))
    assert np.abs(target @ wrong - target).max() > 1e-3


def some_lease() -> Lease:
    rng = np.random.default_rng(1)
    found = bern(OWNERS).lease_of_shard(rng, np.array([0, 0, 1, 1]), 0, Deal(np.zeros(2, int), 1))
    assert found is not None
    return found[0]


@pytest.mark.parametrize("name", ["subc", "slice"])
def test_a_kernel_that_draws_weights_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_work, "lease_kernels", KERNELS.named)
    lease = some_lease()
    with pytest.raises(ParameterError):
        work(replace(lease, budget=lease.budget._replace(kernels=name)))


def test_a_block_has_one_atom_elsewhere() -> None:
    lease = some_lease()
    twice = Elsewhere(np.array([0, 0]), lease.size[:2], lease.rows[:2])
    with pytest.raises(ValueError, match="one atom"):
        with_elsewhere(np.random.default_rng(1), lease, twice)


def test_a_lease_survives_its_bytes_with_what_is_elsewhere() -> None:
    lease = some_lease()
    again = Lease.from_arrays(lease.arrays())
    assert len(lease.apart)
    ends = outcomes(lambda rng: shape_of(work(lease, rng).labels))
    assert ends == outcomes(lambda rng: shape_of(work(again, rng).labels))
