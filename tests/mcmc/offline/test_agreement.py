"""Chains from different starts agree about a posterior that nobody can enumerate."""

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.batch_means import batch_means
from tests.mcmc.chains import clumps
from weald.mcmc.offline.fit import FitSettings, run_chain

N = 150
ITERATIONS = 6500
BURN_IN = 500
N_BATCHES = 25


def summaries(labels: NDArray[np.int64]) -> tuple[float, float, float]:
    """Blocks, the share of the largest, and pairs that are together."""
    sizes = np.bincount(labels)
    return float(sizes.shape[0]), sizes.max() / N, float((sizes.astype(float) ** 2).sum()) / N**2


@cache
def run(kernels: tuple[str, ...], init: str, prior: str) -> NDArray[np.float64]:
    """Summaries and the log joint of every iteration after the first ones."""
    settings = FitSettings(
        kernels=kernels,
        init=init,
        prior=prior,
        learn_hyper=False,
        iterations=ITERATIONS,
        seed=len(init),
        keep_labels=True,
    )
    trace = run_chain(clumps(11, N), settings, 0, lambda: 0.0)
    rows = [
        (*summaries(labels), y) for labels, y in zip(trace.labels, trace.log_joint, strict=True)
    ]
    return np.array(rows)[BURN_IN:]


def check(one: NDArray[np.float64], other: NDArray[np.float64]) -> None:
    """Means within three standard errors of their difference."""
    means, errors = zip(*(batch_means(each, N_BATCHES) for each in (one, other)), strict=True)
    error = np.hypot(*errors)
    assert (np.abs(means[0] - means[1]) < 3.0 * error).all(), (means, errors)
    # Known to a fraction of how much they vary at all: else agreement says nothing.
    assert (error < 0.15 * one.std(axis=0)).all()


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["dp", "nggp", "mfm"])
def test_two_starts(prior: str) -> None:
    # Leaf moves alone take thousands of sweeps to leave a bad start: scans of all atoms help.
    kernels = ("tgmcmc", "gibbs")
    check(run(kernels, "ibhc", prior), run(kernels, "one", prior))


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["dp", "nggp", "mfm"])
def test_two_kernels(prior: str) -> None:
    """Tree-guided moves and one that knows of no tree."""
    check(run(("tgmcmc",), "ibhc", prior), run(("gibbs", "sams"), "singletons", prior))
