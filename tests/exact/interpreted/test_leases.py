"""Concurrent leases leave the posterior invariant, by either law, and wrong forms do not.

Distances are of laws solved exactly, so they carry no Monte Carlo error; those that the
specification gives (section 6.2) are 0.237 for the full concentration and 0.032 for optimistic
aborts, on the same four points.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.exact.cases import Problem, problem
from tests.exact.enumeration import Paths, partitions, stationary
from tests.exact.posed import PRIORS, posed
from tests.exact.rounds import (
    TREE_GUIDED,
    Ends,
    Rounds,
    by_coins,
    by_pairs,
    full_share,
    one_step,
    optimistic_matrix,
    scans_of,
    spread,
    stale_counts_matrix,
    stale_return_matrix,
    tree_guided,
)
from weald.mcmc.leases import lease_work
from weald.mcmc.leases.leases import Budget, Lease, coin_groups, concurrency
from weald.mcmc.schedule.kernels import KERNELS
from weald.treecore.prior import build_prior

TOLERANCE = 1e-12
PRODUCTS = ("dp", "nggp", "pitman-yor")


@pytest.fixture(autouse=True)
def _every_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_work, "lease_kernels", scans_of)


def bern(n: int) -> tuple[Problem, Rounds]:
    small = problem("bernoulli", "dp", n)
    return small, Rounds(small, ("dp", {"alpha": 1.0}))


def matrix_of_coins(small: Problem, rounds: Rounds, n_leases: int) -> NDArray[np.float64]:
    return rounds.matrix(small.states, by_coins(n_leases))


def residual(small: Problem, matrix: NDArray[np.float64]) -> float:
    return float(np.abs(small.target @ matrix - small.target).max())


def distance(small: Problem, matrix: NDArray[np.float64]) -> float:
    return float(np.abs(stationary(matrix) - small.target).sum() / 2)


@pytest.mark.parametrize("prior", PRODUCTS)
def test_coins(prior: str) -> None:
    small = posed("bern", prior, 3)
    rounds = Rounds(small, PRIORS[prior])
    matrix = matrix_of_coins(small, rounds, 2)
    assert residual(small, matrix) < TOLERANCE
    assert distance(small, matrix) < TOLERANCE


@pytest.mark.parametrize("n_leases", [2, 4])
def test_coins_on_four_atoms(n_leases: int) -> None:
    small, rounds = bern(4)
    assert residual(small, matrix_of_coins(small, rounds, n_leases)) < TOLERANCE


@pytest.mark.parametrize("prior", PRODUCTS)
def test_pairs(prior: str) -> None:
    small = posed("bern", prior, 3)
    rounds = Rounds(small, PRIORS[prior])
    matrix = rounds.matrix(small.states, by_pairs(2))
    assert residual(small, matrix) < TOLERANCE


def test_pairs_on_four_atoms() -> None:
    small, rounds = bern(4)
    matrix = rounds.matrix(small.states, by_pairs(2))
    assert residual(small, matrix) < TOLERANCE
    assert distance(small, matrix) < TOLERANCE


def test_a_lease_that_never_returns() -> None:
    small, rounds = bern(4)
    matrix = rounds.matrix(small.states, by_coins(2, n_returned=1))
    assert residual(small, matrix) < TOLERANCE


@pytest.mark.parametrize("prior", ["mfm", "emm"])
def test_a_prior_that_is_no_product_has_one_lease(prior: str) -> None:
    small = posed("bern", prior, 3)
    rounds = Rounds(small, PRIORS[prior])
    assert concurrency(rounds.prior, 3, 4) == 1
    assert residual(small, matrix_of_coins(small, rounds, 1)) < TOLERANCE
    # Two at a time would be wrong.
    assert residual(small, matrix_of_coins(small, rounds, 2)) > 1e-3


@pytest.mark.parametrize("prior", PRODUCTS)
def test_a_product_allows_many(prior: str) -> None:
    assert concurrency(build_prior(*PRIORS[prior]), 3, 4) == 4


def test_the_full_concentration_is_wrong() -> None:
    small, rounds = bern(4)
    matrix = rounds.matrix(small.states, by_coins(2), full_share)
    assert distance(small, matrix) == pytest.approx(0.237, abs=5e-4)
    n_blocks = np.array([max(state) + 1 for state in small.states])
    assert stationary(matrix) @ n_blocks == pytest.approx(2.78, abs=5e-3)
    assert small.target @ n_blocks == pytest.approx(2.33, abs=5e-3)


def test_optimistic_aborts_are_wrong() -> None:
    small, rounds = bern(4)
    matrix = optimistic_matrix(rounds, small.states)
    assert distance(small, matrix) == pytest.approx(0.032, abs=5e-4)


def test_stale_counts_are_wrong() -> None:
    """The specification's 0.335 and 0.470 are of partitions into shards that it does not name."""
    small, _ = bern(4)
    halves = [np.array([0, 3]), np.array([1, 2])]
    assert distance(small, stale_counts_matrix(small, halves)) == pytest.approx(0.288, abs=5e-4)
    alone = [np.array([i]) for i in range(4)]
    assert distance(small, stale_counts_matrix(small, alone)) == pytest.approx(0.281, abs=5e-4)


