"""What must hold of forests, guides and partitions, checked from their arrays alone.

Every check recomputes from scratch what a structure keeps up to date, and returns a bit mask of
what does not agree: 0 when all is well. Plain Python in time linear in the structure: for tests and
for a service that doubts itself, never for a hot path.
"""

from enum import IntFlag, auto
from math import log2
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.family.interface.base import fill_predictive, log_marginal
from weald.treecore.forest.forest import UNMEASURED, Forest
from weald.treecore.forest.node_layout import LANES
from weald.treecore.forest.routing import outline_root
from weald.treecore.guide.guide import Guide
from weald.treecore.partition.partition import Atoms, Model, Partition
from weald.treecore.prior.base import log_size

__all__ = ["Broken", "describe", "forest_faults", "guide_faults", "partition_faults"]

Row = NDArray[np.float64]
Children = dict[int, tuple[int, int]]

_NONE = -1
_STATISTICS_TOLERANCE = 1e-8
_POTENTIAL_TOLERANCE = 1e-9


class Broken(IntFlag):
    """One bit for each invariant; :func:`describe` says them in words."""

    LINKS = auto()
    ROOTS = auto()
    FREE_NODES = auto()
    ATOMS = auto()
    SIZES = auto()
    HEIGHTS = auto()
    BALANCE = auto()
    STATISTICS = auto()
    LOG_MARGINALS = auto()
    POTENTIALS = auto()
    PREDICTIVES = auto()
    STALE = auto()
    OUTLINES = auto()
    PREORDER = auto()
    SLOTS = auto()
    LISTS = auto()
    PURITY = auto()
    PIECES = auto()


_WORDS = {
    Broken.LINKS: "a child does not name its parent, or a node hangs in no tree or in two",
    Broken.ROOTS: "the list of roots differs from the nodes without a parent",
    Broken.FREE_NODES: "the list of free nodes differs from the nodes in no tree",
    Broken.ATOMS: "the maps from atoms to leaves and back are not each other's inverse",
    Broken.SIZES: "a number of leaves, members or observations is not the sum that it should be",
    Broken.HEIGHTS: "a height is not one more than the greater of the children's",
    Broken.BALANCE: "a tree is higher than three times the logarithm of its leaves",
    Broken.STATISTICS: "a statistics row is not the sum of its atoms' rows",
    Broken.LOG_MARGINALS: "a log marginal is not that of the statistics",
    Broken.POTENTIALS: "a log potential or dissimilarity does not follow from those below it",
    Broken.PREDICTIVES: "a predictive table that counts as valid is not that of the statistics",
    Broken.STALE: "a number counts as in order although one that it follows from does not",
    Broken.OUTLINES: "a root's outline that counts as valid is not that of its predictive table",
    Broken.PREORDER: "nodes are not numbered in preorder",
    Broken.SLOTS: "open slots differ from the labels in use, or a closed slot is not clean",
    Broken.LISTS: "the linked list of a block does not hold its members",
    Broken.PURITY: "a node's block is not the one that all its atoms are in",
    Broken.PIECES: "the listed nodes are not the largest within one block",
}


def describe(broken: int) -> list[str]:
    """A sentence for each invariant that a mask says is broken."""
    return [words for flag, words in _WORDS.items() if broken & flag]


class _Below(NamedTuple):
    """What follows from a tree's leaves, by node id; only nodes in a tree have an entry."""

    n_leaves: dict[int, int]
    height: dict[int, int]
    size: dict[int, int]
    row: dict[int, Row]
    scale: dict[int, Row]


def _sum_up(tree: Forest | Guide, order: list[int], children: Children) -> _Below:
    """Everything additive from the leaves up; ``order`` has children before parents."""
    below = _Below({}, {}, {}, {}, {})
    for v in order:
        if v not in children:
            below.n_leaves[v], below.height[v] = 1, 0
            below.size[v] = int(tree.size[v])
            below.row[v], below.scale[v] = tree.rows[v], np.abs(tree.rows[v])
            continue
        a, b = children[v]
        below.height[v] = 1 + max(below.height[a], below.height[b])
        below.n_leaves[v] = below.n_leaves[a] + below.n_leaves[b]
        below.size[v] = below.size[a] + below.size[b]
        below.row[v] = below.row[a] + below.row[b]
        below.scale[v] = below.scale[a] + below.scale[b]
    return below


def _sum_faults(tree: Forest | Guide, order: list[int], below: _Below) -> Broken:
    """Sizes and statistics of every node of a tree."""
    broken = Broken(0)
    if not order:
        return broken
    if any((tree.n_leaves[v], tree.size[v]) != (below.n_leaves[v], below.size[v]) for v in order):
        broken |= Broken.SIZES
    rows, scale = (np.array([each[v] for v in order]) for each in (below.row, below.scale))
    if not _close_rows(tree.rows[order], rows, scale):
        broken |= Broken.STATISTICS
    return broken


