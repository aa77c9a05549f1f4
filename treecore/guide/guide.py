"""The guide: one frozen binary tree over all atoms, numbered in preorder.

In preorder the subtree of node v is the interval ``v .. v + n_nodes[v] - 1``, its left child is
``v + 1`` and its atoms are the interval ``first[v] .. first[v] + n_leaves[v] - 1`` of leaf
positions. The topology comes from the data alone; the potentials follow the current prior
(``tgmcmc-ibhc.md`` sections 6.5 and 6.6).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from math import exp, log1p
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.reference import by_reference, held_by_reference
from weald.treecore.family.interface.base import Family, log_marginal
from weald.treecore.forest.balance import grow_tree
from weald.treecore.forest.forest import (
    Forest,
    add_leaf,
    empty_forest,
    log_hypothesis,
    measure,
    new_node,
)
from weald.treecore.forest.hierarchical_clustering import join_greedily
from weald.treecore.partition.partition import Atoms, Model
from weald.treecore.statistics.ordering import in_order
from weald.treecore.statistics.rows import Rows, copy_row, rows_like, sum_rows

__all__ = [
    "Guide",
    "Topology",
    "copy_topology",
    "freeze",
    "guide_of_atoms",
    "guide_of_topology",
    "measure_again",
    "refresh_potentials",
    "right_child",
]

_NONE = -1
# Above this many roots the quadratic greedy join costs more than it gains.
_GREEDY_ROOTS: Final = 48


@held_by_reference
class Guide(NamedTuple):
    """Arrays over nodes in preorder, and over leaf positions from left to right.

    Nodes: ``parent`` (-1 at the root), ``n_nodes``, ``first``, ``n_leaves``, ``size``
    (observations), ``rows``, ``log_marginal``, ``log_potential``, ``log_dissimilarity``. Leaves:
    ``atom`` and ``node`` of each position; ``position`` of each atom.
    """

    parent: NDArray[np.int64]
    n_nodes: NDArray[np.int64]
    first: NDArray[np.int64]
    n_leaves: NDArray[np.int64]
    size: NDArray[np.int64]
    rows: Rows
    log_marginal: NDArray[np.float64]
    log_potential: NDArray[np.float64]
    log_dissimilarity: NDArray[np.float64]
    atom: NDArray[np.int64]
    node: NDArray[np.int64]
    position: NDArray[np.int64]


@held_by_reference
class Topology(NamedTuple):
    """A forest's trees joined into one, without what is in them.

    ``top`` is the topmost node and the number of leaves; ``left``, ``right`` and ``atom`` of each
    node are as in the forest; ``rows`` are empty, for the guide's statistics.
    """

    top: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    atom: NDArray[np.int64]
    rows: Rows


@inner
def right_child(guide: Guide, v: int) -> int:
    """Right child of an inner node; its left child is v + 1."""
    return v + 1 + guide.n_nodes[v + 1]


@compiled
def _raise_top(model: Model, forest: Forest, sides: Rows) -> int:
    """Join all roots under temporary nodes; returns the topmost node.

    ``sides`` are two scratch rows.
    """
    model, forest = by_reference(model), by_reference(forest)
    n = forest.n_roots[0]
    if n == 1:
        return forest.roots[0]
    # By id: places in the list change whenever another tree leaves it.
    key = np.empty(n)
    for at in range(n):
        key[at] = forest.roots[at]
    items = in_order(forest.roots[:n], key)
    inner = np.empty(n - 1, dtype=np.int64)
    for at in range(n - 1):
        inner[at] = new_node(forest)
    if n <= _GREEDY_ROOTS:
        join_greedily(model, forest, items, inner)
    else:
        grow_tree(model, forest, items, inner, sides)
    top = inner[0]
    return top


@compiled
def _lower_top(forest: Forest, n_free: int, n_used: int) -> None:
    """Take the temporary nodes away again, so that ids are handed out as if they had never been."""
    forest = by_reference(forest)
    for at in range(forest.n_roots[0]):
        v = forest.parent[forest.roots[at]]
        forest.parent[forest.roots[at]] = _NONE
        while v != _NONE and forest.atom[v] != -2:
            forest.atom[v] = -2
            v = forest.parent[v]
    # Below its length the list of free ids still is what it was.
    forest.n_free[0] = n_free
    forest.n_used[0] = n_used


@compiled
def _number(topology: Topology, guide: Guide, source: NDArray[np.int64]) -> None:
    """Number the tree in preorder; ``source`` gets the node of the forest that each one is."""
    topology, guide = by_reference(topology), by_reference(guide)
    left, right, atom = topology.left, topology.right, topology.atom
    pending = np.empty(guide.atom.shape[0], dtype=np.int64)
    above = np.empty(guide.atom.shape[0], dtype=np.int64)
    # A stack in place of recursion; the left child lies on top, so it gets the next number, v + 1.
    pending[0], above[0] = topology.top[0], _NONE
    n_pending, v, leaf = 1, 0, 0
    while n_pending > 0:
        n_pending -= 1
        node = pending[n_pending]
        source[v] = node
        guide.parent[v] = above[n_pending]
        guide.first[v] = leaf
        if left[node] == _NONE:
            guide.atom[leaf] = atom[node]
            guide.node[leaf] = v
            guide.position[atom[node]] = leaf
            leaf += 1
        else:
            # At most one entry a level and one more wait, never more than there are leaves.
            pending[n_pending] = right[node]
            above[n_pending] = v
            pending[n_pending + 1] = left[node]
            above[n_pending + 1] = v
            n_pending += 2
        v += 1
    # Children have higher numbers than their parents.
    for v in range(guide.parent.shape[0] - 1, -1, -1):
        guide.n_leaves[v] = 1 if left[source[v]] == _NONE else _n_leaves_below(guide, v)
        guide.n_nodes[v] = 2 * guide.n_leaves[v] - 1


@inner
def _n_leaves_below(guide: Guide, v: int) -> int:
    return guide.n_leaves[v + 1] + guide.n_leaves[right_child(guide, v)]


@compiled
def _copy_nodes(model: Model, forest: Forest, source: NDArray[np.int64], guide: Guide) -> None:
    """What the forest has of its nodes, their log marginals brought in order."""
    model, forest, guide = by_reference(model), by_reference(forest), by_reference(guide)
    for v in range(source.shape[0]):
        measure(model, forest, source[v])
        guide.log_marginal[v] = forest.log_marginal[source[v]]
        guide.size[v] = forest.size[source[v]]
        copy_row(guide.rows, v, forest.rows, source[v])


@compiled
def _sum_up(guide: Guide, atoms: Atoms) -> None:
    """What nodes have as sums of their atoms', bit for bit as the forest has it."""
    guide, atoms = by_reference(guide), by_reference(atoms)
    for v in range(guide.parent.shape[0] - 1, -1, -1):
        if guide.n_leaves[v] == 1:
            atom = guide.atom[guide.first[v]]
            guide.size[v] = atoms.size[atom]
            copy_row(guide.rows, v, atoms.rows, atom)
        else:
            right = right_child(guide, v)
            guide.size[v] = guide.size[v + 1] + guide.size[right]
            sum_rows(guide.rows, v, v + 1, right)


