"""Clusters of skewed numbers above 0 (durations, amounts): gammas of unknown shape and mean.

Per feature: x ~ Gamma(s, rate s / mean), so that its standard deviation is mean / sqrt(s); s is any
number of the grid a priori, 1 / mean ~ Gamma(shape, rate). Given s that is conjugate:
``m_s(x) = prod x^(s-1) s^(sn) / Gamma(s)^n * rate^shape / Gamma(shape) * Gamma(shape + sn)
/ (rate + s sum x)^(shape + sn)``. Sums of a feature: of x and of log x. The constant
column sums ``-log x``.
"""

from collections.abc import Mapping, Sequence
from math import log
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, polygamma

from weald.treecore.compiled.compile import implements
from weald.treecore.family.interface.base import FAMILIES, FamilySpec, FeatureSummary
from weald.treecore.family.interface.checks import (
    feature_fault,
    first_true,
    positive,
    refuse_unknown,
    shape_fault,
)
from weald.treecore.family.interface.means import summaries_of_means
from weald.treecore.statistics.log_gamma import log_gamma
from weald.treecore.statistics.rows import Rows

from .grid import (
    PARAMETERS,
    chosen_on_grid,
    geometric,
    grid_of,
    grid_weights,
    log_marginal_at,
    log_predictive_at,
    n_sums,
    observe_feature,
    parameters_of,
    prepare_at,
    register_gridded,
)

__all__ = ["GammaOfAnyShape", "gamma_of_any_shape"]

_SMALLEST, _LARGEST = 1e-100, 1e100
# Of the logs of cluster means, by default: no narrower and no wider.
_VARIANCES = (0.25, 10.0)
# Spreads of twice the mean to 6 % of it, six to a doubling of s: two clusters stand for one of a
# shape between two numbers only where it has some ten thousand observations.
_GRID = geometric(0.25, 256.0, 61)


class GammaOfAnyShape(NamedTuple):
    """Hyperparameters and what is computed from them once, float64.

    Attributes
    ----------
    shape, rate:
        Of the Gamma prior of 1 / mean, one a feature.
    grid:
        What a cluster's own shape may be.
    log_norm:
        ``s log s - log gamma(s)`` of each s of the grid.
    prior_norm:
        ``shape log rate - log gamma(shape)``, one a feature.
    """

    shape: NDArray[np.float64]
    rate: NDArray[np.float64]
    grid: NDArray[np.float64]
    log_norm: NDArray[np.float64]
    prior_norm: NDArray[np.float64]


def gamma_of_any_shape(
    rate: NDArray[np.float64], shape: object, grid: object = _GRID
) -> GammaOfAnyShape:
    """Check the hyperparameters and make the family; ``rate`` has one number a feature.

    ``shape`` is a number or one a feature, ``grid`` any positive numbers. Raises ParameterError.
    """
    d = np.asarray(rate).shape[0]
    shapes, rates = positive("shape", shape, d), positive("rate", rate, d)
    shapes_of_clusters = grid_of(grid)
    log_norm = shapes_of_clusters * np.log(shapes_of_clusters) - gammaln(shapes_of_clusters)
    prior_norm = shapes * np.log(rates) - gammaln(shapes)
    return GammaOfAnyShape(shapes, rates, shapes_of_clusters, log_norm, prior_norm)


@implements(n_sums, GammaOfAnyShape)
def _n_sums(_family: GammaOfAnyShape) -> int:
    return 2


@implements(observe_feature, GammaOfAnyShape)
def _observe_feature(_family: GammaOfAnyShape, value: float, rows: Rows, i: int, at: int) -> None:
    rows[i, at] = value
    rows[i, at + 1] = log(value)
    # Densities of log x are bounded, and those of x are not where s is below 1.
    rows[i, 2] -= rows[i, at + 1]


@implements(log_marginal_at, GammaOfAnyShape)
def _log_marginal_at(family: GammaOfAnyShape, c: int, g: int, rows: Rows, i: int, at: int) -> float:
    s, weight = family.grid[g], rows[i, at]
    shape = family.shape[c] + s * weight
    value = family.prior_norm[c] + weight * family.log_norm[g] + s * rows[i, at + 2]
    return value + log_gamma(shape) - shape * log(family.rate[c] + s * rows[i, at + 1])


