"""Tree-guided MCMC as published misses the posterior by what an independent program computed.

Its chain is one on partitions with a tree for every cluster. All of these states are enumerated, so
the distance of the stationary law from the posterior has no Monte Carlo error
(``tgmcmc-ibhc.md`` section 5.3).
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.exact.cases import Problem
from tests.exact.enumeration import stationary, transition_matrix
from tests.exact.posed import posed
from weald.mcmc.tree_guided import tgmcmc_published
from weald.mcmc.tree_guided.cluster_trees import Trees, make_trees
from weald.mcmc.tree_guided.tgmcmc_published import PublishedTgmcmcPlan
from weald.treecore.forest.forest import add_leaf, add_root, new_node, refresh_node

# An atom or a pair of trees, each before those with larger least atoms.
Tree = Any
Grove = tuple[Tree, ...]


def trees_on(atoms: tuple[int, ...]) -> list[Tree]:
    """All binary trees on these atoms."""
    if len(atoms) == 1:
        return [atoms[0]]
    found = []
    first, rest = atoms[0], atoms[1:]
    for code in range(2 ** len(rest) - 1):
        inside = tuple(a for at, a in enumerate(rest) if code >> at & 1)
        outside = tuple(a for a in rest if a not in inside)
        found += [(a, b) for a in trees_on((first, *inside)) for b in trees_on(outside)]
    return found


def groves(shape: tuple[int, ...]) -> Iterator[Grove]:
    """All ways to put a tree on each block of a partition."""
    grown: list[Grove] = [()]
    for k in range(max(shape) + 1):
        block = tuple(i for i, label in enumerate(shape) if label == k)
        grown = [(*grove, tree) for grove in grown for tree in trees_on(block)]
    yield from grown


def leaves(tree: Tree) -> list[int]:
    return leaves(tree[0]) + leaves(tree[1]) if isinstance(tree, tuple) else [tree]


def shape_of(grove: Grove) -> tuple[int, ...]:
    label = {i: k for k, tree in enumerate(grove) for i in leaves(tree)}
    return tuple(label[i] for i in sorted(label))


def plant(small: Problem, grove: Grove) -> Trees:
    """The trees as the kernel keeps them."""
    n = small.atoms.size.shape[0]
    trees = make_trees(small.family, small.atoms, np.zeros(n, dtype=np.int64), small.model)
    forest = trees.forest
    for each in (forest.n_roots, forest.n_free, forest.n_used):
        each[0] = 0

    def grow(tree: Tree) -> int:
        if not isinstance(tree, tuple):
            return int(add_leaf(small.model, forest, tree, small.atoms.rows, tree, 1))
        v = int(new_node(forest))
        forest.left[v], forest.right[v] = grow(tree[0]), grow(tree[1])
        forest.parent[forest.left[v]] = forest.parent[forest.right[v]] = v
        refresh_node(small.model, forest, v)
        return v

    for tree in grove:
        add_root(forest, grow(tree))
    return trees


def dig(trees: Trees) -> Grove:
    """The trees in canonical form."""
    forest = trees.forest

    def tree(v: int) -> Tree:
        if forest.left[v] == -1:
            assert forest.leaf[forest.atom[v]] == v
            return int(forest.atom[v])
        pair = tree(int(forest.left[v])), tree(int(forest.right[v]))
        return tuple(sorted(pair, key=lambda each: min(leaves(each))))

    roots = [tree(int(v)) for v in forest.roots[: forest.n_roots[0]]]
    return tuple(sorted(roots, key=lambda each: min(leaves(each))))


def after(small: Problem, plan: PublishedTgmcmcPlan, rng: Any, state: Grove) -> Grove:
    trees = plant(small, state)
    tgmcmc_published.sweep(rng, small.model, trees, plan, np.zeros((2, 3)))
    return dig(trees)


def distance(plan: PublishedTgmcmcPlan) -> float:
    """Total variation of the stationary law of the partition to the posterior."""
    small = posed("gauss1", "dp", 4)
    states = [grove for shape in small.states for grove in groves(shape)]
    matrix = transition_matrix(states, partial(after, small, plan))
    assert np.abs(matrix.sum(axis=1) - 1.0).max() < 1e-12
    law = dict.fromkeys(small.states, 0.0)
    for grove, p in zip(states, stationary(matrix), strict=True):
        law[shape_of(grove)] += p
    return float(np.abs(np.array(list(law.values())) - small.target).sum() / 2)


def test_global_moves() -> None:
    """To the digits of the oracle: the published ratio, move for move."""
    assert distance(PublishedTgmcmcPlan(1, -1)) == pytest.approx(0.1009203936, abs=1e-10)


def test_local_moves() -> None:
    """The leaves that they visit depend on the clusters; visiting all of them is exact."""
    assert distance(PublishedTgmcmcPlan(0, 1)) == pytest.approx(0.137, abs=5e-4)
    assert distance(PublishedTgmcmcPlan(0, 0)) < 1e-12
