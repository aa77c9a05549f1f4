"""The forest of IBHC: binary trees over atoms as flat arrays.

Per node: links, the number of leaves and the height of its subtree, the statistics of the
observations below it, their log marginal, and Bayesian hierarchical clustering's log potential and
log dissimilarity (``tgmcmc-ibhc.md`` section 3, equations S8 and S9). An inner node's statistics
are sums, never a difference, so they do not drift.

What follows from a node's statistics may lag behind them (:mod:`weald.treecore.forest.deferral`).
Its ``stale`` says so, and every function here that reads such a number brings it in order first.

The potentials are computed with a constant prior
(:class:`~weald.treecore.partition.partition.Model` at the start of the stream): the forest depends
on the data and their order only.
"""

from math import exp, log1p, log2
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import inner
from weald.treecore.compiled.reference import held_by_reference
from weald.treecore.family.interface.base import (
    Family,
    extend_predictive,
    fill_predictive,
    log_marginal,
    log_marginal_sum,
    make_predictive,
    outline_width,
    statistics_width,
)
from weald.treecore.partition.partition import Model
from weald.treecore.prior.base import log_size
from weald.treecore.statistics.room import has_room, longer, next_length
from weald.treecore.statistics.rows import Rows, copy_row, rows_like, sum_rows

from .node_layout import longer_nodes, node_entries, outline_entries

__all__ = [
    "UNMEASURED",
    "UNWEIGHED",
    "Forest",
    "add_leaf",
    "add_root",
    "dissimilarity_given",
    "empty_forest",
    "extend_marginal",
    "fill_table",
    "free_node",
    "join",
    "log_dissimilarity",
    "log_hypothesis",
    "measure",
    "new_node",
    "refresh_ancestors",
    "refresh_derived",
    "refresh_extended",
    "refresh_leaf",
    "refresh_node",
    "refresh_sums",
    "remove_root",
    "replace_child",
    "reserve",
    "set_potential",
]

_NONE = -1
# No tree is higher than this many binary logarithms of its leaves.
_HIGHEST = 2.5
_LISTS = ("roots", "root_position", "free", "waiting")
# After so many observations taken in one by one, a table is filled from the statistics again.
_OLDEST = 64
# What ``stale`` says: everything is in order; the log dissimilarity is that of an earlier time, or
# of nothing; so are the log marginal and the log potential.
_IN_ORDER = 0
UNWEIGHED = 1
UNMEASURED = 2


@held_by_reference
class Forest(NamedTuple):
    """Flat arrays over node ids; ids of removed nodes are used again.

    ``parent``, ``left``, ``right`` are -1 where there is none; ``atom`` is the atom of a leaf, -1
    for an inner node, -2 for an id that is used no more (whose other entries may be dirty).
    ``leaf`` maps an atom to its leaf, -1 for an atom that is not in the forest.
    ``roots[:n_roots[0]]`` are the roots in an order without meaning, ``root_position`` their places
    in it. ``free[:n_free[0]]`` are unused ids below the high-water mark ``n_used[0]``; beyond that
    mark nothing is written. ``waiting`` is scratch. ``predictive`` holds the
    predictive table of the nodes whose ``table_age`` is not 0; it is 1 where the table was filled
    from the statistics, and one more for each observation since. ``stale`` says of an inner node
    what lags behind its statistics: 0 nothing, 1 the log dissimilarity, and the log potential so
    far as it depends on it, 2 the log marginal too. ``weighed`` is the number of its leaves when
    its log dissimilarity was computed, 0 for never. ``outlined[at]`` is the root at this place of
    the list if its outline (:mod:`weald.treecore.forest.routing`) is in ``outlines``, else not that
    root. ``gains`` is scratch.
    """

    parent: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    atom: NDArray[np.int64]
    n_leaves: NDArray[np.int64]
    height: NDArray[np.int32]
    size: NDArray[np.int64]
    rows: Rows
    log_marginal: NDArray[np.float64]
    log_potential: NDArray[np.float64]
    log_dissimilarity: NDArray[np.float64]
    roots: NDArray[np.int64]
    root_position: NDArray[np.int64]
    n_roots: NDArray[np.int64]
    free: NDArray[np.int64]
    n_free: NDArray[np.int64]
    n_used: NDArray[np.int64]
    leaf: NDArray[np.int64]
    waiting: NDArray[np.int64]
    predictive: Rows
    table_age: NDArray[np.int16]
    stale: NDArray[np.int16]
    weighed: NDArray[np.int64]
    outlines: NDArray[np.float64]
    outlined: NDArray[np.int64]
    gains: NDArray[np.float64]


