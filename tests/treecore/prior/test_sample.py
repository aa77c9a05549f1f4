"""Draws from the prior follow its enumerated probabilities."""

import numpy as np
import pytest
from numpy.random import Generator
from scipy.stats import chi2

from tests.treecore.prior.small_partitions import CASES, log_prior, partitions, prior_of
from weald.treecore.prior import UniformAssignment
from weald.treecore.prior.sequential import canonical_labels

N = 4
N_DRAWS = 4000
# A right sampler fails one case in 10^4; seeds are fixed, so it then fails always.
FALSE_ALARM = 1e-4

every_prior = pytest.mark.parametrize("case", CASES)


@every_prior
def test_frequencies(case: str, rng: Generator) -> None:
    prior = prior_of(case)
    index = {labels: at for at, labels in enumerate(partitions(N))}
    visits = np.zeros(len(index))
    for _ in range(N_DRAWS):
        visits[index[tuple(prior.sample(rng, N).tolist())]] += 1
    expected = N_DRAWS * np.exp(log_prior(prior, N))
    assert visits[expected == 0.0].sum() == 0
    # Chi-square wants expected counts of five or so: what is rarer is counted together.
    order = np.argsort(expected)
    groups = np.cumsum(expected[order]) // 8.0
    seen = np.array([visits[order][groups == g].sum() for g in np.unique(groups)])
    wanted = np.array([expected[order][groups == g].sum() for g in np.unique(groups)])
    kept = wanted > 0.0
    distance = ((seen - wanted)[kept] ** 2 / wanted[kept]).sum()
    assert distance < chi2.isf(FALSE_ALARM, max(kept.sum() - 1, 1))


@every_prior
def test_shape_and_seed(case: str) -> None:
    prior = prior_of(case)
    labels = prior.sample(np.random.default_rng(3), 300)
    assert labels.dtype == np.int64
    assert labels.shape == (300,)
    np.testing.assert_array_equal(labels, canonical_labels(labels))
    np.testing.assert_array_equal(labels, prior.sample(np.random.default_rng(3), 300))
    assert prior.sample(np.random.default_rng(3), 1).tolist() == [0]
    assert prior.sample(np.random.default_rng(3), 0).shape == (0,)


def test_order_of_appearance() -> None:
    assert canonical_labels(np.array([7, -2, 7, 0, -2])).tolist() == [0, 1, 0, 2, 1]
    assert canonical_labels(np.array([10**9, 3, 10**9])).tolist() == [0, 1, 0]
    assert canonical_labels(np.empty(0, dtype=np.int64)).tolist() == []


def test_number_of_entities_given_the_partition(rng: Generator) -> None:
    prior = UniformAssignment(mu=1.0, sigma=1.0, kmax=9)
    n_blocks, n = 2, 4
    weights = np.array([prior.log_weight(K, n_blocks, n) for K in range(10)])
    expected = N_DRAWS * np.exp(weights - np.logaddexp.reduce(weights))
    draws = [prior.draw_entities(rng, n_blocks, n) for _ in range(N_DRAWS)]
    seen = np.bincount(draws, minlength=10)
    assert seen[:2].sum() == 0
    distance = ((seen - expected)[2:] ** 2 / expected[2:]).sum()
    assert distance < chi2.isf(FALSE_ALARM, 7)