@compiled
def refresh_potentials(model: Model, guide: Guide) -> None:
    """Recompute potentials and dissimilarities for the model's prior, without any likelihood."""
    model, guide = by_reference(model), by_reference(guide)
    for v in range(guide.parent.shape[0] - 1, -1, -1):
        together = log_hypothesis(model, guide.size[v], guide.log_marginal[v])
        if guide.n_leaves[v] == 1:
            guide.log_potential[v] = together
            guide.log_dissimilarity[v] = -np.inf
            continue
        apart = guide.log_potential[v + 1] + guide.log_potential[right_child(guide, v)]
        d = apart - together
        guide.log_dissimilarity[v] = d
        guide.log_potential[v] = together + max(d, 0.0) + log1p(exp(-abs(d)))


@compiled
def measure_again(model: Model, guide: Guide) -> None:
    """Recompute the log marginals of all nodes for the model's family; potentials are left."""
    model, guide = by_reference(model), by_reference(guide)
    for v in range(guide.parent.shape[0]):
        guide.log_marginal[v] = log_marginal(model.family, guide.rows, v, model.work)


def freeze(model: Model, forest: Forest) -> Guide:
    """Guide over all atoms of a forest with at least one tree.

    The forest is left as it was: log marginals that lagged behind are brought in order, which tells
    its further growth nothing.

    Raises ValueError for an empty forest.
    """
    with _joined(model, forest) as topology:
        guide, source = _numbered(topology, forest.leaf.shape[0])
        _copy_nodes(model, forest, source, guide)
    refresh_potentials(model, guide)
    return guide