@implements(prepare_at, GammaOfAnyShape)
def _prepare_at(  # noqa: PLR0913 - two arrays and the places in them
    family: GammaOfAnyShape,
    c: int,
    g: int,
    rows: Rows,
    i: int,
    at: int,
    table: Rows,
    k: int,
    to: int,
) -> float:
    # The log density of log x is first + s log x - second * log(1 + third * x).
    s = family.grid[g]
    shape, rate = family.shape[c] + s * rows[i, at], family.rate[c] + s * rows[i, at + 1]
    gain = log_gamma(shape + s) - log_gamma(shape)
    table[k, to] = family.log_norm[g] + gain - s * log(rate)
    table[k, to + 1] = shape + s
    table[k, to + 2] = s / rate
    # It is largest at x = rate / shape.
    return table[k, to] + s * log(rate / shape) - (shape + s) * log(1.0 + s / shape)


@implements(log_predictive_at, GammaOfAnyShape)
def _log_predictive_at(  # noqa: PLR0913 - two arrays and the places in them
    family: GammaOfAnyShape, g: int, table: Rows, k: int, to: int, rows: Rows, i: int, at: int
) -> float:
    x, log_x = rows[i, at + 1], rows[i, at + 2]
    falls = table[k, to + 1] * log(1.0 + table[k, to + 2] * x)
    return table[k, to] + family.grid[g] * log_x - falls


register_gridded(GammaOfAnyShape)


def _build(parameters: Mapping[str, object], sample: NDArray[np.float64]) -> GammaOfAnyShape:
    """What is not given comes from the sample: cluster means lie where its values do."""
    refuse_unknown("gamma", parameters, PARAMETERS)
    d = sample.shape[1]
    middle, variance = np.zeros(d), np.ones(d)
    for c in range(d):
        logs = np.log(sample[(sample[:, c] > 0.0) & np.isfinite(sample[:, c]), c])
        middle[c] = np.median(logs) if logs.size else 0.0
        variance[c] = np.clip(logs.var(), *_VARIANCES) if logs.size > 1 else 1.0
    # The log of a Gamma(shape) has about the variance 1 / shape + 1 / shape^2.
    own = (1.0 + np.sqrt(1.0 + 4.0 * variance)) / (2.0 * variance)
    shape = positive("shape", parameters.get("shape", own), d)
    rate = positive("rate", parameters.get("rate", np.exp(middle + digamma(shape))), d)
    return gamma_of_any_shape(rate, shape, parameters.get("grid", _GRID))


def _validate(family: GammaOfAnyShape, values: NDArray[np.float64]) -> tuple[int, str] | None:
    fault = shape_fault(values, family.shape.size)
    if fault is not None:
        return fault
    at = first_true(~(((values >= _SMALLEST) & (values <= _LARGEST)) | np.isnan(values)))
    if at is None:
        return None
    reason = f"needs numbers above 0, from {_SMALLEST:g} to {_LARGEST:g}"
    return feature_fault(at, values, reason)


def _describe(
    family: GammaOfAnyShape, row: NDArray[np.float64], names: Sequence[str]
) -> list[FeatureSummary]:
    # The variance of a gamma is its mean's square over its shape.
    squares = grid_weights(family, row[None])[0] @ (1.0 / family.grid)
    sums, prior = (row[3::3], row[4::3]), family.rate / family.shape
    return summaries_of_means(
        row, names, "number", sums, prior, lambda mean: mean * np.sqrt(squares)
    )


def _draw(
    family: GammaOfAnyShape, row: NDArray[np.float64], rng: Generator, size: int
) -> NDArray[np.float64]:
    s = family.grid[chosen_on_grid(family, row[None], rng, size)[:, 0]]
    inverse_mean = rng.gamma(family.shape + s * row[3::3]) / (family.rate + s * row[4::3])
    return np.asarray(rng.gamma(s) / (s * inverse_mean))


def _centres(family: GammaOfAnyShape, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logs of means, a feature that no observation has at the prior's."""
    weight, total = rows[:, 3::3], rows[:, 4::3]
    mean = np.where(weight > 0.0, total, family.rate) / np.where(weight > 0.0, weight, family.shape)
    return np.asarray(np.log(mean) / np.sqrt(polygamma(1, family.shape)))


FAMILIES["gamma"] = FamilySpec(
    name="gamma",
    family=GammaOfAnyShape,
    build=_build,
    parameters=parameters_of,
    validate=_validate,
    describe=_describe,
    draw=_draw,
    scale=("rate",),
    centres=_centres,
)
