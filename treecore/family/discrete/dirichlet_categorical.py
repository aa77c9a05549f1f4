"""Clusters of categories: independent features, each with a symmetric Dirichlet(beta) prior.

Values are whole codes 0, 1, ..., levels - 1. Row: [count, weight, then (w, code sum, weight of each
level) a feature], w being the weight of the observed values. The code sum is there for a single
observation, whose level it names, so that a predictive density costs one look-up a feature. A
missing value (NaN) adds nothing, which integrates it out exactly.
"""

from collections.abc import Mapping, Sequence
from math import log
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.treecore.compiled.compile import implements
from weald.treecore.errors import ParameterError
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
from weald.treecore.statistics.log_gamma import log_rising, rising_table
from weald.treecore.statistics.rows import Rows

__all__ = ["DirichletCategorical", "dirichlet_categorical"]

_PARAMETERS = ("beta", "levels")
_MOST_LEVELS = 65536


class DirichletCategorical(NamedTuple):
    """Hyperparameters (one a feature) and what is computed from them once.

    Attributes
    ----------
    beta, levels:
        Prior weight of each level (float64), number of levels (int64).
    start:
        First column of each feature in a row, and the width of a row: int64 (d + 1).
    group:
        Which of the distinct pairs (beta, levels) a feature has, int64 (d).
    from_one, from_all:
        Log rising factorials from beta and levels * beta, one row for each distinct pair.
    """

    beta: NDArray[np.float64]
    levels: NDArray[np.float64]
    start: NDArray[np.int64]
    group: NDArray[np.int64]
    from_one: NDArray[np.float64]
    from_all: NDArray[np.float64]


def dirichlet_categorical(
    beta: NDArray[np.float64], levels: NDArray[np.float64]
) -> DirichletCategorical:
    """Check the hyperparameters and make the family; ``levels`` has one number a feature.

    ``beta`` is a number or one a feature. Raises ParameterError.
    """
    d = np.asarray(levels).shape[0]
    weight, numbers = positive("beta", beta, d), per_feature("levels", levels, d)
    bad = (numbers < 1.0) | (numbers > _MOST_LEVELS) | (numbers != np.floor(numbers))
    if bad.any():
        value = numbers[bad][0]
        raise ParameterError(f"levels must be whole, from 1 to {_MOST_LEVELS}, got {value:g}")
    pairs, group = np.unique(np.stack([weight, numbers]), axis=1, return_inverse=True)
    start = np.concatenate([[2], 2 + np.cumsum(numbers + 2)])
    return DirichletCategorical(
        weight,
        numbers.astype(np.int64),
        start.astype(np.int64),
        group.reshape(-1).astype(np.int64),
        rising_table(pairs[0].copy()),
        rising_table(pairs[0] * pairs[1]),
    )


@implements(statistics_width, DirichletCategorical)
def _statistics_width(family: DirichletCategorical) -> int:
    return int(family.start[-1])


@implements(predictive_width, DirichletCategorical)
def _predictive_width(family: DirichletCategorical) -> int:
    return int(family.start[-1])


@implements(workspace, DirichletCategorical)
def _workspace(family: DirichletCategorical) -> Rows:
    return np.zeros((1, family.start[-1]))


@implements(observe, DirichletCategorical)
def _observe(
    family: DirichletCategorical, values: NDArray[np.float64], r: int, rows: Rows, i: int
) -> None:
    rows[i, 0] = 1.0
    rows[i, 1] = 1.0
    for c in range(2, family.start[-1]):
        rows[i, c] = 0.0
    for c in range(family.levels.size):
        code = values[r, c]
        if np.isnan(code):
            continue
        at = family.start[c]
        rows[i, at] = 1.0
        rows[i, at + 1] = code
        rows[i, at + 2 + int(code)] = 1.0


