"""Families whose clusters have a parameter without a conjugate prior: one number of a grid.

A feature's likelihood p(x | s, t) need be conjugate in t only where s is known. A priori s is any
number of a grid, each as likely, so that a cluster's marginal is a sum over the grid of marginals
known in closed form, and as exact as they are: ``sum_g m_g(x) / G``. No kernel needs to know it,
and no state has a parameter in it: statistics are sums over observations as ever.

A family here is a ``NamedTuple`` with ``grid`` (G) and ``shape`` (d), float64, and implements the
five functions below for one feature and one number of the grid. :func:`register_gridded` makes the
rest of them. Row: [count, weight, constant, then (w, sums...) a feature], w being the weight of the
observed values. A missing value (NaN) adds nothing, which integrates it out exactly.
"""

from math import exp, log
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled, generic_inner, implements
from weald.treecore.errors import ParameterError
from weald.treecore.family.interface.base import (
    Family,
    fill_predictive,
    log_marginal,
    log_predictive,
    observe,
    predictive_width,
    statistics_width,
    workspace,
)
from weald.treecore.family.interface.checks import numbers
from weald.treecore.family.interface.defaults import register_dense
from weald.treecore.statistics.rows import Rows

__all__ = [
    "PARAMETERS",
    "chosen_on_grid",
    "geometric",
    "grid_of",
    "grid_weights",
    "log_marginal_at",
    "log_predictive_at",
    "n_sums",
    "observe_feature",
    "parameters_of",
    "prepare_at",
    "register_gridded",
]

# What people may give: a prior of means, and the grid.
PARAMETERS = ("shape", "rate", "grid")
# Numbers of a predictive table for each number of the grid: a bound, and what is prepared.
_PREPARED = 5
# Terms so many nats below the largest are less than a sum's rounding.
_NEGLIGIBLE = 40.0


@generic_inner
def n_sums(family: Family) -> int:
    """How many sums of a feature a row has, beside its weight."""
    raise NotImplementedError


@generic_inner
def observe_feature(family: Family, value: float, rows: Rows, i: int, at: int) -> None:
    """Write the sums of one value to ``rows[i, at:]``; what no parameter changes adds to [i, 2]."""
    raise NotImplementedError


@generic_inner
def log_marginal_at(family: Family, c: int, g: int, rows: Rows, i: int, at: int) -> float:
    """Log marginal of the values of feature c, given that the parameter is ``grid[g]``.

    Their weight, above 0, is ``rows[i, at]``, their sums are after it; constants are left out.
    """
    raise NotImplementedError


@generic_inner
def prepare_at(  # noqa: PLR0913 - two arrays and the places in them
    family: Family, c: int, g: int, rows: Rows, i: int, at: int, table: Rows, k: int, to: int
) -> float:
    """Prepare :func:`log_predictive_at`; returns what this log density never exceeds.

    ``table[k, to]`` becomes a constant that is added, ``table[k, to + 1:]`` up to three more
    numbers. The block's weight ``rows[i, at]`` may be 0.
    """
    raise NotImplementedError


@generic_inner
def log_predictive_at(  # noqa: PLR0913 - two arrays and the places in them
    family: Family, g: int, table: Rows, k: int, to: int, rows: Rows, i: int, at: int
) -> float:
    """Log predictive density of one value, given ``grid[g]``, without its constant.

    Its weight, 1, is ``rows[i, at]``, its sums are after it.
    """
    raise NotImplementedError


def grid_of(grid: object) -> NDArray[np.float64]:
    """The numbers of a grid that a person may have given; raises ParameterError."""
    found = numbers("grid", grid).reshape(-1)
    if not (found.size and (found > 0.0).all()):
        raise ParameterError(f"grid must have positive numbers, got {grid!r}")
    return found.copy()


def parameters_of(family: Any) -> dict[str, object]:
    """What people may give, as the family has it."""
    return {name: getattr(family, name).tolist() for name in PARAMETERS}


def geometric(first: float, last: float, n: int) -> NDArray[np.float64]:
    """A grid of n numbers, each the same multiple of the one before."""
    return np.exp(np.linspace(log(first), log(last), n))


@compiled
def grid_weights(family: Any, rows: Rows) -> NDArray[np.float64]:
    """Posterior probability (k, d, G) of each number of the grid, given rows (k, m)."""
    n_grid, d, width = family.grid.size, family.shape.size, 1 + n_sums(family)
    weights = np.zeros((rows.shape[0], d, n_grid))
    for i in range(rows.shape[0]):
        for c in range(d):
            at = 3 + c * width
            if rows[i, at] > 0.0:
                for g in range(n_grid):
                    weights[i, c, g] = log_marginal_at(family, c, g, rows, i, at)
            weights[i, c] = np.exp(weights[i, c] - weights[i, c].max())
            weights[i, c] /= weights[i, c].sum()
    return weights


