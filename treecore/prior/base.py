"""What every partition prior provides, and the table through which kernels see it.

All our priors are of Gibbs type: given their auxiliary variables,
``log p(partition) = log_blocks[k] + sum over blocks of log_size(n_c)`` up to a constant. Kernels
therefore need no case per prior: they read a :class:`Seating`.
"""

from math import lgamma
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..compile import compiled

__all__ = ["PartitionPrior", "Seating", "log_new_block", "log_size", "make_seating"]

_TABLE = 8192


class Seating(NamedTuple):
    """A partition prior given its auxiliary variables, tabulated.

    Attributes
    ----------
    shift, scale, log_norm:
        ``log_size(n) = scale * (lgamma(n + shift) - log_norm)`` for n of 1 and more.
    size_table:
        ``log_size`` for n = 0, 1, 2, ... (0 at n = 0).
    log_blocks:
        Weight of having k blocks, for k = 0, 1, ...; minus infinity where k is impossible.
    slope:
        Log weight of one more block in the product form that the guide's potentials use. For priors
        of product form it equals every increment of ``log_blocks``; for the others it is a constant
        that doesn't depend on the partition.
    is_product:
        1 when ``log_blocks`` is linear in k.
    """

    shift: float
    scale: float
    log_norm: float
    size_table: NDArray[np.float64]
    log_blocks: NDArray[np.float64]
    slope: float
    is_product: int


def make_seating(
    shift: float, scale: float, log_norm: float, log_blocks: NDArray[np.float64], slope: float | None = None
) -> Seating:
    """Tabulate; with ``slope`` None the prior is of product form and its slope is read off."""
    sizes = [0.0] + [scale * (lgamma(n + shift) - log_norm) for n in range(1, _TABLE)]
    is_product = slope is None
    chosen = float(log_blocks[1] - log_blocks[0]) if slope is None else slope
    return Seating(shift, scale, log_norm, np.array(sizes), log_blocks, chosen, int(is_product))


@compiled
def log_size(seating: Seating, n: int) -> float:
    """Log weight of a block of n observations."""
    if n < seating.size_table.shape[0]:
        return seating.size_table[n]
    return seating.scale * (lgamma(n + seating.shift) - seating.log_norm)


@compiled
def log_new_block(seating: Seating, k: int) -> float:
    """Log weight of going from k to k + 1 blocks, sizes apart."""
    return seating.log_blocks[k + 1] - seating.log_blocks[k]


class PartitionPrior(Protocol):
    """Prior over partitions of n observations; immutable, moves return a new one.

    ``parameters`` gives what ``weald.treecore.prior.build_prior`` needs to make it again, auxiliary variables included.
    """

    @property
    def name(self) -> str: ...

    def parameters(self) -> dict[str, Any]: ...

    def seating(self, n: int, n_blocks: int) -> Seating:
        """Table for up to n observations and up to ``n_blocks`` blocks."""
        ...

    def log_probability(self, sizes: NDArray[np.int64]) -> float:
        """Log probability of one partition with these block sizes, auxiliary variables integrated out."""
        ...

    def log_predictive(self, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Normalised log probabilities (k + 1) that the next observation joins block c, or none."""
        ...

    def sample(self, rng: Generator, n: int) -> NDArray[np.int32]:
        """Labels of a partition of n observations drawn from the prior."""
        ...

    def resample(self, rng: Generator, sizes: NDArray[np.int64]) -> Self:
        """One exact update of auxiliary variables and, where learned, of hyperparameters, given the block sizes."""
        ...