def empty_forest(family: Family, n_atoms: int, like: Rows | None = None) -> Forest:
    """Forest with room for ``n_atoms`` leaves and the inner nodes above them.

    ``like`` are the atoms' rows, where these are not dense.
    """
    capacity = _capacity(n_atoms)
    if like is None:
        like = np.zeros((0, statistics_width(family)))
    # What is in a leaf is in every node above it, and in the one that is being made.
    layers = int(_HIGHEST * log2(n_atoms + 1)) + 2
    rows = rows_like(like, capacity, layers)
    entries = node_entries(capacity)
    lists = [np.zeros(capacity, dtype=np.int64) for _ in range(4)]
    scalars = [np.zeros(1, dtype=np.int64) for _ in range(3)]
    return Forest(
        **entries,
        **outline_entries(outline_width(family)),
        rows=rows,
        roots=lists[0],
        root_position=lists[1],
        n_roots=scalars[0],
        free=lists[2],
        n_free=scalars[1],
        n_used=scalars[2],
        leaf=np.full(n_atoms, _NONE, dtype=np.int64),
        waiting=lists[3],
        predictive=make_predictive(family, capacity, rows),
    )


def _capacity(n_atoms: int) -> int:
    """So many nodes at most are there, and one that is being made."""
    return 2 * n_atoms + 2


def reserve(forest: Forest, n_atoms: int) -> Forest:
    """The same forest with room for ``n_atoms`` leaves; the given one must not be used any more."""
    held = forest.leaf.shape[0]
    if n_atoms <= held:
        return forest
    room = next_length(held, n_atoms)
    capacity, used = _capacity(room), int(forest.n_used[0])
    # Pages of tables that nobody has filled stay untouched, and cost no memory.
    filled = np.empty(0, dtype=np.int64)
    if not has_room(forest.predictive, capacity):
        filled = np.flatnonzero(forest.table_age[:used])
    larger = forest._replace(
        **longer_nodes(forest.parent, capacity, used),
        **{name: longer(getattr(forest, name), capacity) for name in _LISTS},
        rows=longer(forest.rows, capacity, slice(used)),
        predictive=longer(forest.predictive, capacity, filled),
        leaf=longer(forest.leaf, room),
    )
    larger.leaf[held:] = _NONE
    return larger


@inner
def log_hypothesis(model: Model, size: int, marginal: float) -> float:
    """S8: log weight of these observations being one cluster."""
    return model.seating.slope + log_size(model.seating, size) + marginal


@inner
def _forget_outline(forest: Forest, v: int) -> None:
    """To be called where something changes that the outline of v, should it be a root, shows."""
    at = forest.root_position[v]
    if forest.parent[v] == _NONE and at < forest.outlined.shape[0] and forest.outlined[at] == v:
        forest.outlined[at] = _NONE


@inner
def set_potential(model: Model, forest: Forest, v: int) -> None:
    """The log potential that follows from the log marginal and the log dissimilarity."""
    d = forest.log_dissimilarity[v]
    # log(1 + e^d) without overflow
    apart = max(d, 0.0) + log1p(exp(-abs(d)))
    forest.log_potential[v] = log_hypothesis(model, forest.size[v], forest.log_marginal[v]) + apart
    _forget_outline(forest, v)


