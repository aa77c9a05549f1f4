"""How well a partition's clusters predict each observation that they hold, without it.

Each observation's density is that of a mixture with a component for each cluster, by the predictive
density of the cluster's other members, and one for a new cluster, which counts as one observation.
Compared with a coarser partition of the same observations it says which of the two the data
support: parting what is one blob costs density, joining what is two costs more.
"""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from weald.treecore.family.interface.base import Family
from weald.treecore.family.totals import (
    dense_rows,
    log_marginals,
    log_predictives,
    single_rows,
    totals_of_groups,
)
from weald.treecore.statistics.observations import Observations

__all__ = ["Gain", "gain_in_density", "left_out_densities", "left_out_densities_of_rows"]

# Rows that are asked: more change a mean by less than its standard error.
_MOST_ROWS = 2000
# Times as probable, beyond which more digits say no more.
_MANY = 1000


class Gain(NamedTuple):
    """Mean gain in log density of an observation, in nats, and its standard error."""

    nats: float
    standard_error: float

    @property
    def is_clear(self) -> bool:
        """Whether it is over two standard errors above zero."""
        return self.nats > 2.0 * self.standard_error

    def __str__(self) -> str:
        """Say how many times as probable an observation is, and up to two standard errors off."""
        low, high = (_times(self.nats + off * self.standard_error) for off in (-2.0, 2.0))
        between = "" if low == high else f" ({low} to {high})"
        return f"{_times(self.nats)} times as probable{between}"


def _times(nats: float) -> str:
    if nats > log(_MANY):
        return f"over {_MANY}"
    return f"{exp(nats):.3g}" if nats > -log(_MANY) else "almost 0"


def left_out_densities(
    family: Family, values: Observations, labels: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Log density (q) of some of the observations (n, d), evenly chosen, without themselves."""
    n = labels.size
    totals = totals_of_groups(family, values, labels, int(labels.max()) + 1)
    rows = np.linspace(0, n - 1, min(n, _MOST_ROWS)).astype(np.int64)
    single = single_rows(family, dense_rows(values, rows))
    return left_out_densities_of_rows(family, single, labels[rows], totals)


def left_out_densities_of_rows(
    family: Family,
    single: NDArray[np.float64],
    own: NDArray[np.int64],
    totals: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Log density (q) of observations with statistics ``single`` (q, m), without themselves.

    ``own`` (q) is the cluster of each, ``totals`` (k, m) are the clusters' statistics.
    """
    n, k = totals[:, 0].sum(), totals.shape[0]
    totals = np.concatenate([totals, np.zeros((1, totals.shape[1]))])
    density = log_predictives(family, single, totals)
    at = np.arange(own.size)
    rest = totals[own] - single
    density[at, own] = log_marginals(family, totals[own]) - log_marginals(family, rest)
    weight = np.tile(np.append(totals[:k, 0], 1.0), (own.size, 1))
    weight[at, own] -= 1.0
    with np.errstate(divide="ignore"):
        found = logsumexp(density + np.log(weight / n), axis=1)
    return np.asarray(found)


def gain_in_density(one: NDArray[np.float64], other: NDArray[np.float64]) -> Gain:
    """By how much ``one`` (q) exceeds ``other`` (q), both of the same observations."""
    off = one - other
    error = float(off.std(ddof=1) / np.sqrt(off.size)) if off.size > 1 else np.inf
    return Gain(float(off.mean()), error)
