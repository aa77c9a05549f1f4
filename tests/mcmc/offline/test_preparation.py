"""Columns that say nothing, and those that a logarithm would mend."""

import numpy as np
from numpy.random import Generator

from weald.mcmc.offline.preparation import (
    informative_columns,
    skewed_columns,
    too_far,
    values_apart,
    without_absurd,
)


def test_columns_of_one_value_and_copies_say_nothing(rng: Generator) -> None:
    x = rng.normal(size=(50, 2))
    table = np.column_stack(
        [np.full(50, 3.0), x[:, 0], x[:, 1], 2.0 - 5.0 * x[:, 0], x.sum(axis=1)]
    )
    found = informative_columns(table)
    assert found.constant == [0]
    assert found.repeated == [(3, 1)]
    assert found.combined == [4]
    assert found.kept.tolist() == [1, 2]


def test_what_repeats_a_sum_is_told_and_few_rows_say_nothing_of_sums(rng: Generator) -> None:
    x = rng.normal(size=(50, 3))
    total = x @ [1.0, -2.0, 0.5] + 7.0
    found = informative_columns(np.column_stack([x, total, 3.0 * total]))
    assert (found.repeated, found.combined) == ([(4, 3)], [3])
    assert found.kept.tolist() == [0, 1, 2]
    assert informative_columns(rng.normal(size=(30, 40))).kept.size == 40


def test_a_few_rows_in_common_are_no_repetition(rng: Generator) -> None:
    x = rng.normal(size=(200, 3))
    rare = np.zeros((200, 2))
    rare[17:20] = 1.0
    assert informative_columns(np.column_stack([x, rare])).kept.size == 5


def test_an_absurd_row_makes_no_columns_alike(rng: Generator) -> None:
    x = rng.normal(size=(100, 4))
    x[7] = 1e9
    assert informative_columns(x).kept.size == 4
    assert len(without_absurd(x)) == 99
    x[:10] = 1e9
    assert len(without_absurd(x)) == 100


def test_heavy_tails_are_seen_where_a_logarithm_mends_them(rng: Generator) -> None:
    normal = 20.0 + rng.normal(size=500)
    wide = np.exp(rng.normal(size=500))
    below = wide - 5.0
    assert skewed_columns(np.column_stack([normal, wide, below])).tolist() == [1]


def test_values_that_stand_apart(rng: Generator) -> None:
    whole = rng.integers(20, 90, 400).astype(np.float64)
    zeros, nines = whole.copy(), rng.normal(size=400)
    zeros[:30], nines[:30] = 0.0, 9.0
    nines[30:60] = np.nan
    rare, counts = whole.copy(), rng.integers(0, 30, 400).astype(np.float64)
    rare[:10] = 0.0
    counts[:200] = 0.0
    codes = np.repeat([0.0, 7.0, 8.0, 9.0], 100)
    found = values_apart(np.column_stack([whole, zeros, nines, rare, counts, codes]))
    assert found == {1: 0.0, 2: 9.0}
    # As they are standardised, or in any other unit.
    assert list(values_apart(-3.0 * np.column_stack([whole, zeros]))) == [1]


def test_a_number_too_far_for_sums_is_found_by_its_column(rng: Generator) -> None:
    x = rng.normal(size=(300, 4)) * [1.0, 1e-6, 1e6, 1.0]
    x[7, 1], x[9, 2], x[11, 0] = 1.0, 1e12, 500.0
    x[13, 3], x[:, 0] = np.nan, np.round(x[:, 0])
    assert np.argwhere(too_far(x)).tolist() == [[7, 1], [9, 2]]
    assert not too_far(np.full((4, 2), np.nan)).any()
    # What is seldom anything else has its spread from that.
    assert not too_far(np.eye(300, 2) * 1e9).any()
