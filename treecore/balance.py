"""Balanced trees: top-down division of a set of subtrees, and the rebuild of what got too deep.

Published insertion makes chains inside a homogeneous cluster (``tgmcmc-ibhc.md`` section 4.4).
Predictive descent avoids most of that; the scapegoat rule does the rest: a subtree whose height
exceeds ``3 log2`` of its leaves is built anew from the top down, each time dividing its leaves in
two by a few rounds of likelihood-based two-means, with at least a quarter on each side.
"""

from math import log2

import numpy as np
from numpy.typing import NDArray

from .compile import allocating, inner
from .family.base import (
    fill_predictive,
    log_marginal,
    log_marginal_sum,
    log_predictive,
    predictive_width,
)
from .forest import Forest, refresh_ancestors, refresh_node
from .partition import Model
from .rows import Rows, add_row, clear_row, is_single

__all__ = ["grow_tree", "height_limit", "rebalance_path"]

_NONE = -1
_ROUNDS = 3
_SMALLEST_SHARE = 4


@inner
def height_limit(n_leaves: int) -> float:
    """Greatest height allowed to a tree of so many leaves."""
    return 3.0 * log2(float(n_leaves))


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
    tables = np.zeros((2, predictive_width(model.family)))
    base = np.zeros(2)
    score = np.empty(n)
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
        if n_first == 0 or n_first == n:  # noqa: PLR1714 - a tuple would have to be compiled
            break
        clear_row(sides, 0)
        clear_row(sides, 1)
        for at in range(n):
            add_row(sides, 0 if score[at] > 0.0 else 1, forest.rows, items[at])
    fewest = max(1, n // _SMALLEST_SHARE)
    n_first = min(max(n_first, fewest), n - fewest)
    # A stable order makes the result a function of the data and the order of the items alone.
    items[:] = items[np.argsort(-score, kind="mergesort")]
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
    for at in range(n - 2, -1, -1):
        refresh_node(model, forest, inner[at])


@allocating
def _rebuild(model: Model, forest: Forest, v: int) -> None:
    """Build the subtree of v anew over the same leaves; v stays its root."""
    n = forest.n_leaves[v]
    leaves = np.empty(n, dtype=np.int64)
    inner = np.empty(n, dtype=np.int64)
    n_leaves, n_inner, n_waiting = 0, 0, 1
    pending = np.empty(n, dtype=np.int64)
    pending[0] = v
    while n_waiting > 0:
        n_waiting -= 1
        node = pending[n_waiting]
        inner[n_inner] = node
        n_inner += 1
        for part in range(2):
            child = forest.right[node] if part == 0 else forest.left[node]
            if forest.left[child] == _NONE:
                leaves[n_leaves] = child
                n_leaves += 1
            else:
                pending[n_waiting] = child
                n_waiting += 1
    sides = np.zeros((2, forest.rows.shape[1]))
    grow_tree(model, forest, leaves, inner[:n_inner], sides)


@allocating
def rebalance_path(model: Model, forest: Forest, v: int) -> int:
    """Rebuild whatever is too deep among v and its ancestors.

    Returns the lowest node of that path which is still where it was: v, or the root of the largest
    rebuilt subtree.
    """
    lowest = v
    while v != _NONE:
        if forest.height[v] > height_limit(forest.n_leaves[v]):
            _rebuild(model, forest, v)
            refresh_ancestors(model, forest, v)
            lowest = v
        v = forest.parent[v]
    return lowest
