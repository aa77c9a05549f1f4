"""What kernels work on where the data are a network: its vertices, their partition, scratch."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.reference import held_by_reference
from weald.treecore.partition.partition import Partition
from weald.treecore.relational.network import Network
from weald.treecore.relational.ties import Ties

__all__ = ["VertexState"]


@held_by_reference
class VertexState(NamedTuple):
    """A network with the partition of its vertices, and scratch arrays.

    Attributes
    ----------
    network, partition, ties:
        What is moved, where it is, and what pairs of blocks weigh.
    log_weights, members, order, side:
        As in :class:`~weald.mcmc.state.atom_state.State`.
    own:
        Slots of the vertices that are divided, before (n).
    sides, homes:
        Slots of both sides of a division, -1 for one that is empty, and the slots that are kept for
        them, int64 (2).
    """

    network: Network
    partition: Partition
    ties: Ties
    log_weights: NDArray[np.float64]
    members: NDArray[np.int64]
    order: NDArray[np.int64]
    side: NDArray[np.int8]
    own: NDArray[np.int64]
    sides: NDArray[np.int64]
    homes: NDArray[np.int64]
