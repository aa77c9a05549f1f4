"""A million observations: finite and consistent. How quick: `benchmarks/priors.py`."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.random import Generator

from benchmarks.priors import N_BLOCKS, PRIORS, N, sizes

every_prior = pytest.mark.parametrize("name", PRIORS)


@every_prior
def test_finite_and_consistent(name: str) -> None:
    prior, blocks = PRIORS[name], sizes()
    before = prior.log_probability(blocks)
    assert np.isfinite(before)
    predictive = prior.log_predictive(blocks)
    assert np.exp(predictive).sum() == pytest.approx(1.0, abs=1e-10)
    # The last digit of a log probability of this size is the limit.
    limit = 64 * np.spacing(15.0 * N)
    grown = blocks.copy()
    grown[3] += 1
    assert prior.log_probability(grown) - before == pytest.approx(predictive[3], abs=limit)
    opened = prior.log_probability(np.append(blocks, 1)) - before
    assert opened == pytest.approx(predictive[-1], abs=limit)


@every_prior
def test_tables_keep_their_digits(name: str) -> None:
    # The increments that kernels use lose nothing to the size of the table's entries.
    prior, blocks = PRIORS[name], sizes()
    seating = prior.seating(N + 1, N_BLOCKS)
    if seating.is_product:
        assert np.ptp(np.diff(seating.log_blocks)) <= 2 * np.spacing(seating.log_blocks[-1])
        return
    opening = seating.log_blocks[N_BLOCKS + 1] - seating.log_blocks[N_BLOCKS]
    opening += seating.size_table[1]
    join = np.log(blocks + seating.shift) if seating.scale else np.zeros(N_BLOCKS)
    weights = np.append(join, opening)
    share = np.exp(opening - np.logaddexp.reduce(weights))
    assert share == pytest.approx(np.exp(prior.log_predictive(blocks)[-1]), rel=1e-7)


@every_prior
def test_update_with_a_million_observations(name: str, rng: Generator) -> None:
    learning = replace(PRIORS[name], learn=True)  # type: ignore[type-var]  # all are dataclasses
    moved = learning.resample(rng, sizes())
    assert moved != learning
    assert np.isfinite(moved.log_probability(sizes()))
