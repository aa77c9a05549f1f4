"""R-hat and effective sample sizes beside those of ArviZ."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.signal import lfilter

from weald.answers.diagnostics.convergence import bulk_size, diagnose, r_hat, tail_size
from weald.answers.report_data import Chains

Draws = NDArray[np.float64]


@pytest.fixture(scope="module")
def arviz() -> Any:
    """Its import takes seconds, which a process that has no such test is spared."""
    import arviz

    return arviz


def autoregressive(rng: Generator, chains: int, n: int, memory: float) -> Draws:
    return np.asarray(lfilter([1.0], [1.0, -memory], rng.normal(size=(chains, n)), axis=1))


@pytest.mark.parametrize("chains", [1, 4])
@pytest.mark.parametrize("n", [8, 51, 400])
@pytest.mark.parametrize("memory", [-0.6, 0.0, 0.5, 0.95])
def test_as_arviz_has_them(chains: int, n: int, memory: float, rng: Generator, arviz: Any) -> None:
    draws = autoregressive(rng, chains, n, memory)
    if chains > 1:
        assert r_hat(draws) == pytest.approx(float(arviz.rhat(draws)), rel=1e-9)
    assert bulk_size(draws) == pytest.approx(float(arviz.ess(draws, method="bulk")), rel=1e-6)
    assert tail_size(draws) == pytest.approx(float(arviz.ess(draws, method="tail")), rel=1e-6)


def test_of_whole_numbers_too(rng: Generator, arviz: Any) -> None:
    draws = np.rint(2.0 * autoregressive(rng, 3, 200, 0.8))
    assert r_hat(draws) == pytest.approx(float(arviz.rhat(draws)), rel=1e-9)
    assert bulk_size(draws) == pytest.approx(float(arviz.ess(draws, method="bulk")), rel=1e-6)


def test_an_effective_size_is_that_of_the_process(rng: Generator) -> None:
    """An autoregression of memory r has n (1 - r) / (1 + r); 4 chains of 5,000."""
    draws = autoregressive(rng, 4, 5000, 0.7)
    assert bulk_size(draws) == pytest.approx(20_000 * 0.3 / 1.7, rel=0.1)


def test_chains_apart_are_seen(rng: Generator) -> None:
    draws = rng.normal(size=(2, 100)) + np.array([[0.0], [3.0]])
    assert r_hat(draws) > 1.5
    assert bulk_size(draws) < 10


def test_what_never_moved_has_none(rng: Generator) -> None:
    values = {"still": np.ones((2, 50)), "moving": rng.normal(size=(2, 50))}
    still, moving = diagnose(Chains("iteration", values, burnt=10, stationary=True))
    assert math.isnan(still["r_hat"])
    assert math.isfinite(moving["r_hat"])
    assert diagnose(Chains("iteration", values, burnt=45, stationary=True)) == []
    assert diagnose(Chains("iteration", values, burnt=10, stationary=False)) == []
