"""Auxiliary variables and hyperparameters: every update leaves the joint law as it is.

A partition of four observations is drawn from its enumerated conditional, through the tables that
kernels see, in turn with the prior's own update. The long-run frequencies must be the enumerated
ones, within what 50 batch means say about a run of that length.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import roots_genlaguerre, roots_hermitenorm, roots_jacobi

from tests.treecore.prior.small_partitions import log_prior, partitions, sizes_of
from weald.treecore.prior import (
    DirichletProcess,
    MixtureOfFiniteMixtures,
    NormalizedGeneralizedGamma,
    PartitionPrior,
    PitmanYor,
    UniformAssignment,
)

pytestmark = pytest.mark.slow

DATA = Path(__file__).resolve().parents[1] / "data" / "prior_oracles.json"
N = 4
N_BATCHES = 50
SIZES = [sizes_of(labels) for labels in partitions(N)]
COUNTS = np.array([np.bincount(sizes, minlength=N + 1) for sizes in SIZES])
N_BLOCKS = np.array([len(sizes) for sizes in SIZES])

Floats = NDArray[np.float64]


class Run(NamedTuple):
    """Frequencies of the partitions by batch (50, 15), and what was watched by batch (50, ...)."""

    frequencies: Floats
    watched: Floats


def alternate(
    rng: Generator,
    prior: PartitionPrior,
    log_likelihood: Floats,
    n_sweeps: int,
    watch: Callable[[Any], list[float]] = lambda _: [],
) -> Run:
    """Sweeps of: partition given the auxiliaries, then the auxiliaries given the partition."""
    n_batch = n_sweeps // N_BATCHES
    frequencies, watched = [], []
    at = 0
    for _ in range(N_BATCHES):
        visits = np.zeros(len(SIZES))
        seen = []
        for _ in range(n_batch):
            prior = prior.resample(rng, SIZES[at])
            seating = prior.seating(N, N)
            log_p = seating.log_blocks[N_BLOCKS] + COUNTS @ seating.size_table[: N + 1]
            log_p = log_p + log_likelihood
            cumulative = np.cumsum(np.exp(log_p - log_p.max()))
            at = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
            visits[at] += 1
            seen.append(watch(prior))
        frequencies.append(visits / n_batch)
        watched.append(np.mean(seen, axis=0))
    return Run(np.array(frequencies), np.array(watched))


def agrees(run: Run, expected: Floats) -> None:
    """Total variation below twice what independent noise of the batches' size would give."""
    error = run.frequencies.std(axis=0, ddof=1) / np.sqrt(N_BATCHES)
    distance = 0.5 * np.abs(run.frequencies.mean(axis=0) - expected).sum()
    noise = 0.5 * np.sqrt(2.0 / np.pi) * error.sum()
    assert distance < 2.0 * noise, f"total variation {distance:.4f}, noise {noise:.4f}"
    assert noise < 0.025


def averaged(
    make: Callable[..., PartitionPrior], *grids: tuple[Floats, Floats]
) -> tuple[Floats, Floats, Floats]:
    """Enumerated log joint (points, 15) over a product of grids of (points, weights)."""
    points = np.stack([g.ravel() for g in np.meshgrid(*[x for x, _ in grids], indexing="ij")])
    weights = np.ones(1)
    for _, w in grids:
        weights = np.multiply.outer(weights, w)
    log_p = np.array([log_prior(make(*point), N) for point in points.T])
    return log_p, weights.ravel(), points


def gamma_law(shape: float, rate: float) -> tuple[Floats, Floats]:
    """Points and weights of Gauss quadrature for a Gamma law."""
    x, w = roots_genlaguerre(24, shape - 1.0)
    return x / rate, w / w.sum()


def beta_law(a: float, b: float) -> tuple[Floats, Floats]:
    """Points and weights of Gauss quadrature for a Beta law."""
    x, w = roots_jacobi(24, b - 1.0, a - 1.0)
    return 0.5 * (x + 1.0), w / w.sum()


