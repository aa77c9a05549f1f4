"""Clusters of flags: independent features, each a Bernoulli share with a Beta(a, b) prior.

Row: [count, weight, then (ones, zeros) a feature], the weight of the observed ones and zeros. A
missing flag (NaN) adds to neither, which integrates it out exactly.
"""

from collections.abc import Mapping, Sequence
from math import log
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.treecore.compiled.compile import implements
from weald.treecore.family.interface.base import (
    FAMILIES,
    FamilySpec,
    FeatureSummary,
    fill_predictive,
    log_marginal,
    log_predictive,
    n_observed,
    observe,
    predictive_width,
    statistics_width,
    weigh,
    workspace,
)
from weald.treecore.family.interface.batched_predictive import BatchedPredictives, weigh_products
from weald.treecore.family.interface.checks import (
    feature_fault,
    first_true,
    positive,
    refuse_unknown,
    shape_fault,
)
from weald.treecore.family.interface.defaults import register_batched, register_dense
from weald.treecore.statistics.log_gamma import log_rising, rising_table
from weald.treecore.statistics.rows import Rows

__all__ = ["BetaBernoulli", "beta_bernoulli"]

_PARAMETERS = ("a", "b")


class BetaBernoulli(NamedTuple):
    """Hyperparameters (float64, one a feature) and what is computed from them once.

    Attributes
    ----------
    a, b:
        Prior weight of ones and of zeros.
    group:
        Which of the distinct pairs (a, b) a feature has, int64 (d).
    from_a, from_b, from_both:
        Log rising factorials from a, b and a + b, one row for each distinct pair.
    """

    a: NDArray[np.float64]
    b: NDArray[np.float64]
    group: NDArray[np.int64]
    from_a: NDArray[np.float64]
    from_b: NDArray[np.float64]
    from_both: NDArray[np.float64]


def beta_bernoulli(a: NDArray[np.float64], b: NDArray[np.float64]) -> BetaBernoulli:
    """Check the hyperparameters and make the family; ``a`` has one number a feature.

    ``b`` is a number or one a feature. Raises ParameterError.
    """
    d = np.asarray(a).shape[0]
    ones, zeros = positive("a", a, d), positive("b", b, d)
    pairs, group = np.unique(np.stack([ones, zeros]), axis=1, return_inverse=True)
    return BetaBernoulli(
        ones,
        zeros,
        group.reshape(-1).astype(np.int64),
        rising_table(pairs[0].copy()),
        rising_table(pairs[1].copy()),
        rising_table(pairs[0] + pairs[1]),
    )


@implements(statistics_width, BetaBernoulli)
def _statistics_width(family: BetaBernoulli) -> int:
    return 2 + 2 * family.a.size


@implements(predictive_width, BetaBernoulli)
def _predictive_width(family: BetaBernoulli) -> int:
    return 2 * family.a.size


@implements(workspace, BetaBernoulli)
def _workspace(family: BetaBernoulli) -> Rows:
    return np.zeros((1, 2 + 2 * family.a.size))


@implements(observe, BetaBernoulli)
def _observe(
    family: BetaBernoulli, values: NDArray[np.float64], r: int, rows: Rows, i: int
) -> None:
    rows[i, 0] = 1.0
    rows[i, 1] = 1.0
    for c in range(family.a.size):
        rows[i, 2 + 2 * c] = 1.0 if values[r, c] == 1.0 else 0.0
        rows[i, 3 + 2 * c] = 1.0 if values[r, c] == 0.0 else 0.0


@implements(log_marginal, BetaBernoulli)
def _log_marginal(family: BetaBernoulli, rows: Rows, i: int, _work: Rows) -> float:
    from_a, from_b, from_both = family.from_a, family.from_b, family.from_both
    total = 0.0
    for c in range(family.a.size):
        ones, zeros = rows[i, 2 + 2 * c], rows[i, 3 + 2 * c]
        group = family.group[c]
        total += log_rising(from_a, group, ones) + log_rising(from_b, group, zeros)
        total -= log_rising(from_both, group, ones + zeros)
    return total


