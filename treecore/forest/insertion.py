"""Incremental Bayesian hierarchical clustering: insertion into the forest, and removal.

Lee and Choi (2015), section 2.3, as ``tgmcmc-ibhc.md`` section 4 sets it out. Step 1 finds the root
of the smallest dissimilarity, or makes a new tree. Step 2 goes down: by the paper's three cases
(``PUBLISHED``), or by predictive descent (``PREDICTIVE``), which keeps trees shallow. Step 3 goes
back up, refreshes, and cuts the tree at the topmost node whose dissimilarity exceeds one; what was
cut off is inserted again, with a budget of cuts an arrival. By predictive descent a node that stays
above one when the budget is spent is let stand: trying it again with every arrival would cost more
and more where clusters overlap and observations have been compacted.
"""

from weald.treecore.compiled.compile import inner
from weald.treecore.compiled.prefetch import prefetch_entry, prefetch_row
from weald.treecore.family.interface.base import (
    extends_cheaply,
    log_marginal_sum,
    log_predictive,
    nearer_centre,
)
from weald.treecore.partition.partition import Model
from weald.treecore.statistics.rows import is_single

from .balance import restore_path
from .deferral import begins_deferral, is_whole
from .forest import (
    Forest,
    add_root,
    dissimilarity_given,
    fill_table,
    free_node,
    join,
    log_dissimilarity,
    measure,
    refresh_ancestors,
    refresh_node,
    remove_root,
    replace_child,
)
from .routing import nearest_root

__all__ = [
    "CUT_BUDGET",
    "PREDICTIVE",
    "PUBLISHED",
    "insert_tree",
    "place_published",
    "remove_atom",
]

PREDICTIVE = 0
PUBLISHED = 1
CUT_BUDGET = 5
_NONE = -1


@inner
def place_published(model: Model, forest: Forest, root: int, x: int) -> int:
    """Step 2 as printed: the node beside which x goes."""
    v = root
    while forest.left[v] != _NONE:
        a, b = forest.left[v], forest.right[v]
        to_left = log_dissimilarity(model, forest, a, x)
        to_right = log_dissimilarity(model, forest, b, x)
        if forest.log_dissimilarity[v] <= min(to_left, to_right):
            return v
        v = a if to_left <= to_right else b
    return v


@inner
def _log_gain(
    model: Model,
    forest: Forest,
    v: int,
    x: int,
    by_tables: bool,  # noqa: FBT001 - compiled code calls by position
) -> float:
    """Log density of what is below x, given what is below v; by v's table where x is single."""
    if by_tables:
        fill_table(model, forest, v)
        return log_predictive(model.family, forest.predictive, v, forest.rows, x)
    union = log_marginal_sum(model.family, forest.rows, v, forest.rows, x, model.work)
    measure(model, forest, v)
    return union - forest.log_marginal[v]


@inner
def _place_predictive(
    model: Model,
    forest: Forest,
    root: int,
    x: int,
    by_tables: bool,  # noqa: FBT001 - compiled code calls by position
) -> tuple[int, int]:
    """Step 2 by predictive descent: to the child that predicts x better, until one rejects it.

    Where x is deferred (``deferral.py``), to the child whose centre is nearer. Returns the node
    beside which x goes, and the topmost in which it is deferred, -1 for none.
    """
    v, top = root, _NONE
    depth = 0
    while forest.left[v] != _NONE:
        a, b = forest.left[v], forest.right[v]
        if top == _NONE and by_tables and begins_deferral(forest, v, depth):
            top = v
        depth += 1
        # There tables wait for a refresh; sums do not, and by them centres: enough in one cluster.
        if top != _NONE and is_whole(forest, v):
            for child in (b, a):
                prefetch_entry(forest.left, child)
                prefetch_row(forest.rows, child)  # for the way back up
            v = a if nearer_centre(model.family, forest.rows, a, b, x) else b
            continue
        for child in (b, a):
            prefetch_row(forest.predictive, child)
            prefetch_row(forest.rows, child)  # for the way back up
        to_left = _log_gain(model, forest, a, x, by_tables)
        to_right = _log_gain(model, forest, b, x, by_tables)
        v, gained = (a, to_left) if to_left >= to_right else (b, to_right)
        # The subtree with x in it, as its likelier child tells: above 0, its two halves are
        # likelier apart (section 3), and x goes beside it.
        union = forest.log_marginal[v] + gained
        if dissimilarity_given(model, forest, v, x, union) > 0.0:
            return v, top
    prefetch_row(forest.rows, v)
    return v, top


