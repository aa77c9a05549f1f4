"""Clusters of counts that vary more than Poisson counts: negative binomials of unknown dispersion.

Per feature: x is Poisson with a rate that varies from observation to observation as a
Gamma(r, r / mean), so that its variance is mean + mean^2 / r; r is any number of the grid a priori.
Given r the odds mean / r are beta prime with the parameters ``shape`` and ``a = 1 + r rate``: means
are shape / rate on average, whatever r, and for large r all is as in the Poisson family. That is
conjugate: ``m_r(x) = prod (Gamma(x + r) / (Gamma(r) x!)) B(shape + sum x, a + rn) / B(shape, a)``.
Sums of a feature: of x, then of ``log Gamma(x + r) - log Gamma(r) - log x!`` for each r of the
grid.
"""

from collections.abc import Mapping, Sequence
from math import log
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

from weald.treecore.compiled.compile import implements
from weald.treecore.family.interface.base import FAMILIES, FamilySpec, FeatureSummary
from weald.treecore.family.interface.checks import count_fault, positive, refuse_unknown
from weald.treecore.family.interface.means import prior_of_counts, summaries_of_means
from weald.treecore.statistics.log_gamma import SMALL, log_gamma, rising
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

__all__ = ["NegativeBinomial", "negative_binomial"]

_LARGEST_COUNT = 1e9
# From most values 0 and few large to nearly Poisson, three to a doubling: each is a column.
_GRID = geometric(0.25, 128.0, 28)


class NegativeBinomial(NamedTuple):
    """Hyperparameters and what is computed from them once, float64.

    Attributes
    ----------
    shape, rate:
        Of the prior of means, one a feature: about Gamma(shape, rate).
    grid:
        What a cluster's r may be.
    log_gamma_grid:
        ``log gamma(r)`` of each r of the grid.
    log_beta:
        ``log B(shape, 1 + r rate)``, (d, G).
    """

    shape: NDArray[np.float64]
    rate: NDArray[np.float64]
    grid: NDArray[np.float64]
    log_gamma_grid: NDArray[np.float64]
    log_beta: NDArray[np.float64]


def negative_binomial(
    rate: NDArray[np.float64], shape: object, grid: object = _GRID
) -> NegativeBinomial:
    """Check the hyperparameters and make the family; ``rate`` has one number a feature.

    ``shape`` is a number or one a feature, ``grid`` any positive numbers. Raises ParameterError.
    """
    d = np.asarray(rate).shape[0]
    shapes, rates, r = positive("shape", shape, d), positive("rate", rate, d), grid_of(grid)
    log_beta = betaln(shapes[:, None], 1.0 + rates[:, None] * r)
    return NegativeBinomial(shapes, rates, r, gammaln(r), log_beta)


@implements(n_sums, NegativeBinomial)
def _n_sums(family: NegativeBinomial) -> int:
    return 1 + family.grid.size


@implements(observe_feature, NegativeBinomial)
def _observe_feature(family: NegativeBinomial, value: float, rows: Rows, i: int, at: int) -> None:
    rows[i, at] = value
    # Of nothing the sums are 0, without a rounding.
    n_grid = family.grid.size if value > 0.0 else 0
    orders = log_gamma(value + 1.0)
    for g in range(n_grid):
        ways = log_gamma(family.grid[g] + value) - family.log_gamma_grid[g]
        rows[i, at + 1 + g] = ways - orders


@implements(log_marginal_at, NegativeBinomial)
def _log_marginal_at(
    family: NegativeBinomial, c: int, g: int, rows: Rows, i: int, at: int
) -> float:
    r, total = family.grid[g], family.shape[c] + rows[i, at + 1]
    failures = 1.0 + r * (family.rate[c] + rows[i, at])
    value = log_gamma(total) + log_gamma(failures) - log_gamma(total + failures)
    return value - family.log_beta[c, g] + rows[i, at + 2 + g]


@implements(prepare_at, NegativeBinomial)
def _prepare_at(  # noqa: PLR0913 - two arrays and the places in them
    family: NegativeBinomial,
    c: int,
    g: int,
    rows: Rows,
    i: int,
    at: int,
    table: Rows,
    k: int,
    to: int,
) -> float:
    # Table: the log density at 0, where the rising factorials begin, and what they begin from.
    r, total = family.grid[g], family.shape[c] + rows[i, at + 1]
    failures = 1.0 + r * (family.rate[c] + rows[i, at])
    both = total + failures + r
    log_both = log_gamma(both)
    table[k, to] = log_gamma(failures + r) - log_gamma(failures)
    table[k, to] += log_gamma(total + failures) - log_both
    table[k, to + 1] = total
    table[k, to + 2] = both
    table[k, to + 3] = log_both - log_gamma(total)
    # A probability.
    return 0.0


@implements(log_predictive_at, NegativeBinomial)
def _log_predictive_at(  # noqa: PLR0913 - two arrays and the places in them
    _family: NegativeBinomial, g: int, table: Rows, k: int, to: int, rows: Rows, i: int, at: int
) -> float:
    x, total, both = rows[i, at + 1], table[k, to + 1], table[k, to + 2]
    value = table[k, to] + rows[i, at + 2 + g]
    if x > SMALL:
        return value + table[k, to + 3] + log_gamma(total + x) - log_gamma(both + x)
    return value + log(rising(total, x) / rising(both, x))


register_gridded(NegativeBinomial)


def _build(parameters: Mapping[str, object], sample: NDArray[np.float64]) -> NegativeBinomial:
    """What is not given comes from the sample: exponential means around its own."""
    refuse_unknown("negative-binomial", parameters, PARAMETERS)
    shape, rate = prior_of_counts(parameters, sample)
    return negative_binomial(rate, shape, parameters.get("grid", _GRID))


def _validate(family: NegativeBinomial, values: NDArray[np.float64]) -> tuple[int, str] | None:
    return count_fault(values, family.shape.size, _LARGEST_COUNT)


def _sums(
    family: NegativeBinomial, row: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights and sums of counts (d each)."""
    features = row[3:].reshape(family.shape.size, -1)
    return features[:, 0], features[:, 1]


def _describe(
    family: NegativeBinomial, row: NDArray[np.float64], names: Sequence[str]
) -> list[FeatureSummary]:
    squares = grid_weights(family, row[None])[0] @ (1.0 / family.grid)
    return summaries_of_means(
        row,
        names,
        "count",
        _sums(family, row),
        family.shape / family.rate,
        lambda mean: np.sqrt(mean + squares * mean**2),
    )


def _draw(
    family: NegativeBinomial, row: NDArray[np.float64], rng: Generator, size: int
) -> NDArray[np.float64]:
    weight, total = _sums(family, row)
    r = family.grid[chosen_on_grid(family, row[None], rng, size)[:, 0]]
    odds = rng.gamma(family.shape + total, size=r.shape) / rng.gamma(
        1.0 + r * (family.rate + weight)
    )
    return rng.poisson(rng.gamma(r) * odds).astype(np.float64)


FAMILIES["negative-binomial"] = FamilySpec(
    name="negative-binomial",
    family=NegativeBinomial,
    build=_build,
    parameters=parameters_of,
    validate=_validate,
    describe=_describe,
    draw=_draw,
    scale=("rate",),
)
