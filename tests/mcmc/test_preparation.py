"""Columns that say nothing, and components of many."""

import numpy as np
import pytest
from numpy.random import Generator

from weald.mcmc.offline.preparation import (
    Components,
    informative_columns,
    skewed_columns,
)


def test_columns_of_one_value_and_copies_say_nothing(rng: Generator) -> None:
    x = rng.normal(size=(50, 2))
    table = np.column_stack(
        [np.full(50, 3.0), x[:, 0], x[:, 1], 2.0 - 5.0 * x[:, 0], x.sum(axis=1)]
    )
    found = informative_columns(table)
    assert found.constant == [0]
    assert found.repeated == [(3, 1)]
    assert found.kept.tolist() == [1, 2, 4]


def test_heavy_tails_are_seen_where_a_logarithm_mends_them(rng: Generator) -> None:
    normal = 20.0 + rng.normal(size=500)
    wide = np.exp(rng.normal(size=500))
    below = wide - 5.0
    assert skewed_columns(np.column_stack([normal, wide, below])).tolist() == [1]


def test_components_hold_nine_tenths_within_bounds(rng: Generator) -> None:
    hidden = rng.normal(size=(400, 3)) * [9.0, 6.0, 3.0]
    table = hidden @ rng.normal(size=(3, 40)) + 0.01 * rng.normal(size=(400, 40))
    found = Components.of(table)
    assert found.axes.shape == (40, 8)
    np.testing.assert_allclose(found.axes.T @ found.axes, np.eye(8), atol=1e-12)
    assert found.share > 0.99
    assert Components.of(rng.normal(size=(400, 40))).axes.shape[1] == 20
    assert Components.of(rng.normal(size=(60, 400))).axes.shape == (400, 6)
    assert Components.of(table, 5).axes.shape[1] == 5
    spread = found.along(table).std(axis=0)
    assert (np.diff(spread) <= 0.0).all()


def test_units_count_only_where_columns_are_alike(rng: Generator) -> None:
    """Pixels keep their units; a change of units of one column in a mixed table is nothing."""
    alike = rng.normal(size=(300, 20)) * rng.uniform(0.1, 1.0, 20)
    assert np.ptp(Components.of(alike).scale) == 0.0
    mixed = alike * 10.0 ** rng.integers(-3, 4, 20)
    units = np.ones(20)
    units[4] = 1e3
    one, other = (Components.of(table) for table in (mixed, mixed * units))
    np.testing.assert_allclose(
        np.abs(one.along(mixed)), np.abs(other.along(mixed * units)), atol=1e-8
    )


def test_scores_of_components_keep_their_units(rng: Generator) -> None:
    scores = rng.normal(size=(500, 30)) * 0.85 ** np.arange(30)
    found = Components.of(scores)
    assert np.ptp(found.scale) == 0.0
    assert found.share > 0.9


@pytest.mark.parametrize("n_absurd", [1, 3])
def test_a_few_absurd_rows_do_not_turn_the_axes(n_absurd: int, rng: Generator) -> None:
    table = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 20)) + 0.1 * rng.normal(size=(300, 20))
    dirty = table.copy()
    dirty[:n_absurd, :2] = 1e6
    clean, turned = (Components.of(each, 4) for each in (table, dirty))
    # Cosines of the angles between the two planes.
    cosines = np.linalg.svd(clean.axes.T @ turned.axes, compute_uv=False)
    assert cosines.min() > 0.95
