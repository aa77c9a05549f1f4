"""The family that predicts other rows better is the one that is taken."""

import itertools

import numpy as np
import pytest
from numpy.random import Generator

from weald.mcmc.offline.family_choice import choose_family
from weald.mcmc.offline.preparation import too_far
from weald.mcmc.settings import FitSettings

SETTINGS = FitSettings(family="auto")


def test_features_that_depend_on_each_other_inside_clusters_ask_for_a_covariance(
    rng: Generator,
) -> None:
    labels = rng.integers(0, 3, 400)
    mixing = np.array([[1.0, 1.0, 1.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.2]])
    values = rng.normal(size=(400, 3)) @ mixing
    choice = choose_family(values + 9.0 * labels[:, None], SETTINGS, lambda: 0.0)
    assert choice.family == "gaussian"
    assert "better than diagonal" in choice.reason


@pytest.mark.parametrize(
    ("n", "reason"), [(1, "there is only one row"), (2, "there are only 2 rows")]
)
def test_few_rows_are_told_as_one_would(n: int, reason: str) -> None:
    assert choose_family(np.eye(n, 3), SETTINGS, lambda: 0.0).reason == reason


def test_many_independent_features_do_not(rng: Generator) -> None:
    """Two clusters that overlap in every one of twenty features: a covariance is too much."""
    labels = rng.integers(0, 2, 500)
    values = rng.normal(size=(500, 20)) + 0.9 * labels[:, None]
    choice = choose_family(values, SETTINGS, lambda: 0.0)
    assert choice.family == "diagonal"
    assert "better than gaussian" in choice.reason
    assert choice == choose_family(values, SETTINGS, lambda: 0.0)


def test_heavy_tails_are_no_reason_to_refuse_a_row() -> None:
    """Clusters are learned to be far narrower than the tail is long."""
    draw = np.random.default_rng(0)
    tails = np.exp(draw.normal(0.0, 5.0, (1000, 2)))
    values = np.column_stack([tails, draw.normal(size=1000)])
    assert not too_far(values).any()
    choice = choose_family(values, SETTINGS, lambda: 0.0)
    assert choice.reason.startswith("it predicts 200 of 800 rows")
    # One that is too far for the rest of the sample is none of those that are predicted.
    few = np.vstack([values[:396, 2:] @ np.ones((1, 2)), np.full((4, 2), 1e12)])
    few += draw.normal(size=(400, 2))
    assert "of 396 rows" in choose_family(few, SETTINGS, lambda: 0.0).reason


def test_a_trial_stops_when_its_time_is_over(rng: Generator) -> None:
    """Each look at the clock takes a second, so that twenty sweeps do."""
    times = itertools.count()
    values = rng.normal(size=(100, 2)) + np.repeat([0.0, 9.0], 50)[:, None]
    choice = choose_family(values, SETTINGS, lambda: float(next(times)))
    assert "after 20 of 40 sweeps, as 20 seconds were over" in choice.reason
    times = itertools.count()
    choice = choose_family(values, SETTINGS, lambda: float(next(times)), seconds=5.0)
    assert "after 5 of 40 sweeps, as 5 seconds were over" in choice.reason
    assert "sweeps" not in choose_family(values, SETTINGS, lambda: 0.0).reason


@pytest.mark.parametrize(
    ("n", "d", "missing", "settings", "family", "why"),
    [
        (90, 2, True, SETTINGS, "diagonal", "missing"),
        (90, 1, False, SETTINGS, "gaussian", "one column"),
        (30, 2, False, SETTINGS, "gaussian", "only 30 rows"),
        (90, 2, False, FitSettings(family="auto", params={"kappa": 0.1}), "gaussian", "given"),
    ],
)
def test_where_there_is_nothing_to_try(
    n: int, d: int, missing: bool, settings: FitSettings, family: str, why: str, rng: Generator
) -> None:
    values = rng.normal(size=(n, d))
    if missing:
        values[3, 0] = np.nan
    choice = choose_family(values, settings, lambda: 0.0)
    assert choice.family == family
    assert why in choice.reason