@inner
def measure(model: Model, forest: Forest, v: int) -> None:
    """Bring v's log marginal in order, and its log potential as far as it was weighed.

    What comes of it depends on the statistics alone: to measure sooner or later, or twice, is the
    same.
    """
    if forest.stale[v] == UNMEASURED:
        forest.log_marginal[v] = log_marginal(model.family, forest.rows, v, model.work)
        set_potential(model, forest, v)
        forest.stale[v] = UNWEIGHED


@inner
def dissimilarity_given(model: Model, forest: Forest, a: int, b: int, union: float) -> float:
    """S9: log d between two measured trees, of this log marginal together."""
    together = log_hypothesis(model, forest.size[a] + forest.size[b], union)
    return forest.log_potential[a] + forest.log_potential[b] - together


@inner
def log_dissimilarity(model: Model, forest: Forest, a: int, b: int) -> float:
    """S9: log d between two trees; above zero they are better apart."""
    measure(model, forest, a)
    measure(model, forest, b)
    union = log_marginal_sum(model.family, forest.rows, a, forest.rows, b, model.work)
    return dissimilarity_given(model, forest, a, b, union)


@inner
def fill_table(model: Model, forest: Forest, v: int) -> None:
    """Bring v's log marginal and its predictive table in order."""
    measure(model, forest, v)
    if forest.table_age[v] == 0:
        fill_predictive(model.family, forest.rows, v, forest.predictive, v, model.work)
        forest.table_age[v] = 1


@inner
def new_node(forest: Forest) -> int:
    """An unused id."""
    if forest.n_free[0] > 0:
        forest.n_free[0] -= 1
        v = forest.free[forest.n_free[0]]
    else:
        v = forest.n_used[0]
        forest.n_used[0] += 1
    forest.parent[v] = _NONE
    forest.left[v] = _NONE
    forest.right[v] = _NONE
    forest.atom[v] = _NONE
    forest.log_dissimilarity[v] = -np.inf
    return v


@inner
def free_node(forest: Forest, v: int) -> None:
    """Give an id back."""
    forest.atom[v] = -2
    forest.free[forest.n_free[0]] = v
    forest.n_free[0] += 1


@inner
def _set_root(forest: Forest, at: int, v: int) -> None:
    forest.roots[at] = v
    forest.root_position[v] = at
    if at < forest.outlined.shape[0]:
        forest.outlined[at] = _NONE


@inner
def add_root(forest: Forest, v: int) -> None:
    """Make the parentless node v the root of a tree of the forest."""
    at = forest.n_roots[0]
    forest.parent[v] = _NONE
    _set_root(forest, at, v)
    forest.n_roots[0] = at + 1


@inner
def remove_root(forest: Forest, v: int) -> None:
    """Take v off the list of roots."""
    last = forest.n_roots[0] - 1
    at = forest.root_position[v]
    _set_root(forest, at, forest.roots[last])
    forest.n_roots[0] = last


@inner
def add_leaf(model: Model, forest: Forest, atom: int, rows: Rows, i: int, size: int) -> int:
    """A leaf for an atom with the statistics ``rows[i]``, in no tree yet; returns its id."""
    v = new_node(forest)
    forest.atom[v] = atom
    forest.leaf[atom] = v
    forest.size[v] = size
    copy_row(forest.rows, v, rows, i)
    refresh_leaf(model, forest, v)
    return v


@inner
def refresh_leaf(model: Model, forest: Forest, v: int) -> None:
    """Recompute everything that a leaf has from its statistics and its size."""
    forest.n_leaves[v] = 1
    forest.height[v] = 0
    forest.table_age[v] = 0
    forest.log_marginal[v] = log_marginal(model.family, forest.rows, v, model.work)
    forest.log_potential[v] = log_hypothesis(model, forest.size[v], forest.log_marginal[v])
    forest.log_dissimilarity[v] = -np.inf
    forest.stale[v] = _IN_ORDER
    forest.weighed[v] = 1
    _forget_outline(forest, v)


