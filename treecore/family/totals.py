"""Statistics of groups of observations, summed in the order in which the observations come.

The order matters: floating-point sums depend on it, and a stream cut into other batches must give
the same bits.
"""

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled
from weald.treecore.family.interface.base import Family
from weald.treecore.statistics.observations import Observations
from weald.treecore.statistics.rows import Rows, add_row

from .discrete.sparse_multinomial import add_bags, sparse_values
from .interface.base import (
    fill_predictive,
    log_marginal,
    log_predictive,
    observe,
    predictive_width,
    statistics_width,
    workspace,
)

__all__ = [
    "add_observations",
    "add_rows",
    "dense_rows",
    "empty_totals",
    "log_marginals",
    "log_predictives",
    "single_rows",
    "totals_of_groups",
]


@compiled
def empty_totals(family: Family, n_groups: int) -> Rows:
    """Statistics rows, float64 (n_groups, m), of groups without observations."""
    return np.zeros((n_groups, statistics_width(family)))


@compiled
def add_observations(
    family: Family, values: NDArray[np.float64], groups: NDArray[np.int64], totals: Rows
) -> None:
    """Add each observation ``values[r]`` to the row ``totals[groups[r]]``, in order of r."""
    single = np.zeros((1, totals.shape[1]))
    for r in range(values.shape[0]):
        observe(family, values, r, single, 0)
        add_row(totals, groups[r], single, 0)


@compiled
def add_rows(rows: Rows, groups: NDArray[np.int64], totals: Rows) -> None:
    """Add each statistics row ``rows[r]`` to the row ``totals[groups[r]]``, in order of r."""
    for r in range(groups.shape[0]):
        add_row(totals, groups[r], rows, r)


@compiled
def log_marginals(family: Family, totals: Rows) -> NDArray[np.float64]:
    """Log marginal likelihood of each row's observations, float64 (n_groups,)."""
    work = workspace(family)
    result = np.empty(totals.shape[0])
    for i in range(totals.shape[0]):
        result[i] = log_marginal(family, totals, i, work)
    return result


@compiled
def log_predictives(family: Family, rows: Rows, totals: Rows) -> NDArray[np.float64]:
    """Log predictive density of each single observation ``rows`` (n, m) given each of ``totals``.

    Returns float64 (n, k).
    """
    work, table = workspace(family), np.zeros((1, predictive_width(family)))
    found = np.empty((rows.shape[0], totals.shape[0]))
    for k in range(totals.shape[0]):
        fill_predictive(family, totals, k, table, 0, work)
        for r in range(rows.shape[0]):
            found[r, k] = log_predictive(family, table, 0, rows, r)
    return found


def totals_of_groups(
    family: Family, values: Observations, groups: NDArray[np.int64], n_groups: int
) -> Rows:
    """Dense statistics rows (n_groups, m) of observations (n, d), which may be a sparse matrix."""
    totals = empty_totals(family, n_groups)
    if isinstance(values, np.ndarray):
        add_observations(family, values, groups, totals)
    else:
        add_bags(sparse_values(values), groups, totals)
    return totals


def single_rows(family: Family, values: Observations) -> Rows:
    """Statistics rows (n, m) of observations (n, d), each by itself."""
    n = values.shape[0]
    return totals_of_groups(family, values, np.arange(n), n)


def dense_rows(values: Observations, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Some rows (q, d) of observations (n, d), which may be a sparse matrix."""
    chosen = values[rows]
    dense = chosen if isinstance(chosen, np.ndarray) else chosen.toarray()
    return np.ascontiguousarray(dense, dtype=np.float64)
