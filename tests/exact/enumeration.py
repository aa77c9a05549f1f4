"""Exact transition matrices of production kernels, assembled path by path.

With compilation switched off (``NUMBA_DISABLE_JIT=1``) a kernel draws through the generic functions
of :mod:`weald.treecore.compiled.draw`. :class:`Paths` implements them by following one path of
choices at a time; running the kernel once for every path gives every outcome with its probability.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import implements
from weald.treecore.compiled.draw import below, choose, coin, pick, shuffle

# A partition as a restricted growth string: each label at most one above those before it.
Shape = tuple[int, ...]


class Paths:
    """A source of randomness that visits every path of choices in turn."""

    def __init__(self) -> None:
        self._path: list[tuple[int, list[float]]] = []
        self._depth = 0
        self.probability = 1.0

    def pick(self, probabilities: list[float]) -> int:
        if self._depth == len(self._path):
            self._path.append((_next(probabilities, 0), probabilities))
        chosen, expected = self._path[self._depth]
        # A kernel whose choices depend on more than its arguments and its draws would show here.
        assert expected == probabilities or _alike(expected, probabilities), (
            "the same path led to different probabilities"
        )
        self._depth += 1
        self.probability *= probabilities[chosen]
        return chosen

    @property
    def bit_generator(self) -> "Paths":
        """What a sweep that is void would put back; none is, with room for every block."""
        return self

    @property
    def state(self) -> tuple[()]:
        return ()

    def choice(self, n: int, size: int, *, replace: bool) -> list[int]:
        """``size`` of n numbers, in the order in which they were drawn."""
        assert not replace
        left = list(range(n))
        return [left.pop(self.pick([1.0 / len(left)] * len(left))) for _ in range(size)]

    def every_outcome(self, run: Callable[[Any], Any]) -> Iterator[tuple[Any, float]]:
        """``(run(self), probability)`` for every path."""
        while True:
            self._depth, self.probability = 0, 1.0
            outcome = run(self)
            del self._path[self._depth :]
            yield outcome, self.probability
            while self._path:
                chosen, probabilities = self._path.pop()
                later = _next(probabilities, chosen + 1)
                if later < len(probabilities):
                    self._path.append((later, probabilities))
                    break
            if not self._path:
                return


class IdOrder(Paths):
    """Paths on which every shuffle leaves the values sorted: the fixed order of some oracles."""


def _alike(expected: list[float], found: list[float]) -> bool:
    return len(expected) == len(found) and all(
        abs(p - q) <= 1e-12 * q + 1e-300 for p, q in zip(found, expected, strict=True)
    )


def _next(probabilities: list[float], start: int) -> int:
    at = start
    while at < len(probabilities) and probabilities[at] <= 0.0:
        at += 1
    return at


@implements(choose, Paths, IdOrder)
def _choose(rng: Paths, log_weights: NDArray[np.float64], n: int) -> int:
    # Lists, as arrays of a few numbers take most of their time to be made.
    given: list[float] = log_weights[:n].tolist()
    greatest = max(given)
    weights = [exp(each - greatest) for each in given]
    total = sum(weights)
    # Compiled draws leave sums behind, so a kernel must not count on finding its weights again.
    log_weights[:n] = np.nan
    return rng.pick([each / total for each in weights])


@implements(coin, Paths, IdOrder)
def _coin(rng: Paths, probability: float) -> bool:
    heads = float(min(max(probability, 0.0), 1.0))
    return rng.pick([1.0 - heads, heads]) == 1


@implements(below, Paths, IdOrder)
def _below(rng: Paths, n: int) -> int:
    return rng.pick([1.0 / n] * n)


@implements(pick, Paths, IdOrder)
def _pick(rng: Paths, cumulative: NDArray[np.float64]) -> int:
    sums: list[float] = cumulative.tolist()
    return rng.pick([(b - a) / sums[-1] for a, b in pairwise([0.0, *sums])])


@implements(shuffle, Paths)
def _shuffle(rng: Paths, values: NDArray[np.int64], n: int) -> None:
    for i in range(n - 1, 0, -1):
        j = _below(rng, i + 1)
        values[i], values[j] = values[j], values[i]


@implements(shuffle, IdOrder)
def _sort(rng: IdOrder, values: NDArray[np.int64], n: int) -> None:  # noqa: ARG001  (no draw)
    values[:n] = np.sort(values[:n])


def partitions(n: int) -> list[Shape]:
    """All partitions of n items as restricted growth strings, in lexicographic order."""
    found: list[Shape] = [(0,)]
    for _ in range(n - 1):
        found = [(*part, label) for part in found for label in range(max(part) + 2)]
    return found


def transition_matrix(
    states: Sequence[Any], step: Callable[..., Any], source: type[Paths] = Paths
) -> NDArray[np.float64]:
    """Matrix P with P[s, t] the probability that ``step(rng, state=s)`` returns t."""
    index = {state: at for at, state in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for at, state in enumerate(states):
        for outcome, probability in source().every_outcome(partial(step, state=state)):
            matrix[at, index[outcome]] += probability
    return matrix


def stationary(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """The law that an irreducible transition matrix leaves invariant."""
    n = matrix.shape[0]
    equations = np.vstack([matrix.T - np.eye(n), np.ones(n)])
    return np.asarray(np.linalg.lstsq(equations, np.append(np.zeros(n), 1.0), rcond=None)[0])


def is_irreducible(matrix: NDArray[np.float64]) -> bool:
    """Whether every state reaches every other one."""
    reached = (matrix > 0.0) | np.eye(matrix.shape[0], dtype=bool)
    for _ in range(matrix.shape[0].bit_length()):
        reached = (reached.astype(float) @ reached.astype(float)) > 0.0
    return bool(reached.all())