@inner
def refresh_sums(forest: Forest, v: int) -> None:
    """Recompute what an inner node has as a sum of its children's, and its height."""
    a, b = forest.left[v], forest.right[v]
    forest.n_leaves[v] = forest.n_leaves[a] + forest.n_leaves[b]
    forest.height[v] = 1 + max(forest.height[a], forest.height[b])
    forest.size[v] = forest.size[a] + forest.size[b]
    sum_rows(forest.rows, v, a, b)


@inner
def _refresh_potential(model: Model, forest: Forest, v: int) -> None:
    a, b = forest.left[v], forest.right[v]
    measure(model, forest, a)
    measure(model, forest, b)
    forest.log_dissimilarity[v] = dissimilarity_given(model, forest, a, b, forest.log_marginal[v])
    set_potential(model, forest, v)
    forest.stale[v] = min(forest.stale[a] + forest.stale[b], UNWEIGHED)
    forest.weighed[v] = forest.n_leaves[v]


@inner
def refresh_derived(model: Model, forest: Forest, v: int) -> None:
    """:func:`refresh_node` of a node whose log marginal is known."""
    refresh_sums(forest, v)
    forest.table_age[v] = 0
    _refresh_potential(model, forest, v)


@inner
def refresh_node(model: Model, forest: Forest, v: int) -> None:
    """Recompute everything that an inner node has from its children."""
    refresh_sums(forest, v)
    forest.table_age[v] = 0
    forest.log_marginal[v] = log_marginal(model.family, forest.rows, v, model.work)
    _refresh_potential(model, forest, v)


@inner
def extend_marginal(model: Model, forest: Forest, v: int, before: int, x: int) -> None:
    """Log marginal of v, whose statistics are those of ``before`` and of the observation x."""
    rows, table, age = forest.rows, forest.predictive, forest.table_age[before]
    if 0 < age < _OLDEST:
        gained = extend_predictive(model.family, rows, v, x, table, v, before, model.work)
        forest.log_marginal[v] = forest.log_marginal[before] + gained
        forest.table_age[v] = age + 1
    else:
        forest.log_marginal[v] = log_marginal(model.family, rows, v, model.work)
        forest.table_age[v] = 0


@inner
def refresh_extended(model: Model, forest: Forest, v: int, before: int, x: int) -> None:
    """:func:`refresh_node` where v holds what ``before`` held, and the single observation x.

    ``before`` may be v itself, as it was. Its predictive table saves the marginal.
    """
    refresh_sums(forest, v)
    extend_marginal(model, forest, v, before, x)
    _refresh_potential(model, forest, v)


@inner
def refresh_ancestors(model: Model, forest: Forest, v: int) -> None:
    """Recompute every ancestor of v, from the nearest to the root."""
    ancestor = forest.parent[v]
    while ancestor != _NONE:
        refresh_node(model, forest, ancestor)
        ancestor = forest.parent[ancestor]


@inner
def replace_child(forest: Forest, parent: int, old: int, new: int) -> None:
    """Hang ``new`` where ``old`` hangs; with ``parent`` -1, in the list of roots."""
    forest.parent[new] = parent
    if parent == _NONE:
        _set_root(forest, forest.root_position[old], new)
    elif forest.left[parent] == old:
        forest.left[parent] = new
    else:
        forest.right[parent] = new


@inner
def join(forest: Forest, v: int, x: int) -> int:
    """Put the tree x, which hangs nowhere, beside v under a new node in v's place.

    Returns that node. It and its ancestors are left for the caller to refresh.
    """
    p = new_node(forest)
    replace_child(forest, forest.parent[v], v, p)
    forest.left[p], forest.right[p] = v, x
    forest.parent[v] = p
    forest.parent[x] = p
    return p
