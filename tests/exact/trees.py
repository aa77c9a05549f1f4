"""Guides of any shape, and the tree-guided kernels on small posteriors."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.state.pieces import Pieces, labels_of_pieces, make_pieces
from weald.mcmc.tree_guided import leaf_scan, tgmcmc
from weald.mcmc.tree_guided.tgmcmc import Picks, make_picks
from weald.treecore.family.interface.base import log_marginal
from weald.treecore.guide.guide import Guide, refresh_potentials
from weald.treecore.partition.partition import Atoms, Model, Partition

from .cases import Problem
from .enumeration import IdOrder, Paths, Shape, transition_matrix

# An atom, or two trees.
Tree = Any
Step = Callable[[Any, Guide, Pieces, Model, Picks], Any]

KERNELS: dict[str, Step] = {
    "subtree-gibbs": tgmcmc.gibbs_step,
    "tree-split-merge": tgmcmc.split_merge_step,
    "subtree-repartition": tgmcmc.repartition_step,
    "leaf-gibbs": lambda rng, guide, pieces, model, _: tgmcmc.leaf_step(rng, guide, pieces, model),
    "subtree-gather": tgmcmc.gather_step,
    "leaf-scan": lambda rng, guide, pieces, model, _: leaf_scan.scan(rng, guide, pieces, model, 1),
}


def chain(n: int) -> Tree:
    """The deepest tree: each atom beside all later ones."""
    return n - 1 if n == 1 else _chain(0, n)


def _chain(first: int, n: int) -> Tree:
    return first if first == n - 1 else (first, _chain(first + 1, n))


def random_tree(n: int, rng: Generator) -> Tree:
    """Random pairs joined until one tree is left."""
    trees: list[Tree] = list(rng.permutation(n).tolist())
    while len(trees) > 1:
        a = trees.pop(int(rng.integers(len(trees))))
        b = trees.pop(int(rng.integers(len(trees))))
        trees.append((a, b))
    return trees[0]


def _preorder(tree: Tree, parent: int, nodes: list[tuple[int, Tree]]) -> None:
    at = len(nodes)
    nodes.append((parent, tree))
    if isinstance(tree, tuple):
        for child in tree:
            _preorder(child, at, nodes)


def leaves_of(tree: Tree) -> list[int]:
    """Atoms from left to right."""
    if not isinstance(tree, tuple):
        return [tree]
    return [atom for child in tree for atom in leaves_of(child)]


def guide_of(model: Model, atoms: Atoms, tree: Tree) -> Guide:
    """Guide of the given shape."""
    nodes: list[tuple[int, Tree]] = []
    _preorder(tree, -1, nodes)
    below = [leaves_of(each) for _, each in nodes]
    leaves = [v for v, (_, each) in enumerate(nodes) if not isinstance(each, tuple)]
    order = [below[v][0] for v in leaves]
    n_leaves = np.array([len(each) for each in below], dtype=np.int64)
    rows = np.array([atoms.rows[each].sum(axis=0) for each in below])
    n = len(nodes)
    guide = Guide(
        parent=np.array([parent for parent, _ in nodes], dtype=np.int64),
        n_nodes=2 * n_leaves - 1,
        first=np.array([order.index(each[0]) for each in below], dtype=np.int64),
        n_leaves=n_leaves,
        size=np.array([atoms.size[each].sum() for each in below], dtype=np.int64),
        rows=rows,
        log_marginal=np.array([log_marginal(model.family, rows, v, model.work) for v in range(n)]),
        log_potential=np.empty(n),
        log_dissimilarity=np.empty(n),
        atom=np.array(order, dtype=np.int64),
        node=np.array(leaves, dtype=np.int64),
        position=np.argsort(order).astype(np.int64),
    )
    refresh_potentials(model, guide)
    return guide


def node_of(guide: Guide, atoms: list[int]) -> int:
    """The node whose atoms are these."""
    for v in range(guide.parent.shape[0]):
        below = guide.atom[guide.first[v] : guide.first[v] + guide.n_leaves[v]]
        if sorted(below.tolist()) == sorted(atoms):
            return v
    raise AssertionError(f"no node holds just {atoms}")


def shape_of(guide: Guide, pieces: Pieces) -> Shape:
    """The partition in canonical form."""
    labels = np.empty(guide.atom.shape[0], dtype=np.int64)
    labels_of_pieces(guide, pieces, labels)
    seen: dict[int, int] = {}
    return tuple(seen.setdefault(k, len(seen)) for k in labels.tolist())


class TreeProblem(NamedTuple):
    """A posterior with a guide; ``prepared`` are the pieces of every partition."""

    small: Problem
    guide: Guide
    picks: Picks
    prepared: dict[Shape, Pieces]

    def pieces(self, state: Shape) -> Pieces:
        """Pieces of their own with that partition; scratch is shared, as it is in production."""
        prepared = self.prepared[state]
        arrays: list[Any] = [array.copy() for array in prepared.partition]
        return prepared._replace(partition=Partition(*arrays), pure=prepared.pure.copy())

    def after(self, step: Step, rng: Any, state: Shape) -> Shape:
        """The partition that one step leads to."""
        pieces = self.pieces(state)
        step(rng, self.guide, pieces, self.small.model, self.picks)
        return shape_of(self.guide, pieces)

    def matrix(self, step: Step, source: type[Paths] = IdOrder) -> NDArray[np.float64]:
        """Transition matrix of one step."""
        return transition_matrix(self.small.states, partial(self.after, step), source)


def tree_problem(small: Problem, guide: Guide) -> TreeProblem:
    """The posterior with every partition prepared for steps on the guide."""
    prepared = {
        state: make_pieces(small.family, guide, np.array(state, dtype=np.int64))
        for state in small.states
    }
    return TreeProblem(small, guide, make_picks(guide), prepared)
