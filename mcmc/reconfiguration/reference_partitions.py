"""Two guide partitions, where they disagree, and what they have in common.

Adaptive reconfiguration and its variants take from two partitions, which must not depend on the
state that moves: a pair of atoms that one of them joins and the other separates, and the coarsest
common refinement, whose pieces may move whole. (Herlau et al. section 2;
``split-merge-samplers.md`` section 2.8.)
"""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.treecore.compiled.compile import inner
from weald.treecore.compiled.draw import below, pick
from weald.treecore.compiled.reference import held_by_reference

__all__ = ["Guides", "History", "draw_disagreement", "make_guides"]

Labels = NDArray[np.int64]


@held_by_reference
class Guides(NamedTuple):
    """Two partitions of the atoms; made by :func:`make_guides`.

    Attributes
    ----------
    first, second, common:
        Labels in both, and in their coarsest common refinement, int64 (n).
    apart:
        Running total over atoms of the others on which the two disagree, float64 (n).
    """

    first: Labels
    second: Labels
    common: Labels
    apart: NDArray[np.float64]


def make_guides(first: Labels, second: Labels) -> Guides:
    """Compare two partitions of the same atoms, given by any integer labels (n)."""
    _, a = np.unique(first, return_inverse=True)
    _, b = np.unique(second, return_inverse=True)
    _, common = np.unique(a * (int(b.max(initial=0)) + 1) + b, return_inverse=True)
    n_apart = np.bincount(a)[a] + np.bincount(b)[b] - 2 * np.bincount(common)[common]
    return Guides(a, b, common, np.cumsum(n_apart, dtype=np.float64))


class History:
    """Where all chains of a population have been: the paper's source of guides.

    The present state is among the past ones, so a chain with such guides is exact only in the
    limit of a history that grows without bound: the claim is *adaptive*.
    """

    def __init__(self, n_chains: int) -> None:
        self._states: list[list[NDArray[np.int32]]] = [[] for _ in range(n_chains)]

    def note(self, chain: int, labels: Labels) -> None:
        """Append a chain's present state; labels are canonical."""
        self._states[chain].append(labels.astype(np.int32))

    def draw(self, rng: Generator, chain: int) -> tuple[Labels, Labels] | None:
        """A later state of this chain and another of any chain; None if there is no other.

        Both are drawn from the second half of the history. (Herlau et al. section 2.4.)
        """
        if not self._states[chain]:
            return None
        first = _later(rng, self._states[chain])
        pool = [states for states in self._states if states]
        # States repeat where a chain stands still: a few attempts, then none.
        for _ in range(20):
            states = pool[int(rng.integers(len(pool)))]
            second = _later(rng, states)
            if not np.array_equal(first, second):
                return first.astype(np.int64), second.astype(np.int64)
        return None


def _later(rng: Generator, states: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """One of the second half, in which no list is copied."""
    skipped = len(states) // 2
    return states[skipped + int(rng.integers(len(states) - skipped))]


@inner
def draw_disagreement(rng: Generator, guides: Guides) -> tuple[int, int]:
    """Two atoms, uniformly among the pairs on which the guides disagree; there must be one."""
    i = pick(rng, guides.apart)
    n_apart = guides.apart[i] - (guides.apart[i - 1] if i > 0 else 0.0)
    left = below(rng, int(n_apart))
    j = 0
    while True:
        joined = guides.first[i] == guides.first[j]
        if joined != (guides.second[i] == guides.second[j]):
            if left == 0:
                return i, j
            left -= 1
        j += 1