def copy_topology(model: Model, forest: Forest) -> Topology:
    """A forest's topology, whatever becomes of the forest: the least that a guide is made from.

    Raises ValueError for an empty forest.
    """
    with _joined(model, forest) as topology:
        left, right, atom = topology.left, topology.right, topology.atom
        return topology._replace(left=left.copy(), right=right.copy(), atom=atom.copy())


def guide_of_topology(topology: Topology, atoms: Atoms) -> Guide:
    """The guide that :func:`freeze` made of the forest, before anything of it is measured.

    For :func:`measure_again` and :func:`refresh_potentials`. Leaves hold places among ``atoms``.
    The topology can be used once.
    """
    guide, _ = _numbered(topology, atoms.size.shape[0])
    _sum_up(guide, atoms)
    return guide


@contextmanager
def _joined(model: Model, forest: Forest) -> Iterator[Topology]:
    """The trees of a forest, for so long under temporary nodes, as they are in it."""
    n_roots = int(forest.n_roots[0])
    if n_roots == 0:
        raise ValueError("an empty forest has no guide")
    n_free, n_used = int(forest.n_free[0]), int(forest.n_used[0])
    top = _raise_top(model, forest, rows_like(forest.rows, 2, 1))
    used = slice(int(forest.n_used[0]))
    n_leaves = int(forest.n_leaves[top])
    yield Topology(
        top=np.array([top, n_leaves]),
        left=forest.left[used],
        right=forest.right[used],
        atom=forest.atom[used],
        rows=rows_like(forest.rows, 2 * n_leaves - 1, 1),
    )
    if n_roots > 1:
        _lower_top(forest, n_free, n_used)


def _numbered(topology: Topology, n_atoms: int) -> tuple[Guide, NDArray[np.int64]]:
    """A guide with its numbers of nodes and atoms, and the node of the forest that each one is."""
    n = int(topology.top[1])
    size = 2 * n - 1
    guide = Guide(
        parent=np.empty(size, dtype=np.int64),
        n_nodes=np.empty(size, dtype=np.int64),
        first=np.empty(size, dtype=np.int64),
        n_leaves=np.empty(size, dtype=np.int64),
        size=np.empty(size, dtype=np.int64),
        rows=topology.rows,
        log_marginal=np.empty(size),
        log_potential=np.empty(size),
        log_dissimilarity=np.empty(size),
        atom=np.empty(n, dtype=np.int64),
        node=np.empty(n, dtype=np.int64),
        position=np.full(n_atoms, _NONE, dtype=np.int64),
    )
    source = np.empty(size, dtype=np.int64)
    _number(topology, guide, source)
    return guide, source


@compiled
def _plant(model: Model, forest: Forest, atoms: Atoms, sides: Rows) -> None:
    model, forest, atoms = by_reference(model), by_reference(forest), by_reference(atoms)
    n = atoms.size.shape[0]
    leaves = np.empty(n, dtype=np.int64)
    inner = np.empty(n, dtype=np.int64)
    for i in range(n):
        leaves[i] = add_leaf(model, forest, i, atoms.rows, i, atoms.size[i])
    for i in range(n - 1):
        inner[i] = new_node(forest)
    top = leaves[0]
    if n > 1:
        grow_tree(model, forest, leaves, inner[: n - 1], sides)
        top = inner[0]
    forest.roots[0] = top
    forest.root_position[top] = 0
    forest.n_roots[0] = 1


def guide_of_atoms(family: Family, model: Model, atoms: Atoms) -> Guide:
    """Guide built from the top down over all atoms at once, without a forest's history."""
    forest = empty_forest(family, int(atoms.size.shape[0]), atoms.rows)
    _plant(model, forest, atoms, rows_like(forest.rows, 2, 1))
    return freeze(model, forest)
