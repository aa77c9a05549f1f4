"""Dirichlet process: the Chinese restaurant process with concentration alpha.

``log p = k log alpha + sum lgamma(n_c) + lgamma(alpha) - lgamma(alpha + n)``.
"""

from dataclasses import asdict, dataclass, replace
from math import lgamma, log
from typing import Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import gammaln

from .base import Seating, product_seating, require_positive
from .sequential import seat_one_by_one

__all__ = ["DirichletProcess"]


@dataclass(frozen=True)
class DirichletProcess:
    """Concentration ``alpha`` > 0, with a Gamma(shape, rate) hyperprior when ``learn`` is true."""

    alpha: float = 1.0
    learn: bool = False
    shape: float = 1.0
    rate: float = 1.0

    name = "dp"

    def __post_init__(self) -> None:
        require_positive(self.name, alpha=self.alpha, shape=self.shape, rate=self.rate)

    def parameters(self) -> dict[str, object]:
        """JSON-able fields."""
        return asdict(self)

    def seating(self, n: int, n_blocks: int) -> Seating:  # noqa: ARG002  (n: the protocol's)
        """See :class:`~weald.treecore.prior.base.PartitionPrior`."""
        return product_seating(0.0, log(self.alpha), n_blocks)

    def log_probability(self, sizes: NDArray[np.int64]) -> float:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`."""
        n = int(sizes.sum())
        blocks = len(sizes) * log(self.alpha) + float(gammaln(sizes).sum())
        return lgamma(self.alpha) - lgamma(self.alpha + n) + blocks

    def log_predictive(self, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`."""
        return np.log(np.append(sizes, self.alpha)) - log(self.alpha + int(sizes.sum()))

    def sample(self, rng: Generator, n: int) -> NDArray[np.int64]:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`."""

        def opens(i: int, k: int) -> bool:  # noqa: ARG001  (k: what the sampler passes)
            return bool(rng.random() * (self.alpha + i) < self.alpha)

        return seat_one_by_one(rng, n, 0.0, opens)

    def typical(self, n: int, n_blocks: int) -> Self:  # noqa: ARG002  (the protocol's)
        """See :class:`~weald.treecore.prior.base.PartitionPrior`: nothing to set."""
        return self

    def resample(self, rng: Generator, sizes: NDArray[np.int64]) -> Self:
        """Exact draw of alpha through the auxiliary u, u/(1+u) ~ Beta(n, alpha)."""
        if not self.learn or len(sizes) == 0:
            return self
        log_u = log(rng.gamma(float(sizes.sum()))) - log(max(rng.gamma(self.alpha), 1e-300))
        alpha = rng.gamma(self.shape + len(sizes)) / (self.rate + float(np.logaddexp(0.0, log_u)))
        return replace(self, alpha=max(alpha, 1e-300))
