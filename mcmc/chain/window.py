"""Rounds on a window of a chain's atoms, in place: their cost does not grow with the chain.

A window is drawn uniformly from the ids that the chain has given, without a look at the partition,
and each of its atoms is redrawn given all the others: blocks with members outside take part as the
statistics that they are. Every step leaves the posterior invariant, so that a window does.
"""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.gibbs import gibbs
from weald.mcmc.hyperparameters.base_scale import log_likelihood_of
from weald.mcmc.state.atom_state import State
from weald.treecore.compiled.compile import compiled
from weald.treecore.compiled.draw import below
from weald.treecore.compiled.reference import by_reference
from weald.treecore.family.interface.base import Family
from weald.treecore.partition.partition import Atoms, Model, Partition, mark_changed
from weald.treecore.prior import PartitionPrior
from weald.treecore.statistics.rows import Rows, add_row, clear_row

__all__ = ["WINDOW", "Moved", "WindowPosition", "draw_window", "log_joint"]

Ids = NDArray[np.int64]
# What is told of the atoms that a window moved: their ids, their slots before, and those after.
Moved = Callable[[Ids, Ids, Ids], None]

# Atoms of a window, with replacement.
WINDOW = 1000
# Blocks of at most so many members are summed afresh after each window: what was subtracted from
# a block that was much larger has left its rounding there.
_SMALL = 64


@compiled
def draw_window(rng: Generator, partition: Partition, end: int, n: int) -> NDArray[np.int64]:
    """The atoms that there are among n ids below ``end``, drawn uniformly with replacement."""
    partition = by_reference(partition)
    window = np.empty(n, dtype=np.int64)
    found = 0
    for _ in range(n):
        window[found] = below(rng, end)
        found += partition.label[window[found]] >= 0
    return window[:found]


@compiled
def _sum_small_afresh(atoms: Atoms, partition: Partition) -> None:
    """Recompute the statistics of blocks of few members: this ends the drift of subtraction."""
    atoms, partition = by_reference(atoms), by_reference(partition)
    for at in range(partition.n_blocks[0]):
        k = partition.slots[at]
        if partition.n_members[k] <= _SMALL:
            clear_row(partition.rows, k)
            mark_changed(partition, k)
            i = partition.head[k]
            while i >= 0:
                add_row(partition.rows, k, atoms.rows, i)
                i = partition.following[i]


class WindowPosition:
    """A chain's own state, for rounds that change it in place.

    Parameters
    ----------
    model : tuple
        Family, prior and scratch rows of the family.
    state : State
    end : int
        All ids are below it.
    moved : callable
        Told what each window moved.
    """

    def __init__(
        self, model: tuple[Family, PartitionPrior, Rows], state: State, end: int, moved: Moved
    ) -> None:
        self._family, self.prior, self._work = model
        self._state = state
        self._end = end
        self._moved = moved

    def _sizes(self) -> Ids:
        partition = self._state.partition
        return partition.size[partition.slots[: int(partition.n_blocks[0])]]

    def _model(self) -> Model:
        sizes = self._sizes()
        seating = self.prior.seating(int(sizes.sum()), sizes.shape[0] + WINDOW)
        return Model(self._family, seating, self._work)

    def resample(self, rng: Generator) -> None:
        """One exact update of the hyperparameters that are learned."""
        self.prior = self.prior.resample(rng, self._sizes())

    def sweep(self, rng: Generator) -> int:
        """Redraw one window; returns the number of its steps."""
        label = self._state.partition.label
        window = draw_window(rng, self._state.partition, self._end, WINDOW)
        before = label[window]
        gibbs.sweep(rng, self._state, self._model(), window)
        _sum_small_afresh(self._state.atoms, self._state.partition)
        changed = label[window] != before
        # An atom may be in the window twice.
        atoms, first = np.unique(window[changed], return_index=True)
        self._moved(atoms, before[changed][first], label[atoms])
        return len(window)

    def log_joint(self, family: Family, prior: PartitionPrior) -> float:
        """Log of prior times likelihood, under a family and a prior of these kinds."""
        return log_joint(self._model(), self._state.partition, family, prior)


def log_joint(model: Model, partition: Partition, family: Family, prior: PartitionPrior) -> float:
    """Log of prior times likelihood, from the blocks alone.

    Parameters
    ----------
    model : Model
        Under which the partition is kept.
    partition : Partition
    family, prior
        Under which it is asked for; of the same kinds.
    """
    sizes = partition.size[partition.slots[: int(partition.n_blocks[0])]]
    return log_likelihood_of(model, partition, family) + prior.log_probability(sizes)
