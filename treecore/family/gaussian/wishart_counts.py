"""The part of a normal-inverse-Wishart log marginal that depends on the weight of a block alone.

Looked up for whole weights, of which the family keeps a table, and worked out for others.
"""

from math import log, log1p, pi
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from weald.treecore.compiled.compile import inner
from weald.treecore.statistics.log_gamma import log_gamma

__all__ = ["count_growth", "count_term", "log_counts"]


class Weighed(Protocol):
    """A normal-inverse-Wishart family, by what the weight of a block needs of it."""

    @property
    def mean(self) -> NDArray[np.float64]: ...

    @property
    def kappa(self) -> float: ...

    @property
    def nu(self) -> float: ...

    @property
    def log_count(self) -> NDArray[np.float64]:
        """The term for whole weights, from 0 on."""
        ...


def log_counts(n: int, d: int, kappa: float, nu: float) -> NDArray[np.float64]:
    """The part of a normal-inverse-Wishart log marginal that depends on the weight alone.

    For weights 0 to n - 1, up to a constant: half the log determinant of psi and log gammas of the
    prior.
    """
    weights = np.arange(n, dtype=np.float64)
    value = -0.5 * weights * d * log(pi) + 0.5 * d * np.log(kappa / (kappa + weights))
    # A feature more has the same log gammas, one weight further on.
    gammas = gammaln(0.5 * (nu + np.arange(1 - d, n)))
    for i in range(d):
        value += gammas[d - 1 - i : d - 1 - i + n]
    return value


@inner
def count_term(family: Weighed, weight: float) -> float:
    """Of a normal-inverse-Wishart family's log marginal, what the weight alone decides."""
    whole = int(weight)
    if whole == weight and whole < family.log_count.shape[0]:
        return family.log_count[whole]
    d = family.mean.shape[0]
    value = family.log_count[0] - 0.5 * weight * d * log(pi)
    value += 0.5 * d * log(family.kappa / (family.kappa + weight))
    for i in range(d):
        value += log_gamma(0.5 * (family.nu + weight - i)) - log_gamma(0.5 * (family.nu - i))
    return value


@inner
def count_growth(family: Weighed, weight: float) -> float:
    """What one more observation adds to :func:`count_term`."""
    whole = int(weight)
    if whole == weight and whole + 1 < family.log_count.shape[0]:
        return family.log_count[whole + 1] - family.log_count[whole]
    d = family.mean.shape[0]
    # All but the first and the last log gamma cancel.
    most = 0.5 * (family.nu + weight + 1.0)
    value = log_gamma(most) - log_gamma(most - 0.5 * d) - 0.5 * d * log(pi)
    return value + 0.5 * d * log1p(-1.0 / (family.kappa + weight + 1.0))
