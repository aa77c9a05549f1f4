"""Clusters of bags of words: a multinomial with a symmetric Dirichlet(beta) prior over all columns.

Row: [count, weight, number of tokens, then the weight of each column]. Multinomial coefficients are
left out of log marginals and predictive densities alike: they do not depend on the partition.
"""

from collections.abc import Mapping, Sequence
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..compile import implements
from ..rows import Rows
from .base import (
    FAMILIES,
    FamilySpec,
    FeatureSummary,
    fill_predictive,
    log_marginal,
    log_predictive,
    observe,
    predictive_width,
    register_dense,
    statistics_width,
    workspace,
)
from .checks import feature_fault, first_true, positive, refuse_unknown, shape_fault
from .gamma import SMALL, log_gamma, log_rising, rising, rising_table

__all__ = ["DirichletMultinomial", "dirichlet_multinomial"]

_LARGEST_COUNT = 1e9
# A product is turned into one logarithm before it can leave the range of numbers.
_LARGEST_PRODUCT, _SMALLEST_PRODUCT = 1e120, 1e-120


class DirichletMultinomial(NamedTuple):
    """Hyperparameters and what is computed from them once.

    Attributes
    ----------
    beta:
        Prior weight of each word.
    vocabulary:
        Number of columns.
    from_word, from_all:
        Log rising factorials from beta and from beta * vocabulary, one row each.
    """

    beta: float
    vocabulary: int
    from_word: NDArray[np.float64]
    from_all: NDArray[np.float64]


def dirichlet_multinomial(beta: float, vocabulary: int) -> DirichletMultinomial:
    """Check beta and make the family for ``vocabulary`` columns; raises ParameterError."""
    start = positive("beta", beta, 1)
    return DirichletMultinomial(
        float(start[0]), int(vocabulary), rising_table(start), rising_table(start * vocabulary)
    )


@implements(statistics_width, DirichletMultinomial)
def _statistics_width(family: DirichletMultinomial) -> int:
    return 3 + family.vocabulary


@implements(predictive_width, DirichletMultinomial)
def _predictive_width(family: DirichletMultinomial) -> int:
    return 2 + family.vocabulary


@implements(workspace, DirichletMultinomial)
def _workspace(family: DirichletMultinomial) -> Rows:
    return np.zeros((1, 3 + family.vocabulary))


@implements(observe, DirichletMultinomial)
def _observe(
    family: DirichletMultinomial, values: NDArray[np.float64], r: int, rows: Rows, i: int
) -> None:
    rows[i, 0] = 1.0
    rows[i, 1] = 1.0
    rows[i, 2] = 0.0
    for c in range(family.vocabulary):
        rows[i, 2] += values[r, c]
        rows[i, 3 + c] = values[r, c]


@implements(log_marginal, DirichletMultinomial)
def _log_marginal(family: DirichletMultinomial, rows: Rows, i: int, _work: Rows) -> float:
    from_word = family.from_word
    total = -log_rising(family.from_all, 0, rows[i, 2])
    for c in range(3, 3 + family.vocabulary):
        if rows[i, c] > 0.0:
            total += log_rising(from_word, 0, rows[i, c])
    return total


@implements(fill_predictive, DirichletMultinomial)
def _fill_predictive(
    family: DirichletMultinomial, rows: Rows, i: int, table: Rows, k: int, _work: Rows
) -> None:
    # Table: posterior weight of all words, its log gamma, then the posterior weight of each word.
    tokens = family.beta * family.vocabulary + rows[i, 2]
    table[k, 0] = tokens
    table[k, 1] = log_gamma(tokens)
    for c in range(family.vocabulary):
        table[k, 2 + c] = family.beta + rows[i, 3 + c]


@implements(log_predictive, DirichletMultinomial)
def _log_predictive(family: DirichletMultinomial, table: Rows, k: int, rows: Rows, i: int) -> float:
    total = table[k, 1] - log_gamma(table[k, 0] + rows[i, 2])
    product = 1.0
    for c in range(family.vocabulary):
        count, start = rows[i, 3 + c], table[k, 2 + c]
        if count == 0.0:
            continue
        if count > SMALL:
            total += log_gamma(start + count) - log_gamma(start)
            continue
        product *= rising(start, count)
        if product > _LARGEST_PRODUCT or product < _SMALLEST_PRODUCT:
            total += log(product)
            product = 1.0
    return total + log(product)


register_dense(DirichletMultinomial)


def _build(parameters: Mapping[str, Any], sample: NDArray[np.float64]) -> DirichletMultinomial:
    """Without ``beta`` the prior is worth one observation of the sample's mean length."""
    refuse_unknown("multinomial", parameters, ("beta",))
    vocabulary = sample.shape[1]
    tokens = np.where(np.isfinite(sample), sample, 0.0).sum()
    length = (tokens + 1.0) / (sample.shape[0] + 1.0)
    return dirichlet_multinomial(parameters.get("beta", length / vocabulary), vocabulary)


def _parameters(family: DirichletMultinomial) -> dict[str, Any]:
    return {"beta": family.beta}


def _validate(family: DirichletMultinomial, values: NDArray[np.float64]) -> tuple[int, str] | None:
    fault = shape_fault(values, family.vocabulary)
    if fault is not None:
        return fault
    counts = (values == np.floor(values)) & (values >= 0.0) & (values <= _LARGEST_COUNT)
    at = first_true(~counts)
    if at is None:
        return None
    reason = f"a count is whole, from 0 to {_LARGEST_COUNT:g}"
    if np.isnan(values[at]):
        reason = "the multinomial family takes no missing values"
    return feature_fault(at, values, reason)


def _describe(
    family: DirichletMultinomial, row: NDArray[np.float64], names: Sequence[str]
) -> list[FeatureSummary]:
    n = int(row[0])
    centre = row[3:] / row[1] if n else np.full(family.vocabulary, 1.0 / family.vocabulary)
    return [
        FeatureSummary(name, "count", float(mean), None, n)
        for name, mean in zip(names, centre, strict=True)
    ]


def _draw(
    family: DirichletMultinomial, row: NDArray[np.float64], rng: Generator, size: int
) -> NDArray[np.float64]:
    """Bags as long as the cluster's mean observation; single words from an empty row."""
    length = max(round(row[2] / row[1]), 1) if row[1] > 0.0 else 1
    share = rng.dirichlet(family.beta + row[3:], size=size)
    return rng.multinomial(length, share).astype(np.float64)


FAMILIES["multinomial"] = FamilySpec(
    name="multinomial",
    family=DirichletMultinomial,
    build=_build,
    parameters=_parameters,
    validate=_validate,
    describe=_describe,
    draw=_draw,
)