def normal_law(mean: float, deviation: float) -> tuple[Floats, Floats]:
    """Points and weights of Gauss quadrature for a normal law."""
    x, w = roots_hermitenorm(24)
    return mean + deviation * x, w / w.sum()


FLAT = np.zeros(len(SIZES))
FIXED: dict[str, PartitionPrior] = {
    "nggp": NormalizedGeneralizedGamma(alpha=1.0, sigma=0.5),
    "nggp-heavy": NormalizedGeneralizedGamma(alpha=0.3, sigma=0.8),
    "pitman-yor": PitmanYor(alpha=1.0, discount=0.5),
    "pitman-yor-negative": PitmanYor(alpha=-0.3, discount=0.6),
}


@pytest.mark.parametrize("name", FIXED)
def test_auxiliary_variables(name: str, rng: Generator) -> None:
    prior = FIXED[name]
    run = alternate(rng, prior, FLAT, 20_000)
    agrees(run, np.exp(log_prior(prior, N)))


def test_the_comparison_notices_an_auxiliary_that_stands_still(rng: Generator) -> None:
    class Still(NormalizedGeneralizedGamma):
        def resample(self, rng: Generator, sizes: NDArray[np.int64]) -> "Still":  # noqa: ARG002
            return self

    prior = Still(alpha=1.0, sigma=0.5, log_u=0.0)
    run = alternate(rng, prior, FLAT, 5_000)
    with pytest.raises(AssertionError, match="total variation"):
        agrees(run, np.exp(log_prior(prior, N)))


class Learned(NamedTuple):
    """A prior that learns, how to make it with given hyperparameters, and the laws of those."""

    prior: PartitionPrior
    make: Callable[..., PartitionPrior]
    laws: tuple[tuple[Floats, Floats], ...]


