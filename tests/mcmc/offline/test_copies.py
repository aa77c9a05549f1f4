"""Copies of rows are known by how many pairs are alike, and nearly alike."""

import numpy as np
import pytest

from weald.mcmc.offline.copies import originals, sees_once

N = 400


def with_copies(
    rng: np.random.Generator, values: np.ndarray, n_copies: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows with copies of some among them, and the first row that each is like."""
    drawn = np.concatenate([np.arange(len(values)), rng.integers(0, len(values), n_copies)])
    drawn = rng.permutation(drawn)
    _, first, kind = np.unique(drawn, return_index=True, return_inverse=True)
    return values[drawn], first[kind]


@pytest.fixture
def rounded(rng: np.random.Generator) -> np.ndarray:
    """Measures of three kinds to two digits: no column has a value for each row."""
    centres = rng.normal(0.0, 2.0, (3, 5))
    return (centres[rng.integers(0, 3, N)] + rng.normal(size=(N, 5))).round(1)


def test_copies_are_of_the_first_row_like_them(
    rng: np.random.Generator, rounded: np.ndarray
) -> None:
    values, first = with_copies(rng, rounded, 60)
    assert (first != np.arange(len(values))).sum() == 60
    assert np.array_equal(originals(values), first)
    # Units and places of columns don't matter, nor do gaps, nor which zero it is.
    assert np.array_equal(originals(values[:, ::-1] * [1e-9, 3.0, 1e7, -1.0, 7.0]), first)
    gaps = np.where(values == values[0], np.nan, values)
    assert np.array_equal(originals(gaps), first)
    zeros = np.where(np.arange(len(values))[:, None] % 2, 0.0, -0.0)
    assert np.array_equal(originals(np.hstack([values, zeros])), first)


def test_no_row_is_a_copy_where_none_is(rounded: np.ndarray) -> None:
    assert np.array_equal(originals(rounded), np.arange(N))


def test_rows_that_are_alike_by_chance_are_none(rng: np.random.Generator) -> None:
    flags = (rng.random((N, 8)) < 0.2).astype(float)
    numbers = rng.integers(0, 30, (N, 2)).astype(float)
    # Templates with a slip here and there: columns hang together as no count of values says.
    templates = rng.integers(0, 60, (40, 9)).astype(float)[rng.integers(0, 40, N)]
    slips = np.where(rng.random(templates.shape) < 0.1, 99.0, templates)
    for values in (flags, numbers, slips, np.ones((N, 3)), np.empty((0, 2)), np.ones((1, 1))):
        assert np.array_equal(originals(values), np.arange(len(values)))
    for column in (flags, numbers, slips):
        assert len(np.unique(column, axis=0)) < N


def test_sensors_of_which_one_ticks_at_a_time_repeat_no_rows(rng: np.random.Generator) -> None:
    ticks = np.zeros((2000, 4))
    at = np.sort(rng.choice(2000, 700, replace=False))
    ticks[at, rng.integers(0, 4, 700)] = rng.choice([-0.1, 0.1], 700)
    values = np.cumsum(ticks, axis=0).round(1)
    assert len(np.unique(values, axis=0)) < 800
    assert np.array_equal(originals(values), np.arange(2000))


def test_where_a_sensor_is_stuck_is_a_place(rng: np.random.Generator, rounded: np.ndarray) -> None:
    values, first = with_copies(rng, rounded, 60)
    stuck = np.vstack([values, np.tile([[1.0, 2.0, 3.0, 4.0, 5.0]], (80, 1))])
    assert np.array_equal(originals(stuck), [*first, *range(len(values), len(stuck))])


def test_who_says_what_clusters_are_like_has_all_rows() -> None:
    assert sees_once("auto", {})
    assert sees_once("gaussian", {}, learn_base=True)
    assert not sees_once("gaussian", {"kappa": 1.0})
    assert not sees_once("gaussian", {}, learn_base=False)
    assert not sees_once("poisson", {})
