"""What the edges between two blocks are: conjugate likelihoods of the infinite relational model.

All pairs of vertices out of two given blocks (or one) share a parameter, which is integrated out:
what matters of them is the sum of their edges and how many of them are observed. (Kemp et al. 2006;
``split-merge-samplers.md`` section 1.)
"""

from math import log
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import generic, implements, inner
from weald.treecore.compiled.reference import held_by_reference
from weald.treecore.errors import ParameterError
from weald.treecore.family.interface.base import predictive_width, statistics_width
from weald.treecore.family.interface.defaults import register_dense
from weald.treecore.statistics.log_gamma import log_rising, rising_table

__all__ = [
    "BetaEdges",
    "EdgeFamily",
    "GammaEdges",
    "beta_edges",
    "edge_mean",
    "edge_numbers",
    "gamma_edges",
    "log_pair",
]


@held_by_reference
class BetaEdges(NamedTuple):
    """Edges that are there or not, with a Beta(a, b) share; a counts edges, b their absence.

    The tables hold log rising factorials from a, b and a + b.
    """

    a: float
    b: float
    from_a: NDArray[np.float64]
    from_b: NDArray[np.float64]
    from_both: NDArray[np.float64]


@held_by_reference
class GammaEdges(NamedTuple):
    """Counts on edges, with a Gamma(shape, rate) mean for every pair of vertices."""

    shape: float
    rate: float
    from_shape: NDArray[np.float64]


EdgeFamily = BetaEdges | GammaEdges
Numbers = TypeVar("Numbers", float, NDArray[np.float64])


@generic
def log_pair(family: EdgeFamily, total: float, n_pairs: float) -> float:
    """Log marginal likelihood of ``n_pairs`` observed pairs of vertices whose edges sum to total.

    Factors that do not depend on the blocks are left out; 0 for no pairs.
    """
    raise NotImplementedError


@generic
def edge_mean(family: EdgeFamily, total: Numbers, n_pairs: Numbers) -> Numbers:
    """Posterior mean of the edge on one more pair like these. Python only; works on arrays."""
    raise NotImplementedError


def positive_number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < np.inf:
        raise ParameterError(f"irm: {name} must be a positive number, got {value!r}")
    return float(value)


def beta_edges(a: float = 1.0, b: float = 1.0) -> BetaEdges:
    """Check the hyperparameters and make the likelihood of binary networks.

    Raises ParameterError.
    """
    a, b = positive_number("a", a), positive_number("b", b)
    tables = [rising_table(np.array([start])) for start in (a, b, a + b)]
    return BetaEdges(a, b, *tables)


def gamma_edges(shape: float = 1.0, rate: float = 1.0) -> GammaEdges:
    """Check the hyperparameters and make the likelihood of counts; raises ParameterError."""
    shape, rate = positive_number("shape", shape), positive_number("rate", rate)
    return GammaEdges(shape, rate, rising_table(np.array([shape])))


def edge_numbers(family: BetaEdges | GammaEdges) -> dict[str, float]:
    """Hyperparameters of the likelihood by their names."""
    fields = family._asdict().items()
    return {name: value for name, value in fields if isinstance(value, float)}


@inner
def _log_share(family: BetaEdges, total: float, n_pairs: float) -> float:
    present = log_rising(family.from_a, 0, total)
    absent = log_rising(family.from_b, 0, n_pairs - total)
    return present + absent - log_rising(family.from_both, 0, n_pairs)


@inner
def _log_rate(family: GammaEdges, total: float, n_pairs: float) -> float:
    shape, rate = family.shape, family.rate
    value = log_rising(family.from_shape, 0, total) + shape * log(rate)
    return value - (total + shape) * log(rate + n_pairs)


@implements(log_pair, BetaEdges)
def _log_share_of(family: BetaEdges, total: float, n_pairs: float) -> float:
    return _log_share(family, total, n_pairs)


@implements(log_pair, GammaEdges)
def _log_rate_of(family: GammaEdges, total: float, n_pairs: float) -> float:
    return _log_rate(family, total, n_pairs)


@implements(edge_mean, BetaEdges)
def _mean_share(family: BetaEdges, total: Numbers, n_pairs: Numbers) -> Numbers:
    return (total + family.a) / (n_pairs + family.a + family.b)


@implements(edge_mean, GammaEdges)
def _mean_rate(family: GammaEdges, total: Numbers, n_pairs: Numbers) -> Numbers:
    return (total + family.shape) / (n_pairs + family.rate)


# A partition of vertices has no statistics of single blocks: they are of pairs.
@implements(statistics_width, BetaEdges, GammaEdges)
def _no_statistics(_family: EdgeFamily) -> int:
    return 0


@implements(predictive_width, BetaEdges, GammaEdges)
def _no_predictive(_family: EdgeFamily) -> int:
    return 0


register_dense(BetaEdges, GammaEdges)
