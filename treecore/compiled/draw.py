"""Every random choice that a kernel makes, as a handful of replaceable primitives.

The exactness tests register a path enumerator for these functions and so assemble the transition
matrix of the production code; compiled kernels use numpy's ``Generator``.
"""

from math import exp

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .compile import generic, implements, inner

__all__ = ["below", "choose", "coin", "pick", "shuffle", "survives_fall"]


@generic
def choose(rng: Generator, log_weights: NDArray[np.float64], n: int) -> int:
    """Index drawn with probability proportional to ``exp(log_weights[:n])``.

    ``log_weights`` (float64, at least n entries, one of them finite) is overwritten.
    """
    raise NotImplementedError


@generic
def coin(rng: Generator, probability: float) -> bool:
    """True with the given probability; any value of 1 or more is certain."""
    raise NotImplementedError


@generic
def below(rng: Generator, n: int) -> int:
    """Integer drawn uniformly from 0 to n - 1."""
    raise NotImplementedError


@generic
def pick(rng: Generator, cumulative: NDArray[np.float64]) -> int:
    """Index i drawn with probability proportional to ``cumulative[i] - cumulative[i - 1]``."""
    raise NotImplementedError


@generic
def shuffle(rng: Generator, values: NDArray[np.int64], n: int) -> None:
    """Permute ``values[:n]`` uniformly in place."""
    raise NotImplementedError


@implements(choose, Generator)
def _choose(rng: Generator, log_weights: NDArray[np.float64], n: int) -> int:
    largest = log_weights[0]
    for i in range(1, n):
        largest = max(largest, log_weights[i])
    total = 0.0
    for i in range(n):
        # Callers leave out what is beyond notice, which is most.
        if log_weights[i] > -np.inf:
            total += np.exp(log_weights[i] - largest)
        log_weights[i] = total
    target = rng.random() * total
    # The last index of positive weight answers for a target that rounding put at the very end.
    last = n - 1
    while last > 0 and log_weights[last - 1] >= total:
        last -= 1
    for i in range(last):
        if target < log_weights[i]:
            return i
    return last


@implements(coin, Generator)
def _coin(rng: Generator, probability: float) -> bool:
    return rng.random() < probability


@implements(below, Generator)
def _below(rng: Generator, n: int) -> int:
    # The product rounds up to n itself only for n beyond 2^53.
    return int(rng.random() * n)


@implements(pick, Generator)
def _pick(rng: Generator, cumulative: NDArray[np.float64]) -> int:
    last = cumulative.shape[0] - 1
    target = rng.random() * cumulative[last]
    # By hand: numpy's search takes the compiler ten times as long.
    first = 0
    while first < last:
        middle = (first + last) // 2
        if cumulative[middle] > target:
            last = middle
        else:
            first = middle + 1
    return first


@implements(shuffle, Generator)
def _shuffle(rng: Generator, values: NDArray[np.int64], n: int) -> None:
    for i in range(n - 1, 0, -1):
        j = int(rng.random() * (i + 1))
        values[i], values[j] = values[j], values[i]


@inner
def survives_fall(rng: Generator, before: float, now: float) -> bool:
    """Whether what has survived coins for log probability ``before`` survives those for ``now``.

    Thrown as a bound falls, the coins come to one for the last of them.
    """
    return coin(rng, exp(now - before)) if now < before else True
