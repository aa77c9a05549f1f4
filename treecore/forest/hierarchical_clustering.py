"""Bayesian hierarchical clustering in batch: Heller and Ghahramani (2005), the twin of insertion.

All trees are compared with all others, and the two of smallest log d are joined until one is left
(``tgmcmc-ibhc.md`` section 3). Quadratic in time and memory where the nearest partner of a tree
seldom changes: an oracle for the incremental trees, and a dendrogram, of up to some thousands of
observations.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import allocating, compiled, inner
from weald.treecore.compiled.reference import by_reference
from weald.treecore.errors import ObservationError
from weald.treecore.partition.partition import Atoms, Model

from .forest import Forest, add_leaf, empty_forest, log_dissimilarity, new_node, refresh_node

__all__ = ["Hierarchy", "hierarchy", "join_greedily"]

_NONE = -1
# A table of log d of all pairs: 800 MB.
_MOST_ATOMS = 10_000


class Hierarchy(NamedTuple):
    """A binary tree over n atoms, its nodes numbered as in a linkage matrix of scipy.

    Attributes
    ----------
    children:
        The two nodes that node n + i joins: int64 (n - 1, 2). Nodes below n are the atoms.
    size:
        Observations under each node, int64 (2 n - 1).
    log_dissimilarity, log_potential:
        Log d and log phi of each node, float64 (2 n - 1). The greatest log phi, that of the last
        node, bounds the log evidence from below.
    """

    children: NDArray[np.int64]
    size: NDArray[np.int64]
    log_dissimilarity: NDArray[np.float64]
    log_potential: NDArray[np.float64]

    def linkage(self) -> NDArray[np.float64]:
        """Linkage matrix (n - 1, 4) for ``scipy.cluster.hierarchy``.

        The height of a node is log(1 + d), or that of the higher child where this is greater, so
        that heights rise: a cut at log 2 leaves the largest trees that are one cluster all through.
        """
        n = self.children.shape[0] + 1
        height = np.logaddexp(0.0, self.log_dissimilarity)
        for i, (a, b) in enumerate(self.children):
            height[n + i] = max(height[n + i], height[a], height[b])
        return np.column_stack([self.children, height[n:], self.size[n:]]).astype(np.float64)

    def labels(self) -> NDArray[np.int64]:
        """Cluster of each atom (n): the topmost trees whose log d is not above zero."""
        n = self.children.shape[0] + 1
        labels = np.empty(n, dtype=np.int64)
        waiting, n_clusters = [(2 * n - 2, _NONE)], 0
        while waiting:
            v, cluster = waiting.pop()
            if cluster == _NONE and self.log_dissimilarity[v] <= 0.0:
                cluster, n_clusters = n_clusters, n_clusters + 1
            if v < n:
                labels[v] = cluster
            else:
                waiting.extend((int(child), cluster) for child in self.children[v - n])
        return labels


@inner
def _nearest(table: NDArray[np.float64], i: int) -> int:
    """The first of the items before i that is least dissimilar to it."""
    best = 0
    for j in range(1, i):
        if table[i, j] < table[i, best]:
            best = j
    return best


@inner
def _join(model: Model, forest: Forest, v: int, a: int, b: int) -> None:
    forest.left[v], forest.right[v] = a, b
    forest.parent[a] = v
    forest.parent[b] = v
    refresh_node(model, forest, v)


@inner
def _replace(
    model: Model,
    forest: Forest,
    items: NDArray[np.int64],
    table: NDArray[np.float64],
    kept: int,
    gone: int,
) -> None:
    """Update the table when item ``kept`` has become another tree and ``gone`` none."""
    for j in range(items.shape[0]):
        if j != gone:
            table[max(gone, j), min(gone, j)] = np.inf
        if j != kept and items[j] != _NONE:
            high, low = max(j, kept), min(j, kept)
            table[high, low] = log_dissimilarity(model, forest, items[high], items[low])


@allocating
def join_greedily(
    model: Model, forest: Forest, items: NDArray[np.int64], above: NDArray[np.int64]
) -> None:
    """Join the two least dissimilar of ``items`` (node ids) until one is left.

    ``above`` holds len(items) - 1 node ids for the joins, used from the last to the first.
    """
    n = items.shape[0]
    # Infinity where an item is gone. Row i has the items before it, nearest[i] the best of them.
    table = np.full((n, n), np.inf)
    nearest = np.zeros(n, dtype=np.int64)
    for i in range(1, n):
        for j in range(i):
            table[i, j] = log_dissimilarity(model, forest, items[i], items[j])
        nearest[i] = _nearest(table, i)
    for at in range(n - 2, -1, -1):
        gone = 1
        for i in range(2, n):
            if table[i, nearest[i]] < table[gone, nearest[gone]]:
                gone = i
        kept = nearest[gone]
        _join(model, forest, above[at], items[kept], items[gone])
        items[kept], items[gone] = above[at], _NONE
        _replace(model, forest, items, table, kept, gone)
        for i in range(1, n):
            if nearest[i] == kept or nearest[i] == gone or i == kept:
                nearest[i] = _nearest(table, i)
            elif i > kept and table[i, kept] < table[i, nearest[i]]:
                nearest[i] = kept


@compiled
def _join_all(model: Model, forest: Forest, atoms: Atoms) -> int:
    model, forest, atoms = by_reference(model), by_reference(forest), by_reference(atoms)
    n = atoms.size.shape[0]
    items = np.empty(n, dtype=np.int64)
    above = np.empty(n - 1, dtype=np.int64)
    for i in range(n):
        items[i] = add_leaf(model, forest, i, atoms.rows, i, atoms.size[i])
    for i in range(n - 1):
        above[i] = new_node(forest)
    join_greedily(model, forest, items, above)
    return n


def hierarchy(model: Model, atoms: Atoms) -> Hierarchy:
    """Join the atoms (at least two) under a model; raises ObservationError for too few or many."""
    n = int(atoms.size.shape[0])
    if not 2 <= n <= _MOST_ATOMS:
        raise ObservationError(f"a hierarchy takes 2 to {_MOST_ATOMS} observations, got {n}")
    forest = empty_forest(model.family, n, atoms.rows)
    _join_all(model, forest, atoms)
    # Leaves have the first ids; the joins were given theirs from the last to the first.
    order = np.concatenate([np.arange(n), np.arange(2 * n - 2, n - 1, -1)])
    place = np.empty(2 * n - 1, dtype=np.int64)
    place[order] = np.arange(2 * n - 1)
    joins = order[n:]
    children = np.sort(place[np.column_stack([forest.left[joins], forest.right[joins]])], axis=1)
    return Hierarchy(
        children,
        forest.size[order],
        forest.log_dissimilarity[order],
        forest.log_potential[order],
    )