def test_a_return_without_its_token_is_wrong() -> None:
    """A worker that slept through a round, and whose answer is taken all the same."""
    small, rounds = bern(4)
    whole = matrix_of_coins(small, rounds, 2)
    matrix = stale_return_matrix(rounds, small, 2, whole)
    assert distance(small, matrix) == pytest.approx(0.1026, abs=5e-4)


@pytest.mark.parametrize("moves", TREE_GUIDED)
def test_tree_guided_kernels_on_the_restricted_guide(
    moves: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the mixture alone; the weights of the guide's nodes follow the lease's prior."""
    monkeypatch.setattr(lease_work, "lease_kernels", lambda _: [tree_guided(moves)])
    small, rounds = bern(4)
    assert residual(small, rounds.matrix(small.states, by_coins(2))) < TOLERANCE


def test_a_smart_dumb_step_on_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step, of the several that a sweep of the kernel has."""
    monkeypatch.setattr(lease_work, "lease_kernels", lambda _: [one_step("sdds")])
    small, rounds = bern(3)
    assert residual(small, matrix_of_coins(small, rounds, 2)) < TOLERANCE
    assert residual(small, rounds.matrix(small.states, by_coins(2), full_share)) > 1e-3


def test_leases_of_different_roles_in_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first lease has a Gibbs scan and the second a smart-dumb step."""
    stepped = one_step("sdds")
    scanned = scans_of("[0, 1, 2]")[0]

    def kernels(names: str) -> list[Any]:
        return [stepped] if names == "sdds" else [scanned]

    monkeypatch.setattr(lease_work, "lease_kernels", kernels)
    small, rounds = bern(3)
    matrix = np.zeros((len(small.states), len(small.states)))
    for at, state in enumerate(small.states):
        labels = np.array(state)
        deal = partial(coin_groups, labels=labels, n_leases=2)
        for groups, p in Paths().every_outcome(deal):
            after = Ends({state: p})
            for names, atoms in zip(("gibbs", "sdds"), groups, strict=True):
                if len(atoms):
                    lease = rounds.lease(labels, (atoms, 2))
                    lease = replace(lease, budget=Budget(names, 1, 0))
                    scanned = scans_of(str(list(range(len(atoms)))))[0]
                    after = spread(after, atoms, rounds.ends(lease, atoms))
            for reached, q in after.items():
                matrix[at, small.states.index(reached)] += q
    assert residual(small, matrix) < TOLERANCE


@pytest.mark.parametrize("names", ["sdds", "subc"])
def test_a_lease_by_coins_is_a_posterior_with_less_concentration(
    names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Draw for draw, with kernels as they are: so what is exact for any alpha is so on leases."""
    monkeypatch.setattr(lease_work, "lease_kernels", KERNELS.named)
    _, rounds = bern(5)
    atoms = np.array([0, 2, 3, 4])
    lease = rounds.lease(np.array([0, 1, 0, 2, 1]), (atoms, 4))
    alone = replace(lease, prior=build_prior("dp", {"alpha": 0.25}), log_share=0.0)
    seen = set()
    for seed in range(12):
        budget = Budget(names, 2, seed)
        found = lease_work.work(replace(lease, budget=budget)).labels
        np.testing.assert_array_equal(found, lease_work.work(replace(alone, budget=budget)).labels)
        seen.add(tuple(found.tolist()))
    assert len(seen) > 2


def test_a_lease_survives_its_bytes() -> None:
    _, rounds = bern(5)
    lease = rounds.lease(np.array([0, 1, 0, 2, 1]), (np.array([0, 2, 3]), 2))
    again = Lease.from_arrays(lease.arrays())
    assert again.budget == lease.budget
    assert again.log_share == lease.log_share
    assert again.prior == lease.prior

    def ends(given: Lease) -> dict[bytes, float]:
        found: dict[bytes, float] = {}
        for returned, p in Paths().every_outcome(lambda rng: lease_work.work(given, rng)):
            key = returned.labels.tobytes()
            found[key] = found.get(key, 0.0) + p
        return found

    assert ends(lease) == ends(again)
    assert len(ends(lease)) == len(partitions(3))
