"""An example of every registered family, and one compiled pass over a cluster of observations."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.family import FAMILIES
from weald.treecore.family.interface.base import (
    extend_predictive,
    extends_cheaply,
    fill_predictive,
    log_marginal,
    log_marginal_sum,
    log_marginal_sums,
    log_predictive,
    log_predictive_above,
    log_predictive_of_member,
    observe,
    outline,
    outline_bounds,
    outline_width,
    predictive_width,
    statistics_width,
    workspace,
)
from weald.treecore.forest.node_layout import LANES
from weald.treecore.statistics.rows import (
    add_row,
    clear_row,
    copy_row,
    is_single,
    subtract_row,
    sum_rows,
)

Array = NDArray[np.float64]

# A family without an entry is built from a sample of three columns of zeros and ones.
PARAMETERS: dict[str, dict[str, Any]] = {
    "categorical": {"levels": [2, 3, 5]},
    "multinomial": {"beta": 0.7},
    "mixed": {
        "parts": [
            {"family": "diagonal", "columns": [4, 1]},
            {"family": "poisson", "columns": [2, 0]},
            {"family": "categorical", "columns": [3], "params": {"levels": [4]}},
        ]
    },
}
COLUMNS = {"mixed": 5}
# Added to the sample of a family that takes no zeros.
LEAST = {"gamma": 1.0}
NAMES = sorted(FAMILIES)


def sample_of(name: str) -> Array:
    """Twenty observations that the family can take."""
    rng = np.random.default_rng(1)
    drawn = rng.integers(0, 2, size=(20, COLUMNS.get(name, 3)))
    return drawn.astype(np.float64) + LEAST.get(name, 0.0)


@cache
def example(name: str) -> Any:
    """The family, built from its sample; compare families with ``is``, never change one."""
    return FAMILIES[name].build(PARAMETERS.get(name, {}), sample_of(name))


def row_of(family: Any, values: Array) -> Array:
    """The statistics row of some observations."""
    rows = np.zeros((2, statistics_width(family)))
    for r in range(values.shape[0]):
        observe(family, values, r, rows, 0)
        add_row(rows, 1, rows, 0)
    return np.asarray(rows[1])


def observations(name: str, n: int, seed: int) -> Array:
    """Observations drawn from the family itself, half from the prior and half from a cluster."""
    family, spec = example(name), FAMILIES[name]
    rng = np.random.default_rng(seed)
    prior = spec.draw(family, np.zeros(statistics_width(family)), rng, n)
    cluster = spec.draw(family, row_of(family, sample_of(name)), rng, n)
    return np.where(rng.random((n, 1)) < 0.5, prior, cluster)


def takes_missing(name: str) -> bool:
    """Whether the family integrates missing values out instead of rejecting them."""
    return FAMILIES[name].validate(example(name), sample_of(name) * np.nan) is None


class Evaluation(NamedTuple):
    """What :func:`evaluate` found at each observation (n), and the rows that it left.

    ``predictive`` and ``union`` are given the observations before; ``marginal`` is of those up to
    it; ``remaining`` of those after it; ``halves`` the two halves' union, by ``sum_rows``.
    ``sums`` (2, n) are the marginals of each twice with all, found at once and one by one.
    ``extended`` is ``predictive`` by a table that took the observations in one by one (where they
    are unweighted). ``above`` (3, n) is the predictive where it must reach a little less, a little
    more, nothing.
    ``bounds`` are those of the predictives by outlines, where the family has any.
    ``members`` (2, n) are the predictives given all others: by the table of all, NaN where that
    does not tell, and by marginals.
    ``rows`` are the n observations, their sum, and the sum after everything was taken out again.
    """

    predictive: Array
    union: Array
    marginal: Array
    remaining: Array
    halves: float
    above: Array
    extended: Array
    bounds: Array
    sums: Array
    members: Array
    rows: Array


_LITTLE = 1e-3


@inner
def _ask_for_members(
    family: Any, n: int, rows: Array, table: Array, out: Array, whole: float, work: Array
) -> None:
    fill_predictive(family, rows, n, table, 0, work)
    for r in range(n):
        copy_row(rows, n + 1, rows, n)
        subtract_row(rows, n + 1, rows, r)
        out[1, r] = whole - log_marginal(family, rows, n + 1, work)
        out[0, r] = np.nan
        if n > 1 and is_single(rows, r):
            out[0, r] = log_predictive_of_member(family, table, 0, rows[n, 1], rows, r)


@compiled
def _run(
    family: Any, values: Array, weights: Array, rows: Array, table: Array, out: Array, work: Array
) -> None:
    n = values.shape[0]
    outlines = np.zeros((1, outline_width(family), LANES))
    bounds = np.zeros(2)
    clear_row(rows, n)
    fill_predictive(family, rows, n, table, 1, work)
    for r in range(n):
        observe(family, values, r, rows, r)
        for c in range(1, rows.shape[1]):
            rows[r, c] *= weights[r]
        # Of a weighted row there is no predictive density, and it may point beyond the table.
        single = is_single(rows, r)
        if single:
            fill_predictive(family, rows, n, table, 0, work)
            out[0, r] = log_predictive(family, table, 0, rows, r)
            out[5, r] = log_predictive_above(family, table, 0, rows, r, out[0, r] - _LITTLE)
            out[6, r] = log_predictive_above(family, table, 0, rows, r, out[0, r] + _LITTLE)
            out[7, r] = log_predictive_above(family, table, 0, rows, r, -np.inf)
            if extends_cheaply(family):
                outline(family, table, 0, outlines, 0, 1)
                outline_bounds(family, outlines, 0, 2, rows, r, work, bounds)
                out[9, r] = bounds[1]
        out[1, r] = log_marginal_sum(family, rows, n, rows, r, work)
        add_row(rows, n, rows, r)
        if single:
            out[8, r] = extend_predictive(family, rows, n, r, table, 1, 1, work)
        out[2, r] = log_marginal(family, rows, n, work)
    places = np.arange(n - 1, -1, -1)
    log_marginal_sums(family, rows, places, rows, n, out[10], work)
    for at in range(n):
        out[11, at] = log_marginal_sum(family, rows, places[at], rows, n, work)
    _ask_for_members(family, n, rows, table, out[12:], out[2, n - 1], work)
    copy_row(rows, n + 1, rows, n)
    for r in range(n):
        subtract_row(rows, n + 1, rows, r)
        out[3, r] = log_marginal(family, rows, n + 1, work)
    clear_row(rows, n + 2)
    clear_row(rows, n + 3)
    for r in range(n):
        add_row(rows, n + 2 + r % 2, rows, r)
    sum_rows(rows, n + 4, n + 2, n + 3)
    out[4, 0] = log_marginal(family, rows, n + 4, work)


def evaluate(family: Any, values: Array, weights: Array | None = None) -> Evaluation:
    """Add the observations one by one, then take them out in the same order."""
    n = values.shape[0]
    rows = np.zeros((n + 5, statistics_width(family)))
    table = np.zeros((2, predictive_width(family)))
    out = np.zeros((14, max(n, 1)))
    weights = np.ones(n) if weights is None else weights
    _run(family, np.ascontiguousarray(values), weights, rows, table, out, workspace(family))
    return Evaluation(
        predictive=out[0, :n],
        union=out[1, :n],
        marginal=out[2, :n],
        remaining=out[3, :n],
        halves=float(out[4, 0]),
        above=out[5:8, :n],
        extended=out[8, :n],
        bounds=out[9, :n],
        sums=out[10:12, :n],
        members=out[12:, :n],
        rows=rows[: n + 2],
    )


def marginal_of(family: Any, values: Array, weights: Array | None = None) -> float:
    """Log marginal likelihood of some observations."""
    evaluation = evaluate(family, values, weights)
    return float(evaluation.marginal[-1]) if values.shape[0] else 0.0
