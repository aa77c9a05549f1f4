"""Deferral: inside clusters that are whole by far, insertion measures little.

Where a subtree is one cluster beyond doubt, its log dissimilarity tells nothing that an arrival
could change. There an observation goes down to the child whose centre is nearer, and on the way
back up nodes only renew their sums. Their log marginals are computed when somebody asks for
them (:func:`~weald.treecore.forest.forest.measure`), their log dissimilarities when they have grown
by half since the last time; small nodes have none until they are no longer small. So a cluster that
hides in another is found as it grows, some observations later than if every node were weighed. The
uppermost levels of a tree, where that would cost clusters, are never deferred.

When a node is weighed depends on the arrivals alone, not on who asked for what: the forest stays a
function of the data and their order.
"""

import numpy as np

from weald.treecore.compiled.compile import inner
from weald.treecore.partition.partition import Model

from .forest import (
    UNMEASURED,
    UNWEIGHED,
    Forest,
    extend_marginal,
    refresh_extended,
    refresh_node,
    refresh_sums,
    set_potential,
)

__all__ = ["begins_deferral", "defer_node", "is_whole", "take_in_whole"]

# Levels of each tree, from the root, that always see the whole arrival.
_UPPERMOST = 2
# Nodes of fewer leaves are weighed where nothing is deferred only.
_SMALL = 16
# Whole by far: the log dissimilarity of odds of twenty thousand to one.
_WHOLE = -10.0
# Weighed again after growing by one in so many.
_SHARE = 2


@inner
def begins_deferral(forest: Forest, v: int, depth: int) -> bool:
    """Whether an observation that has come down to v, so far below the root, may be deferred."""
    return depth >= _UPPERMOST and forest.n_leaves[v] >= _SMALL and is_whole(forest, v)


@inner
def is_whole(forest: Forest, v: int) -> bool:
    """Whether v, at or below a node where deferral began, is one cluster by far."""
    return forest.n_leaves[v] < _SMALL or forest.log_dissimilarity[v] < _WHOLE


@inner
def defer_node(forest: Forest, v: int) -> None:
    """The sums of a node whose children are new to it; all else is left for later."""
    refresh_sums(forest, v)
    forest.table_age[v] = 0
    # Nothing is left of a node that was here before, so that a restored forest is the same.
    forest.log_marginal[v] = forest.log_potential[v] = 0.0
    forest.log_dissimilarity[v] = -np.inf
    forest.stale[v] = UNMEASURED
    forest.weighed[v] = 0


@inner
def take_in_whole(model: Model, forest: Forest, v: int, x: int, top: int) -> None:
    """Let a whole node, balanced, take in the leaf x of one observation that has come below it.

    ``top`` is the node where deferral began.
    """
    n_leaves = forest.n_leaves[v] + 1
    due = n_leaves >= _SMALL and _SHARE * (n_leaves - forest.weighed[v]) >= forest.weighed[v]
    if v != top and is_whole(forest, forest.parent[v]):
        if due:
            refresh_node(model, forest, v)
        else:
            refresh_sums(forest, v)
            forest.table_age[v] = 0
            forest.stale[v] = UNMEASURED
        return
    # Every arrival that its parent sees is compared with it, by its table.
    if due:
        refresh_extended(model, forest, v, v, x)
    else:
        refresh_sums(forest, v)
        extend_marginal(model, forest, v, v, x)
        set_potential(model, forest, v)
        forest.stale[v] = UNWEIGHED
