"""Leaves that are no neighbours in the forest, but in one block, made one.

Where clusters overlap, the forest's neighbours are in several blocks and no subtree of them may
become one leaf (`compaction.py`). What is in one block then still has an order, that of the leaves
from left to right, in which those that follow each other are near; pairs of them can be joined.
What is sampled afterwards is the same thing: the posterior given that they stay together
(``tgmcmc-ibhc.md`` section 7).
"""

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled
from weald.treecore.compiled.reference import by_reference
from weald.treecore.family.interface.base import log_marginal_sum
from weald.treecore.partition.partition import Atoms, Model, Partition
from weald.treecore.statistics.rows import add_row

from .balance import restore_path
from .compaction import drop_atom, take_leaf
from .forest import Forest, log_hypothesis, refresh_leaf
from .insertion import remove_atom

__all__ = ["disjoint_pairs", "join_leaves", "leaves_in_order", "log_dissimilarities"]

_NONE = -1


@compiled
def leaves_in_order(forest: Forest) -> NDArray[np.int64]:
    """Node ids of all leaves, tree by tree from left to right."""
    forest = by_reference(forest)
    leaves = np.empty(forest.n_used[0], dtype=np.int64)
    pending = np.empty(forest.n_used[0], dtype=np.int64)
    n = 0
    for at in range(forest.n_roots[0]):
        pending[0] = forest.roots[at]
        n_pending = 1
        while n_pending > 0:
            n_pending -= 1
            v = pending[n_pending]
            if forest.left[v] == _NONE:
                leaves[n] = v
                n += 1
            else:
                pending[n_pending] = forest.right[v]
                pending[n_pending + 1] = forest.left[v]
                n_pending += 2
    return leaves[:n].copy()


@compiled
def log_dissimilarities(
    model: Model, forest: Forest, first: NDArray[np.int64], second: NDArray[np.int64]
) -> NDArray[np.float64]:
    """S9 for pairs of leaves by node id (n), under a prior that need not be the forest's own."""
    model, forest = by_reference(model), by_reference(forest)
    out = np.empty(first.shape[0])
    for at in range(first.shape[0]):
        a, b = first[at], second[at]
        union = log_marginal_sum(model.family, forest.rows, a, forest.rows, b, model.work)
        together = log_hypothesis(model, forest.size[a] + forest.size[b], union)
        apart = log_hypothesis(model, forest.size[a], forest.log_marginal[a])
        apart += log_hypothesis(model, forest.size[b], forest.log_marginal[b])
        out[at] = apart - together
    return out


@compiled
def disjoint_pairs(
    first: NDArray[np.int64], second: NDArray[np.int64], ranked: NDArray[np.int64], most: int
) -> NDArray[np.int64]:
    """Places of up to ``most`` pairs, in the order ``ranked``, none of which share a member."""
    highest = 0
    for at in range(first.shape[0]):
        highest = max(highest, first[at], second[at])
    taken = np.zeros(highest + 1, dtype=np.uint8)
    chosen = np.empty(min(most, ranked.shape[0]), dtype=np.int64)
    n = 0
    for i in range(ranked.shape[0]):
        at = ranked[i]
        if n < chosen.shape[0] and taken[first[at]] == 0 and taken[second[at]] == 0:
            taken[first[at]] = 1
            taken[second[at]] = 1
            chosen[n] = at
            n += 1
    return chosen[:n].copy()


@compiled
def join_leaves(
    model: Model,
    forest: Forest,
    atoms: Atoms,
    partition: Partition,
    kept: NDArray[np.int64],
    gone: NDArray[np.int64],
) -> None:
    """Add each atom of ``gone`` to the one of ``kept`` beside it, which is in the same block.

    The leaf of the one that goes leaves the forest; balance and potentials are restored.
    """
    model, forest = by_reference(model), by_reference(forest)
    atoms, partition = by_reference(atoms), by_reference(partition)
    for at in range(kept.shape[0]):
        i, j = kept[at], gone[at]
        remove_atom(model, forest, j)
        v = forest.leaf[i]
        add_row(forest.rows, v, atoms.rows, j)
        forest.size[v] += atoms.size[j]
        refresh_leaf(model, forest, v)
        restore_path(model, forest, forest.parent[v], forest.parent[v], _NONE, _NONE)
        take_leaf(forest, atoms, i, v)
        drop_atom(atoms, partition, j)
