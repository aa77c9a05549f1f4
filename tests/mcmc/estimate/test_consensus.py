"""Consensus partitions against every partition, and memberships against their definition."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.exact.enumeration import partitions
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.estimate.consensus import LOSSES, consensus_partition, expected_loss, membership
from weald.treecore.errors import ParameterError
from weald.treecore.prior.sequential import canonical_labels

Labels = NDArray[np.int64]


def scattered(seed: int, n: int, t: int) -> Labels:
    """Draws without anything in common: the hardest to agree on."""
    rng = np.random.default_rng(seed)
    every = np.array(partitions(n), dtype=np.int64)
    return every[rng.integers(every.shape[0], size=t)]


def perturbed(seed: int, n: int, t: int) -> Labels:
    """Draws around one partition."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, size=n)
    moved = rng.random((t, n)) < 0.25
    return np.stack(
        [canonical_labels(np.where(row, rng.integers(0, 4, size=n), truth)) for row in moved]
    )


draws_of = st.builds(
    lambda make, seed, n, t: make(seed, n, t),
    st.sampled_from([scattered, perturbed]),
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.integers(1, 25),
)


def entropy(labels: Labels) -> float:
    share = np.unique(labels, return_counts=True, axis=0)[1] / labels.shape[0]
    return float(-(share * np.log2(share)).sum())


def variation_of_information(a: Labels, b: Labels) -> float:
    return 2.0 * entropy(np.stack([a, b], axis=1)) - entropy(a) - entropy(b)


def binder(a: Labels, b: Labels) -> float:
    n = a.shape[0]
    differ = int(sum((a[i] == a[j]) != (b[i] == b[j]) for i, j in combinations(range(n), 2)))
    return 2.0 * differ / float(n * n)


def median_clusters(draws: Labels) -> int:
    """How many clusters an answer may have of its own accord."""
    return int(np.median(draws.max(axis=1))) + 1


@given(draws=draws_of, other=st.integers(0, 2**32 - 1))
def test_expected_loss(draws: Labels, other: int) -> None:
    labels = scattered(other, draws.shape[1], 1)[0]
    for name, loss in (("vi", variation_of_information), ("binder", binder)):
        expected = np.mean([loss(labels, draw) for draw in draws])
        assert expected_loss(draws, labels, name) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@given(draws=draws_of)
def test_no_single_move_improves_it(loss: str, draws: Labels) -> None:
    labels = consensus_partition(draws, loss)
    assert (labels == canonical_labels(labels)).all()
    least = expected_loss(draws, labels, loss)
    for i in range(labels.shape[0]):
        for c in range(max(labels.max() + 1, median_clusters(draws))):
            moved = labels.copy()
            moved[i] = c
            assert expected_loss(draws, canonical_labels(moved), loss) > least - 1e-9


@pytest.mark.parametrize("loss", LOSSES)
def test_nearly_always_the_best_of_all_partitions(loss: str) -> None:
    missed = 0
    for seed in range(200):
        n = 2 + seed % 5
        draws = (scattered if seed % 2 else perturbed)(seed, n, 1 + seed % 23)
        found = expected_loss(draws, consensus_partition(draws, loss), loss)
        every = [np.array(each, dtype=np.int64) for each in partitions(n)]
        allowed = [labels for labels in every if labels.max() < median_clusters(draws)]
        best = min(expected_loss(draws, labels, loss) for labels in allowed)
        missed += found > best + 1e-9
        assert found < best + 0.15
    assert missed <= 2


@pytest.mark.parametrize("loss", LOSSES)
def test_draws_that_agree(loss: str, rng: np.random.Generator) -> None:
    labels = canonical_labels(rng.integers(0, 5, size=(60,)))
    draws = np.tile(labels, (7, 1))
    assert (consensus_partition(draws, loss) == labels).all()
    assert expected_loss(draws, labels, loss) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@given(draws=draws_of, other=st.integers(0, 2**32 - 1))
def test_never_worse_than_a_draw_or_a_candidate(loss: str, draws: Labels, other: int) -> None:
    candidate = scattered(other, draws.shape[1], 1)[0]
    found = consensus_partition(draws, loss, [candidate])
    least = min(expected_loss(draws, each, loss) for each in (*draws, candidate))
    assert expected_loss(draws, found, loss) <= least + 1e-12


def test_uncertain_observations_are_no_clusters_of_their_own() -> None:
    """Each draw has two clusters; twenty of the observations are in either of them at random."""
    rng = np.random.default_rng(3)
    draws = np.tile(np.repeat([0, 1], 50), (40, 1))
    draws[:, 40:60] = rng.integers(0, 2, size=(40, 20))
    for loss in LOSSES:
        found = consensus_partition(np.stack([canonical_labels(each) for each in draws]), loss)
        assert found.max() == 1
        assert (found[:40] == 0).all()
        assert (found[60:] == 1).all()


@pytest.mark.slow
def test_many_observations_take_seconds() -> None:
    """Thirty-two draws of 100,000 observations, a fifth of them uncertain, in bounded memory."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 30, size=100_000)
    moved = rng.random((32, truth.shape[0])) < 0.2 * (rng.random(truth.shape[0]) < 0.5)
    drawn = np.where(moved, rng.integers(0, 30, size=moved.shape), truth)
    found = consensus_partition(np.stack([canonical_labels(each) for each in drawn]), "vi")
    assert adjusted_rand_index(found, truth) > 0.999


def test_an_unknown_loss() -> None:
    with pytest.raises(ParameterError, match="binder, vi"):
        consensus_partition(scattered(1, 4, 3), "squared")


@given(draws=draws_of)
def test_membership(draws: Labels) -> None:
    t, n = draws.shape
    labels = consensus_partition(draws, "vi")
    probability, stability = np.zeros(n), np.zeros(n)
    for draw in draws:
        for i in range(n):
            mates = np.flatnonzero(labels == labels[i])
            block = np.flatnonzero(draw == draw[i])
            probability[i] += np.isin(block, mates).mean()
            others = mates[mates != i]
            alone = block.size == 1
            stability[i] += (draw[others] == draw[i]).mean() if others.size else alone
    found = membership(draws, labels)
    assert found[0] == pytest.approx(probability / t)
    assert found[1] == pytest.approx(stability / t)


@given(draws=draws_of, seed=st.integers(0, 2**32 - 1))
def test_a_row_that_stands_for_many_counts_as_many(draws: Labels, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 4, size=(draws.shape[1],))
    each = np.repeat(np.arange(draws.shape[1]), weight)
    labels = canonical_labels(rng.integers(0, 3, size=(draws.shape[1],)))
    for loss in LOSSES:
        heavy = expected_loss(draws, labels, loss, weight)
        assert heavy == pytest.approx(expected_loss(draws[:, each], labels[each], loss), abs=1e-9)
        found = consensus_partition(draws, loss, weight=weight)
        least = min(expected_loss(draws, draw, loss, weight) for draw in draws)
        assert expected_loss(draws, found, loss, weight) <= least + 1e-9
