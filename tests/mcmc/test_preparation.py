"""Columns that say nothing, and those that a logarithm would mend."""

import numpy as np
from numpy.random import Generator

from weald.mcmc.offline.preparation import informative_columns, skewed_columns


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
