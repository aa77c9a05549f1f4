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
from ..treecore.partition import Model, lift, log_join_above, open_block, place
from ..treecore.prior.base import log_new_block, log_size
from ..treecore.reference import by_reference
from .state import Info, State

__all__ = ["seating_weights", "step", "sweep"]

_CONDITIONAL = 3
# A weight that is this much smaller than another, in nats, changes no bit of their sum: a double
# has 53 bits, which are 37 nats.
_NEGLIGIBLE = 50.0


@inner
def seating_weights(state: State, model: Model, i: int, log_alone: float) -> int:
    """Log weights of atom i, which is in no block, for each open block and then for a new one.

    ``log_alone`` is the last of them. They are written to ``state.log_weights``, minus infinity
    for some of those that are beyond notice; returns the number of open blocks.
    """
    atoms, partition, seating = state.atoms, state.partition, model.seating
    size = atoms.size[i]
    k = partition.n_blocks[0]
    largest = log_alone
    state.log_weights[k] = log_alone
    for at in range(k):
        slot = partition.slots[at]
        count = partition.size[slot]
        weight = log_size(seating, count + size) - log_size(seating, count)
        least = largest - weight - _NEGLIGIBLE
        weight += log_join_above(model, atoms, partition, i, slot, least)
        largest = max(largest, weight)
        state.log_weights[at] = weight
    return k


@inner
def step(rng: Generator, state: State, model: Model, i: int) -> Info:
    """Redraw the block of atom i (which may be in no block yet) given all the others."""
    partition = state.partition
    if partition.label[i] >= 0:
        lift(state.atoms, partition, i)
    alone = log_new_block(model.seating, partition.n_blocks[0]) + state.atoms.log_marginal[i]
    alone += log_size(model.seating, state.atoms.size[i])
    k = seating_weights(state, model, i, alone)
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
