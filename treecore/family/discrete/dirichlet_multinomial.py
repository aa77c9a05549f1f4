"""Clusters of bags of words: a multinomial with a symmetric Dirichlet(beta) prior over all columns.

Dense row: [count, weight, number of tokens, then the weight of each column]. Large vocabularies
have sparse rows (:mod:`weald.treecore.family.discrete.sparse_multinomial`), told apart by the rows'
type. Multinomial coefficients are left out of log marginals and predictive densities alike: they do
not depend on the partition.
"""

from collections.abc import Mapping, Sequence
from math import log
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.treecore.compiled.compile import generic, implements
from weald.treecore.family.interface.base import (
    FAMILIES,
    FamilySpec,
    FeatureSummary,
    fill_predictive,
    log_marginal,
    log_marginal_sum,
    log_predictive,
    log_predictive_above,
    observe,
    predictive_width,
    statistics_width,
    workspace,
)
from weald.treecore.family.interface.checks import (
    feature_fault,
    first_true,
    positive,
    refuse_unknown,
    shape_fault,
)
from weald.treecore.family.interface.defaults import register_filling
from weald.treecore.statistics.log_gamma import SMALL, log_gamma, log_rising, rising, rising_table
from weald.treecore.statistics.observations import Observations
from weald.treecore.statistics.rows import Rows, add_row, copy_row

__all__ = [
    "DirichletMultinomial",
    "bag_marginal",
    "bag_predictive",
    "bag_prepare",
    "bag_tables",
    "bag_union",
    "build_multinomial",
    "dirichlet_multinomial",
    "observe_bag",
]

_LARGEST_COUNT = 1e9
# A product is turned into one logarithm before it can leave the range of numbers.
LARGEST_PRODUCT, SMALLEST_PRODUCT = 1e120, 1e-120


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


@generic
def observe_bag(rows: Rows, i: int, family: DirichletMultinomial, values: object, r: int) -> None:
    """:func:`observe`, for the type of the rows."""
    raise NotImplementedError


@generic
def bag_marginal(rows: Rows, i: int, family: DirichletMultinomial) -> float:
    """:func:`log_marginal`, for the type of the rows."""
    raise NotImplementedError


@generic
def bag_union(
    rows: Rows, i: int, other: Rows, j: int, family: DirichletMultinomial, work: Rows
) -> float:
    """:func:`log_marginal_sum`, for the type of the rows."""
    raise NotImplementedError


@generic
def bag_prepare(table: Rows, k: int, rows: Rows, i: int, family: DirichletMultinomial) -> None:
    """:func:`fill_predictive`, for the type of the table."""
    raise NotImplementedError


@generic
def bag_tables(rows: Rows, capacity: int, family: DirichletMultinomial) -> Rows:
    """:func:`make_predictive`, for the type of the rows."""
    raise NotImplementedError


@generic
def bag_predictive(table: Rows, k: int, rows: Rows, i: int, family: DirichletMultinomial) -> float:
    """:func:`log_predictive`, for the type of the table."""
    raise NotImplementedError


@implements(observe, DirichletMultinomial)
def _observe(family: DirichletMultinomial, values: object, r: int, rows: Rows, i: int) -> None:
    observe_bag(rows, i, family, values, r)


@implements(log_marginal, DirichletMultinomial)
def _log_marginal(family: DirichletMultinomial, rows: Rows, i: int, _work: Rows) -> float:
    return bag_marginal(rows, i, family)


@implements(log_marginal_sum, DirichletMultinomial)
def _log_marginal_sum(
    family: DirichletMultinomial, rows: Rows, i: int, other: Rows, j: int, work: Rows
) -> float:
    return bag_union(rows, i, other, j, family, work)


@implements(fill_predictive, DirichletMultinomial)
def _fill_predictive(
    family: DirichletMultinomial, rows: Rows, i: int, table: Rows, k: int, _work: Rows
) -> None:
    bag_prepare(table, k, rows, i, family)


@implements(log_predictive, DirichletMultinomial)
def _log_predictive(family: DirichletMultinomial, table: Rows, k: int, rows: Rows, i: int) -> float:
    return bag_predictive(table, k, rows, i, family)


register_filling(DirichletMultinomial)


@implements(log_predictive_above, DirichletMultinomial)
def _log_predictive_above(
    family: DirichletMultinomial, table: Rows, k: int, rows: Rows, i: int, least: float
) -> float:
    value = bag_predictive(table, k, rows, i, family)
    return value if value >= least else -np.inf


@implements(observe_bag, np.ndarray)
def _observe_bag(rows: Rows, i: int, family: DirichletMultinomial, values: Rows, r: int) -> None:
    rows[i, 0] = 1.0
    rows[i, 1] = 1.0
    rows[i, 2] = 0.0
    for c in range(family.vocabulary):
        rows[i, 2] += values[r, c]
        rows[i, 3 + c] = values[r, c]


@implements(bag_marginal, np.ndarray)
def _bag_marginal(rows: Rows, i: int, family: DirichletMultinomial) -> float:
    from_word = family.from_word
    total = -log_rising(family.from_all, 0, rows[i, 2])
    for c in range(3, 3 + family.vocabulary):
        if rows[i, c] > 0.0:
            total += log_rising(from_word, 0, rows[i, c])
    return total


@implements(bag_union, np.ndarray)
def _bag_union(
    rows: Rows, i: int, other: Rows, j: int, family: DirichletMultinomial, work: Rows
) -> float:
    copy_row(work, 0, rows, i)
    add_row(work, 0, other, j)
    return bag_marginal(work, 0, family)


@implements(bag_prepare, np.ndarray)
def _bag_prepare(table: Rows, k: int, rows: Rows, i: int, family: DirichletMultinomial) -> None:
    # Table: posterior weight of all words, its log gamma, then the posterior weight of each word.
    tokens = family.beta * family.vocabulary + rows[i, 2]
    table[k, 0] = tokens
    table[k, 1] = log_gamma(tokens)
    for c in range(family.vocabulary):
        table[k, 2 + c] = family.beta + rows[i, 3 + c]


@implements(bag_tables, np.ndarray)
def _bag_tables(_rows: Rows, capacity: int, family: DirichletMultinomial) -> Rows:
    return np.zeros((capacity, 2 + family.vocabulary))


@implements(bag_predictive, np.ndarray)
def _bag_predictive(table: Rows, k: int, rows: Rows, i: int, family: DirichletMultinomial) -> float:
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
        if product > LARGEST_PRODUCT or product < SMALLEST_PRODUCT:
            total += log(product)
            product = 1.0
    return total + log(product)


def build_multinomial(
    parameters: Mapping[str, object], sample: Observations
) -> DirichletMultinomial:
    """The family by its parameters; the sample may be a sparse matrix.

    Without ``beta`` the prior is worth one observation of the sample's mean length.
    """
    refuse_unknown("multinomial", parameters, ("beta",))
    vocabulary = sample.shape[1]
    seen = sample if isinstance(sample, np.ndarray) else sample.tocsr().data
    tokens = seen[np.isfinite(seen)].sum()
    length = (float(tokens) + 1.0) / (sample.shape[0] + 1.0)
    beta = positive("beta", parameters.get("beta", length / vocabulary), 1)
    return dirichlet_multinomial(float(beta[0]), vocabulary)


def _parameters(family: DirichletMultinomial) -> dict[str, object]:
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
    build=build_multinomial,
    parameters=_parameters,
    validate=_validate,
    describe=_describe,
    draw=_draw,
    scale=("beta",),
)