@inner
def _topmost_violation(forest: Forest, v: int) -> int:
    """Step 3: the topmost of v and its ancestors with d above one, else -1."""
    topmost = _NONE
    while v != _NONE:
        if forest.log_dissimilarity[v] > 0.0:
            topmost = v
        v = forest.parent[v]
    return topmost


@inner
def _cut(forest: Forest, v: int, n_waiting: int) -> int:
    """Make both children of v roots; put the siblings on its path to the root in line.

    The nearest sibling comes first. Returns the new length of the line, whose end is served first.
    """
    depth = 0
    above = v
    while forest.parent[above] != _NONE:
        depth += 1
        above = forest.parent[above]
    remove_root(forest, above)
    left, right = forest.left[v], forest.right[v]
    at = n_waiting + depth
    child, ancestor = v, forest.parent[v]
    free_node(forest, v)
    while ancestor != _NONE:
        at -= 1
        other = forest.right[ancestor] if forest.left[ancestor] == child else forest.left[ancestor]
        forest.parent[other] = _NONE
        forest.waiting[at] = other
        child, ancestor = ancestor, forest.parent[ancestor]
        free_node(forest, child)
    add_root(forest, left)
    add_root(forest, right)
    return n_waiting + depth


@inner
def insert_tree(model: Model, forest: Forest, x: int, rule: int) -> int:
    """Insert the tree (usually a leaf) x, which hangs nowhere; returns the number of cuts made."""
    forest.waiting[0] = x
    n_waiting = 1
    cuts = 0
    while n_waiting > 0:
        n_waiting -= 1
        tree = forest.waiting[n_waiting]
        root = nearest_root(model, forest, tree)
        if root == _NONE:
            add_root(forest, tree)
            continue
        # A single observation goes down by predictive tables; a tree needs marginals of sums.
        by_tables = extends_cheaply(model.family) and is_single(forest.rows, tree)
        if rule == PUBLISHED:
            top = _NONE
            beside = place_published(model, forest, root, tree)
        else:
            beside, top = _place_predictive(model, forest, root, tree, by_tables)
        node = join(forest, beside, tree)
        if rule == PUBLISHED:
            refresh_node(model, forest, node)
            refresh_ancestors(model, forest, node)
            violated = _topmost_violation(forest, node)
        else:
            single = tree if by_tables else _NONE
            violated = restore_path(model, forest, node, beside, single, top)
        # Where d has gone above one the tree comes apart, and what hung beside the path waits to be
        # inserted anew.
        if violated != _NONE and cuts < CUT_BUDGET:
            cuts += 1
            n_waiting = _cut(forest, violated, n_waiting)
    return cuts


@inner
def remove_atom(model: Model, forest: Forest, atom: int) -> None:
    """Take an atom's leaf out of the forest; its sibling takes the parent's place."""
    x = forest.leaf[atom]
    p = forest.parent[x]
    forest.leaf[atom] = _NONE
    if p == _NONE:
        remove_root(forest, x)
        free_node(forest, x)
        return
    sibling = forest.right[p] if forest.left[p] == x else forest.left[p]
    above = forest.parent[p]
    replace_child(forest, above, p, sibling)
    free_node(forest, x)
    free_node(forest, p)
    restore_path(model, forest, above, above, _NONE, _NONE)
