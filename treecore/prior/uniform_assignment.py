"""The entity/mention model's prior: each observation belongs to one of K entities, uniformly.

``P(K) = K^-1 exp(-(log K - mu)^2 / (2 sigma^2)) / C`` for K = 1, ..., kmax. A partition with D
blocks has weight ``sum over K of P(K) K^-n K! / (K - D)!``; block sizes don't matter.

Source: ``split-merge-samplers.md`` sections 1 (EMM) and 2.6. The prior is the limit of a mixture of
finite mixtures whose weights are all equal, and so is consistent: dropping an observation from a
partition of n + 1 gives the prior for n.
"""

from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from math import inf, isfinite, lgamma, log
from typing import NamedTuple, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import gammaln

from .base import NOMINAL_N, Seating, make_seating, normalized, require, require_positive
from .component_series import ComponentTable, draw_components, sum_components
from .sequential import canonical_labels
from .slice_sampler import slice_stepping_out

__all__ = ["UniformAssignment"]


class _Law(NamedTuple):
    mu: float
    sigma: float
    kmax: int


@dataclass(frozen=True)
class UniformAssignment:
    """Prior on the number of entities K, with uniform assignment given K.

    Attributes
    ----------
    mu, sigma:
        Location and scale (positive) of log K.
    kmax:
        Largest number of entities, 1 or more. It is part of the model.
    learn, mu_mean, mu_deviation:
        Whether ``mu`` is learned, and its normal hyperprior.
    """

    mu: float = 0.5
    sigma: float = 1.0
    kmax: int = 1000
    learn: bool = False
    mu_mean: float = 0.5
    mu_deviation: float = 1.0

    name = "emm"

    def __post_init__(self) -> None:
        require(self.name, "mu", self.mu, "finite", holds=isfinite(self.mu))
        require(self.name, "mu_mean", self.mu_mean, "finite", holds=isfinite(self.mu_mean))
        require_positive(self.name, sigma=self.sigma, mu_deviation=self.mu_deviation)
        require(self.name, "kmax", self.kmax, "1 or more", holds=self.kmax >= 1)

    @property
    def _law(self) -> _Law:
        return _Law(self.mu, self.sigma, self.kmax)

    def parameters(self) -> dict[str, object]:
        """JSON-able fields."""
        return asdict(self)

    def log_entities(self) -> NDArray[np.float64]:
        """Log P(K) for K = 0, ..., kmax (minus infinity at 0)."""
        return _log_entities(self._law)

    def log_weight(self, n_entities: int, n_blocks: int, n: int) -> float:
        """Log weight of the state (K, partition): ``log(P(K) K^-n K! / (K - D)!)``.

        Minus infinity where K is below D or above kmax.
        """
        if not max(n_blocks, 1) <= n_entities <= self.kmax:
            return -inf
        orders = lgamma(n_entities + 1.0) - lgamma(n_entities - n_blocks + 1.0)
        return float(self.log_entities()[n_entities]) - n * log(n_entities) + orders

    def log_entities_given(self, n_blocks: int, n: int) -> NDArray[np.float64]:
        """Log P(K) given a partition, normalised, for K = n_blocks, ..., kmax.

        n observations are in ``n_blocks`` of 1 or more and at most kmax blocks.
        """
        self._require_possible(n_blocks)
        K = np.arange(n_blocks, self.kmax + 1, dtype=np.float64)
        orders = gammaln(K + 1.0) - gammaln(K - n_blocks + 1.0)
        return normalized(self.log_entities()[n_blocks:] - n * np.log(K) + orders)

    def draw_entities(self, rng: Generator, n_blocks: int, n: int) -> int:
        """K given that n observations are in ``n_blocks`` of 1 or more and at most kmax blocks."""
        self._require_possible(n_blocks)
        return draw_components(rng, partial(_table, self.log_entities(), n, n_blocks))

    def seating(self, n: int, n_blocks: int) -> Seating:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`.

        Exact, and not of product form. ``slope`` is the increment at the median number of
        entities for 100 observations: what each of them costs by K^-n cannot be divided among
        blocks, so the guide's potentials are rough under this prior.
        """
        log_v = _log_v_table(self._law, n, n_blocks + 1)
        slope = _slope(self._law)
        log_blocks = np.concatenate(([log_v[0] - slope], log_v))
        return make_seating(0.0, 0.0, 0.0, log_blocks, slope)

    def log_probability(self, sizes: NDArray[np.int64]) -> float:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`."""
        n, n_blocks = int(sizes.sum()), len(sizes)
        if n == 0:
            return 0.0
        return float(_log_v(self.log_entities(), n, n_blocks, 1)[0])

    def log_predictive(self, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`.

        Raises ParameterError where there are more than kmax blocks: nothing follows those.
        """
        n, n_blocks = int(sizes.sum()), len(sizes)
        if n == 0:
            return np.zeros(1)
        self._require_possible(n_blocks)
        join, opening = _log_v(self.log_entities(), n + 1, n_blocks, 2)
        return normalized(np.append(np.zeros(n_blocks), opening - join))

    def _require_possible(self, n_blocks: int) -> None:
        possible = 1 <= n_blocks <= self.kmax
        wanted = f"from 1 to kmax = {self.kmax}"
        require(self.name, "number of blocks", n_blocks, wanted, holds=possible)

    def sample(self, rng: Generator, n: int) -> NDArray[np.int64]:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`."""
        n_entities = int(rng.choice(self.kmax + 1, p=np.exp(self.log_entities())))
        return canonical_labels(rng.integers(0, n_entities, size=n))

    def typical(self, n: int, n_blocks: int) -> Self:  # noqa: ARG002  (the protocol's)
        """See :class:`~weald.treecore.prior.base.PartitionPrior`: nothing to set."""
        return self

    def resample(self, rng: Generator, sizes: NDArray[np.int64]) -> Self:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`.

        K is drawn from its conditional, then ``mu`` given K by a slice; K is forgotten.
        """
        n, n_blocks = int(sizes.sum()), len(sizes)
        if n == 0 or not self.learn:
            return self
        n_entities = self.draw_entities(rng, n_blocks, n)

        def log_density(mu: float) -> float:
            distance = (mu - self.mu_mean) / self.mu_deviation
            log_law = _log_entities(self._law._replace(mu=mu))
            return float(log_law[n_entities]) - 0.5 * distance * distance

        mu = slice_stepping_out(rng, log_density, self.mu, 2.0 * self.mu_deviation)
        return replace(self, mu=mu)


@lru_cache(maxsize=4)
def _log_entities(law: _Law) -> NDArray[np.float64]:
    mu, sigma, kmax = law
    log_K = np.log(np.arange(1, kmax + 1))
    values = -log_K - 0.5 * ((log_K - mu) / sigma) ** 2
    return np.concatenate(([-inf], values - np.logaddexp.reduce(values)))


def _table(log_law: NDArray[np.float64], n: int, first: int, length: int) -> ComponentTable:  # noqa: ARG001  (all of K is always tabulated)
    """Terms for K = first, ..., kmax."""
    K = np.arange(first, log_law.shape[0], dtype=np.float64)
    log_ratio = np.full(K.shape[0], -inf)
    log_ratio[:-1] = np.diff(log_law[first:]) - n * np.log1p(1.0 / K[:-1])
    ceiling = np.maximum.accumulate(np.exp(log_ratio)[::-1])[::-1]
    log_start = float(log_law[first]) - n * log(first) + lgamma(first + 1.0)
    return ComponentTable(first, log_start, log_ratio, ceiling, 0.0)


def _log_v(
    log_law: NDArray[np.float64], n: int, n_blocks: int, n_values: int
) -> NDArray[np.float64]:
    """Log weight of n_blocks, n_blocks + 1, ... blocks."""
    if n_blocks >= log_law.shape[0]:
        return np.full(n_values, -inf)
    return sum_components(partial(_table, log_law, n, n_blocks), n_values)


@lru_cache(maxsize=4)
def _log_v_table(law: _Law, n: int, n_values: int) -> NDArray[np.float64]:
    return _log_v(_log_entities(law), n, 1, n_values)


@lru_cache(maxsize=4)
def _slope(law: _Law) -> float:
    if law.kmax == 1:
        return 0.0  # with room for one entity there is no increment to take
    log_law = _log_entities(law)
    median = int(np.searchsorted(np.cumsum(np.exp(log_law)), 0.5))
    before, after = _log_v(log_law, NOMINAL_N, min(median, law.kmax - 1), 2)
    return float(after - before)
