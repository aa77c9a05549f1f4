"""Routing: the tree that an arrival belongs to, without weighing it against each.

A root's *outline* is what tells roughly, and never too little, how well the tree predicts an
arrival: a few numbers, which lie side by side for all roots, so that one pass of vector
instructions bounds every log dissimilarity from below. Only roots whose bound reaches what was
found so far are then weighed, exactly and beginning with the most promising: the outcome is that
of weighing them all. An outline is made again when its root was changed.
"""

import numpy as np

from weald.treecore.compiled.compile import inner
from weald.treecore.family.interface.base import (
    extends_cheaply,
    log_predictive_above,
    outline,
    outline_bounds,
)
from weald.treecore.partition.partition import Model
from weald.treecore.statistics.rows import is_single

from .forest import Forest, fill_table, log_dissimilarity, log_hypothesis
from .node_layout import LANES

__all__ = ["nearest_root", "outline_root"]

_NONE = -1
# Sums are compared that were added in another order: this share of their terms is allowed for it.
_SLACK = 1e-9


@inner
def _dissimilarity_of_single(model: Model, forest: Forest, a: int, x: int, most: float) -> float:
    """The log dissimilarity of a tree and a leaf of one observation, by the predictives.

    Infinity where it exceeds ``most``, which is found out at a fraction of the cost.
    """
    fill_table(model, forest, a)
    apart = forest.log_potential[a] + forest.log_potential[x]
    size = forest.size[a] + forest.size[x]
    apart -= log_hypothesis(model, size, forest.log_marginal[a])
    table, rows = forest.predictive, forest.rows
    return apart - log_predictive_above(model.family, table, a, rows, x, apart - most)


@inner
def outline_root(model: Model, forest: Forest, at: int) -> None:
    """Make the outline of the root at this place of the list."""
    v = forest.roots[at]
    fill_table(model, forest, v)
    group, lane = at // LANES, at % LANES
    outline(model.family, forest.predictive, v, forest.outlines, group, lane)
    # With it the bound is on log potential of the arrival minus log dissimilarity.
    potential, size = forest.log_potential[v], forest.size[v]
    constant = log_hypothesis(model, size + 1, forest.log_marginal[v]) - potential
    constant += _SLACK * (1.0 + abs(potential) + size)
    forest.outlines[group, 0, lane] += constant
    forest.outlined[at] = v


@inner
def _bound_gains(model: Model, forest: Forest, x: int, n: int) -> int:
    """Write a bound for each of the first n roots into ``gains``; returns the place of the best."""
    for at in range(n):
        if forest.outlined[at] != forest.roots[at]:
            outline_root(model, forest, at)
    for first in range(0, n, LANES):
        stop = min(n, first + LANES)
        outline_bounds(
            model.family,
            forest.outlines,
            first // LANES,
            stop - first,
            forest.rows,
            x,
            model.work,
            forest.gains[first:stop],
        )
    best, most = 0, -np.inf
    for at in range(n):
        if forest.gains[at] > most:
            best, most = at, forest.gains[at]
    return best


@inner
def _nearest_to_single(model: Model, forest: Forest, x: int) -> int:
    n = forest.n_roots[0]
    outlined = min(n, forest.outlined.shape[0]) if extends_cheaply(model.family) else 0
    likely = _bound_gains(model, forest, x, outlined) if outlined > 0 else _NONE
    best, smallest = _NONE, 0.0
    # The likely one first; of roots that are equally near the first in the list is taken.
    for turn in range(0 if likely == _NONE else -1, n):
        at = likely if turn < 0 else turn
        if 0 <= turn < outlined and (
            turn == likely or forest.gains[at] < forest.log_potential[x] - smallest
        ):
            continue
        d = _dissimilarity_of_single(model, forest, forest.roots[at], x, smallest)
        if d < smallest or (d == smallest and (best == _NONE or at < best)):
            best, smallest = at, d
    return _NONE if best == _NONE else forest.roots[best]


@inner
def nearest_root(model: Model, forest: Forest, x: int) -> int:
    """The root with the smallest log dissimilarity to the tree x, -1 where all exceed zero."""
    if is_single(forest.rows, x):
        return _nearest_to_single(model, forest, x)
    best, smallest = _NONE, 0.0
    for at in range(forest.n_roots[0]):
        root = forest.roots[at]
        d = log_dissimilarity(model, forest, root, x)
        if d < smallest or (d == smallest and best == _NONE):
            best, smallest = root, d
    return best
