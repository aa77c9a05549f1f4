"""Exact transition matrices of production kernels, assembled path by path.

With compilation switched off (``NUMBA_DISABLE_JIT=1``) a kernel draws through the generic functions
of :mod:`weald.treecore.draw`. :class:`Paths` implements them by following one path of choices at a
time; running the kernel once for every path gives every outcome with its probability.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from weald.treecore.compile import implements
from weald.treecore.draw import below, choose, coin, shuffle

Partition = tuple[int, ...]


class Paths:
    """A source of randomness that visits every path of choices in turn."""

    def __init__(self) -> None:
        self._path: list[tuple[int, NDArray[np.float64]]] = []
        self._depth = 0
        self.probability = 1.0

    def pick(self, probabilities: NDArray[np.float64]) -> int:
        if self._depth == len(self._path):
            self._path.append((int(np.flatnonzero(probabilities > 0.0)[0]), probabilities))
        chosen, expected = self._path[self._depth]
        np.testing.assert_allclose(probabilities, expected, rtol=1e-12, atol=1e-300)
        self._depth += 1
        self.probability *= float(probabilities[chosen])
        return chosen

    def every_outcome(self, run: Callable[["Paths"], Any]) -> Iterator[tuple[Any, float]]:
        """``(run(self), probability)`` for every path."""
        while True:
            self._depth, self.probability = 0, 1.0
            outcome = run(self)
            del self._path[self._depth :]
            yield outcome, self.probability
            while self._path:
                chosen, probabilities = self._path.pop()
                later = np.flatnonzero(probabilities[chosen + 1 :] > 0.0)
                if later.size:
                    self._path.append((chosen + 1 + int(later[0]), probabilities))
                    break
            if not self._path:
                return


@implements(choose, Paths)
def _choose(rng: Paths, log_weights: NDArray[np.float64], n: int) -> int:
    weights = np.exp(log_weights[:n] - log_weights[:n].max())
    return rng.pick(weights / weights.sum())


@implements(coin, Paths)
def _coin(rng: Paths, probability: float) -> bool:
    heads = min(max(probability, 0.0), 1.0)
    return rng.pick(np.array([1.0 - heads, heads])) == 1


@implements(below, Paths)
def _below(rng: Paths, n: int) -> int:
    return rng.pick(np.full(n, 1.0 / n))


@implements(shuffle, Paths)
def _shuffle(rng: Paths, values: NDArray[np.int32], n: int) -> None:
    for i in range(n - 1, 0, -1):
        j = _below(rng, i + 1)
        values[i], values[j] = values[j], values[i]


def partitions(n: int) -> list[Partition]:
    """All partitions of n items as restricted growth strings, in lexicographic order."""
    found: list[Partition] = [(0,)]
    for _ in range(n - 1):
        found = [part + (label,) for part in found for label in range(max(part) + 2)]
    return found


def transition_matrix(
    states: list[Partition], step: Callable[[Paths, Partition], Partition]
) -> NDArray[np.float64]:
    """Matrix P with P[s, t] the probability that ``step`` takes partition s to t."""
    index = {state: at for at, state in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for at, state in enumerate(states):
        for outcome, probability in Paths().every_outcome(lambda rng: step(rng, state)):
            matrix[at, index[outcome]] += probability
    return matrix
