"""Dirichlet process: the Chinese restaurant process with concentration alpha.

``log p = k log alpha + sum lgamma(n_c) + lgamma(alpha) - lgamma(alpha + n)``.
"""

from dataclasses import dataclass, replace
from math import lgamma, log, log1p
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..errors import ParameterError
from .base import Seating, make_seating

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
        if not self.alpha > 0.0:
            raise ParameterError(f"dp: alpha must be positive, got {self.alpha}")
        if not (self.shape > 0.0 and self.rate > 0.0):
            raise ParameterError("dp: shape and rate of alpha's hyperprior must be positive")

    def parameters(self) -> dict[str, Any]:
        """JSON-able fields."""
        return {
            "alpha": self.alpha,
            "learn": self.learn,
            "shape": self.shape,
            "rate": self.rate,
        }

    def seating(self, n: int, n_blocks: int) -> Seating:  # noqa: ARG002  (n: the protocol's)
        """See :class:`~weald.treecore.prior.base.PartitionPrior`."""
        return make_seating(0.0, 1.0, 0.0, log(self.alpha) * np.arange(n_blocks + 2))

    def log_probability(self, sizes: NDArray[np.int64]) -> float:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`."""
        n = int(sizes.sum())
        value = lgamma(self.alpha) - lgamma(self.alpha + n) + len(sizes) * log(self.alpha)
        return value + sum(lgamma(int(size)) for size in sizes)

    def log_predictive(self, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`."""
        return np.log(np.append(sizes, self.alpha)) - log(self.alpha + int(sizes.sum()))

    def sample(self, rng: Generator, n: int) -> NDArray[np.int32]:
        """See :class:`~weald.treecore.prior.base.PartitionPrior`."""
        labels = np.zeros(n, dtype=np.int32)
        for i in range(n):
            # With probability alpha / (alpha + i) a new block, else the block of an earlier one.
            target = rng.random() * (self.alpha + i)
            labels[i] = labels[:i].max(initial=-1) + 1 if target >= i else labels[int(target)]
        return labels

    def resample(self, rng: Generator, sizes: NDArray[np.int64]) -> "DirichletProcess":
        """Exact draw of alpha through the auxiliary u, u/(1+u) ~ Beta(n, alpha)."""
        if not self.learn:
            return self
        u = rng.gamma(float(sizes.sum())) / rng.gamma(self.alpha)
        alpha = rng.gamma(self.shape + len(sizes)) / (self.rate + log1p(u))
        return replace(self, alpha=max(float(alpha), 1e-300))
