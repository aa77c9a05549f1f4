"""Pitman-Yor process, with an auxiliary variable g that gives it product form.

``p = prod_{i=1}^{k-1} (alpha + i discount) Gamma(alpha + 1) / Gamma(alpha + n)
prod_c Gamma(n_c - discount) / Gamma(1 - discount)``.

:meth:`PitmanYor.seating` is the product form given ``g | k ~ Gamma(alpha / discount + k, 1)``, in
which one more block weighs ``discount g``. The closed form would mix a little faster in k, but a
prior of product form is what leases need to stay exact, and what lets a kernel draw a whole
subtree's partition without a correction; g costs one Gamma draw.

Sources: Pitman and Yor (1997), Annals of Probability 25; ``tgmcmc-ibhc.md`` section 1.
"""

from dataclasses import asdict, dataclass, replace
from math import exp, inf, lgamma, log, log1p
from typing import Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import gammaln

from .base import NOMINAL_N, Seating, product_seating, require, require_positive
from .sequential import seat_one_by_one
from .slice_sampler import slice_bounded, slice_stepping_out

__all__ = ["PitmanYor"]


@dataclass(frozen=True)
class PitmanYor:
    """Concentration ``alpha`` > -discount and ``discount`` in [0, 1).

    Attributes
    ----------
    alpha:
        The specification's theta; positive if it is to be learned or if the discount is 0.
    discount:
        The specification's sigma; 0 is the Dirichlet process.
    g:
        The auxiliary variable; None until it is drawn. Until then :meth:`seating` uses its mean
        for 100 observations. Always None when the discount is 0.
    learn, shape, rate:
        Whether alpha is learned, and its Gamma(shape, rate) hyperprior.
    learn_discount, discount_a, discount_b:
        Whether the discount is learned, and its Beta(a, b) hyperprior.
    """

    alpha: float = 1.0
    discount: float = 0.25
    g: float | None = None
    learn: bool = False
    shape: float = 1.0
    rate: float = 1.0
    learn_discount: bool = False
    discount_a: float = 1.0
    discount_b: float = 1.0

    name = "pitman-yor"

    def __post_init__(self) -> None:
        inside = 0.0 <= self.discount < 1.0
        require(self.name, "discount", self.discount, "in [0, 1)", holds=inside)
        movable = self.discount > 0.0 or not self.learn_discount
        require(self.name, "discount", self.discount, "positive to be learned", holds=movable)
        valid = -self.discount < self.alpha < inf
        wanted = f"finite and above -discount = {-self.discount!r}"
        require(self.name, "alpha", self.alpha, wanted, holds=valid)
        movable = self.alpha > 0.0 or not self.learn
        require(self.name, "alpha", self.alpha, "positive to be learned", holds=movable)
        require_positive(self.name, shape=self.shape, rate=self.rate)
        require_positive(self.name, discount_a=self.discount_a, discount_b=self.discount_b)
        if self.g is not None:
            require_positive(self.name, g=self.g)

    def parameters(self) -> dict[str, object]:
        """JSON-able fields, the auxiliary included."""
        return asdict(self)

    def seating(self, n: int, n_blocks: int) -> Seating:  # noqa: ARG002  (n: the protocol's)
        """See :class:`~weald.treecore.prior.base.PartitionPrior`; conditional on g."""
        if self.discount == 0.0:
            return product_seating(0.0, log(self.alpha), n_blocks)
        g = self._mean_g(NOMINAL_N) if self.g is None else self.g
        return product_seating(self.discount, log(self.discount * g), n_blocks)

    def log_probability(self, sizes: NDArray[np.int64]) -> float:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`."""
        n = int(sizes.sum())
        if n == 0:
            return 0.0
        blocks = _log_sizes(self.discount, sizes, 1.0)
        return _log_blocks(self.alpha, self.discount, n, len(sizes)) + blocks

    def log_predictive(self, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`."""
        n, k = int(sizes.sum()), len(sizes)
        if n == 0:
            return np.zeros(1)
        opening = self.alpha + self.discount * k
        return np.log(np.append(sizes - self.discount, opening)) - log(self.alpha + n)

    def sample(self, rng: Generator, n: int) -> NDArray[np.int64]:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`."""

        def opens(i: int, k: int) -> bool:
            opening = self.alpha + self.discount * k
            return i == 0 or bool(rng.random() * (self.alpha + i) < opening)

        return seat_one_by_one(rng, n, self.discount, opens)

    def typical(self, n: int, n_blocks: int) -> Self:  # noqa: ARG002  (n: the protocol's)
        """See :class:`~weald.treecore.prior.base.PartitionPrior`: g at its mean."""
        if n_blocks == 0 or self.discount == 0.0:
            return replace(self, g=None)
        return replace(self, g=self.alpha / self.discount + n_blocks)

    def resample(self, rng: Generator, sizes: NDArray[np.int64]) -> Self:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`.

        alpha and the discount by slices with g integrated out, then g by its Gamma conditional.
        """
        k = len(sizes)
        if k == 0:
            return self
        alpha = self._draw_alpha(rng, sizes) if self.learn else self.alpha
        discount = self.discount
        if self.learn_discount:
            discount = self._draw_discount(rng, sizes, alpha)
        g = None if discount == 0.0 else max(rng.gamma(alpha / discount + k), 1e-300)
        return replace(self, alpha=alpha, discount=discount, g=g)

    def _mean_g(self, n: int) -> float:
        """Mean of alpha / discount + k for k the number of blocks of n observations."""
        alpha, discount = self.alpha, self.discount
        growth = lgamma(n + alpha + discount) - lgamma(n + alpha)
        return exp(growth + lgamma(alpha + 1.0) - lgamma(alpha + discount)) / discount

    def _draw_alpha(self, rng: Generator, sizes: NDArray[np.int64]) -> float:
        n, k = int(sizes.sum()), len(sizes)

        def log_density(log_alpha: float) -> float:
            # A step out may go anywhere; beyond these the density is nil and exp unsafe.
            if not -600.0 < log_alpha < 600.0:
                return -inf
            alpha = exp(log_alpha)
            prior = self.shape * log_alpha - self.rate * alpha
            return _log_blocks(alpha, self.discount, n, k) + prior

        return exp(slice_stepping_out(rng, log_density, log(self.alpha), 2.0))

    def _draw_discount(self, rng: Generator, sizes: NDArray[np.int64], alpha: float) -> float:
        n, k = int(sizes.sum()), len(sizes)
        distinct, n_times = np.unique(sizes, return_counts=True)

        def log_density(discount: float) -> float:
            blocks = _log_blocks(alpha, discount, n, k) + _log_sizes(discount, distinct, n_times)
            first = (self.discount_a - 1.0) * log(discount)
            return blocks + first + (self.discount_b - 1.0) * log1p(-discount)

        return slice_bounded(rng, log_density, self.discount, (max(0.0, -alpha), 1.0))


def _log_blocks(alpha: float, discount: float, n: int, k: int) -> float:
    """Log weight of having k blocks of n observations, sizes apart."""
    opened = float(np.log(alpha + discount * np.arange(1, k)).sum())
    return opened + lgamma(alpha + 1.0) - lgamma(alpha + n)


def _log_sizes(
    discount: float, sizes: NDArray[np.int64], n_times: NDArray[np.int64] | float
) -> float:
    """Sum of the log weights of blocks of these sizes, each of them so many times."""
    return float((n_times * (gammaln(sizes - discount) - lgamma(1.0 - discount))).sum())