def _statistics_faults(
    model: Model, tree: Forest | Guide, order: list[int], children: Children, below: _Below
) -> Broken:
    """Sizes, statistics, log marginals and potentials of every node of a tree."""
    broken = _sum_faults(tree, order, below)
    potential: dict[int, float] = {}
    stale = (tree.stale if isinstance(tree, Forest) else np.zeros_like(tree.size)).tolist()
    for v in order:
        lagging = v in children and any(stale[child] for child in children[v])
        if (lagging and not stale[v]) or (stale[v] and v not in children):
            broken |= Broken.STALE
        if stale[v] == UNMEASURED:
            potential[v] = float(tree.log_potential[v])
            continue
        fresh = log_marginal(model.family, below.row[v][None, :], 0, model.work)
        if not _close(tree.log_marginal[v], fresh, _STATISTICS_TOLERANCE):
            broken |= Broken.LOG_MARGINALS
        # From the stored marginals, so that each invariant is blamed for its own faults only.
        together = model.seating.slope + log_size(model.seating, below.size[v])
        together += float(tree.log_marginal[v])
        d = -np.inf
        if stale[v]:
            d = float(tree.log_dissimilarity[v])
        elif v in children:
            a, b = children[v]
            d = potential[a] + potential[b] - together
        potential[v] = together + float(np.logaddexp(0.0, d))
        if not (
            _close(tree.log_dissimilarity[v], d, _POTENTIAL_TOLERANCE)
            and _close(tree.log_potential[v], potential[v], _POTENTIAL_TOLERANCE)
        ):
            broken |= Broken.POTENTIALS
    return broken


def _close(found: float, expected: float, tolerance: float) -> bool:
    return bool(found == expected or abs(found - expected) <= tolerance * max(1.0, abs(expected)))


def _close_rows(found: Row, expected: Row, scale: Row) -> bool:
    # Sums of values of both signs are small beside their terms, which set the rounding error.
    return bool((np.abs(found - expected) <= _STATISTICS_TOLERANCE * np.maximum(1.0, scale)).all())


def _close_tables(found: Row, expected: Row) -> bool:
    tolerance = _POTENTIAL_TOLERANCE
    return bool(np.allclose(found, expected, rtol=tolerance, atol=tolerance))


def _children(forest: Forest) -> tuple[Children, list[int], bool]:
    """Children of inner nodes, all nodes with children first, and whether links agree."""
    children: Children = {}
    order = forest.roots[: int(forest.n_roots[0])].tolist()
    seen = set(order)
    sound = len(seen) == len(order)
    for v in order:
        pair = int(forest.left[v]), int(forest.right[v])
        if pair == (_NONE, _NONE):
            continue
        if min(pair) < 0 or pair[0] == pair[1] or seen & set(pair):
            return children, order, False
        sound &= all(forest.parent[child] == v for child in pair)
        children[v] = pair
        seen.update(pair)
        # The loop goes on over what is appended here.
        order.extend(pair)
    return children, order[::-1], sound


def forest_faults(model: Model, forest: Forest) -> Broken:
    """Check a forest whose potentials were computed with ``model``."""
    children, order, sound = _children(forest)
    if not sound:
        return Broken.LINKS
    broken = _membership_faults(forest, order, children)
    below = _sum_up(forest, order, children)
    broken |= _statistics_faults(model, forest, order, children, below)
    for v in order:
        if forest.height[v] != below.height[v]:
            broken |= Broken.HEIGHTS
        if below.height[v] > 3.0 * log2(below.n_leaves[v]):
            broken |= Broken.BALANCE
    tabled = [v for v in order if forest.table_age[v]]
    measured = [v for v in tabled if forest.stale[v] != UNMEASURED]
    if len(measured) < len(tabled):
        broken |= Broken.STALE
    if not _are_predictive(model, forest.rows, measured, forest.predictive[measured]):
        broken |= Broken.PREDICTIVES
    return broken | _outline_faults(model, forest)


def _outline_faults(model: Model, forest: Forest) -> Broken:
    made = forest._replace(outlines=forest.outlines.copy(), outlined=forest.outlined.copy())
    n = min(int(forest.n_roots[0]), made.outlined.shape[0])
    for at in np.flatnonzero(forest.outlined[:n] == forest.roots[:n]).tolist():
        v = forest.roots[at]
        if not forest.table_age[v] or forest.stale[v] == UNMEASURED:
            return Broken.OUTLINES
        outline_root(model, made, at)
        place = at // LANES, slice(None), at % LANES
        if not _close_tables(made.outlines[place], forest.outlines[place]):
            return Broken.OUTLINES
    return Broken(0)


