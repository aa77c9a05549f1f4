"""Collapsed Gibbs: Neal (2000) algorithm 3, one atom after another.

Each atom is taken out and put back by a draw from its full conditional, so the step leaves the
posterior invariant for every partition prior of Gibbs type, and the sweep is irreducible. Cost: one
predictive density a block and atom. (``split-merge-samplers.md`` section 2.1.)
"""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..treecore.compile import compiled, inner
from ..treecore.draw import choose
from ..treecore.partition import Model, lift, log_join, open_block, place
from ..treecore.prior.base import log_new_block, log_size
from ..treecore.reference import by_reference
from .state import Info, State

__all__ = ["seating_weights", "step", "sweep"]

_CONDITIONAL = 3


@inner
def seating_weights(state: State, model: Model, i: int) -> int:
    """Log weights of atom i, which is in no block, for each open block and then for a new one.

    They are written to ``state.log_weights``; returns the number of open blocks.
    """
    atoms, partition, seating = state.atoms, state.partition, model.seating
    size = atoms.size[i]
    k = partition.n_blocks[0]
    for at in range(k):
        slot = partition.slots[at]
        count = partition.size[slot]
        weight = log_size(seating, count + size) - log_size(seating, count)
        state.log_weights[at] = weight + log_join(model, atoms, partition, i, slot)
    state.log_weights[k] = log_new_block(seating, k) + log_size(seating, size)
    state.log_weights[k] += atoms.log_marginal[i]
    return k


@inner
def step(rng: Generator, state: State, model: Model, i: int) -> Info:
    """Redraw the block of atom i (which may be in no block yet) given all the others."""
    partition = state.partition
    if partition.label[i] >= 0:
        lift(state.atoms, partition, i)
    k = seating_weights(state, model, i)
    chosen = choose(rng, state.log_weights, k + 1)
    slot = open_block(partition) if chosen == k else partition.slots[chosen]
    place(state.atoms, partition, i, slot)
    return Info(_CONDITIONAL, 0.0, 1)


@compiled
def sweep(rng: Generator, state: State, model: Model, visited: NDArray[np.int64]) -> None:
    """One step for each atom of ``visited`` (int64), in that order.

    The order must not depend on the partition.
    """
    state, model = by_reference(state), by_reference(model)
    for at in range(visited.shape[0]):
        step(rng, state, model, visited[at])
