"""Splits and merges of the sub-cluster sampler: their transition matrix, solved exactly.

Parameters stand still, so that what is left to chance is a choice of blocks, anchors and order, and
a coin for each atom. The probability of an outcome is that of the choices, times that of the sides
as the allocation tells it, times that of acceptance: with a wrong ratio or a wrong probability of
the sides the posterior is not invariant.
"""

from collections.abc import Callable
from itertools import permutations, product
from math import exp, factorial
from typing import Any, cast

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from tests.exact.cases import Problem, problem
from weald.mcmc.state.atom_state import Info
from weald.mcmc.sub_cluster import allocation, exchangeable, subc
from weald.mcmc.sub_cluster.allocation import AllocationPlan, Forced, allocated
from weald.mcmc.sub_cluster.summed_blocks import SummedBlocks
from weald.treecore.family.parameter_draws import draw_parameters
from weald.treecore.prior.sequential import canonical_labels

Labels = NDArray[np.int64]
PLAN = AllocationPlan(0, 0, 1.5)
UNSEEN = -np.inf


class Fixed:
    """A source of what the test chooses: an order of atoms, their sides, and willing coins."""

    def __init__(self, order: tuple[int, ...], sides: Labels) -> None:
        self._order, self._sides = np.array(order, dtype=np.int64), sides
        self._at = 0

    def permutation(self, _: int) -> Labels:
        return self._order

    def random(self, n: int | None = None) -> Any:
        if n is None:
            return 1e-300
        batch = 2 + self._order[self._at : self._at + n]
        self._at += n
        return np.where(self._sides[batch] == 1, 1.0 - 1e-16, 1e-16)


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same parameters whenever the same statistics ask for them."""

    def drawn(family: Any, sums: Any, _: Generator) -> Any:
        return draw_parameters(family, sums, np.random.default_rng(3))

    monkeypatch.setattr(allocation, "draw_parameters", drawn)


def outcomes(posed: Problem, labels: Labels, anchors: tuple[int, int], log_choice: Any) -> Any:
    """Each partition that anchors may lead to, with its probability; the rest stays."""
    fresh = SummedBlocks.of(posed.atoms, labels, posed.model)
    members = subc._members(fresh, anchors)
    n, together = members.shape[0], labels[anchors[0]] == labels[anchors[1]]
    rows, size = fresh.rows[members], fresh.size[members]
    if together:
        ways = [np.array([0, 1, *each]) for each in product((0, 1), repeat=n - 2)]
    else:
        ways = [(labels[members] == labels[anchors[1]]).astype(np.int64)]
    for order in permutations(range(n - 2)):
        for sides in ways:
            rng = cast("Generator", Fixed(order, sides))
            blocks = SummedBlocks.of(posed.atoms, labels, posed.model)
            if together:
                log_q = allocated(rng, posed.model, (rows, size), PLAN, Forced(sides, UNSEEN))[1]
                info = subc._split(rng, blocks, anchors, PLAN, log_choice)
            else:
                log_q = 0.0
                info = subc._merge(rng, blocks, anchors, PLAN, log_choice)
            after = labels.copy()
            after[members[sides == 1]] = (
                posed.atoms.size.shape[0] if together else labels[anchors[0]]
            )
            p = exp(log_q + min(info.log_ratio, 0.0)) / factorial(n - 2)
            yield tuple(canonical_labels(after).tolist()), p


def assert_invariant(posed: Problem, moves: Callable[[Labels], Any]) -> None:
    """Moves from a partition are those that change it, with their probabilities."""
    index = {state: at for at, state in enumerate(posed.states)}
    matrix = np.zeros((len(index), len(index)))
    for state, at in index.items():
        for after, p in moves(np.array(state, dtype=np.int64)):
            if index[after] != at:
                matrix[at, index[after]] += p
    assert (matrix.sum(axis=1) < 1.0).all()
    assert (matrix > 0.0).any(axis=1).all()
    flow = posed.target[:, None] * matrix
    np.testing.assert_allclose(flow, flow.T, atol=1e-12)


def test_sides_are_drawn_with_the_probability_that_is_told() -> None:
    """Of four outcomes; one of them is further off once in 40,000 runs."""
    posed = problem("bernoulli", "dp", 5)
    atoms = (np.asarray(posed.atoms.rows)[:4] * 3.0, posed.atoms.size[:4] * 3)
    told = {}
    for rest in product((0, 1), repeat=2):
        sides = np.array([0, 1, *rest])
        logs = [
            allocated(
                cast("Generator", Fixed(order, sides)),
                posed.model,
                atoms,
                PLAN,
                Forced(sides, UNSEEN),
            )[1]
            for order in permutations(range(2))
        ]
        told[rest] = float(np.exp(logs).mean())
    assert abs(sum(told.values()) - 1.0) < 1e-12
    assert max(told.values()) > 2.0 * min(told.values())
    n, rng = 2_000, np.random.default_rng(5)
    drawn = [tuple(allocated(rng, posed.model, atoms, PLAN)[0][2:].tolist()) for _ in range(n)]
    for rest, p in told.items():
        assert abs(drawn.count(rest) / n - p) < 4.5 * np.sqrt(p * (1.0 - p) / n)


@pytest.mark.parametrize(("family", "prior"), [("bernoulli", "dp"), ("poisson", "mfm")])
def test_near_pairs_are_joined_and_parted_in_balance(family: str, prior: str) -> None:
    posed = problem(family, prior, 4)

    def moves(labels: Labels) -> Any:
        for i, j in permutations(range(4), 2):
            together = labels[i] == labels[j]
            type_p = 1.0 - subc._MERGES if together else subc._MERGES
            chosen: Any = (lambda _: subc._LOG_ODDS) if together else -subc._LOG_ODDS
            for after, p in outcomes(posed, labels, (i, j), chosen):
                yield after, p * type_p / 12

    assert_invariant(posed, moves)


@pytest.mark.parametrize(("family", "prior"), [("bernoulli", "dp"), ("gaussian", "pitman-yor")])
def test_blocks_are_parted_and_joined_in_balance(family: str, prior: str) -> None:
    posed = problem(family, prior, 4)

    def moves(labels: Labels) -> Any:
        k, members = int(labels.max()) + 1, np.bincount(labels)
        for i, j in permutations(range(4), 2):
            one, other = labels[i], labels[j]
            if one == other:
                chosen: Any = lambda sides: subc._log_choice(k, sides)  # noqa: E731 - as in the code
                share = 1.0 / (k * members[one] * (members[one] - 1))
            else:
                chosen = -subc._log_choice(k - 1, members[[one, other]])
                share = 1.0 / (k * (k - 1) * members[one] * members[other])
            for after, p in outcomes(posed, labels, (i, j), chosen):
                yield after, 0.5 * share * p

    assert_invariant(posed, moves)


def test_a_refused_merge_is_told_as_soon_as_it_is_sure() -> None:
    posed = problem("bernoulli", "dp", 5)
    rows, size = np.asarray(posed.atoms.rows), posed.atoms.size
    sides = np.array([0, 1, 0, 1, 1])
    rng = np.random.default_rng(1)
    full = allocated(rng, posed.model, (rows, size), PLAN, Forced(sides, UNSEEN))[1]
    enough = allocated(rng, posed.model, (rows, size), PLAN, Forced(sides, full / 2.0))[1]
    assert enough <= full / 2.0 < 0.0


def test_exchangeable_sides_are_in_balance() -> None:
    """The log ratios of a merge and of the split that leads back sum to zero."""
    posed = problem("poisson", "nggp", 5)
    labels = np.array([0, 1, 0, 1, 1])
    infos: list[Info] = []
    blocks = SummedBlocks.of(posed.atoms, labels, posed.model)

    class Willing:
        """The first pair, then the block that it became, its sides as they were."""

        def __init__(self) -> None:
            self._coins = iter([1e-300, 1e-300])

        def integers(self, _: int) -> int:
            return 0

        def beta(self, *_: float) -> float:
            return 0.5

        def random(self, n: int | None = None) -> Any:
            return next(self._coins) if n is None else np.where(labels == 1, 0.0, 1.0)

    rng = cast("Generator", Willing())
    infos = [exchangeable._merge(rng, blocks), exchangeable._split(rng, blocks)]
    assert [info.accepted for info in infos] == [1, 1]
    assert abs(sum(info.log_ratio for info in infos)) < 1e-10
    fresh = SummedBlocks.of(posed.atoms, labels, posed.model)
    assert canonical_labels(blocks.labels).tolist() == canonical_labels(labels).tolist()
    np.testing.assert_allclose(np.sort(blocks.worth), np.sort(fresh.worth))
    np.testing.assert_allclose(blocks.sums.sum(axis=0), fresh.sums.sum(axis=0))


def test_blocks_keep_their_books_through_many_moves() -> None:
    posed = problem("gaussian", "dp", 5)
    rng = np.random.default_rng(2)
    blocks = SummedBlocks.of(posed.atoms, np.zeros(5, dtype=np.int64), posed.model)
    accepted = 0
    for _ in range(400):
        accepted += subc.split_merge(rng, blocks, PLAN).accepted
        accepted += exchangeable.exchange(rng, blocks).accepted
        fresh = SummedBlocks.of(posed.atoms, blocks.labels, posed.model)
        for kept, summed in ((blocks.sums, fresh.sums), (blocks.worth, fresh.worth)):
            np.testing.assert_allclose(kept, summed, atol=1e-8)
        assert blocks.sizes.tolist() == fresh.sizes.tolist()
        assert blocks.members.tolist() == fresh.members.tolist()
    assert accepted > 40


def test_near_pairs_are_alike_and_differ() -> None:
    rng = np.random.default_rng(4)
    posed = problem("gaussian", "dp", 5)
    pairs = subc.near_pairs(rng, posed.atoms, posed.model, 400)
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert set(pairs.ravel().tolist()) == set(range(5))
