"""Tables side by side: the same weights as block by block, for every family that has them."""

import numpy as np
import pytest

from tests.treecore.family.examples import NAMES, example, observations, row_of
from weald.treecore.family import FAMILIES
from weald.treecore.family.interface.base import (
    fill_predictive,
    log_predictive,
    make_batched,
    observe,
    predictive_width,
    statistics_width,
    weigh,
    workspace,
)
from weald.treecore.family.interface.batched_predictive import NEGLIGIBLE, OneByOne, show

N_SLOTS, N_ATOMS = 9, 30
BATCHED = [name for name in NAMES if not isinstance(make_batched(example(name), 1), OneByOne)]


def test_the_families_with_many_features_have_them() -> None:
    assert {"gaussian", "bernoulli"} <= set(BATCHED) <= set(FAMILIES)


@pytest.mark.parametrize("name", BATCHED)
def test_weights_are_those_of_the_blocks_one_by_one(name: str) -> None:
    family, rng = example(name), np.random.default_rng(11)
    work, table = workspace(family), np.zeros((N_SLOTS, predictive_width(family)))
    batched = make_batched(family, N_SLOTS + 2)
    prior = rng.normal(size=N_SLOTS)
    for k in range(N_SLOTS):
        block = row_of(family, observations(name, int(rng.integers(1, 40)), k))
        fill_predictive(family, block[None, :], 0, table, k, work)
        show(batched, k, table, float(prior[k]))
    atoms = np.zeros((1, statistics_width(family)))
    slots = rng.permutation(N_SLOTS)[:-2]
    left_out = 0
    for values in observations(name, N_ATOMS, 5):
        observe(family, values[None, :], 0, atoms, 0)
        whole = [float(prior[k] + log_predictive(family, table, k, atoms, 0)) for k in slots]
        # As if a weight were known that makes the lower half of these negligible.
        for largest in (-np.inf, float(np.median(whole)) + NEGLIGIBLE):
            weights = np.full(slots.size + 1, np.nan)
            weigh(family, batched, N_SLOTS, slots, atoms, 0, largest, weights)
            kept = weights[:-1] > -np.inf
            np.testing.assert_allclose(weights[:-1][kept], np.array(whole)[kept], atol=1e-12)
            assert np.isnan(weights[-1])
            most = max(largest, *whole)
            assert all(np.array(whole)[~kept] < most - NEGLIGIBLE + 1e-9)
            left_out += int((~kept).sum())
    assert left_out or name != "gaussian"


def test_of_many_features_a_few_tell_which_blocks_are_beyond_notice(
    rng: np.random.Generator,
) -> None:
    d, n_blocks = 20, 24
    centres = 3.0 * rng.normal(size=(n_blocks, d))
    family = FAMILIES["gaussian"].build({}, np.repeat(centres, 4, axis=0))
    work, table = workspace(family), np.zeros((n_blocks, predictive_width(family)))
    batched = make_batched(family, n_blocks)
    for k in range(n_blocks):
        block = row_of(family, centres[k] + rng.normal(size=(60, d)))
        fill_predictive(family, block[None, :], 0, table, k, work)
        show(batched, k, table, 0.0)
    atoms, slots = np.zeros((1, statistics_width(family))), np.arange(n_blocks)
    for home in range(0, n_blocks, 4):
        observe(family, centres[home, None] + rng.normal(size=(1, d)), 0, atoms, 0)
        whole = np.array([log_predictive(family, table, k, atoms, 0) for k in range(n_blocks)])
        for largest in (-np.inf, whole[home]):
            weights = np.full(n_blocks, np.nan)
            weigh(family, batched, n_blocks, slots, atoms, 0, largest, weights)
            kept = weights > -np.inf
            assert kept[home]
            np.testing.assert_allclose(weights[kept], whole[kept], rtol=1e-12)
            assert (whole[~kept] < whole[home] - NEGLIGIBLE + 1e-9).all()
