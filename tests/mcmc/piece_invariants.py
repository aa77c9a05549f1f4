"""What must hold of a partition's pieces on a guide; see :mod:`tests.treecore.invariants`."""

import numpy as np

from tests.treecore.invariants import Broken, partition_faults
from weald.mcmc.state.pieces import Pieces
from weald.treecore.guide.guide import Guide
from weald.treecore.partition.partition import Model

__all__ = ["piece_faults"]

_NONE = -1


def piece_faults(model: Model, guide: Guide, pieces: Pieces) -> Broken:
    """Check pieces between two steps: purity of every node, maximality, and the blocks."""
    broken = partition_faults(model, pieces.nodes, pieces.partition)
    n_nodes = guide.parent.shape[0]
    expected = np.empty(n_nodes, dtype=np.int64)
    for v in range(n_nodes - 1, -1, -1):
        if guide.n_leaves[v] == 1:
            # A leaf alone cannot tell whether its block is the right one: the lists can.
            expected[v] = pieces.pure[v]
        else:
            left, right = expected[v + 1], expected[v + 1 + guide.n_nodes[v + 1]]
            expected[v] = left if left == right else _NONE
    if (expected != pieces.pure).any() or (pieces.pure[guide.node] == _NONE).any():
        broken |= Broken.PURITY
    maximal = expected != _NONE
    maximal[1:] &= expected[guide.parent[1:]] == _NONE
    if (np.where(maximal, expected, _NONE) != pieces.partition.label).any():
        broken |= Broken.PIECES
    if (pieces.marked > pieces.epoch[0]).any() or (pieces.met > pieces.epoch[0]).any():
        broken |= Broken.PIECES
    return broken