def _membership_faults(forest: Forest, order: list[int], children: Children) -> Broken:
    broken = Broken(0)
    n_used, n_roots = int(forest.n_used[0]), int(forest.n_roots[0])
    roots = forest.roots[:n_roots]
    if (forest.root_position[roots] != np.arange(n_roots)).any():
        broken |= Broken.ROOTS
    if (forest.parent[roots] != _NONE).any():
        broken |= Broken.ROOTS
    free = forest.free[: int(forest.n_free[0])].tolist()
    if sorted(free + order) != list(range(n_used)):
        broken |= Broken.FREE_NODES
    if (forest.atom[free] != -2).any():
        broken |= Broken.FREE_NODES
    leaves = [v for v in order if v not in children]
    mapped = np.flatnonzero(forest.leaf != _NONE)
    atoms = forest.atom[leaves]
    if sorted(atoms.tolist()) != mapped.tolist() or (forest.leaf[atoms] != leaves).any():
        broken |= Broken.ATOMS
    if any(forest.atom[v] != _NONE for v in children):
        broken |= Broken.ATOMS
    return broken


def _are_predictive(model: Model, rows: Any, places: list[int], tables: Row) -> bool:
    fresh = np.zeros(tables.shape)
    for at, i in enumerate(places):
        fill_predictive(model.family, rows, i, fresh, at, model.work)
    return _close_tables(fresh, tables)


def guide_faults(model: Model, guide: Guide) -> Broken:
    """Check a guide whose potentials were computed with ``model``."""
    n_nodes = guide.parent.shape[0]
    found: dict[int, list[int]] = {}
    leaf = 0
    broken = Broken(0)
    # In preorder the next node is the left child, or the right child of the nearest open ancestor.
    waiting = [_NONE]
    for v in range(n_nodes):
        above = int(guide.parent[v])
        if not waiting or above != waiting.pop() or guide.first[v] != leaf:
            return Broken.PREORDER
        found.setdefault(above, []).append(v)
        if guide.n_nodes[v] > 1:
            waiting += [v, v]
            continue
        if leaf == guide.node.shape[0]:
            return Broken.PREORDER
        if guide.node[leaf] != v:
            broken |= Broken.ATOMS
        leaf += 1
    if waiting or leaf != guide.node.shape[0]:
        return Broken.PREORDER
    children = {v: (pair[0], pair[1]) for v, pair in found.items() if v != _NONE}
    if (guide.position[guide.atom] != np.arange(leaf)).any():
        broken |= Broken.ATOMS
    if (np.delete(guide.position, guide.atom) != _NONE).any():
        broken |= Broken.ATOMS
    order = list(range(n_nodes - 1, -1, -1))
    below = _sum_up(guide, order, children)
    if any(guide.n_nodes[v] != 2 * below.n_leaves[v] - 1 for v in order):
        broken |= Broken.PREORDER
    return broken | _statistics_faults(model, guide, order, children, below)


def partition_faults(model: Model, atoms: Atoms, partition: Partition) -> Broken:
    """Check a partition against its labels; atoms in no block have label -1."""
    n_blocks = int(partition.n_blocks[0])
    n_slots = partition.slots.shape[0]
    if sorted(partition.slots.tolist()) != list(range(n_slots)):
        return Broken.SLOTS
    broken = Broken(0)
    if (partition.position[partition.slots] != np.arange(n_slots)).any():
        broken |= Broken.SLOTS
    if partition.rows[partition.slots[n_blocks:]].any():
        broken |= Broken.SLOTS
    if set(partition.slots[:n_blocks].tolist()) != set(partition.label.tolist()) - {_NONE}:
        broken |= Broken.SLOTS
    for k in partition.slots[:n_blocks].tolist():
        broken |= _block_faults(model, atoms, partition, k)
    return broken


def _block_faults(model: Model, atoms: Atoms, partition: Partition, k: int) -> Broken:
    broken = Broken(0)
    members = np.flatnonzero(partition.label == k)
    if _listed(partition, k) != set(members.tolist()):
        broken |= Broken.LISTS
    size = int(atoms.size[members].sum())
    if (partition.n_members[k], partition.size[k]) != (members.shape[0], size):
        broken |= Broken.SIZES
    row = atoms.rows[members].sum(axis=0)
    if not _close_rows(partition.rows[k], row, np.abs(atoms.rows[members]).sum(axis=0)):
        broken |= Broken.STATISTICS
    fresh = log_marginal(model.family, row[None, :], 0, model.work)
    if not (partition.stale[k] & 1) and not _close(
        float(partition.log_marginal[k]), fresh, _STATISTICS_TOLERANCE
    ):
        broken |= Broken.LOG_MARGINALS
    if not (partition.stale[k] & 2) and not _are_predictive(
        model, partition.rows, [k], partition.predictive[[k]]
    ):
        broken |= Broken.PREDICTIVES
    return broken


def _listed(partition: Partition, k: int) -> set[int]:
    """Members in the list of block k as far as its links agree."""
    found: set[int] = set()
    i, before = int(partition.head[k]), _NONE
    while i != _NONE and i not in found and partition.preceding[i] == before:
        found.add(i)
        i, before = int(partition.following[i]), i
    return found if i == _NONE else set()
