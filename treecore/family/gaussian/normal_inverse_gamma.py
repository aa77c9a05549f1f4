"""Gaussian clusters with independent features: the normal-inverse-gamma family.

Per feature: mean given precision N(mean, (kappa tau)^-1), precision tau ~ Gamma(shape, rate).
Row: [count, weight, then (w, s, q) a feature] with w the weight of the observed values, s and q the
first and second moments of ``x - mean``. A missing value (NaN) adds nothing to its feature, which
integrates it out exactly.
"""

from collections.abc import Mapping, Sequence
from math import log, log1p, pi
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled, implements
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
    workspace,
)
from weald.treecore.family.interface.checks import (
    feature_fault,
    first_true,
    per_feature,
    positive,
    refuse_unknown,
    shape_fault,
)
from weald.treecore.family.interface.defaults import register_dense
from weald.treecore.statistics.log_gamma import log_gamma
from weald.treecore.statistics.rows import Rows

from .default_scale import within_share
from .moments import centres_and_spreads
from .robust_spread import without_extremes

Numbers = NDArray[np.float64] | float

__all__ = ["NormalInverseGamma", "normal_inverse_gamma"]

_PARAMETERS = ("mean", "kappa", "shape", "rate")
_FARTHEST = 1e6
_SHAPE = 3.5
# A product of ratios is turned into one logarithm before it can overflow.
_LARGEST_PRODUCT = 1e150


class NormalInverseGamma(NamedTuple):
    """Hyperparameters (float64, one a feature) and what is computed from them once.

    Attributes
    ----------
    mean, kappa, shape, rate:
        Prior mean, its weight in observations, shape and rate of the precision.
    log_rate:
        Log of ``rate``.
    same:
        1 where a feature has the kappa and shape of the one before it (uint8).
    """

    mean: NDArray[np.float64]
    kappa: NDArray[np.float64]
    shape: NDArray[np.float64]
    rate: NDArray[np.float64]
    log_rate: NDArray[np.float64]
    same: NDArray[np.uint8]


def normal_inverse_gamma(
    mean: NDArray[np.float64], kappa: Numbers, shape: Numbers, rate: Numbers
) -> NormalInverseGamma:
    """Check the hyperparameters and make the family; ``mean`` has one number a feature.

    The others are a number or one a feature. Raises ParameterError.
    """
    d = np.asarray(mean).shape[0]
    centre = per_feature("mean", mean, d)
    weight, shapes = positive("kappa", kappa, d), positive("shape", shape, d)
    rates = positive("rate", rate, d)
    same = np.zeros(d, dtype=np.uint8)
    same[1:] = (np.diff(weight) == 0.0) & (np.diff(shapes) == 0.0)
    return NormalInverseGamma(centre, weight, shapes, rates, np.log(rates), same)


@implements(statistics_width, NormalInverseGamma)
def _statistics_width(family: NormalInverseGamma) -> int:
    return 2 + 3 * family.mean.size


@implements(predictive_width, NormalInverseGamma)
def _predictive_width(family: NormalInverseGamma) -> int:
    return 4 * family.mean.size


@implements(workspace, NormalInverseGamma)
def _workspace(family: NormalInverseGamma) -> Rows:
    return np.zeros((1, 2 + 3 * family.mean.size))


@implements(observe, NormalInverseGamma)
def _observe(
    family: NormalInverseGamma, values: NDArray[np.float64], r: int, rows: Rows, i: int
) -> None:
    rows[i, 0] = 1.0
    rows[i, 1] = 1.0
    at = 2
    for c in range(family.mean.size):
        shifted = values[r, c] - family.mean[c]
        seen = not np.isnan(shifted)
        rows[i, at] = 1.0 if seen else 0.0
        rows[i, at + 1] = shifted if seen else 0.0
        rows[i, at + 2] = shifted * shifted if seen else 0.0
        at += 3


