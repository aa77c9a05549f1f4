"""Balanced trees: rotations on the path of an insertion, and division of a set from the top down.

Published insertion makes chains inside a homogeneous cluster (``tgmcmc-ibhc.md`` section 4.4).
Predictive descent avoids most of that; rotations do the rest: where one child holds more than three
times the leaves of its sibling, the sibling changes places with a grandchild, chosen by the data
where the balance leaves a choice. No tree is then higher than ``log2(n) / log2(4 / 3)``, which is
2.41 log2 of its leaves, and an insertion costs what the height costs; rebuilding what got too deep
(the scapegoat rule) costs ten times as much on large homogeneous clusters.

A tree over given leaves is built from the top down by a few rounds of likelihood-based two-means,
with at least a quarter on each side.
"""

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import allocating, inner
from weald.treecore.family.interface.base import (
    fill_predictive,
    log_marginal,
    log_marginal_sum,
    log_predictive,
    make_predictive,
    nearer_centre,
)
from weald.treecore.partition.partition import Model
from weald.treecore.statistics.ordering import in_order
from weald.treecore.statistics.rows import Rows, add_row, clear_row, is_single

from .deferral import defer_node, is_whole, take_in_whole
from .forest import Forest, log_dissimilarity, measure, refresh_extended, refresh_node

__all__ = ["grow_tree", "restore_node", "restore_path"]

_NONE = -1
_ROUNDS = 3
_SMALLEST_SHARE = 4
_LARGEST_RATIO = 3


@inner
def _score(
    model: Model, forest: Forest, x: int, sides: Rows, tables: Rows, base: NDArray[np.float64]
) -> float:
    """How much better side 0 predicts the tree x than side 1, in nats."""
    rows = forest.rows
    if is_single(rows, x):
        better = log_predictive(model.family, tables, 0, rows, x)
        return better - log_predictive(model.family, tables, 1, rows, x)
    better = log_marginal_sum(model.family, sides, 0, rows, x, model.work) - base[0]
    return better - (log_marginal_sum(model.family, sides, 1, rows, x, model.work) - base[1])


@inner
def _set_sides(model: Model, sides: Rows, tables: Rows, base: NDArray[np.float64]) -> None:
    for side in range(2):
        fill_predictive(model.family, sides, side, tables, side, model.work)
        base[side] = log_marginal(model.family, sides, side, model.work)


@inner
def _worst_predicted(model: Model, forest: Forest, items: NDArray[np.int64], by: int) -> int:
    """The item that the tree ``by`` predicts worst, its own log marginal apart."""
    worst = items[0]
    lowest = np.inf
    for at in range(items.shape[0]):
        x = items[at]
        value = log_marginal_sum(model.family, forest.rows, by, forest.rows, x, model.work)
        measure(model, forest, x)
        value -= forest.log_marginal[x]
        if value < lowest and x != by:
            worst, lowest = x, value
    return worst


