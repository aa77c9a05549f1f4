"""Normalised generalised gamma process (NGGP), with its auxiliary variable u.

Given u the prior has product form with weights ``alpha (1 + u)^sigma Gamma(n_c - sigma)``, so that
every kernel and lease runs on it as on a Dirichlet process. ``sigma = 0.5`` is the normalised
inverse Gaussian process, ``sigma = 0`` the Dirichlet process with concentration ``alpha``.

Sources: James, Lijoi and Pruenster (2009), Scandinavian Journal of Statistics 36; Lee and Choi
(2015), with ``alpha`` for their alpha times sigma; ``tgmcmc-ibhc.md`` section 1 (S1-S6).
"""

from dataclasses import asdict, dataclass, replace
from functools import partial
from math import expm1, inf, isfinite, lgamma, log, log1p
from typing import Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import expit, gammaln

from .base import NOMINAL_N, Seating, normalized, product_seating, require, require_positive
from .levy import Levy, log_normaliser, log_u_density, log_u_mode, log_u_width, u_nodes
from .sequential import seat_one_by_one
from .slice_sampler import slice_bounded, slice_stepping_out

__all__ = ["NormalizedGeneralizedGamma"]


@dataclass(frozen=True)
class NormalizedGeneralizedGamma:
    """Levy intensity ``alpha / Gamma(1 - sigma) w^(-1 - sigma) e^(-w) dw``.

    Attributes
    ----------
    alpha:
        Total mass of the base measure, positive: the ``a`` of the specification.
    sigma:
        In [0, 1): how heavy the tail of the number of blocks is.
    log_u:
        Log of the auxiliary variable; None until it is drawn. Until then :meth:`seating` uses
        u = 100 / alpha, where u is a priori for 100 observations (given the total mass T it is
        Gamma(n) / T, and T has mean alpha). Always None when sigma is 0: it has no effect there.
    learn, shape, rate:
        Whether alpha is learned, and its Gamma(shape, rate) hyperprior.
    learn_sigma, sigma_a, sigma_b:
        Whether sigma is learned, and its Beta(a, b) hyperprior.
    """

    alpha: float = 1.0
    sigma: float = 0.5
    log_u: float | None = None
    learn: bool = False
    shape: float = 1.0
    rate: float = 1.0
    learn_sigma: bool = False
    sigma_a: float = 1.0
    sigma_b: float = 1.0

    name = "nggp"

    def __post_init__(self) -> None:
        require_positive(self.name, alpha=self.alpha, shape=self.shape, rate=self.rate)
        require_positive(self.name, sigma_a=self.sigma_a, sigma_b=self.sigma_b)
        inside = 0.0 <= self.sigma < 1.0
        require(self.name, "sigma", self.sigma, "in [0, 1)", holds=inside)
        movable = self.sigma > 0.0 or not self.learn_sigma
        require(self.name, "sigma", self.sigma, "positive to be learned", holds=movable)
        if self.log_u is not None:
            require(self.name, "log_u", self.log_u, "finite", holds=isfinite(self.log_u))

    @property
    def _levy(self) -> Levy:
        return Levy(self.alpha, self.sigma)

    def parameters(self) -> dict[str, object]:
        """JSON-able fields, the auxiliary included."""
        return asdict(self)

    def seating(self, n: int, n_blocks: int) -> Seating:  # noqa: ARG002  (n: the protocol's)
        """See :class:`~weald.treecore.prior.base.PartitionPrior`; conditional on u."""
        log_u = log(NOMINAL_N / self.alpha) if self.log_u is None else self.log_u
        log1p_u = float(np.logaddexp(0.0, log_u))
        return product_seating(self.sigma, log(self.alpha) + self.sigma * log1p_u, n_blocks)

    def log_probability(self, sizes: NDArray[np.int64]) -> float:
        """See :class:`~weald.treecore.prior.base.PartitionPrior` (S4, by quadrature over log u)."""
        n, k = int(sizes.sum()), len(sizes)
        if n == 0:
            return 0.0
        per_block = log(self.alpha) - lgamma(1.0 - self.sigma)
        blocks = float(gammaln(sizes - self.sigma).sum()) + k * per_block
        return log_normaliser(self._levy, n, k) + blocks

    def log_predictive(self, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`.

        S5: expectations of unnormalised weights over u given the n observations that are there.
        Averaging normalised weights over that u would be wrong: those are conditional on the u of
        n + 1 observations.
        """
        n, k = int(sizes.sum()), len(sizes)
        if n == 0:
            return np.zeros(1)
        if self.sigma == 0.0:
            return np.log(np.append(sizes, self.alpha)) - log(self.alpha + n)
        v, weights, _ = u_nodes(self._levy, n, k)
        share = expit(v)
        log1p_u = np.logaddexp(0.0, v)
        # The cap is where the density of v has long vanished.
        growth = np.exp(np.minimum(self.sigma * log1p_u, 600.0))
        join = float(weights @ share)
        opening = self.alpha * float(weights @ (share * growth))
        return normalized(np.log(np.append(join * (sizes - self.sigma), opening)))

    def sample(self, rng: Generator, n: int) -> NDArray[np.int64]:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`.

        Let observations arrive as a Poisson process on the unnormalised measure, and let t be
        log(1 + time). Block c then receives them at rate n_c - sigma, new blocks open at rate
        alpha exp(sigma t), and the time of the n-th arrival is u: no integral is needed.
        """
        alpha, sigma = self.alpha, self.sigma
        t = 0.0

        def opens(i: int, k: int) -> bool:
            nonlocal t
            wait = rng.exponential() / alpha
            # sigma t is at most log(1 + n / alpha) or so: the wait for a block scales back by it.
            scaled = wait * np.exp(-sigma * t)
            to_open = log1p(sigma * scaled) / sigma if sigma > 0.0 else wait
            to_join = rng.exponential() / (i - sigma * k) if i > 0 else inf
            t += min(to_open, to_join)
            return bool(to_open < to_join)

        return seat_one_by_one(rng, n, sigma, opens)

    def typical(self, n: int, n_blocks: int) -> Self:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`: log u at its mode."""
        if n == 0 or self.sigma == 0.0:
            return replace(self, log_u=None)
        return replace(self, log_u=log_u_mode(self._levy, n, n_blocks))

    def resample(self, rng: Generator, sizes: NDArray[np.int64]) -> Self:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`.

        u by a slice on log u, alpha by its Gamma conditional, sigma by a slice with shrinkage,
        each given the others.
        """
        n, k = int(sizes.sum()), len(sizes)
        if n == 0:
            return self
        log_u = self._draw_log_u(rng, n, k)
        log1p_u = float(np.logaddexp(0.0, log_u))
        alpha, sigma = self.alpha, self.sigma
        if self.learn:
            growth = log1p_u if sigma == 0.0 else expm1(sigma * log1p_u) / sigma
            alpha = max(rng.gamma(self.shape + k) / (self.rate + growth), 1e-300)
        if self.learn_sigma:
            sigma = self._draw_sigma(rng, sizes, alpha, log1p_u)
        return replace(self, alpha=alpha, sigma=sigma, log_u=log_u if sigma > 0.0 else None)

    def _draw_log_u(self, rng: Generator, n: int, k: int) -> float:
        if self.sigma == 0.0:
            # u / (1 + u) ~ Beta(n, alpha), whatever the partition.
            return log(rng.gamma(n)) - log(max(rng.gamma(self.alpha), 1e-300))
        levy = self._levy
        mode = log_u_mode(levy, n, k)
        start = mode if self.log_u is None else self.log_u
        width = 2.0 * log_u_width(levy, n, k, mode)
        return slice_stepping_out(rng, partial(log_u_density, levy, n, k), start, width)

    def _draw_sigma(
        self, rng: Generator, sizes: NDArray[np.int64], alpha: float, log1p_u: float
    ) -> float:
        k = len(sizes)
        distinct, n_times = np.unique(sizes, return_counts=True)

        def log_density(sigma: float) -> float:
            blocks = float(n_times @ gammaln(distinct - sigma)) - k * lgamma(1.0 - sigma)
            power = sigma * log1p_u
            # A power beyond the cap leaves no density; without the cap expm1 would overflow.
            mass = alpha * expm1(min(power, 600.0)) / sigma
            prior = (self.sigma_a - 1.0) * log(sigma) + (self.sigma_b - 1.0) * log1p(-sigma)
            return k * power - mass + blocks + prior

        return slice_bounded(rng, log_density, self.sigma, (0.0, 1.0))
