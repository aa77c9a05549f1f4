"""What a family has that implements the least: the other generic functions, by those it has."""

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import implements
from weald.treecore.statistics.rows import Rows, add_row, copy_row

from .base import (
    Family,
    extend_predictive,
    extends_cheaply,
    fill_predictive,
    log_marginal,
    log_marginal_sum,
    log_marginal_sums,
    log_predictive,
    log_predictive_above,
    log_predictive_of_member,
    make_batched,
    make_predictive,
    make_rows,
    nearer_centre,
    outline,
    outline_bounds,
    outline_width,
    predictive_width,
    statistics_width,
)
from .batched_predictive import BatchedPredictives, OneByOne

__all__ = ["register_batched", "register_dense", "register_filling"]


def _whole_log_predictive_above(
    family: Family, table: Rows, k: int, rows: Rows, i: int, least: float
) -> float:
    value = log_predictive(family, table, k, rows, i)
    return value if value >= least else -np.inf


def _untold(_family: Family, _table: Rows, _k: int, _weight: float, _rows: Rows, _i: int) -> float:
    return np.nan


def _extends_dearly(_family: Family) -> bool:
    return False


def _filled_anew(  # noqa: PLR0913 - two arrays and five places in them
    family: Family, rows: Rows, i: int, x: int, table: Rows, k: int, source: int, work: Rows
) -> float:
    value = log_predictive(family, table, source, rows, x)
    fill_predictive(family, rows, i, table, k, work)
    return value


def _equally_near(_family: Family, _rows: Rows, _a: int, _b: int, _x: int) -> bool:
    return True


def _no_width(_family: Family) -> int:
    return 0


def _no_outline(
    _family: Family, _table: Rows, _k: int, _outlines: NDArray[np.float64], _group: int, _lane: int
) -> None:
    pass


def _no_bounds(
    _family: Family,
    _outlines: NDArray[np.float64],
    _group: int,
    _n: int,
    _rows: Rows,
    _x: int,
    _work: Rows,
    _bounds: NDArray[np.float64],
) -> None:
    pass


def _sums_one_by_one(  # noqa: PLR0913 - three arrays and two places in them
    family: Family,
    rows: Rows,
    places: NDArray[np.int64],
    other: Rows,
    j: int,
    out: NDArray[np.float64],
    work: Rows,
) -> None:
    for at in range(places.shape[0]):
        out[at] = log_marginal_sum(family, rows, places[at], other, j, work)


def _one_by_one(_family: Family, width: int) -> OneByOne:
    return OneByOne(width)


def _batched(family: Family, width: int) -> BatchedPredictives:
    # Zeros, because columns that no block has been in are computed with.
    table = np.zeros((predictive_width(family), width))
    return BatchedPredictives(table, np.zeros(width), np.empty(width), np.empty(width))


def register_batched(*families: type) -> None:
    """Give families that implement :func:`weigh` their room."""
    implements(make_batched, *families)(_batched)


def register_filling(*families: type) -> None:
    """Let families fill a table anew with each observation, and ask their blocks one by one."""
    implements(log_marginal_sums, *families)(_sums_one_by_one)
    implements(make_batched, *families)(_one_by_one)
    implements(log_predictive_of_member, *families)(_untold)
    implements(outline_width, *families)(_no_width)
    implements(outline, *families)(_no_outline)
    implements(outline_bounds, *families)(_no_bounds)
    implements(nearer_centre, *families)(_equally_near)
    implements(extends_cheaply, *families)(_extends_dearly)
    implements(extend_predictive, *families)(_filled_anew)


def _dense_log_marginal_sum(
    family: Family, rows: Rows, i: int, other: Rows, j: int, work: Rows
) -> float:
    copy_row(work, 0, rows, i)
    add_row(work, 0, other, j)
    return log_marginal(family, work, 0, work)


def _dense_rows(family: Family, capacity: int, _values: object) -> Rows:
    # Zeroed pages cost no memory until they are touched.
    return np.zeros((capacity, statistics_width(family)))


def _dense_predictive(family: Family, capacity: int, _rows: Rows) -> Rows:
    return np.zeros((capacity, predictive_width(family)))


def register_dense(*families: type) -> None:
    """Give families on dense rows the functions that follow from those they have."""
    implements(log_marginal_sum, *families)(_dense_log_marginal_sum)
    implements(log_predictive_above, *families)(_whole_log_predictive_above)
    register_filling(*families)
    implements(make_rows, *families)(_dense_rows)
    implements(make_predictive, *families)(_dense_predictive)
