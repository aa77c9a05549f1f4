"""Ward's trees over nearest neighbours: small subtrees are what lies close together.

Insertion puts an arrival where the trees so far predict it best, and never asks again who its
neighbours are. Small clusters among many scattered observations end in pieces all over the forest,
and no node of its guide is one of them. Here two nodes are joined that are each other's nearest by
Ward's (1963) distance, ``a b / (a + b)`` times the squared distance of their centres, where a and b
are their weights; compared are only nodes with atoms of which one is among the other's nearest few.
The tree is a function of the data alone.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.reference import by_reference, held_by_reference

__all__ = ["ward_tree"]

Ids = NDArray[np.int64]
Numbers = NDArray[np.float64]
_NONE = -1
_NEIGHBOURS = 5


@held_by_reference
class _Growth(NamedTuple):
    """A tree over n atoms while it grows; nodes from n on are joined ones, in order.

    Attributes
    ----------
    children:
        The two nodes that node n + i joins (n - 1, 2).
    centres, weight, above:
        Of each node (2 n - 1): where it is, what it weighs, and what it was joined into, or itself.
    named, following, last:
        Lists of neighbours: whom an entry names and which entry follows; entry v begins node v's
        list and names nobody, and ``last[v]`` ends it.
    met, walks:
        The walk that saw a node last, and the number of walks.
    """

    children: Ids
    centres: Numbers
    weight: Numbers
    above: Ids
    named: Ids
    following: Ids
    last: Ids
    met: Ids
    walks: Ids


@inner
def _top(growth: _Growth, v: int) -> int:
    """What v has been joined into, in the end; the way there is shortened."""
    above = growth.above
    while above[v] != v:
        above[v] = above[above[v]]
        v = above[v]
    return v


@inner
def _ward(growth: _Growth, a: int, b: int) -> float:
    centres, weight = growth.centres, growth.weight
    squared = 0.0
    for c in range(centres.shape[1]):
        squared += (centres[a, c] - centres[b, c]) ** 2
    return squared * weight[a] * weight[b] / (weight[a] + weight[b])


@inner
def _nearest(growth: _Growth, v: int, before: int) -> int:
    """The nearest of v's neighbours, ``before`` where it ties; -1 where v has none.

    What a neighbour has been joined into takes its place, and is listed once.
    """
    named, following, met = growth.named, growth.following, growth.met
    growth.walks[0] += 1
    walk = growth.walks[0]
    met[v] = walk
    found, least = _NONE, np.inf
    end, at = v, following[v]
    while at != _NONE:
        u = _top(growth, named[at])
        if met[u] == walk:
            following[end] = following[at]
        else:
            met[u] = walk
            named[at] = u
            end = at
            apart = _ward(growth, v, u)
            if apart < least or (apart == least and u == before):
                found, least = u, apart
        at = following[at]
    growth.last[v] = end
    return found


@inner
def _join(growth: _Growth, a: int, b: int, v: int) -> None:
    """Make node v of a and b, and one list of theirs."""
    centres, weight = growth.centres, growth.weight
    growth.above[a] = growth.above[b] = v
    weight[v] = weight[a] + weight[b]
    for c in range(centres.shape[1]):
        centres[v, c] = (weight[a] * centres[a, c] + weight[b] * centres[b, c]) / weight[v]
    growth.following[growth.last[a]] = growth.following[b]
    growth.following[v] = growth.following[a]
    growth.last[v] = growth.last[b] if growth.following[b] != _NONE else growth.last[a]


@inner
def _name(growth: _Growth, a: int, b: int, entry: int) -> None:
    """Begin a's list with b."""
    growth.named[entry] = b
    growth.following[entry] = growth.following[a]
    growth.following[a] = entry


@compiled
def _join_near(growth: _Growth, tops: Ids, near: Ids, n_joined: int) -> int:
    """Join ``tops``, whose nearest ones ``near`` names by their places, as long as lists last.

    Returns the number of nodes joined, ``n_joined`` of them before.
    """
    growth = by_reference(growth)
    entry = growth.above.shape[0]
    n = growth.children.shape[0] + 1
    for v in tops:
        growth.following[v] = _NONE
    for i in range(near.shape[0]):
        for j in near[i]:
            if i != j:
                _name(growth, tops[i], tops[j], entry)
                _name(growth, tops[j], tops[i], entry + 1)
                entry += 2
    for begin in range(growth.above.shape[0]):
        # From one to its nearest and on: distances fall, so that two are each other's in the end.
        before, v = _NONE, begin
        while growth.above[begin] == begin and begin < n + n_joined:
            u = _nearest(growth, v, before)
            if u == _NONE:
                break
            if u == before:
                growth.children[n_joined, 0], growth.children[n_joined, 1] = u, v
                _join(growth, u, v, n + n_joined)
                n_joined += 1
                before, v = _NONE, begin
            else:
                before, v = v, u
    return n_joined


def ward_tree(centres: Numbers, weight: Numbers) -> Ids:
    """Children (n - 1, 2) of the nodes n, n + 1, ... of a tree over n centres (n, d) of a weight.

    Numbered as in a linkage matrix of scipy; the last node is the root.
    """
    n, d = centres.shape
    n_nodes = 2 * n - 1
    n_entries = n_nodes + 2 * n * (_NEIGHBOURS + 1)
    growth = _Growth(
        children=np.empty((n - 1, 2), dtype=np.int64),
        centres=np.concatenate([centres, np.empty((n - 1, d))]),
        weight=np.concatenate([weight, np.empty(n - 1)]),
        above=np.arange(n_nodes),
        named=np.empty(n_entries, dtype=np.int64),
        following=np.full(n_entries, _NONE, dtype=np.int64),
        last=np.empty(n_nodes, dtype=np.int64),
        met=np.zeros(n_nodes, dtype=np.int64),
        walks=np.zeros(1, dtype=np.int64),
    )
    n_joined = 0
    while n_joined < n - 1:
        # Clusters that are far from all others are joined in another round.
        made = growth.above[: n + n_joined]
        tops = np.flatnonzero(made == np.arange(made.shape[0]))
        at = growth.centres[tops]
        _, found = cKDTree(at).query(at, min(_NEIGHBOURS + 1, tops.shape[0]))
        near = np.asarray(found, dtype=np.int64)
        n_joined = int(_join_near(growth, tops, near, n_joined))
    return growth.children
