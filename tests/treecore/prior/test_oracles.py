"""Numbers computed elsewhere with many digits: ``tests/treecore/data/prior_oracles.json``.

The first seven tables are the specification's (O1, O2, O3, O5, O7, and what its learned chain and
its entity/mention example say); the last two were summed and integrated with 40 to 50 digits.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import gammaln

from tests.treecore.prior.small_partitions import log_prior, log_seated, partitions, sizes_of
from weald.treecore.prior import (
    DirichletProcess,
    MixtureOfFiniteMixtures,
    NormalizedGeneralizedGamma,
    PartitionPrior,
    PitmanYor,
    UniformAssignment,
)
from weald.treecore.prior.levy import Levy, laplace_exponent, log_normaliser, log_u_density, u_nodes

DATA = Path(__file__).resolve().parents[1] / "data" / "prior_oracles.json"
ORACLES: dict[str, Any] = json.loads(DATA.read_text())

TOLERANCE = 1e-10

NAMED: dict[str, PartitionPrior] = {
    "dp": DirichletProcess(alpha=1.0),
    "nggp": NormalizedGeneralizedGamma(alpha=1.0, sigma=0.5),
    "py": PitmanYor(alpha=1.0, discount=0.5),
}


@pytest.mark.parametrize("oracle", ORACLES["psi_kappa"], ids=str)
def test_o1_levy_measure(oracle: dict[str, float]) -> None:
    a, sigma, u = oracle["a"], oracle["sigma"], oracle["u"]
    exponent = laplace_exponent(Levy(a, sigma), np.log1p(u))
    assert exponent == pytest.approx(oracle["psi"], abs=TOLERANCE)
    seating = NormalizedGeneralizedGamma(alpha=a, sigma=sigma, log_u=np.log(u)).seating(1000, 1)
    for n in (1, 2, 7, 1000):
        log_kappa = seating.slope + seating.size_table[n] - n * np.log1p(u)
        assert log_kappa == pytest.approx(oracle[f"log_kappa_{n}"], rel=1e-14, abs=TOLERANCE)


@pytest.mark.parametrize("oracle", ORACLES["log_v"], ids=str)
def test_o2_normaliser(oracle: dict[str, Any]) -> None:
    value = log_normaliser(Levy(oracle["a"], oracle["sigma"]), oracle["n"], oracle["k"])
    assert value == pytest.approx(oracle["log_V"], abs=TOLERANCE)


@pytest.mark.parametrize("oracle", ORACLES["eppf"], ids=str)
def test_o3_partition_probability(oracle: dict[str, Any]) -> None:
    prior = NAMED[oracle["prior"].split()[0]]
    value = prior.log_probability(np.array(oracle["sizes"]))
    assert value == pytest.approx(oracle["log_p"], abs=TOLERANCE)


def log_likelihood(posterior: dict[str, float], log_evidence: float, n: int) -> NDArray[np.float64]:
    """Of each partition of n, from the posterior that a Dirichlet process with alpha 1 gives it."""
    codes = ["".join(map(str, labels)) for labels in partitions(n)]
    log_posterior = np.log([posterior[code] for code in codes])
    result: NDArray[np.float64] = log_posterior + log_evidence - log_prior(NAMED["dp"], n)
    return result


@pytest.mark.parametrize("data", ORACLES["posterior"])
def test_o5_evidence_and_number_of_clusters(data: str) -> None:
    oracle = ORACLES["posterior"][data]
    log_evidence = oracle["dp"]["log_evidence"]
    likelihood = log_likelihood(oracle["dirichlet_process"], log_evidence, 5)
    n_blocks = np.array([max(labels) + 1 for labels in partitions(5)])
    log_priors = {name: log_prior(prior, 5) for name, prior in NAMED.items()}
    # The density of u = 2 jointly with the partition: the seating, and what it leaves out as
    # constant, u^(n-1) (1+u)^(-n) exp(-psi(u)) / Gamma(n).
    nggp = NormalizedGeneralizedGamma(alpha=1.0, sigma=0.5, log_u=np.log(2.0))
    left_out = 4 * np.log(2) - 5 * np.log(3) - laplace_exponent(Levy(1.0, 0.5), np.log(3.0))
    log_priors["nggp_u2"] = log_seated(nggp, 5) + left_out - gammaln(5)
    for name, values in log_priors.items():
        log_joint = values + likelihood
        evidence = np.logaddexp.reduce(log_joint)
        assert evidence == pytest.approx(oracle[name]["log_evidence"], abs=TOLERANCE), name
        mean = float(np.exp(log_joint - evidence) @ n_blocks)
        assert mean == pytest.approx(oracle[name]["mean_clusters"], abs=TOLERANCE), name


@pytest.mark.parametrize("oracle", ORACLES["u_conditional"], ids=str)
def test_o7_law_of_log_u(oracle: dict[str, Any]) -> None:
    levy, n, k = Levy(oracle["a"], oracle["sigma"]), oracle["n"], oracle["k"]
    v, weights, _ = u_nodes(levy, n, k)
    mean = float(weights @ v)
    assert mean == pytest.approx(oracle["mean_log_u"], abs=TOLERANCE)
    deviation = np.sqrt(float(weights @ (v - mean) ** 2))
    assert deviation == pytest.approx(oracle["sd_log_u"], abs=TOLERANCE)
    ratio = log_u_density(levy, n, k, np.log(3.0)) - log_u_density(levy, n, k, 0.0)
    assert ratio == pytest.approx(oracle["log_density_ratio_u3_over_u1"], abs=TOLERANCE)


@pytest.mark.parametrize("oracle", ORACLES["predictive"], ids=str)
def test_o7_predictive_is_not_the_trap(oracle: dict[str, Any]) -> None:
    prior = NormalizedGeneralizedGamma(alpha=oracle["a"], sigma=oracle["sigma"])
    n, k = oracle["n"], oracle["k"]
    sizes = np.array([n - k + 1] + [1] * (k - 1))
    assert np.exp(prior.log_predictive(sizes)[-1]) == pytest.approx(oracle["new"], abs=TOLERANCE)


@pytest.mark.parametrize("oracle", ORACLES["extreme_log_v"], ids=str)
def test_normaliser_over_the_whole_range(oracle: dict[str, Any]) -> None:
    levy, n = Levy(oracle["alpha"], oracle["sigma"]), oracle["n"]
    # log V is the difference of terms as large as lgamma(n): their last digit is the limit.
    limit = 4 * np.spacing(gammaln(n) + abs(oracle["log_v"]) + 1.0)
    value = log_normaliser(levy, n, oracle["k"])
    assert value == pytest.approx(oracle["log_v"], abs=max(1e-12, limit))


@pytest.mark.parametrize("oracle", ORACLES["mixture_log_v"], ids=str)
def test_mixture_coefficient(oracle: dict[str, Any]) -> None:
    prior = MixtureOfFiniteMixtures(gamma=oracle["gamma"], mean=oracle["mean"])
    n, t = oracle["n"], oracle["t"]
    limit = max(1e-12, 8 * np.spacing(abs(oracle["log_v"])))
    tabulated = prior.seating(n, t + 2).log_blocks[t]
    assert tabulated == pytest.approx(oracle["log_v"], abs=limit)
    sizes = np.array([n - t + 1] + [1] * (t - 1))
    blocks = (gammaln(sizes + prior.gamma) - gammaln(prior.gamma)).sum()
    alone = prior.log_probability(sizes)
    assert alone == pytest.approx(oracle["log_v"] + blocks, abs=limit)


def test_entities_given_the_partition() -> None:
    oracle = ORACLES["entities"]
    prior = UniformAssignment(mu=oracle["mu"], sigma=oracle["sigma"], kmax=oracle["kmax"])
    posterior, n = oracle["posterior"], oracle["n"]
    # With the partition fixed, the likelihood cancels from the ratios between numbers of entities.
    for labels in partitions(n):
        code = "".join(str(label + 1) for label in labels)
        n_blocks = max(labels) + 1
        numbers = [K for K in range(1, 8) if f"{K}:{code}" in posterior]
        assert numbers == list(range(n_blocks, 8))
        expected = np.log([posterior[f"{K}:{code}"] for K in numbers])
        weights = np.array([prior.log_weight(K, n_blocks, n) for K in numbers])
        np.testing.assert_allclose(np.diff(weights), np.diff(expected), rtol=0.0, atol=TOLERANCE)
        total = np.logaddexp.reduce(weights)
        alone = prior.log_probability(sizes_of(labels))
        assert total == pytest.approx(alone, abs=TOLERANCE)