@implements(fill_predictive, BetaBernoulli)
def _fill_predictive(
    family: BetaBernoulli, rows: Rows, i: int, table: Rows, k: int, _work: Rows
) -> None:
    # Table: (log p, log (1 - p)) a feature, in the order of the row's ones and zeros.
    total, both = 1.0, 0.0
    for c in range(family.a.size):
        ones = family.a[c] + rows[i, 2 + 2 * c]
        zeros = family.b[c] + rows[i, 3 + 2 * c]
        # Where nothing is missing and priors are alike, one logarithm is the same for all features.
        if ones + zeros != total:
            total = ones + zeros
            both = log(total)
        table[k, 2 * c] = log(ones) - both
        table[k, 2 * c + 1] = log(zeros) - both


@implements(log_predictive, BetaBernoulli)
def _log_predictive(family: BetaBernoulli, table: Rows, k: int, rows: Rows, i: int) -> float:
    # Two sums, so that an addition need not wait for the one before it.
    ones, zeros = 0.0, 0.0
    for c in range(family.a.size):
        ones += rows[i, 2 + 2 * c] * table[k, 2 * c]
        zeros += rows[i, 3 + 2 * c] * table[k, 2 * c + 1]
    return ones + zeros


register_dense(BetaBernoulli)


@implements(weigh, BetaBernoulli)
def _weigh(
    _family: BetaBernoulli,
    batched: BatchedPredictives,
    n: int,
    slots: NDArray[np.int64],
    rows: Rows,
    i: int,
    _largest: float,
    weights: NDArray[np.float64],
) -> None:
    weigh_products(batched, n, slots, rows, i, weights)


register_batched(BetaBernoulli)


def _build(parameters: Mapping[str, object], sample: NDArray[np.float64]) -> BetaBernoulli:
    """What is not given comes from the sample: its shares, worth one observation."""
    refuse_unknown("bernoulli", parameters, _PARAMETERS)
    seen = np.isfinite(sample)
    ones = np.where(seen, sample, 0.0).sum(axis=0)
    share = (ones + 0.5) / (seen.sum(axis=0) + 1.0)
    a, b = parameters.get("a", share), parameters.get("b", 1.0 - share)
    d = sample.shape[1]
    return beta_bernoulli(positive("a", a, d), positive("b", b, d))


def _parameters(family: BetaBernoulli) -> dict[str, object]:
    return {"a": family.a.tolist(), "b": family.b.tolist()}


def _validate(family: BetaBernoulli, values: NDArray[np.float64]) -> tuple[int, str] | None:
    fault = shape_fault(values, family.a.size)
    if fault is not None:
        return fault
    at = first_true(~((values == 0.0) | (values == 1.0) | np.isnan(values)))
    return None if at is None else feature_fault(at, values, "a flag is 0 or 1")


def _describe(
    family: BetaBernoulli, row: NDArray[np.float64], names: Sequence[str]
) -> list[FeatureSummary]:
    summaries = []
    prior = family.a / (family.a + family.b)
    for name, ones, zeros, expected in zip(names, row[2::2], row[3::2], prior, strict=True):
        n = n_observed(row, ones + zeros)
        centre = float(ones / (ones + zeros)) if n else float(expected)
        summaries.append(FeatureSummary(name, "share", centre, None, n))
    return summaries


def _draw(
    family: BetaBernoulli, row: NDArray[np.float64], rng: Generator, size: int
) -> NDArray[np.float64]:
    ones, zeros = family.a + row[2::2], family.b + row[3::2]
    share = ones / (ones + zeros)
    return (rng.random((size, share.size)) < share).astype(np.float64)


FAMILIES["bernoulli"] = FamilySpec(
    name="bernoulli",
    family=BetaBernoulli,
    build=_build,
    parameters=_parameters,
    validate=_validate,
    describe=_describe,
    draw=_draw,
    scale=("a", "b"),
)
