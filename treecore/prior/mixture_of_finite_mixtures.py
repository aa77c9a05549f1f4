"""Mixture of finite mixtures: Dirichlet(gamma, ..., gamma) weights on K components, K random.

``p = V_n(t) prod_c Gamma(gamma + n_c) / Gamma(gamma)`` for t blocks, with
``V_n(t) = sum over K of P(K) K! / (K - t)! Gamma(gamma K) / Gamma(gamma K + n)``.

K is ``1 + Poisson(mean)``. A Gamma(shape, rate) law of the mean makes K - 1 negative binomial, so
learning the mean with shape 1 and rate r gives the geometric K with success r / (1 + r).

Source: Miller and Harrison (2018), Journal of the American Statistical Association 113, theorem 3.1
and equation 3.2.
"""

from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from math import ceil, exp, inf, lgamma, log
from typing import NamedTuple, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import gammaln

from .base import NOMINAL_N, Seating, make_seating, normalized, require_positive
from .component_series import ComponentTable, draw_components, log_rising, sum_components
from .sequential import canonical_labels
from .slice_sampler import slice_stepping_out

__all__ = ["MixtureOfFiniteMixtures"]


class _Mixture(NamedTuple):
    gamma: float
    mean: float


@dataclass(frozen=True)
class MixtureOfFiniteMixtures:
    """Number of components ``K = 1 + Poisson(mean)``, weights Dirichlet(gamma, ..., gamma) given K.

    Attributes
    ----------
    gamma:
        Concentration of each component, positive.
    mean:
        Expected number of components besides the first, positive.
    learn, shape, rate:
        Whether ``mean`` is learned, and its Gamma(shape, rate) hyperprior.
    learn_gamma, gamma_shape, gamma_rate:
        Whether ``gamma`` is learned, and its Gamma(shape, rate) hyperprior.
    """

    gamma: float = 1.0
    mean: float = 9.0
    learn: bool = False
    shape: float = 1.0
    rate: float = 1.0 / 9.0
    learn_gamma: bool = False
    gamma_shape: float = 1.0
    gamma_rate: float = 1.0

    name = "mfm"

    def __post_init__(self) -> None:
        require_positive(self.name, gamma=self.gamma, mean=self.mean)
        require_positive(self.name, shape=self.shape, rate=self.rate)
        require_positive(self.name, gamma_shape=self.gamma_shape, gamma_rate=self.gamma_rate)

    @property
    def _mixture(self) -> _Mixture:
        return _Mixture(self.gamma, self.mean)

    def parameters(self) -> dict[str, object]:
        """JSON-able fields."""
        return asdict(self)

    def seating(self, n: int, n_blocks: int) -> Seating:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`.

        Exact, and not of product form. ``slope`` is the increment at the expected number of
        components for 100 observations.
        """
        log_v = _log_v_table(self._mixture, n, n_blocks + 1)
        slope = _slope(self._mixture)
        log_blocks = np.concatenate(([log_v[0] - slope], log_v))
        return make_seating(self.gamma, 1.0, lgamma(self.gamma), log_blocks, slope)

    def log_probability(self, sizes: NDArray[np.int64]) -> float:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`."""
        n, t = int(sizes.sum()), len(sizes)
        if n == 0:
            return 0.0
        blocks = float(gammaln(sizes + self.gamma).sum()) - t * lgamma(self.gamma)
        return float(_log_v(self._mixture, n, t, 1)[0]) + blocks

    def log_predictive(self, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`."""
        n, t = int(sizes.sum()), len(sizes)
        if n == 0:
            return np.zeros(1)
        stay, opening = _log_v(self._mixture, n + 1, t, 2)
        opening += log(self.gamma) - stay
        return normalized(np.append(np.log(sizes + self.gamma), opening))

    def sample(self, rng: Generator, n: int) -> NDArray[np.int64]:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`."""
        n_components = 1 + int(rng.poisson(self.mean))
        weights = rng.dirichlet(np.full(n_components, self.gamma))
        return canonical_labels(rng.choice(n_components, size=n, p=weights))

    def typical(self, n: int, n_blocks: int) -> Self:  # noqa: ARG002  (the protocol's)
        """See :class:`~weald.treecore.prior.base.PartitionPrior`: nothing to set."""
        return self

    def resample(self, rng: Generator, sizes: NDArray[np.int64]) -> Self:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`.

        K is drawn from its conditional, then ``mean`` given K (a Gamma draw) and ``gamma`` given K
        (a slice on its log); K is forgotten.
        """
        n, t = int(sizes.sum()), len(sizes)
        if n == 0 or not (self.learn or self.learn_gamma):
            return self
        n_components = draw_components(rng, partial(_table, self._mixture, n, t, t))
        mean, gamma = self.mean, self.gamma
        if self.learn:
            draw = rng.gamma(self.shape + n_components - 1) / (self.rate + 1.0)
            mean = max(draw, 1e-300)
        if self.learn_gamma:
            gamma = self._draw_gamma(rng, sizes, n_components)
        return replace(self, mean=mean, gamma=gamma)

    def _draw_gamma(self, rng: Generator, sizes: NDArray[np.int64], n_components: int) -> float:
        n, t = int(sizes.sum()), len(sizes)
        distinct, n_times = np.unique(sizes, return_counts=True)

        def log_density(log_gamma: float) -> float:
            # A step out may go anywhere; beyond these the density is nil and lgamma unsafe.
            if not -300.0 < log_gamma < 300.0:
                return -inf
            gamma = exp(log_gamma)
            total = lgamma(gamma * n_components + n) - lgamma(gamma * n_components)
            blocks = float(n_times @ gammaln(distinct + gamma)) - t * lgamma(gamma)
            return blocks - total + self.gamma_shape * log_gamma - self.gamma_rate * gamma

        return exp(slice_stepping_out(rng, log_density, log(self.gamma), 2.0))


def _table(mixture: _Mixture, n: int, first: int, last: int, length: int) -> ComponentTable:
    """Terms for K = first, ..., first + length - 1, with bounds that hold for t up to ``last``.

    c(K) = mean / K times the Dirichlet's factor, Gamma(gamma K + gamma) / Gamma(gamma K) over the
    same at gamma K + n, which rises with K towards 1.
    """
    gamma, mean = mixture
    K = np.arange(first, first + length, dtype=np.float64)
    # With L >= 2 t and L >= 4 mean, the ratio beyond L is below 2 * 1/4 whatever that factor is.
    bounded_to = 2.0 * last + ceil(4.0 * mean) + 4.0
    points = gamma * np.append(K, bounded_to)
    log_factor = log_rising(points, gamma) - log_rising(points + n, gamma)
    ceiling = (mean * exp(log_factor[-1])) / K
    far = mean / bounded_to * (bounded_to + 1.0) / (bounded_to + 1.0 - last)
    log_ratio = log(mean) - np.log(K) + log_factor[:-1]
    # P(first) first!, and the Dirichlet's part.
    log_start = (first - 1) * log(mean) - mean + log(first)
    log_start -= float(log_rising(points[:1], n)[0])
    return ComponentTable(first, log_start, log_ratio, ceiling, far)


def _log_v(mixture: _Mixture, n: int, t: int, n_values: int) -> NDArray[np.float64]:
    """Log V_n(t), log V_n(t + 1), ..."""
    return sum_components(partial(_table, mixture, n, t, t + n_values - 1), n_values)


@lru_cache(maxsize=4)
def _log_v_table(mixture: _Mixture, n: int, n_values: int) -> NDArray[np.float64]:
    return _log_v(mixture, n, 1, n_values)


@lru_cache(maxsize=4)
def _slope(mixture: _Mixture) -> float:
    usual = min(1 + round(mixture.mean), NOMINAL_N)
    before, after = _log_v(mixture, NOMINAL_N, usual, 2)
    return float(after - before)