def chosen_on_grid(family: Any, rows: Rows, rng: Generator, size: int = 1) -> NDArray[np.int64]:
    """Places on the grid drawn from their posterior, (size, k, d), given rows (k, m)."""
    below = grid_weights(family, rows).cumsum(axis=2)
    drawn = rng.random((size, *below.shape[:2], 1))
    return np.minimum((below < drawn).sum(axis=3), family.grid.size - 1)


def _statistics_width(family: Any) -> int:
    return 3 + family.shape.size * (1 + n_sums(family))


def _predictive_width(family: Any) -> int:
    return family.shape.size * (1 + _PREPARED * family.grid.size)


def _workspace(family: Any) -> Rows:
    return np.zeros((1, statistics_width(family)))


def _observe(family: Any, values: NDArray[np.float64], r: int, rows: Rows, i: int) -> None:
    rows[i, 0] = 1.0
    rows[i, 1] = 1.0
    rows[i, 2] = 0.0
    width = 1 + n_sums(family)
    for c in range(family.shape.size):
        at = 3 + c * width
        for column in range(at, at + width):
            rows[i, column] = 0.0
        if not np.isnan(values[r, c]):
            rows[i, at] = 1.0
            observe_feature(family, values[r, c], rows, i, at + 1)


def _log_marginal(family: Any, rows: Rows, i: int, _work: Rows) -> float:
    n_grid, width = family.grid.size, 1 + n_sums(family)
    total = rows[i, 2]
    for c in range(family.shape.size):
        at = 3 + c * width
        if rows[i, at] <= 0.0:
            continue
        # The sum of exponentials is kept in units of its largest term so far.
        largest, terms = -np.inf, 0.0
        for g in range(n_grid):
            term = log_marginal_at(family, c, g, rows, i, at)
            if term > largest:
                terms = terms * exp(largest - term) + 1.0
                largest = term
            elif term > largest - _NEGLIGIBLE:
                terms += exp(term - largest)
        total += largest + log(terms / n_grid)
    return total


def _fill_predictive(family: Any, rows: Rows, i: int, table: Rows, k: int, _work: Rows) -> None:
    # Table: a feature's most probable number of the grid, then for each (what its term never
    # exceeds, a constant with the log weight in it, what else is prepared).
    n_grid, width = family.grid.size, 1 + n_sums(family)
    for c in range(family.shape.size):
        at, start = 3 + c * width, c * (1 + _PREPARED * n_grid)
        largest = -np.inf
        for g in range(n_grid):
            to = start + 1 + _PREPARED * g
            table[k, to] = log_marginal_at(family, c, g, rows, i, at) if rows[i, at] > 0.0 else 0.0
            if table[k, to] > largest:
                largest = table[k, to]
                table[k, start] = float(g)
        terms = 0.0
        for g in range(n_grid):
            terms += exp(table[k, start + 1 + _PREPARED * g] - largest)
        largest += log(terms)
        for g in range(n_grid):
            to = start + 1 + _PREPARED * g
            weight = table[k, to] - largest
            table[k, to] = weight + prepare_at(family, c, g, rows, i, at, table, k, to + 1)
            table[k, to + 1] += weight


def _log_predictive(family: Any, table: Rows, k: int, rows: Rows, i: int) -> float:
    n_grid, width = family.grid.size, 1 + n_sums(family)
    total = rows[i, 2]
    for c in range(family.shape.size):
        at, start = 3 + c * width, c * (1 + _PREPARED * n_grid)
        if rows[i, at] == 0.0:
            continue
        # The most probable number first: by its term most others of a large block are passed over.
        first = int(table[k, start])
        to = start + 2 + _PREPARED * first
        largest, terms = log_predictive_at(family, first, table, k, to, rows, i, at), 1.0
        for g in range(n_grid):
            to = start + 1 + _PREPARED * g
            if g == first or table[k, to] < largest - _NEGLIGIBLE:
                continue
            term = log_predictive_at(family, g, table, k, to + 1, rows, i, at)
            if term > largest:
                terms = terms * exp(largest - term) + 1.0
                largest = term
            elif term > largest - _NEGLIGIBLE:
                terms += exp(term - largest)
        total += largest + log(terms)
    return total


def register_gridded(*families: type) -> None:
    """Give families that implement the functions for one feature all that families have."""
    implements(statistics_width, *families)(_statistics_width)
    implements(predictive_width, *families)(_predictive_width)
    implements(workspace, *families)(_workspace)
    implements(observe, *families)(_observe)
    implements(log_marginal, *families)(_log_marginal)
    implements(fill_predictive, *families)(_fill_predictive)
    implements(log_predictive, *families)(_log_predictive)
    register_dense(*families)
