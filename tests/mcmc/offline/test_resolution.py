"""What is absurd, rounded or dependent in a table does not decide its clusters."""

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.offline.fit import FitSettings, fit
from weald.mcmc.offline.resolution import (
    Moves,
    moved,
    resolution_of,
    resolution_under,
    whole_steps,
    within_resolution,
)
from weald.treecore.family import FAMILIES
from weald.treecore.family.gaussian.robust_spread import spread_of, without_extremes

TRUTH = np.repeat(np.arange(3), 100)


def three(rng: Generator) -> NDArray[np.float64]:
    centres = np.array([[0.0, 0.0, 0.0], [6.0, 0.0, 3.0], [0.0, 6.0, -3.0]])
    return centres[TRUTH] + rng.normal(size=(300, 3))


def index_of(values: NDArray[np.float64], family: str = "gaussian") -> float:
    result = fit(values, FitSettings(family=family, iterations=40), lambda: 0.0)
    return adjusted_rand_index(result.labels[:300], TRUTH)


def test_moves_go_about_half_a_step_of_the_grid() -> None:
    values = np.column_stack([np.arange(400) % 4, np.linspace(0.0, 1.0, 400), np.full(400, 7.0)])
    off = (within_resolution(values) - values).std(axis=0)
    # Of 400 moves, four standard errors.
    within = 4 / np.sqrt(2 * 400)
    assert off[0] == pytest.approx(0.5, rel=within)
    assert off[1] == pytest.approx(0.5e-3 * spread_of(values)[1], rel=within)
    assert 0.0 < off[2] <= 1e-3
    np.testing.assert_array_equal(within_resolution(values), within_resolution(values))


@pytest.mark.parametrize("law", ["normal", "even"])
def test_a_stream_moves_what_it_takes_alike_in_any_batch(law: str, rng: Generator) -> None:
    values = np.column_stack([np.arange(200) % 4, rng.normal(size=200), np.full(200, np.nan)])
    moves, seqs = Moves(resolution_of(values), law), 1 + np.arange(200)
    whole = moved(values, moves, seqs, 7)
    parts = [moved(values[at], moves, seqs[at], 7) for at in (slice(0, 33), slice(33, 200))]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    shift = (whole - values)[:, :2] / moves.step[:2]
    assert np.isnan(whole[:, 2]).all()
    # Other in each column and of other seeds, and as the law says, within four standard errors: a
    # square of an even move has the variance 1 / 180, of a normal one 2 / 16.
    (variance, of_square) = (1 / 4, 2 / 16) if law == "normal" else (1 / 12, 1 / 180)
    assert (np.abs(shift) <= 0.5).all() == (law == "even")
    np.testing.assert_allclose(moves.variance()[:2] / moves.step[:2] ** 2, variance)
    assert np.abs(shift.mean(axis=0)).max() < 4 * np.sqrt(variance / 200)
    assert np.abs((shift**2).mean(axis=0) - variance).max() < 4 * np.sqrt(of_square / 200)
    assert np.abs(np.corrcoef(shift.T)[0, 1]) < 4 / np.sqrt(200)
    assert not np.allclose(whole[:, 0], moved(values, moves, seqs, 8)[:, 0])


@pytest.mark.parametrize("family", ["gaussian", "diagonal"])
def test_what_all_rows_of_a_kind_have_is_one_cluster(family: str, rng: Generator) -> None:
    """Calls that one kind never makes; a flag that says nothing is no kind."""
    kind = (rng.random(800) < 0.25).astype(np.int64)
    calls = np.where(kind == 1, rng.normal(50.0, 10.0, 800), 0.0)
    flag = (rng.random(800) < 0.1).astype(np.float64)
    values = np.column_stack([rng.normal(size=800) + 4.0 * kind, calls, flag])
    result = fit(values, FitSettings(family=family, iterations=40), lambda: 0.0)
    assert adjusted_rand_index(result.labels, kind) == 1.0


def test_spread_does_not_see_a_few_absurd_rows(rng: Generator) -> None:
    values = rng.normal(size=(300, 2))
    dirty = values.copy()
    dirty[7] = 1e4
    np.testing.assert_allclose(spread_of(dirty), spread_of(values), rtol=0.05)
    np.testing.assert_allclose(without_extremes(dirty).std(axis=0), values.std(axis=0), rtol=0.1)
    np.testing.assert_array_equal(without_extremes(values), values)
    gone = np.where(rng.random(values.shape) < 0.2, np.nan, values)
    assert np.isfinite(spread_of(gone)).all()


@pytest.mark.parametrize("family", ["gaussian", "diagonal"])
def test_an_absurd_record_changes_its_own_place_only(family: str, rng: Generator) -> None:
    values = three(rng)
    clean = index_of(values, family)
    assert clean > 0.9
    dirty = np.concatenate([values, [[1e4, -1e4, 1e4]]])
    assert abs(index_of(dirty, family) - clean) < 0.02


@pytest.mark.parametrize("kind", ["constant", "double", "sum", "flag"])
def test_columns_that_say_nothing_new(kind: str, rng: Generator) -> None:
    """Without any preparation: no density grows without bound."""
    values = three(rng)
    more = {
        "constant": np.full(300, 3.0),
        "double": 2.0 * values[:, 0],
        "sum": values.sum(axis=1),
        "flag": (rng.random(300) < 0.3).astype(float),
    }[kind]
    clean, dirty = index_of(values), index_of(np.column_stack([values, more]))
    assert abs(dirty - clean) < 0.02


def test_numbers_beside_other_kinds_are_moved_where_they_are_coarse(rng: Generator) -> None:
    """Small whole numbers were clusters of their own, each as narrow as can be."""
    kind = (rng.random(600) < 0.3).astype(np.int64)
    stars = np.rint(rng.normal(np.array([4.0, 1.5])[kind], 0.7))
    cents = np.rint(100.0 * rng.normal(np.array([9.0, 30.0])[kind], 3.0)) / 100.0
    way = (rng.random(600) < np.array([0.1, 0.9])[kind]).astype(np.float64)
    # It says nothing: these kinds of columns in this order are what other tests have compiled.
    colour = rng.integers(0, 3, 600)
    values = np.column_stack([stars, cents, way, colour])
    parts = [
        {"family": "diagonal", "columns": [0, 1]},
        {"family": "bernoulli", "columns": [2]},
        {"family": "categorical", "columns": [3]},
    ]
    family = FAMILIES["mixed"].build({"parts": parts}, values)
    np.testing.assert_array_equal(resolution_under(family, values), [1.0, 0.0, 0.0, 0.0])
    settings = FitSettings(family="mixed", params={"parts": parts}, iterations=40)
    result = fit(values, settings, lambda: 0.0)
    assert adjusted_rand_index(result.labels, kind) > 0.9


def test_whole_numbers_that_repeat_have_a_step(rng: Generator) -> None:
    whole = rng.poisson(3.0, 200)
    values = np.column_stack([whole, 10.0 * whole, whole + 0.5, np.arange(200), np.full(200, 7.0)])
    values[3] = np.nan
    np.testing.assert_array_equal(whole_steps(values), [1.0, 10.0, 0.0, 0.0, 0.0])
