"""The guide restricted to some of its atoms: what a worker needs of it, and how it grows back.

A node of the guide survives where it still tells two of the atoms apart; nodes with one child left
are contracted. The result is a function of the guide and of the set of atoms alone, so a guide that
never looks at the partition restricts to one that looks at no more than the lease's atoms, which is
what keeps tree-guided moves exact inside a lease. In preorder the number of leaves under each node
says everything about a binary tree's form, so that is all that travels.
"""

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.chain.growing import restored_forest
from weald.treecore.guide.guide import Guide, freeze
from weald.treecore.partition.partition import Atoms, Model

__all__ = ["guide_of_tree", "regrow", "restrict"]

Ids = NDArray[np.int64]
_NONE = -1


def restrict(guide: Guide, atoms: Ids) -> tuple[Ids, Ids]:
    """Form of the guide over ``atoms`` (u, ascending ids) only.

    Returns
    -------
    n_leaves : int64 (2 u - 1)
        Leaves under each surviving node, in preorder.
    order : int64 (u)
        Places in ``atoms`` of the leaves, from left to right.
    """
    taken = np.zeros(guide.position.shape[0], dtype=bool)
    taken[atoms] = True
    leaves = taken[guide.atom]
    before = np.concatenate([[0], np.cumsum(leaves)])
    count = before[guide.first + guide.n_leaves] - before[guide.first]
    survives = (guide.n_leaves == 1) & (count == 1)
    inner = np.flatnonzero(guide.n_leaves > 1)
    left = inner + 1
    survives[inner] = (count[left] > 0) & (count[left + guide.n_nodes[left]] > 0)
    return count[survives].astype(np.int64), np.searchsorted(atoms, guide.atom[leaves])


def regrow(model: Model, atoms: Atoms, form: tuple[Ids, Ids]) -> Guide:
    """Guide over the atoms of a lease, with its potentials for the model's prior."""
    n_leaves, order = form
    inner = np.flatnonzero(n_leaves > 1)
    left = inner + 1
    children = np.full((n_leaves.shape[0], 2), _NONE, dtype=np.int64)
    children[inner] = np.stack([left, inner + 2 * n_leaves[left]], axis=1)
    return guide_of_tree(model, atoms, children, order)


def guide_of_tree(model: Model, atoms: Atoms, children: Ids, order: Ids) -> Guide:
    """Guide in the form of a tree, with its potentials for the model's prior.

    Parameters
    ----------
    children : int64 (2 n - 1, 2)
        Left and right child of each node; -1 of a leaf.
    order : int64 (n)
        Atoms of the leaves, these in the order of their nodes.
    """
    n_nodes = children.shape[0]
    inner = np.flatnonzero(children[:, 0] != _NONE)
    leaves = np.flatnonzero(children[:, 0] == _NONE)
    parent = np.full(n_nodes, _NONE, dtype=np.int64)
    parent[children[inner]] = inner[:, np.newaxis]
    atom = np.full(n_nodes, _NONE, dtype=np.int64)
    atom[leaves] = order
    size = np.zeros(n_nodes, dtype=np.int64)
    size[leaves] = atoms.size[order]
    forest = restored_forest(
        model.family,
        model,
        {
            "parent": parent,
            "left": children[:, 0].copy(),
            "right": children[:, 1].copy(),
            "atom": atom,
            "node_size": size,
            "leaf_rows": atoms.rows[order],
            "roots": np.flatnonzero(parent == _NONE),
            "free": np.empty(0, dtype=np.int64),
            "n_atoms": np.array([order.shape[0]]),
        },
    )
    return freeze(model, forest)
