"""Edges and vertices of a stream, in the order in which they came.

An edge between vertices that are in blocks adds to the sums of one pair of blocks. A vertex gets a
block by one draw from its conditional given all blocks and the one edge that it came with: to all
other vertices it has none so far, and that is an observation, too. What it learns later, the exact
kernels make use of.
"""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.assignment.assignment import reseat_freely
from weald.mcmc.state.vertex_state import VertexState
from weald.treecore.compiled.compile import compiled
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model, Partition, link, open_block
from weald.treecore.relational.network import RECEIVED, SENT
from weald.treecore.relational.ties import regard_newcomer, tie

__all__ = ["EDGE", "RECEIVER", "SENDER", "arrive", "seat_blocks"]

# What a step is: more on an edge between two atoms, or an atom with its edge to or from another.
EDGE, SENDER, RECEIVER = 0, 1, 2


@compiled
def arrive(
    rng: Generator,
    state: VertexState,
    model: Model,
    steps: NDArray[np.int64],
    amounts: NDArray[np.float64],
) -> None:
    """Go through ``steps`` int64 (m, 3): what, atom, other atom; with ``amounts`` float64 (m).

    Cost: one pair of blocks for an edge, one term for every pair of blocks for a vertex.
    """
    state, model = by_reference(state), by_reference(model)
    network, partition, ties = state.network, state.partition, state.ties
    for at in range(steps.shape[0]):
        what, atom, other = steps[at, 0], steps[at, 1], steps[at, 2]
        if what == EDGE:
            if partition.label[atom] >= 0 and partition.label[other] >= 0:
                tie(model, network, partition, ties, (atom, other, amounts[at]))
            continue
        column = SENT if what == SENDER else RECEIVED
        regard_newcomer(network, partition, ties, atom, (column, other, amounts[at]))
        reseat_freely(rng, state, model, atom)


@compiled
def seat_blocks(
    partition: Partition, atoms: NDArray[np.int64], labels: NDArray[np.int64], k: int
) -> None:
    """Make an empty partition one of ``atoms`` by their ``labels`` from 0 to k - 1."""
    partition = by_reference(partition)
    slots = np.full(k, -1, dtype=np.int64)
    for at in range(atoms.shape[0]):
        label = labels[at]
        if slots[label] == -1:
            slots[label] = open_block(partition)
        link(partition, atoms[at], slots[label])
        partition.size[slots[label]] += 1