@compiled
def _growth(family: NormalInverseGamma, c: int, rows: Rows, i: int) -> float:
    """Posterior rate of feature c over its prior rate: at least 1."""
    at = 2 + 3 * c
    scatter = rows[i, at + 2] - rows[i, at + 1] ** 2 / (family.kappa[c] + rows[i, at])
    return 1.0 + max(scatter, 0.0) / (2.0 * family.rate[c])


@compiled
def _weight_term(family: NormalInverseGamma, c: int, weight: float) -> float:
    shape, kappa = family.shape[c], family.kappa[c]
    value = log_gamma(shape + 0.5 * weight) - log_gamma(shape)
    return value - 0.5 * log1p(weight / kappa) - 0.5 * weight * log(2.0 * pi)


@implements(log_marginal, NormalInverseGamma)
def _log_marginal(
    family: NormalInverseGamma,
    rows: Rows,
    i: int,
    _work: Rows,
) -> float:
    total = 0.0
    product, exponent = 1.0, 0.0
    known, term = -1.0, 0.0
    for c in range(family.mean.size):
        weight = rows[i, 2 + 3 * c]
        if weight <= 0.0:
            known = -1.0
            continue
        if weight != known or not family.same[c]:
            # Features share these values where nothing is missing: one log gamma for all of them.
            term = _weight_term(family, c, weight)
            known = weight
        total += term - 0.5 * weight * family.log_rate[c]
        power = family.shape[c] + 0.5 * weight
        if power != exponent or product > _LARGEST_PRODUCT:
            total -= exponent * log(product)
            product, exponent = 1.0, power
        product *= _growth(family, c, rows, i)
    return total - exponent * log(product)


@implements(fill_predictive, NormalInverseGamma)
def _fill_predictive(
    family: NormalInverseGamma,
    rows: Rows,
    i: int,
    table: Rows,
    k: int,
    _work: Rows,
) -> None:
    # Table: (constant, exponent, location, scale) a feature, so that
    # log t = constant - exponent * log1p(scale * (x - location)^2).
    known, term = -1.0, 0.0
    for c in range(family.mean.size):
        weight = rows[i, 2 + 3 * c]
        shape = family.shape[c] + 0.5 * weight
        kappa = family.kappa[c] + weight
        if weight != known or not family.same[c]:
            term = log_gamma(shape + 0.5) - log_gamma(shape)
            term -= 0.5 * log1p(1.0 / kappa)
            known = weight
        rate = family.rate[c] * _growth(family, c, rows, i)
        table[k, 4 * c] = term - 0.5 * log(2.0 * pi * rate)
        table[k, 4 * c + 1] = shape + 0.5
        table[k, 4 * c + 2] = rows[i, 3 + 3 * c] / kappa
        table[k, 4 * c + 3] = kappa / ((kappa + 1.0) * 2.0 * rate)


@implements(log_predictive, NormalInverseGamma)
def _log_predictive(family: NormalInverseGamma, table: Rows, k: int, rows: Rows, i: int) -> float:
    total = 0.0
    product, exponent = 1.0, 0.0
    for c in range(family.mean.size):
        if rows[i, 2 + 3 * c] == 0.0:
            continue
        power = table[k, 4 * c + 1]
        if power != exponent or product > _LARGEST_PRODUCT:
            total -= exponent * log(product)
            product, exponent = 1.0, power
        distance = rows[i, 3 + 3 * c] - table[k, 4 * c + 2]
        product *= 1.0 + table[k, 4 * c + 3] * distance * distance
        total += table[k, 4 * c]
    return total - exponent * log(product)


register_dense(NormalInverseGamma)


