"""Joining trees of the forest that are one cluster after all.

Insertion compares an arriving observation with every tree, but never two trees with each other:
what a cut has separated, or what two early observations began apart, stays apart, and the forest
ends with several trees a cluster. Consolidation is Bayesian hierarchical clustering over the roots
(Heller and Ghahramani 2005), stopped where no pair is better together. It looks at data only, so it
may be done at any fixed point of the stream.
"""

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import allocating, compiled, inner
from weald.treecore.compiled.reference import by_reference
from weald.treecore.family.interface.base import log_marginal_sums
from weald.treecore.partition.partition import Model
from weald.treecore.statistics.ordering import in_order

from .balance import restore_path
from .forest import (
    Forest,
    dissimilarity_given,
    log_dissimilarity,
    measure,
    new_node,
    remove_root,
    replace_child,
)

__all__ = ["consolidate"]

_NONE = -1
# Pairs are quadratic in the roots: so many are compared at a time, and of those that stay, so many
# with the next smaller ones.
_MOST_ROOTS = 256
_MOST_STAYING = 128


@allocating
def _falling_in_size(forest: Forest, roots: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same roots, ties by id."""
    key = np.empty(roots.shape[0])
    for at in range(roots.shape[0]):
        key[at] = roots[at]
    roots = in_order(roots, key)
    for at in range(roots.shape[0]):
        key[at] = -forest.size[roots[at]]
    return in_order(roots, key)


@allocating
def _join_roots(model: Model, forest: Forest, a: int, b: int) -> int:
    """One tree of two; returns its root."""
    v = new_node(forest)
    remove_root(forest, b)
    replace_child(forest, _NONE, a, v)
    forest.left[v], forest.right[v] = a, b
    forest.parent[a] = v
    forest.parent[b] = v
    restore_path(model, forest, v, v, _NONE, _NONE)
    return v


@inner
def _log_dissimilarities(
    model: Model, forest: Forest, trees: NDArray[np.int64], b: int, out: NDArray[np.float64]
) -> None:
    """Write :func:`log_dissimilarity` of each of these trees to b into ``out``."""
    measure(model, forest, b)
    log_marginal_sums(model.family, forest.rows, trees, forest.rows, b, out, model.work)
    for at in range(trees.shape[0]):
        a = trees[at]
        measure(model, forest, a)
        out[at] = dissimilarity_given(model, forest, a, b, out[at])


@inner
def _nearest_pair(table: NDArray[np.float64]) -> tuple[int, int]:
    """Row and column of the least entry below the diagonal and zero; -1 where there is none."""
    least, row, column = 0.0, _NONE, _NONE
    for i in range(table.shape[0]):
        for j in range(i):
            if table[i, j] < least:
                least, row, column = table[i, j], i, j
    return row, column


@allocating
def _join_nearest(model: Model, forest: Forest, items: NDArray[np.int64]) -> int:
    """Join the two roots of smallest log d until none is below zero; returns how many joins.

    The place of a root that is none any more is -1 in ``items``.
    """
    n = items.shape[0]
    table = np.zeros((n, n))
    for i in range(n):
        _log_dissimilarities(model, forest, items[:i], items[i], table[i, :i])
    joins = 0
    while True:
        best_i, best_j = _nearest_pair(table)
        if best_i == _NONE:
            return joins
        joins += 1
        items[best_j] = _join_roots(model, forest, items[best_j], items[best_i])
        for j in range(n):
            table[max(best_i, j), min(best_i, j)] = 0.0
        items[best_i] = _NONE
        for j in range(n):
            if j != best_j and items[j] >= 0:
                d = log_dissimilarity(model, forest, items[best_j], items[j])
                table[max(best_j, j), min(best_j, j)] = d


@compiled
def consolidate(model: Model, forest: Forest) -> int:
    """Join the trees that are better together, the largest first; returns how many joins.

    Every tree has its turn, however many there are: those that stayed alone would be compared with
    each arrival from then on.
    """
    model, forest = by_reference(model), by_reference(forest)
    waiting = _falling_in_size(forest, forest.roots[: forest.n_roots[0]])
    items = waiting[:0]
    joins = done = 0
    while done < waiting.shape[0]:
        stay = _falling_in_size(forest, items[items >= 0])[:_MOST_STAYING]
        more = min(_MOST_ROOTS - stay.shape[0], waiting.shape[0] - done)
        items = np.concatenate((stay, waiting[done : done + more]))
        done += more
        joins += _join_nearest(model, forest, items)
    return joins
