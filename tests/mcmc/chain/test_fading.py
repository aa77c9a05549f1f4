"""Forgetting by weight: the weighted-likelihood posterior, with whole numbers in the prior."""

import numpy as np
import pytest

from tests.mcmc.chains import chain_faults, clumps, same, started
from tests.mcmc.small_chains import GAUSS_1, posterior, small_chain, total_variation
from tests.treecore.invariants import describe
from weald.mcmc.chain.chain import MixtureChain
from weald.treecore.errors import ParameterError

WEIGHTS = np.array([0.25, 0.5, 0.5, 1.0, 1.0])


def faded() -> MixtureChain:
    """The five observations with these weights."""
    chain = small_chain(GAUSS_1)
    chain.insert(GAUSS_1[:1])
    chain.fade(0.5)
    chain.insert(GAUSS_1[1:3])
    chain.refine()
    chain.fade(0.5)
    chain.insert(GAUSS_1[3:])
    return chain


def test_weights_and_counts() -> None:
    chain = faded()
    rows = chain.atom_rows(np.arange(5))
    assert rows[:, 1].tolist() == WEIGHTS.tolist()
    assert (rows[:, 0] == 1.0).all()
    assert chain.n_observations == 5


def test_weighted_posterior() -> None:
    chain = faded()
    expected = posterior(chain, GAUSS_1, WEIGHTS)
    found, noise = total_variation(chain, list(range(5)), expected, 2000)
    assert found < 1.5 * noise
    # What would be found if weights were taken for counts, or for nothing.
    plain = posterior(chain, GAUSS_1)
    assert 0.5 * sum(abs(expected[s] - plain[s]) for s in plain) > 4 * noise


def test_everything_follows_from_the_weights() -> None:
    values = clumps(2, 80)
    chain = started("nggp", values)
    for at in range(0, 80, 20):
        chain.insert(values[at : at + 20])
        chain.refine()
        chain.fade(0.7)
        assert describe(chain_faults(chain)) == []
    assert same(chain, MixtureChain.restore(chain.state()))
    before = chain.state()
    chain.fade(1.0)
    assert all(np.array_equal(before[key], value) for key, value in chain.state().items())


def test_factors() -> None:
    chain = small_chain(GAUSS_1)
    chain.fade(0.5)
    for wrong in (0.0, -1.0, 1.5, float("nan")):
        with pytest.raises(ParameterError):
            chain.fade(wrong)