LEARNED: dict[str, Learned] = {
    "dp": Learned(
        DirichletProcess(learn=True, shape=2.0, rate=1.0),
        lambda a: DirichletProcess(alpha=a),
        (gamma_law(2.0, 1.0),),
    ),
    "nggp-dp": Learned(
        NormalizedGeneralizedGamma(sigma=0.0, learn=True, shape=2.0, rate=1.0),
        lambda a: DirichletProcess(alpha=a),
        (gamma_law(2.0, 1.0),),
    ),
    "nggp": Learned(
        NormalizedGeneralizedGamma(
            learn=True, shape=2.0, rate=2.0, learn_sigma=True, sigma_a=2.0, sigma_b=2.0
        ),
        lambda a, s: NormalizedGeneralizedGamma(alpha=a, sigma=s),
        (gamma_law(2.0, 2.0), beta_law(2.0, 2.0)),
    ),
    "pitman-yor": Learned(
        PitmanYor(
            learn=True, shape=2.0, rate=1.0, learn_discount=True, discount_a=2.0, discount_b=3.0
        ),
        lambda a, d: PitmanYor(alpha=a, discount=d),
        (gamma_law(2.0, 1.0), beta_law(2.0, 3.0)),
    ),
    "mfm": Learned(
        MixtureOfFiniteMixtures(
            learn=True, shape=2.0, rate=0.5, learn_gamma=True, gamma_shape=3.0, gamma_rate=2.0
        ),
        lambda m, g: MixtureOfFiniteMixtures(mean=m, gamma=g),
        (gamma_law(2.0, 0.5), gamma_law(3.0, 2.0)),
    ),
    "emm": Learned(
        UniformAssignment(kmax=6, learn=True, mu_mean=0.5, mu_deviation=0.7),
        lambda m: UniformAssignment(mu=m, kmax=6),
        (normal_law(0.5, 0.7),),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNED)
def test_learned_hyperparameters(name: str, rng: Generator) -> None:
    prior, make, laws = LEARNED[name]
    log_p, weights, _ = averaged(make, *laws)
    # A likelihood that likes two blocks: without one, a wrong hyperparameter could hide.
    log_likelihood = np.where(N_BLOCKS == 2, 1.0, 0.0)
    joint = weights @ np.exp(log_p + log_likelihood)
    run = alternate(rng, prior, log_likelihood, 10_000)
    agrees(run, joint / joint.sum())


def test_learned_mean_is_a_geometric_number_of_components(rng: Generator) -> None:
    prior = MixtureOfFiniteMixtures(gamma=0.8, learn=True, shape=1.0, rate=0.5)
    success = 0.5 / 1.5
    expected = np.zeros(len(SIZES))
    for at, sizes in enumerate(SIZES):
        for K in range(len(sizes), 400):
            ways = np.prod(np.arange(K - len(sizes) + 1, K + 1.0))
            weights = np.prod([np.prod(0.8 + np.arange(size)) for size in sizes])
            total = np.prod(0.8 * K + np.arange(N))
            expected[at] += success * (1 - success) ** (K - 1) * ways * weights / total
    assert expected.sum() == pytest.approx(1.0, abs=1e-9)
    agrees(alternate(rng, prior, FLAT, 10_000), expected)


@pytest.mark.slow
def test_alpha_and_sigma_of_the_specification(rng: Generator) -> None:
    # gauss1 with n = 4, alpha ~ Gamma(2, 2), sigma ~ U(0, 1): means and partition.
    oracle = json.loads(DATA.read_text())["learned"]
    codes = ["".join(map(str, labels)) for labels in partitions(N)]
    log_posterior = np.log([oracle["dirichlet_process"][code] for code in codes])
    log_likelihood = log_posterior + oracle["log_evidence"] - log_prior(DirichletProcess(), N)
    log_p, weights, points = averaged(
        lambda a, s: NormalizedGeneralizedGamma(alpha=a, sigma=s),
        gamma_law(2.0, 2.0),
        beta_law(1.0, 1.0),
    )
    joint = weights[:, None] * np.exp(log_p + log_likelihood)
    joint /= joint.sum()
    means = points @ joint.sum(axis=1)
    assert means == pytest.approx([oracle["mean_alpha"], oracle["mean_sigma"]], abs=6e-5)

    prior = NormalizedGeneralizedGamma(learn=True, shape=2.0, rate=2.0, learn_sigma=True)
    run = alternate(rng, prior, log_likelihood, 20_000, lambda p: [p.alpha, p.sigma])
    agrees(run, joint.sum(axis=0))
    error = run.watched.std(axis=0, ddof=1) / np.sqrt(N_BATCHES)
    distance = np.abs(run.watched.mean(axis=0) - means)
    assert (distance < 3.5 * error).all(), (distance, error)
    assert (error < 0.02).all()


@pytest.mark.parametrize("name", [*FIXED, *LEARNED])
def test_an_update_is_a_function_of_the_seed(name: str) -> None:
    prior = FIXED[name] if name in FIXED else LEARNED[name].prior
    sizes = np.array([40, 7, 1, 1, 2], dtype=np.int64)
    first = prior.resample(np.random.default_rng(5), sizes)
    again = prior.resample(np.random.default_rng(5), sizes)
    assert first == again
    assert first != prior
    assert first == prior.resample(np.random.default_rng(5), sizes[::-1])


def test_nothing_is_learned_unasked(rng: Generator) -> None:
    sizes = np.array([40, 7, 1, 1, 2], dtype=np.int64)
    nggp = NormalizedGeneralizedGamma(alpha=2.0, sigma=0.3).resample(rng, sizes)
    assert (nggp.alpha, nggp.sigma) == (2.0, 0.3)
    pitman_yor = PitmanYor(alpha=2.0, discount=0.3).resample(rng, sizes)
    assert replace(pitman_yor, g=None) == PitmanYor(alpha=2.0, discount=0.3)
    for prior in (DirichletProcess(), MixtureOfFiniteMixtures(), UniformAssignment()):
        assert prior.resample(rng, sizes) is prior
