"""Clusters that each carry a tree: the state of tree-guided MCMC as published.

A tree of the forest is a cluster. What moves do to trees is as in Lee and Choi (2015), sections 2.3
and 3: sequential insertion without cuts, its stochastic form, and the draw of a subtree.
"""

from math import exp, log, log1p
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.conditional.labels import require_dense
from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.draw import choose
from weald.treecore.compiled.reference import by_reference, held_by_reference
from weald.treecore.family.interface.base import Family
from weald.treecore.forest.forest import (
    Forest,
    add_leaf,
    add_root,
    empty_forest,
    free_node,
    join,
    log_dissimilarity,
    log_hypothesis,
    new_node,
    refresh_ancestors,
    refresh_node,
    replace_child,
)
from weald.treecore.forest.insertion import place_published
from weald.treecore.partition.partition import Atoms, Model
from weald.treecore.prior.sequential import canonical_labels
from weald.treecore.statistics.rows import copy_row

__all__ = [
    "Trees",
    "copy_tree",
    "detach_leaf",
    "forget_tree",
    "labels_of_trees",
    "list_below",
    "log_insert_alone",
    "log_sum",
    "make_trees",
    "refresh_trees",
    "sample_subtree",
    "sequential_insert",
    "stochastic_insert",
]

_NONE = -1


@held_by_reference
class Trees(NamedTuple):
    """The forest, with room for a copy of its largest tree, and scratch (4 n + 8).

    ``listed`` are nodes of one tree, ``copies`` their copies or other nodes that a move keeps.
    """

    forest: Forest
    listed: NDArray[np.int64]
    copies: NDArray[np.int64]
    log_weights: NDArray[np.float64]


def make_trees(family: Family, atoms: Atoms, labels: NDArray[np.int64], model: Model) -> Trees:
    """A tree for each block of a partition (n), its atoms inserted one after another.

    Raises ParameterError where statistics are not dense.
    """
    require_dense(atoms.rows)
    forest = empty_forest(family, 2 * labels.shape[0] + 3, atoms.rows)
    room = forest.parent.shape[0]
    listed, copies = np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64)
    trees = Trees(forest, listed, copies, np.zeros(room))
    _grow(model, trees, atoms, canonical_labels(labels))
    return trees


@compiled
def _grow(model: Model, trees: Trees, atoms: Atoms, labels: NDArray[np.int64]) -> None:
    model, trees, atoms = by_reference(model), by_reference(trees), by_reference(atoms)
    forest, roots = trees.forest, trees.copies
    roots[: labels.shape[0]] = _NONE
    for i in range(labels.shape[0]):
        k = labels[i]
        leaf = add_leaf(model, forest, i, atoms.rows, i, atoms.size[i])
        if roots[k] == _NONE:
            add_root(forest, leaf)
            roots[k] = leaf
        else:
            roots[k] = sequential_insert(model, forest, roots[k], leaf)


@compiled
def labels_of_trees(trees: Trees, labels: NDArray[np.int64]) -> None:
    """Write the partition: for each atom the place of its tree in the list of roots."""
    trees = by_reference(trees)
    forest = trees.forest
    for at in range(forest.n_roots[0]):
        for each in range(list_below(trees, forest.roots[at])):
            v = trees.listed[each]
            if forest.left[v] == _NONE:
                labels[forest.atom[v]] = at


@inner
def list_below(trees: Trees, v: int) -> int:
    """List the nodes of the subtree of v in ``listed``, parents first; returns how many."""
    forest, listed = trees.forest, trees.listed
    listed[0] = v
    n, at = 1, 0
    while at < n:
        u = listed[at]
        if forest.left[u] != _NONE:
            listed[n], listed[n + 1] = forest.left[u], forest.right[u]
            n += 2
        at += 1
    return n


@inner
def refresh_trees(model: Model, trees: Trees) -> None:
    """Recompute all potentials for the model's prior, without any likelihood."""
    forest = trees.forest
    for at in range(forest.n_roots[0]):
        for each in range(list_below(trees, forest.roots[at]) - 1, -1, -1):
            v = trees.listed[each]
            together = log_hypothesis(model, forest.size[v], forest.log_marginal[v])
            forest.log_potential[v] = together
            if forest.left[v] != _NONE:
                apart = forest.log_potential[forest.left[v]] + forest.log_potential[forest.right[v]]
                d = apart - together
                forest.log_dissimilarity[v] = d
                forest.log_potential[v] += max(d, 0.0) + log1p(exp(-abs(d)))


@inner
def sequential_insert(model: Model, forest: Forest, root: int, x: int) -> int:
    """Put the tree x, which hangs nowhere, into a tree; returns that tree's root."""
    v = join(forest, place_published(model, forest, root, x), x)
    refresh_node(model, forest, v)
    refresh_ancestors(model, forest, v)
    while forest.parent[v] != _NONE:
        v = forest.parent[v]
    return v


