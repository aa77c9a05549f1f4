"""Clusters of counts: independent features, each a Poisson rate with a Gamma(shape, rate) prior.

Row: [count, weight, constant, then (w, s) a feature], w being the weight of the observed values and
s their sum. The constant column sums ``-log x!``, so log marginals are true evidences and a
predictive density is exactly the ratio of two of them. A missing count (NaN) adds nothing, which
integrates it out exactly.
"""

from collections.abc import Mapping, Sequence
from math import log, log1p
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
    observe,
    predictive_width,
    statistics_width,
    workspace,
)
from weald.treecore.family.interface.checks import count_fault, positive, refuse_unknown
from weald.treecore.family.interface.defaults import register_dense
from weald.treecore.family.interface.means import prior_of_counts, summaries_of_means
from weald.treecore.statistics.log_gamma import SMALL, log_gamma, log_rising, rising, rising_table
from weald.treecore.statistics.rows import Rows

__all__ = ["GammaPoisson", "gamma_poisson"]

_PARAMETERS = ("shape", "rate")
_LARGEST_COUNT = 1e9
# A product is turned into one logarithm before it can leave the range of numbers.
_LARGEST_PRODUCT, _SMALLEST_PRODUCT = 1e120, 1e-120


class GammaPoisson(NamedTuple):
    """Hyperparameters (float64, one a feature) and what is computed from them once.

    Attributes
    ----------
    shape, rate:
        Of the Gamma prior: its mean is shape / rate.
    group:
        Which of the distinct shapes a feature has, int64 (d).
    from_shape:
        Log rising factorials, one row for each distinct shape.
    """

    shape: NDArray[np.float64]
    rate: NDArray[np.float64]
    group: NDArray[np.int64]
    from_shape: NDArray[np.float64]


def gamma_poisson(shape: NDArray[np.float64], rate: NDArray[np.float64]) -> GammaPoisson:
    """Check the hyperparameters and make the family; ``rate`` has one number a feature.

    ``shape`` is a number or one a feature. Raises ParameterError.
    """
    d = np.asarray(rate).shape[0]
    shapes, rates = positive("shape", shape, d), positive("rate", rate, d)
    distinct, group = np.unique(shapes, return_inverse=True)
    return GammaPoisson(shapes, rates, group.astype(np.int64), rising_table(distinct))


@implements(statistics_width, GammaPoisson)
def _statistics_width(family: GammaPoisson) -> int:
    return 3 + 2 * family.shape.size


@implements(predictive_width, GammaPoisson)
def _predictive_width(family: GammaPoisson) -> int:
    return 4 * family.shape.size


@implements(workspace, GammaPoisson)
def _workspace(family: GammaPoisson) -> Rows:
    return np.zeros((1, 3 + 2 * family.shape.size))


@implements(observe, GammaPoisson)
def _observe(family: GammaPoisson, values: NDArray[np.float64], r: int, rows: Rows, i: int) -> None:
    rows[i, 0] = 1.0
    rows[i, 1] = 1.0
    rows[i, 2] = 0.0
    for c in range(family.shape.size):
        seen = not np.isnan(values[r, c])
        value = values[r, c] if seen else 0.0
        rows[i, 3 + 2 * c] = 1.0 if seen else 0.0
        rows[i, 4 + 2 * c] = value
        if value > 1.0:
            rows[i, 2] -= log_gamma(value + 1.0)


@implements(log_marginal, GammaPoisson)
def _log_marginal(family: GammaPoisson, rows: Rows, i: int, _work: Rows) -> float:
    if rows[i, 1] <= 0.0:
        return 0.0
    from_shape = family.from_shape
    total = rows[i, 2]
    for c in range(family.shape.size):
        weight, count = rows[i, 3 + 2 * c], rows[i, 4 + 2 * c]
        if weight <= 0.0:
            continue
        total += log_rising(from_shape, family.group[c], count)
        total -= family.shape[c] * log1p(weight / family.rate[c])
        if count > 0.0:
            total -= count * log(family.rate[c] + weight)
    return total


@implements(fill_predictive, GammaPoisson)
def _fill_predictive(
    family: GammaPoisson, rows: Rows, i: int, table: Rows, k: int, _work: Rows
) -> None:
    # Table: (log of the density at 0, log odds of one more, shape, log gamma of it) a feature.
    for c in range(family.shape.size):
        shape = family.shape[c] + rows[i, 4 + 2 * c]
        rate = family.rate[c] + rows[i, 3 + 2 * c]
        table[k, 4 * c] = -shape * log1p(1.0 / rate)
        table[k, 4 * c + 1] = -log(rate + 1.0)
        table[k, 4 * c + 2] = shape
        table[k, 4 * c + 3] = log_gamma(shape)


@implements(log_predictive, GammaPoisson)
def _log_predictive(family: GammaPoisson, table: Rows, k: int, rows: Rows, i: int) -> float:
    total = rows[i, 2]
    product = 1.0
    for c in range(family.shape.size):
        if rows[i, 3 + 2 * c] == 0.0:
            continue
        count, start = rows[i, 4 + 2 * c], table[k, 4 * c + 2]
        total += table[k, 4 * c] + count * table[k, 4 * c + 1]
        if count > SMALL:
            total += log_gamma(start + count) - table[k, 4 * c + 3]
            continue
        product *= rising(start, count)
        if product > _LARGEST_PRODUCT or product < _SMALLEST_PRODUCT:
            total += log(product)
            product = 1.0
    return total + log(product)


register_dense(GammaPoisson)


def _build(parameters: Mapping[str, object], sample: NDArray[np.float64]) -> GammaPoisson:
    """What is not given comes from the sample: exponential rates around its means."""
    refuse_unknown("poisson", parameters, _PARAMETERS)
    return gamma_poisson(*prior_of_counts(parameters, sample))


def _parameters(family: GammaPoisson) -> dict[str, object]:
    return {"shape": family.shape.tolist(), "rate": family.rate.tolist()}


def _validate(family: GammaPoisson, values: NDArray[np.float64]) -> tuple[int, str] | None:
    return count_fault(values, family.shape.size, _LARGEST_COUNT)


def _describe(
    family: GammaPoisson, row: NDArray[np.float64], names: Sequence[str]
) -> list[FeatureSummary]:
    sums, prior = (row[3::2], row[4::2]), family.shape / family.rate
    # A Poisson cluster spreads by the square root of its mean.
    return summaries_of_means(row, names, "count", sums, prior, np.sqrt)


def _draw(
    family: GammaPoisson, row: NDArray[np.float64], rng: Generator, size: int
) -> NDArray[np.float64]:
    shape, rate = family.shape + row[4::2], family.rate + row[3::2]
    return rng.poisson(rng.gamma(shape, 1.0 / rate, (size, shape.size))).astype(np.float64)


FAMILIES["poisson"] = FamilySpec(
    name="poisson",
    family=GammaPoisson,
    build=_build,
    parameters=_parameters,
    validate=_validate,
    describe=_describe,
    draw=_draw,
    scale=("rate",),
)