def _build(parameters: Mapping[str, object], sample: NDArray[np.float64]) -> NormalInverseGamma:
    """What is not given comes from the sample: clusters are as wide as it says."""
    refuse_unknown("diagonal", parameters, _PARAMETERS)
    d = sample.shape[1]
    centre, variance = np.zeros(d), np.ones(d)
    for c in range(d):
        seen = without_extremes(sample[np.isfinite(sample[:, c]), c : c + 1])
        centre[c] = seen.mean() if seen.size else 0.0
        variance[c] = seen.var(ddof=1) if seen.size > 1 else 0.0
    variance[variance <= 0.0] = 1.0
    shape = positive("shape", parameters.get("shape", _SHAPE), d)
    share = 1.0
    if not {"kappa", "rate"} <= set(parameters):
        # A missing value is taken for the mean: it moves no observation to another cluster.
        scaled = np.nan_to_num((sample - centre) / np.sqrt(variance), posinf=0.0, neginf=0.0)
        share = within_share(scaled, 2.0 * float(np.median(shape)), diagonal=True)
    rate = np.where(shape > 1.0, shape - 1.0, 1.0) * share * variance
    return normal_inverse_gamma(
        per_feature("mean", parameters.get("mean", centre), d),
        positive("kappa", parameters.get("kappa", share), d),
        shape,
        positive("rate", parameters.get("rate", rate), d),
    )


def _parameters(family: NormalInverseGamma) -> dict[str, object]:
    return {name: getattr(family, name).tolist() for name in _PARAMETERS}


def _validate(family: NormalInverseGamma, values: NDArray[np.float64]) -> tuple[int, str] | None:
    fault = shape_fault(values, family.mean.size)
    if fault is not None:
        return fault
    limit = _FARTHEST * np.sqrt(family.rate)
    at = first_true(np.abs(values - family.mean) > limit)
    if at is None:
        return None
    far = f"over {_FARTHEST:g} scales away from the prior mean"
    return feature_fault(at, values, far if np.isfinite(values[at]) else "not finite")


def _moments(row: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    features = row[2:].reshape(-1, 3)
    return features[:, 0], features[:, 1], features[:, 2]


def _describe(
    family: NormalInverseGamma, row: NDArray[np.float64], names: Sequence[str]
) -> list[FeatureSummary]:
    weight, first, second = _moments(row)
    seen = np.where(weight > 0.0, weight, 1.0)
    centres, spreads = centres_and_spreads(family.mean, first / seen, second / seen)
    return [
        FeatureSummary(name, "number", float(centre), float(spread), n_observed(row, each))
        if each > 0.0
        else FeatureSummary(name, "number", float(mean), None, 0)
        for name, each, centre, spread, mean in zip(
            names, weight, centres, spreads, family.mean, strict=True
        )
    ]


def _draw(
    family: NormalInverseGamma, row: NDArray[np.float64], rng: Generator, size: int
) -> NDArray[np.float64]:
    weight, first, second = _moments(row)
    kappa = family.kappa + weight
    shape = family.shape + 0.5 * weight
    rate = family.rate + 0.5 * np.maximum(second - first**2 / kappa, 0.0)
    scale = np.sqrt(rate * (kappa + 1.0) / (shape * kappa))
    standard = rng.standard_t(2.0 * shape, size=(size, shape.shape[0]))
    return np.asarray(family.mean + first / kappa + scale * standard)


def _centres(family: NormalInverseGamma, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means, a feature that no observation has at the prior's."""
    features = rows[:, 2:].reshape(rows.shape[0], -1, 3)
    shift = features[:, :, 1] / np.maximum(features[:, :, 0], 1.0)
    return np.asarray(shift / np.sqrt(family.rate))


def _observations(family: NormalInverseGamma, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    features = rows[:, 2:].reshape(rows.shape[0], -1, 3)
    return np.where(features[:, :, 0] > 0.0, family.mean + features[:, :, 1], np.nan)


FAMILIES["diagonal"] = FamilySpec(
    name="diagonal",
    family=NormalInverseGamma,
    build=_build,
    parameters=_parameters,
    validate=_validate,
    describe=_describe,
    draw=_draw,
    scale=("rate",),
    centres=_centres,
    observations=_observations,
)