@allocating
def _divide(model: Model, forest: Forest, items: NDArray[np.int64], sides: Rows) -> int:
    """Reorder at least two items so that the first part belongs together; returns its length."""
    n = items.shape[0]
    if n == 2:
        return 1
    tables = make_predictive(model.family, 2, sides)
    base = np.zeros(2)
    score = np.empty(n)
    # Two-means, with predictive densities for distances. It begins far apart: with what an
    # arbitrary item predicts worst, and what that one does.
    first = _worst_predicted(model, forest, items, items[0])
    second = _worst_predicted(model, forest, items, first)
    for side in range(2):
        clear_row(sides, side)
        add_row(sides, side, forest.rows, first if side == 0 else second)
    n_first = 0
    for _ in range(_ROUNDS):
        _set_sides(model, sides, tables, base)
        n_first = 0
        for at in range(n):
            score[at] = _score(model, forest, items[at], sides, tables, base)
            n_first += score[at] > 0.0
        # All on one side: there is nothing to part, and the scores of now have to do.
        if n_first == 0 or n_first == n:  # noqa: PLR1714 - a tuple would have to be compiled
            break
        clear_row(sides, 0)
        clear_row(sides, 1)
        for at in range(n):
            add_row(sides, 0 if score[at] > 0.0 else 1, forest.rows, items[at])
    # A quarter on each side keeps the tree shallow; who changes sides for it is the least decided.
    fewest = max(1, n // _SMALLEST_SHARE)
    n_first = min(max(n_first, fewest), n - fewest)
    # A stable order makes the result a function of the data and the order of the items alone.
    for at in range(n):
        score[at] = -score[at]
    ordered = in_order(items, score)
    for at in range(n):
        items[at] = ordered[at]
    return n_first


@allocating
def grow_tree(
    model: Model, forest: Forest, items: NDArray[np.int64], inner: NDArray[np.int64], sides: Rows
) -> None:
    """Build a balanced tree over ``items`` (node ids, at least two; reordered) from the top down.

    ``inner`` holds len(items) - 1 node ids for its inner nodes, the first of which becomes its root
    and keeps its parent link; ``sides`` are two scratch rows.
    """
    n = items.shape[0]
    start = np.empty(n, dtype=np.int64)
    stop = np.empty(n, dtype=np.int64)
    start[0], stop[0] = 0, n
    n_made = 1
    for at in range(n - 1):
        v = inner[at]
        a, b = start[at], stop[at]
        # Items are reordered in place: each side is a stretch of them, so that two bounds stand for
        # it.
        middle = a + _divide(model, forest, items[a:b], sides)
        for part in range(2):
            low = a if part == 0 else middle
            high = middle if part == 0 else b
            if high - low == 1:
                child = items[low]
            else:
                child = inner[n_made]
                start[n_made], stop[n_made] = low, high
                n_made += 1
            forest.parent[child] = v
            if part == 0:
                forest.left[v] = child
            else:
                forest.right[v] = child
    # Children have higher places than their parents: backwards, sums are there when they are asked.
    for at in range(n - 2, -1, -1):
        refresh_node(model, forest, inner[at])


@inner
def _heavy_child(forest: Forest, v: int) -> int:
    """The child that holds more than three times its sibling's leaves, -1 where neither does."""
    a, b = forest.left[v], forest.right[v]
    if forest.n_leaves[a] > _LARGEST_RATIO * forest.n_leaves[b]:
        return a
    return b if forest.n_leaves[b] > _LARGEST_RATIO * forest.n_leaves[a] else _NONE


@inner
def _rotate(
    model: Model,
    forest: Forest,
    v: int,
    heavy: int,
    whole: bool,  # noqa: FBT001 - compiled code calls by position
) -> None:
    """From (heavy = (near, far), light) to (far, heavy = (near, light)).

    Light goes to the grandchild that it is better together with (in a whole tree: whose centre is
    nearer), unless that would leave v out of balance again. Numbers of leaves are set; the rest of
    ``heavy`` and v is left to refresh.
    """
    light = forest.right[v] if forest.left[v] == heavy else forest.left[v]
    near, far = forest.left[heavy], forest.right[heavy]
    n_leaves = forest.n_leaves
    if n_leaves[near] > n_leaves[far]:
        near, far = far, near
    # The smaller grandchild is always allowed.
    if n_leaves[far] + n_leaves[light] <= _LARGEST_RATIO * n_leaves[near]:
        if whole:
            exchange = not nearer_centre(model.family, forest.rows, near, far, light)
        else:
            apart = log_dissimilarity(model, forest, near, light)
            exchange = log_dissimilarity(model, forest, far, light) < apart
        if exchange:
            near, far = far, near
    forest.left[heavy], forest.right[heavy] = near, light
    forest.left[v], forest.right[v] = far, heavy
    forest.parent[light] = heavy
    forest.parent[far] = v
    n_leaves[heavy] = n_leaves[near] + n_leaves[light]


@inner
def _rebalance(
    model: Model,
    forest: Forest,
    v: int,
    whole: bool,  # noqa: FBT001 - compiled code calls by position
) -> None:
    """Balance an inner node and recompute what changes below it, not the node itself.

    In a whole tree nodes that change get their sums only.
    """
    lowest = v
    heavy = _heavy_child(forest, v)
    while heavy != _NONE:
        _rotate(model, forest, lowest, heavy, whole)
        lowest = heavy
        heavy = _heavy_child(forest, lowest)
    while lowest != v:
        if whole:
            defer_node(forest, lowest)
        else:
            refresh_node(model, forest, lowest)
        lowest = forest.parent[lowest]


@inner
def restore_node(model: Model, forest: Forest, v: int) -> None:
    """Balance and recompute an inner node; what is below it must be in order."""
    _rebalance(model, forest, v, False)  # noqa: FBT003 - as above
    refresh_node(model, forest, v)


@inner
def restore_path(model: Model, forest: Forest, v: int, before: int, x: int, top: int) -> int:
    """Balance and recompute v and all its ancestors; what is below v must be in order.

    With x not -1, v is the node of ``before`` and of the single observation x that has just been
    put beside it: the tables of ``before`` and of the ancestors only take in x; up to ``top`` (-1:
    nowhere) it is deferred where nodes are whole.
    Returns the topmost of them that is better apart and was not before, -1 where there is none.
    """
    topmost = _NONE
    deferring = top != _NONE
    while v != _NONE:
        stood = forest.log_dissimilarity[v] > 0.0
        new = v != before
        whole = deferring and (forest.left[before] == _NONE if new else is_whole(forest, v))
        _rebalance(model, forest, v, whole)
        if whole and new:
            defer_node(forest, v)
        elif whole:
            take_in_whole(model, forest, v, x, top)
        elif x == _NONE:
            refresh_node(model, forest, v)
        else:
            refresh_extended(model, forest, v, before, x)
        if forest.log_dissimilarity[v] > 0.0 and not stood:
            topmost = v
        if v == top:
            deferring = False
        v = before = forest.parent[v]
    return topmost
