"""What every partition prior provides, and the table through which kernels see it.

All our priors are of Gibbs type: given their auxiliary variables,
``log p(partition) = log_blocks[k] + sum over blocks of log_size(n_c)`` up to a constant. Kernels
therefore need no case per prior: they read a :class:`Seating`.
"""

from functools import lru_cache
from math import isfinite, lgamma
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import gammaln

from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.reference import held_by_reference
from weald.treecore.errors import ParameterError

__all__ = [
    "NOMINAL_N",
    "PartitionPrior",
    "Seating",
    "log_growth",
    "log_new_block",
    "log_size",
    "make_seating",
    "normalized",
    "product_seating",
    "require",
    "require_positive",
]

# Where an auxiliary variable was not drawn yet, or a slope needs some number of observations, this
# many are meant: a start must not depend on how many arrived in one batch.
NOMINAL_N = 100

_TABLE = 8192


@held_by_reference
class Seating(NamedTuple):
    """A partition prior given its auxiliary variables, tabulated.

    Attributes
    ----------
    shift, scale, log_norm:
        ``log_size(n) = scale * (lgamma(n + shift) - log_norm)`` for n of 1 and more.
    size_table:
        ``log_size`` for n = 0, 1, 2, ... (0 at n = 0). Seatings share it: never write to it.
    log_blocks:
        Weight of having k blocks, for k = 0, 1, ...; minus infinity where k is impossible. Entry 0
        is finite, so that the first block has a finite weight too.
    slope:
        Log weight of one more block in the product form that the guide's potentials use. For priors
        of product form it equals every increment of ``log_blocks``; for the others it is a constant
        that depends on the hyperparameters only.
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


@lru_cache(maxsize=16)
def _size_table(shift: float, scale: float, log_norm: float) -> NDArray[np.float64]:
    # Writeable although shared: a read-only array is another type to numba and would compile twice.
    table = np.zeros(_TABLE)
    table[1:] = scale * (gammaln(np.arange(1, _TABLE) + shift) - log_norm)
    return table


def make_seating(
    shift: float,
    scale: float,
    log_norm: float,
    log_blocks: NDArray[np.float64],
    slope: float | None = None,
) -> Seating:
    """Tabulate; with ``slope`` None the prior is of product form and its slope is read off."""
    table = _size_table(shift, scale, log_norm)
    is_product = slope is None
    chosen = float(log_blocks[1] - log_blocks[0]) if slope is None else slope
    return Seating(shift, scale, log_norm, table, log_blocks, chosen, int(is_product))


def product_seating(discount: float, slope: float, n_blocks: int) -> Seating:
    """A block of n weighs ``exp(slope) Gamma(n - discount) / Gamma(1 - discount)``."""
    log_norm = lgamma(1.0 - discount)
    table = _size_table(-discount, 1.0, log_norm)
    log_blocks: NDArray[np.float64] = slope * np.arange(n_blocks + 2, dtype=np.float64)
    return Seating(-discount, 1.0, log_norm, table, log_blocks, slope, 1)


@compiled
def log_size(seating: Seating, n: int) -> float:
    """Log weight of a block of n observations."""
    if n < seating.size_table.shape[0]:
        return seating.size_table[n]
    return seating.scale * (lgamma(n + seating.shift) - seating.log_norm)


@inner
def log_growth(seating: Seating, n: int, more: int) -> float:
    """Log weight that a block of n observations gains by ``more``."""
    return log_size(seating, n + more) - log_size(seating, n)


@compiled
def log_new_block(seating: Seating, k: int) -> float:
    """Log weight of going from k to k + 1 blocks, sizes apart."""
    return seating.log_blocks[k + 1] - seating.log_blocks[k]


def normalized(log_weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log probabilities from log weights, one of which is finite."""
    largest = log_weights.max()
    result: NDArray[np.float64] = log_weights - largest
    result -= np.log(np.exp(result).sum())
    return result


def require(prior: str, name: str, value: object, wanted: str, *, holds: bool) -> None:
    """Raise :class:`ParameterError` naming prior, parameter and value unless ``holds``."""
    if not holds:
        raise ParameterError(f"{prior}: {name} must be {wanted}, got {value!r}")


def require_positive(prior: str, **values: float) -> None:
    """Raise :class:`ParameterError` for the first value that is not a positive finite number."""
    for name, value in values.items():
        good = value > 0.0 and isfinite(value)
        require(prior, name, value, "positive and finite", holds=good)


class PartitionPrior(Protocol):
    """Prior over partitions of n observations; immutable, moves return a new one.

    ``sizes`` is always the block sizes, int64 (k), every one of them 1 or more.
    """

    @property
    def name(self) -> str:
        """Its key in :data:`~weald.treecore.prior.PRIORS`."""
        ...

    @property
    def learn(self) -> bool:
        """Whether :meth:`resample` moves the hyperparameters."""
        ...

    def parameters(self) -> dict[str, object]:
        """JSON-able values from which ``build_prior`` makes it again, auxiliary ones included."""
        ...

    def seating(self, n: int, n_blocks: int) -> Seating:
        """Table for partitions of n observations into up to ``n_blocks`` blocks.

        n counts the observation that is being placed. Priors of product form ignore it; the
        others need it exactly.
        """
        ...

    def log_probability(self, sizes: NDArray[np.int64]) -> float:
        """Log probability of one partition with these block sizes.

        Auxiliary variables are integrated out; hyperparameters are as they stand.
        """
        ...

    def log_predictive(self, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Normalised log probabilities (k + 1) that the next observation joins block c, or none."""
        ...

    def sample(self, rng: Generator, n: int) -> NDArray[np.int64]:
        """Labels (n) of a partition drawn from the prior, numbered in order of appearance."""
        ...

    def typical(self, n: int, n_blocks: int) -> Self:
        """The same prior with its auxiliary variable where it usually is, given n and k.

        For a start without a draw; the next :meth:`resample` forgets it.
        """
        ...

    def resample(self, rng: Generator, sizes: NDArray[np.int64]) -> Self:
        """One exact update of auxiliary variables and, where learned, of hyperparameters."""
        ...