@inner
def detach_leaf(model: Model, forest: Forest, x: int) -> None:
    """Take a leaf, which is no tree by itself, out of its tree."""
    p = forest.parent[x]
    other = forest.right[p] if forest.left[p] == x else forest.left[p]
    replace_child(forest, forest.parent[p], p, other)
    free_node(forest, p)
    forest.parent[x] = _NONE
    refresh_ancestors(model, forest, other)


@inner
def copy_tree(trees: Trees, root: int, marked: int) -> tuple[int, int]:
    """Copy a tree, which hangs nowhere; returns the copy's root and the copy of ``marked``."""
    forest, copies = trees.forest, trees.copies
    n = list_below(trees, root)
    found = _NONE
    below = 1
    for at in range(n):
        copies[at] = new_node(forest)
    for at in range(n):
        v, w = trees.listed[at], copies[at]
        if v == marked:
            found = w
        forest.atom[w] = forest.atom[v]
        forest.n_leaves[w] = forest.n_leaves[v]
        forest.height[w] = forest.height[v]
        forest.size[w] = forest.size[v]
        forest.log_marginal[w] = forest.log_marginal[v]
        forest.log_potential[w] = forest.log_potential[v]
        forest.log_dissimilarity[w] = forest.log_dissimilarity[v]
        forest.table_age[w] = 0
        copy_row(forest.rows, w, forest.rows, v)
        if forest.left[v] != _NONE:
            # Children are listed in pairs, in the order of their parents.
            forest.left[w], forest.right[w] = copies[below], copies[below + 1]
            forest.parent[copies[below]] = w
            forest.parent[copies[below + 1]] = w
            below += 2
    return copies[0], found


@inner
def forget_tree(trees: Trees, root: int) -> None:
    """Give back the ids of all nodes of a tree that is in no list of roots."""
    for at in range(list_below(trees, root)):
        free_node(trees.forest, trees.listed[at])


@inner
def _log_add(a: float, b: float) -> float:
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else high + log1p(exp(low - high))


@inner
def log_sum(trees: Trees, n: int) -> float:
    """Log of the sum of ``exp(log_weights[:n])``, one of them finite."""
    largest = trees.log_weights[0]
    for at in range(1, n):
        largest = max(largest, trees.log_weights[at])
    total = 0.0
    for at in range(n):
        total += exp(trees.log_weights[at] - largest)
    return largest + log(total)


@inner
def sample_subtree(
    rng: Generator, trees: Trees, v: int, n_least: int, forced: int
) -> tuple[int, float]:
    """SampleSub: a node of a tree of at least ``n_least`` leaves, and the log of its probability.

    Its weight is its dissimilarity (zero for a leaf) plus the largest one of the tree. With
    ``forced`` a node it is not drawn but given.
    """
    forest, listed = trees.forest, trees.listed
    if forest.left[v] == _NONE:
        return v, 0.0
    n = list_below(trees, v)
    largest = -np.inf
    for at in range(n):
        largest = max(largest, forest.log_dissimilarity[listed[at]])
    n_choices = 0
    for at in range(n):
        u = listed[at]
        if forest.n_leaves[u] >= n_least:
            listed[n_choices] = u
            trees.log_weights[n_choices] = _log_add(forest.log_dissimilarity[u], largest)
            n_choices += 1
    total = log_sum(trees, n_choices)
    chosen = forced
    if forced == _NONE:
        chosen = listed[choose(rng, trees.log_weights, n_choices)]
    return chosen, _log_add(forest.log_dissimilarity[chosen], largest) - total


@inner
def stochastic_insert(rng: Generator, model: Model, trees: Trees, first: int, x: int) -> float:
    """StocInsert: the tree x into one of ``roots[first:]``, or beside them as another.

    A tree's weight is one over its dissimilarity to x, that of staying alone is one. Returns the
    log of the choice's probability.
    """
    forest = trees.forest
    m = forest.n_roots[0] - first
    for at in range(m):
        d = log_dissimilarity(model, forest, forest.roots[first + at], x)
        trees.log_weights[at] = -d
    trees.log_weights[m] = 0.0
    total = log_sum(trees, m + 1)
    chosen = choose(rng, trees.log_weights, m + 1)
    if chosen == m:
        add_root(forest, x)
        return -total
    root = forest.roots[first + chosen]
    log_p = -log_dissimilarity(model, forest, root, x) - total
    sequential_insert(model, forest, root, x)
    return log_p


@inner
def log_insert_alone(model: Model, trees: Trees, first: int, at: int) -> float:
    """Log probability that StocInsert leaves ``copies[at]`` beside ``copies[first:at]``."""
    for other in range(first, at):
        d = log_dissimilarity(model, trees.forest, trees.copies[other], trees.copies[at])
        trees.log_weights[other - first] = -d
    trees.log_weights[at - first] = 0.0
    return -log_sum(trees, at - first + 1)
