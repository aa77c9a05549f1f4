"""Laws that every prior must obey, checked over every partition of a few observations."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import gammaln

from tests.treecore.prior.small_partitions import (
    CASES,
    log_prior,
    log_seated,
    partitions,
    prior_of,
    sizes_of,
)
from weald.treecore.errors import ParameterError
from weald.treecore.prior import (
    DirichletProcess,
    MixtureOfFiniteMixtures,
    NormalizedGeneralizedGamma,
    PartitionPrior,
    PitmanYor,
    UniformAssignment,
)
from weald.treecore.prior.base import log_new_block, log_size
from weald.treecore.prior.levy import Levy, log_u_density

every_prior = pytest.mark.parametrize("case", CASES)


@every_prior
@pytest.mark.parametrize("n", range(1, 7))
def test_probabilities_sum_to_one(case: str, n: int) -> None:
    assert np.exp(log_prior(prior_of(case), n)).sum() == pytest.approx(1.0, abs=1e-12)


@every_prior
def test_a_partition_is_as_probable_as_all_that_extend_it(case: str) -> None:
    # Every one of our priors is consistent, uniform assignment included: K does not depend on n.
    prior = prior_of(case)
    summed = dict.fromkeys(partitions(5), 0.0)
    for labels, log_p in zip(partitions(6), log_prior(prior, 6), strict=True):
        summed[labels[:-1]] += np.exp(log_p)
    np.testing.assert_allclose(
        list(summed.values()), np.exp(log_prior(prior, 5)), rtol=0.0, atol=1e-12
    )


@every_prior
@pytest.mark.parametrize("labels", partitions(4) + partitions(1), ids=str)
def test_predictive_is_the_ratio_of_probabilities(case: str, labels: tuple[int, ...]) -> None:
    prior = prior_of(case)
    sizes = sizes_of(labels)
    before = prior.log_probability(sizes)
    if not np.isfinite(before):
        with pytest.raises(ParameterError, match="blocks must be from 1 to kmax = 3, got 4"):
            prior.log_predictive(sizes)
        return
    predictive = prior.log_predictive(sizes)
    assert np.exp(predictive).sum() == pytest.approx(1.0, abs=1e-12)
    for c in range(len(sizes)):
        grown = sizes.copy()
        grown[c] += 1
        assert prior.log_probability(grown) - before == pytest.approx(predictive[c], abs=1e-11)
    opened = prior.log_probability(np.append(sizes, 1)) - before
    assert opened == pytest.approx(predictive[-1], abs=1e-11)


@every_prior
def test_the_first_observation_opens_a_block(case: str) -> None:
    prior = prior_of(case)
    nothing = np.array([], dtype=np.int64)
    assert prior.log_predictive(nothing).tolist() == [0.0]
    assert prior.log_probability(nothing) == 0.0
    assert np.isfinite(log_new_block(prior.seating(1, 1), 0))


def log_joint_with_auxiliary(prior: PartitionPrior, sizes: NDArray[np.int64]) -> float:
    """Log density of partition and auxiliary variable, written out afresh from the papers."""
    n, k = int(sizes.sum()), len(sizes)
    if isinstance(prior, NormalizedGeneralizedGamma) and prior.sigma > 0.0:
        # S4: the seating's own u where none was drawn is that of 100 observations.
        log_u = np.log(100 / prior.alpha) if prior.log_u is None else prior.log_u
        weights = gammaln(sizes - prior.sigma) - gammaln(1 - prior.sigma) + np.log(prior.alpha)
        return float(log_u_density(Levy(prior.alpha, prior.sigma), n, k, log_u) + weights.sum())
    if isinstance(prior, PitmanYor) and prior.discount > 0.0:
        # p(partition) times the Gamma(alpha / discount + k, 1) density of g.
        g = prior.g if prior.g is not None else np.exp(prior.seating(n, k).slope) / prior.discount
        shape = prior.alpha / prior.discount + k
        return float(prior.log_probability(sizes) + (shape - 1) * np.log(g) - g - gammaln(shape))
    return prior.log_probability(sizes)


@every_prior
@pytest.mark.parametrize("n", [1, 2, 5])
def test_tables_give_every_ratio_of_the_conditional(case: str, n: int) -> None:
    prior = prior_of(case)
    joint = np.array([log_joint_with_auxiliary(prior, sizes_of(p)) for p in partitions(n)])
    seated = log_seated(prior, n)
    np.testing.assert_array_equal(np.isfinite(joint), np.isfinite(seated))
    possible = np.isfinite(joint)
    difference = joint[possible] - seated[possible]
    np.testing.assert_allclose(difference, difference[0], rtol=0.0, atol=1e-11)


@every_prior
def test_tables_are_what_they_say(case: str) -> None:
    prior = prior_of(case)
    seating = prior.seating(30, 20)
    assert seating.log_blocks.shape == (22,)
    assert seating.log_blocks.dtype == seating.size_table.dtype == np.float64
    steps = np.diff(seating.log_blocks[np.isfinite(seating.log_blocks)])
    straight = bool(np.allclose(steps, seating.slope, rtol=0.0, atol=1e-12))
    product = isinstance(prior, DirichletProcess | PitmanYor | NormalizedGeneralizedGamma)
    assert seating.is_product == product == straight
    # The same formula continues where the table of sizes ends.
    last = seating.size_table.shape[0] - 1
    for n in (1, 2, last):
        closed = seating.scale * (gammaln(n + seating.shift) - seating.log_norm)
        assert log_size(seating, n) == pytest.approx(closed, rel=1e-13, abs=1e-13)
    beyond = log_size(seating, last + 1) - log_size(seating, last)
    assert beyond == pytest.approx(seating.scale * np.log(last + seating.shift), rel=1e-9)


@every_prior
def test_slope_depends_on_hyperparameters_only(case: str) -> None:
    prior = prior_of(case)
    slopes = {prior.seating(n, k).slope for n, k in [(1, 1), (50, 3), (50, 40), (10_000, 7)]}
    assert len(slopes) == 1
    assert np.isfinite(slopes.pop())


def test_generalised_gamma_tends_to_the_dirichlet_process() -> None:
    limit = log_prior(DirichletProcess(alpha=1.3), 5)
    # The largest differences that the specification reports; they shrink linearly in sigma.
    for sigma, largest in [(1e-2, 6.6e-2), (1e-4, 6.6e-4), (1e-6, 6.6e-6)]:
        near = log_prior(NormalizedGeneralizedGamma(alpha=1.3, sigma=sigma), 5)
        assert np.abs(near - limit).max() == pytest.approx(largest, rel=0.01)
    at_zero = log_prior(NormalizedGeneralizedGamma(alpha=1.3, sigma=0.0), 5)
    np.testing.assert_allclose(at_zero, limit, rtol=0.0, atol=1e-13)
    pitman_yor = log_prior(PitmanYor(alpha=1.3, discount=0.0), 5)
    np.testing.assert_allclose(pitman_yor, limit, rtol=0.0, atol=1e-13)


def test_uniform_assignment_is_the_even_limit_of_finite_mixtures() -> None:
    # With K = 1 or 2 in both, and gamma large, a block's size no longer matters.
    emm = UniformAssignment(mu=0.0, sigma=1.0, kmax=2)
    given = np.exp(emm.log_entities()[1:])
    for labels in partitions(4):
        k = max(labels) + 1
        direct = given[1] * 2.0**-4 * 2.0 + (given[0] if k == 1 else 0.0)
        expected = np.log(direct) if k <= 2 else -np.inf
        assert emm.log_probability(sizes_of(labels)) == pytest.approx(expected, abs=1e-12)


def test_typical_auxiliaries_are_finite_and_fixed() -> None:
    for case in CASES:
        prior = prior_of(case)
        settled = prior.typical(1000, 30)
        assert settled == prior.typical(1000, 30)
        assert np.isfinite(settled.seating(1000, 30).slope)
    mode = NormalizedGeneralizedGamma(alpha=2.0, sigma=0.3).typical(100, 10).log_u
    assert mode is not None
    density = log_u_density(Levy(2.0, 0.3), 100, 10, np.array([mode - 1e-3, mode, mode + 1e-3]))
    assert density.argmax() == 1
    assert isinstance(MixtureOfFiniteMixtures().typical(5, 2), MixtureOfFiniteMixtures)
