"""What every family must satisfy. The suite finds the families by itself."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import typeof
from numpy.typing import NDArray

from tests.treecore.family.examples import (
    NAMES,
    PARAMETERS,
    Array,
    evaluate,
    example,
    marginal_of,
    observations,
    row_of,
    sample_of,
    takes_missing,
)
from tests.treecore.family.interpreted import found
from weald.treecore.errors import ParameterError
from weald.treecore.family import FAMILIES, spec_of
from weald.treecore.family.interface.base import extends_cheaply, statistics_width, workspace
from weald.treecore.family.totals import log_marginals, single_rows

each_family = pytest.mark.parametrize("name", NAMES)
seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 12)


def close(found: Array | float, expected: Array | float, scale: Array | float = 0.0) -> bool:
    """Equal to 1e-9 of the larger of 1, the value and ``scale``."""
    largest = np.maximum(np.maximum(np.abs(expected), np.abs(scale)), 1.0)
    return bool((np.abs(np.asarray(found) - expected) <= 1e-9 * largest).all())


def with_gaps(name: str, n: int, seed: int) -> Array:
    """Observations, a quarter of them missing where the family allows it."""
    values = observations(name, n, seed)
    if takes_missing(name):
        values[np.random.default_rng(seed).random(values.shape) < 0.25] = np.nan
    return values


@each_family
@given(n=sizes, seed=seeds)
@settings(max_examples=60)
def test_predictive_densities_multiply_to_the_marginal(name: str, n: int, seed: int) -> None:
    found = evaluate(example(name), with_gaps(name, n, seed))
    steps = np.diff(found.marginal, prepend=0.0)
    assert close(found.predictive, steps, found.marginal)
    assert close(found.extended, found.predictive)
    assert close(found.union, found.marginal)
    assert close(found.sums[0], found.sums[1])
    assert close(found.halves, found.marginal[-1])
    reached, missed, unasked = found.above
    assert close(reached, found.predictive)
    assert (missed == -np.inf).all()
    assert close(unasked, found.predictive)
    if extends_cheaply(example(name)):
        assert (found.bounds >= found.predictive).all()


@each_family
@given(n=sizes, seed=seeds)
@settings(max_examples=60)
def test_a_member_is_as_probable_by_the_table_of_all_as_by_that_of_the_others(
    name: str, n: int, seed: int
) -> None:
    by_table, others = evaluate(example(name), with_gaps(name, n, seed)).members
    told = np.isfinite(by_table)
    assert close(by_table[told], others[told], 10.0)
    # A member of few is most of what they scatter.
    if name == "gaussian" and n > 4 * example(name).mean.shape[0]:
        assert told.mean() > 0.5


@each_family
@given(n=sizes, seed=seeds)
@settings(max_examples=60)
def test_the_order_of_observations_does_not_matter(name: str, n: int, seed: int) -> None:
    values = with_gaps(name, n, seed)
    shuffled = np.random.default_rng(seed).permutation(values)
    assert close(marginal_of(example(name), shuffled), marginal_of(example(name), values))


@each_family
@given(n=sizes, seed=seeds)
@settings(max_examples=60)
def test_taking_out_undoes_adding(name: str, n: int, seed: int) -> None:
    values = with_gaps(name, n, seed)
    found = evaluate(example(name), values)
    rest = [marginal_of(example(name), values[r + 1 :]) for r in range(n)]
    # Heavy-tailed draws cancel against the sums that they were part of.
    assert close(found.remaining, np.array(rest), 1e3 * np.abs(found.marginal).max())
    assert (found.rows[n + 1] == 0.0).all()


@pytest.fixture(scope="module")
def interpreted(pytestconfig: pytest.Config) -> dict[str, dict[str, list[float]]]:
    """What every family finds in a process that compiles nothing."""
    module = "tests.treecore.family.interpreted"
    finished = subprocess.run(
        [sys.executable, "-m", module],
        cwd=pytestconfig.rootpath,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        stdout=subprocess.PIPE,
        check=True,
    )
    return dict(json.loads(finished.stdout))


@each_family
def test_compiled_and_interpreted_agree(
    name: str, interpreted: dict[str, dict[str, list[float]]]
) -> None:
    for field, expected in found(name).items():
        assert close(np.array(expected), np.array(interpreted[name][field]))


@each_family
@given(n=sizes, seed=seeds)
@settings(max_examples=60)
def test_whole_weights_count_copies(name: str, n: int, seed: int) -> None:
    values = with_gaps(name, n, seed)
    copies = np.random.default_rng(seed).integers(0, 4, size=n)
    weighted = evaluate(example(name), values, copies.astype(np.float64))
    repeated = np.repeat(values, copies, axis=0)
    assert close(weighted.marginal[-1], marginal_of(example(name), repeated))
    assert close(weighted.union, weighted.marginal)
    assert close(weighted.sums[0], weighted.sums[1])


@each_family
@given(n=sizes, seed=seeds)
@settings(max_examples=60)
def test_fractions_of_a_weight_add_up(name: str, n: int, seed: int) -> None:
    values = with_gaps(name, n, seed)
    share = np.random.default_rng(seed).random(n)
    divided = marginal_of(
        example(name), np.concatenate([values, values]), np.concatenate([share, 1.0 - share])
    )
    assert close(divided, marginal_of(example(name), values), 1e2)


@each_family
def test_no_weight_says_nothing(name: str) -> None:
    found = evaluate(example(name), observations(name, 5, 3), np.zeros(5))
    assert (found.marginal == 0.0).all()


@pytest.mark.parametrize("name", [name for name in NAMES if takes_missing(name)])
@given(n=sizes, seed=seeds)
@settings(max_examples=60)
def test_missing_values_leave_their_feature_alone(name: str, n: int, seed: int) -> None:
    family, values = example(name), with_gaps(name, n, seed)
    alone = 0.0
    for c in range(values.shape[1]):
        masked = np.full_like(values, np.nan)
        masked[:, c] = values[:, c]
        seen = ~np.isnan(values[:, c])
        assert close(marginal_of(family, masked), marginal_of(family, masked[seen]))
        alone += marginal_of(family, masked)
    assert close(alone, marginal_of(family, values))
    assert marginal_of(family, np.full_like(values, np.nan)) == 0.0


@pytest.mark.parametrize("name", [name for name in NAMES if not takes_missing(name)])
def test_a_family_that_cannot_take_missing_values_says_so(name: str) -> None:
    values = sample_of(name)
    values[7, 1] = np.nan
    fault = FAMILIES[name].validate(example(name), values)
    assert fault is not None
    row, reason = fault
    assert row == 7
    assert reason.startswith("feature 1 is nan")
    assert "no missing values" in reason


@each_family
def test_validation_accepts_its_own_draws_and_no_other_shape(name: str) -> None:
    spec, family = FAMILIES[name], example(name)
    values = observations(name, 50, 4)
    assert spec.validate(family, values) is None
    narrow = spec.validate(family, values[:, :-1])
    assert narrow is not None
    assert f"needs {values.shape[1]} numbers" in narrow[1]
    values[3, 0] = np.inf
    fault = spec.validate(family, values)
    assert fault is not None
    assert fault[0] == 3


@each_family
def test_parameters_build_the_same_family(name: str) -> None:
    spec, family = FAMILIES[name], example(name)
    saved = json.loads(json.dumps(spec.parameters(family)))
    values = observations(name, 10, 5)
    again = spec.build(saved, np.empty((0, values.shape[1])))
    assert spec.parameters(again) == spec.parameters(family)
    assert spec_of(again) is spec
    assert marginal_of(again, values) == marginal_of(family, values)
    types = [typeof(value) for value in (again, family)]  # type: ignore[no-untyped-call]  # numba
    assert types[0] == types[1], "kernels would be compiled twice"


@each_family
def test_an_unknown_parameter_is_named(name: str) -> None:
    with pytest.raises(ParameterError, match=f"{name} has no parameter 'colour'"):
        FAMILIES[name].build({"colour": 1.0}, sample_of(name))


@each_family
def test_a_sample_of_one_or_none_is_enough(name: str) -> None:
    for sample in (sample_of(name)[:1], sample_of(name)[:0]):
        family = FAMILIES[name].build(PARAMETERS.get(name, {}), sample)
        assert np.isfinite(marginal_of(family, sample_of(name)))


@each_family
def test_a_cluster_is_described_feature_by_feature(name: str) -> None:
    spec, family = FAMILIES[name], example(name)
    values = with_gaps(name, 30, 6)
    names = [f"column {c}" for c in range(values.shape[1])]
    summaries = spec.describe(family, row_of(family, values), names)
    assert [summary.name for summary in summaries] == names
    assert [summary.n for summary in summaries] == (~np.isnan(values)).sum(axis=0).tolist()
    for summary, column in zip(summaries, values.T, strict=True):
        if summary.kind == "category":
            codes, counts = np.unique(column[~np.isnan(column)], return_counts=True)
            assert counts[codes == float(summary.centre)] == counts.max()
        else:
            assert close(float(summary.centre), np.nanmean(column))
        if summary.kind == "number":
            assert summary.spread is not None
            # A row of gamma has no squares: its spread is that of the gammas that fit.
            tolerance = 0.25 if name == "gamma" else 1e-9
            assert summary.spread == pytest.approx(np.nanstd(column), rel=tolerance)


@each_family
def test_an_empty_cluster_is_described_by_the_prior(name: str) -> None:
    spec, family = FAMILIES[name], example(name)
    names = [str(c) for c in range(sample_of(name).shape[1])]
    summaries = spec.describe(family, np.zeros(statistics_width(family)), names)
    assert [summary.name for summary in summaries] == names
    assert all(summary.n == 0 and np.isfinite(float(summary.centre)) for summary in summaries)


def _log_densities(name: str, cluster: Array, values: Array) -> NDArray[np.float64]:
    """Log predictive density of each value given the cluster, each on its own."""
    family = example(name)
    known = row_of(family, cluster)[None]
    joint = known + single_rows(family, values)
    return np.asarray(log_marginals(family, joint)) - log_marginals(family, known)


@each_family
def test_draws_come_from_the_predictive_density(name: str, rng: np.random.Generator) -> None:
    # For draws from p the mean of q / p is 1 whatever the density q; a cluster with one observation
    # more or less gives a q close enough to p for a small variance. False alarms: below 1e-5.
    spec, cluster = FAMILIES[name], observations(name, 12, 7)
    values = spec.draw(example(name), row_of(example(name), cluster), rng, 4000)
    own = _log_densities(name, cluster, values)
    neighbours = [np.delete(cluster, r, axis=0) for r in range(4)]
    neighbours += [np.concatenate([cluster, cluster[r : r + 1]]) for r in range(4)]
    for neighbour in neighbours:
        ratio = np.exp(_log_densities(name, neighbour, values) - own)
        assert abs(ratio.mean() - 1.0) <= 5.0 * ratio.std() / np.sqrt(ratio.size) + 1e-9


@each_family
def test_the_workspace_holds_a_sum_of_rows(name: str) -> None:
    family = example(name)
    assert workspace(family).shape[1] >= statistics_width(family)