@implements(log_marginal, DirichletCategorical)
def _log_marginal(family: DirichletCategorical, rows: Rows, i: int, _work: Rows) -> float:
    start, from_one, from_all = family.start, family.from_one, family.from_all
    total = 0.0
    for c in range(family.levels.size):
        at, group = start[c], family.group[c]
        weight = rows[i, at]
        if weight <= 0.0:
            continue
        total -= log_rising(from_all, group, weight)
        for level in range(at + 2, start[c + 1]):
            if rows[i, level] > 0.0:
                total += log_rising(from_one, group, rows[i, level])
    return total


@implements(fill_predictive, DirichletCategorical)
def _fill_predictive(
    family: DirichletCategorical, rows: Rows, i: int, table: Rows, k: int, _work: Rows
) -> None:
    # Table: log share of each level, in the columns of the row's levels.
    for c in range(family.levels.size):
        at, beta = family.start[c], family.beta[c]
        both = log(family.levels[c] * beta + rows[i, at])
        unseen = log(beta) - both
        for level in range(at + 2, family.start[c + 1]):
            weight = rows[i, level]
            table[k, level] = unseen if weight == 0.0 else log(beta + weight) - both


@implements(log_predictive, DirichletCategorical)
def _log_predictive(family: DirichletCategorical, table: Rows, k: int, rows: Rows, i: int) -> float:
    total = 0.0
    for c in range(family.levels.size):
        at = family.start[c]
        if rows[i, at] > 0.0:
            total += table[k, at + 2 + int(rows[i, at + 1])]
    return total


register_dense(DirichletCategorical)


def _build(parameters: Mapping[str, object], sample: NDArray[np.float64]) -> DirichletCategorical:
    """Levels up to the largest code of the sample; a prior worth one observation."""
    refuse_unknown("categorical", parameters, _PARAMETERS)
    largest = np.where(np.isfinite(sample), sample, 0.0).max(axis=0, initial=0.0)
    d = sample.shape[1]
    levels = per_feature("levels", parameters.get("levels", largest + 1.0), d)
    beta = positive("beta", parameters.get("beta", 1.0 / np.maximum(levels, 1.0)), d)
    return dirichlet_categorical(beta, levels)


def _parameters(family: DirichletCategorical) -> dict[str, object]:
    return {"beta": family.beta.tolist(), "levels": family.levels.tolist()}


def _validate(family: DirichletCategorical, values: NDArray[np.float64]) -> tuple[int, str] | None:
    fault = shape_fault(values, family.levels.size)
    if fault is not None:
        return fault
    known = (values == np.floor(values)) & (values >= 0.0) & (values < family.levels)
    at = first_true(~(known | np.isnan(values)))
    if at is None:
        return None
    last = family.levels[at[1]] - 1
    return feature_fault(at, values, f"its levels are the codes 0 to {last}")


def _weights(family: DirichletCategorical, row: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    return [row[a + 2 : b] for a, b in zip(family.start[:-1], family.start[1:], strict=True)]


def _describe(
    family: DirichletCategorical, row: NDArray[np.float64], names: Sequence[str]
) -> list[FeatureSummary]:
    return [
        FeatureSummary(name, "category", str(weights.argmax()), None, n_observed(row, row[at]))
        for name, at, weights in zip(names, family.start[:-1], _weights(family, row), strict=True)
    ]


def _draw(
    family: DirichletCategorical, row: NDArray[np.float64], rng: Generator, size: int
) -> NDArray[np.float64]:
    values = np.empty((size, family.levels.size))
    for c, weights in enumerate(_weights(family, row)):
        share = weights + family.beta[c]
        values[:, c] = rng.choice(share.size, size=size, p=share / share.sum())
    return values


FAMILIES["categorical"] = FamilySpec(
    name="categorical",
    family=DirichletCategorical,
    build=_build,
    parameters=_parameters,
    validate=_validate,
    describe=_describe,
    draw=_draw,
    scale=("beta",),
)
