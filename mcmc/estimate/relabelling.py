"""A draw with every atom in the cluster that is most probable for it.

Given the partition, each atom goes where prior and predictive density of the other atoms put the
most weight, all by the partition as it was drawn (and the prior's auxiliary
variables, where it has them). It costs one pass and loses the clusters that
only this draw has; whether it is a better answer, the expected loss over all draws says.
"""

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.gibbs.gibbs import log_alone, seating_weights
from weald.mcmc.state.atom_state import State
from weald.treecore.compiled.compile import compiled
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model, lift, open_block, place
from weald.treecore.prior.sequential import canonical_labels

__all__ = ["relabelled"]


@compiled
def _most_probable(state: State, model: Model, found: NDArray[np.int64]) -> None:
    state, model = by_reference(state), by_reference(model)
    atoms, partition = state.atoms, state.partition
    # A block that is closed and opened again may change its slot; its name stays.
    name = np.arange(partition.slots.shape[0])
    for i in range(found.shape[0]):
        slot = lift(atoms, partition, i)
        own, was_alone = name[slot], partition.n_members[slot] == 0
        k = seating_weights(state, model, i, log_alone(state, model, i))
        best = k if was_alone else 0
        for at in range(k):
            if state.log_weights[at] > state.log_weights[best]:
                best = at
        found[i] = own if best == k else name[partition.slots[best]]
        if was_alone:
            slot = open_block(partition)
            name[slot] = own
        place(atoms, partition, i, slot)


def relabelled(state: State, model: Model) -> NDArray[np.int64]:
    """Canonical labels (n) with each atom in the open block, or alone, that is most probable.

    The state ends with the blocks that it had.
    """
    found = np.empty(state.atoms.size.shape[0], dtype=np.int64)
    _most_probable(state, model, found)
    return canonical_labels(found)
