"""Which subtrees of the forest may become one leaf, and making them so.

A subtree whose atoms are all in one block of the partition can be replaced by a leaf with their
number and their statistics: a *pseudo-leaf*, which moves as a unit from then on. What the kernels
sample is the posterior given that those atoms stay together (``tgmcmc-ibhc.md`` section 7); what
that costs in total variation is the posterior probability that they do not, for which Bayesian
hierarchical clustering has an estimate at every node, ``1 - P(h) = sigmoid(log d)``. It is an
estimate and no bound: it knows partitions along this tree only.
"""

from math import exp, log1p
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Atoms, Model, Partition, unlink
from weald.treecore.statistics.rows import clear_row, copy_row

from .balance import restore_node
from .forest import (
    Forest,
    free_node,
    log_hypothesis,
    measure,
    refresh_derived,
    refresh_leaf,
    refresh_node,
)

__all__ = [
    "Judgement",
    "collapse",
    "drop_atom",
    "forest_order",
    "judge_nodes",
    "measure_nodes",
    "recompute",
    "restore",
    "take_leaf",
]

_NONE = -1


class Judgement(NamedTuple):
    """What is said of the forest's nodes, by node id.

    Attributes
    ----------
    together:
        The group of all atoms below by the first grouping, -1 where they are in several.
    steady:
        The same by the second grouping.
    doubt:
        ``1 - P(h)`` of an inner node, 0 for a leaf.
    worst, total:
        The largest doubt at and below a node, and the sum of them.
    """

    together: NDArray[np.int64]
    steady: NDArray[np.int64]
    doubt: NDArray[np.float64]
    worst: NDArray[np.float64]
    total: NDArray[np.float64]


@compiled
def forest_order(forest: Forest) -> NDArray[np.int64]:
    """Every node that is in a tree (n), children before parents."""
    forest = by_reference(forest)
    order = np.empty(forest.n_used[0], dtype=np.int64)
    n = 0
    for at in range(forest.n_roots[0]):
        order[n] = forest.roots[at]
        n += 1
    done = 0
    while done < n:
        v = order[done]
        done += 1
        if forest.left[v] != _NONE:
            order[n] = forest.left[v]
            order[n + 1] = forest.right[v]
            n += 2
    return order[:n][::-1].copy()


@compiled
def recompute(
    model: Model,
    forest: Forest,
    order: NDArray[np.int64],
    marginals_known: bool,  # noqa: FBT001 - compiled code calls by position
) -> None:
    """Everything that nodes have from their leaves; ``order`` is :func:`forest_order`'s.

    Where the log marginals of inner nodes are known, they are left as they are.
    """
    model, forest = by_reference(model), by_reference(forest)
    for at in range(order.shape[0]):
        v = order[at]
        if forest.left[v] == _NONE:
            refresh_leaf(model, forest, v)
        elif marginals_known:
            refresh_derived(model, forest, v)
        else:
            refresh_node(model, forest, v)


@compiled
def measure_nodes(model: Model, forest: Forest, order: NDArray[np.int64]) -> None:
    """Bring all log marginals in order; ``model`` is that of the forest's potentials."""
    model, forest = by_reference(model), by_reference(forest)
    for at in range(order.shape[0]):
        measure(model, forest, order[at])


@compiled
def _judge(
    model: Model,
    forest: Forest,
    order: NDArray[np.int64],
    groups: NDArray[np.int64],
    judged: Judgement,
) -> None:
    model, forest = by_reference(model), by_reference(forest)
    potential = np.empty(forest.n_used[0])
    for at in range(order.shape[0]):
        v = order[at]
        # Potentials under the prior of now: the forest's own are those of the beginning.
        together = log_hypothesis(model, forest.size[v], forest.log_marginal[v])
        if forest.left[v] == _NONE:
            potential[v] = together
            judged.together[v] = groups[0, forest.atom[v]]
            judged.steady[v] = groups[1, forest.atom[v]]
            continue
        a, b = forest.left[v], forest.right[v]
        d = potential[a] + potential[b] - together
        potential[v] = together + max(d, 0.0) + log1p(exp(-abs(d)))
        doubt = 1.0 / (1.0 + exp(-d)) if d > 0.0 else exp(d) / (1.0 + exp(d))
        judged.doubt[v] = doubt
        judged.worst[v] = max(doubt, judged.worst[a], judged.worst[b])
        judged.total[v] = doubt + judged.total[a] + judged.total[b]
        judged.together[v] = judged.together[a] if judged.together[a] == judged.together[b] else -1
        judged.steady[v] = judged.steady[a] if judged.steady[a] == judged.steady[b] else -1


def judge_nodes(
    model: Model, forest: Forest, order: NDArray[np.int64], groups: NDArray[np.int64]
) -> Judgement:
    """Look at every node of the forest, whose log marginals must be in order.

    Parameters
    ----------
    model:
        Of the present prior.
    order:
        :func:`forest_order`'s.
    groups:
        Two groupings of the atoms by id, int64 (2, n).
    """
    n = int(forest.n_used[0])
    whole = np.full((2, n), -1, dtype=np.int64)
    judged = Judgement(whole[0], whole[1], np.zeros(n), np.zeros(n), np.zeros(n))
    _judge(model, forest, order, groups, judged)
    return judged


@inner
def drop_atom(atoms: Atoms, partition: Partition, i: int) -> None:
    """Strike atom i, whose statistics another of its block now has."""
    unlink(partition, i)
    partition.following[i] = _NONE
    partition.preceding[i] = _NONE
    clear_row(atoms.rows, i)
    atoms.size[i] = 0
    atoms.single[i] = 1
    atoms.log_marginal[i] = 0.0


@inner
def take_leaf(forest: Forest, atoms: Atoms, i: int, v: int) -> None:
    """Let atom i be what the leaf v is, which stands for several observations."""
    copy_row(atoms.rows, i, forest.rows, v)
    atoms.size[i] = forest.size[v]
    atoms.single[i] = 0
    atoms.log_marginal[i] = forest.log_marginal[v]


@compiled
def collapse(
    forest: Forest,
    atoms: Atoms,
    partition: Partition,
    nodes: NDArray[np.int64],
    members: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Make a leaf of each of these inner nodes, whose atoms are in one block each.

    The largest atom below a node (of equal ones the first by id) stays and stands for all; the
    others are no atoms any more. They are written to ``members`` (room for all atoms), node by
    node, the one that stays first; returns where each node's begin, and where the last one's end
    (k + 1). Statistics stay; heights, balance and potentials above are the caller's to restore.
    """
    forest, atoms, partition = by_reference(forest), by_reference(atoms), by_reference(partition)
    start = np.zeros(nodes.shape[0] + 1, dtype=np.int64)
    pending = np.empty(members.shape[0] + 1, dtype=np.int64)
    n = 0
    for at in range(nodes.shape[0]):
        v = nodes[at]
        start[at] = n
        # Down the tree without recursion: its leaves are written down, its nodes freed but for the
        # top.
        pending[0] = v
        n_pending = 1
        while n_pending > 0:
            n_pending -= 1
            u = pending[n_pending]
            if forest.left[u] == _NONE:
                members[n] = forest.atom[u]
                forest.leaf[forest.atom[u]] = _NONE
                n += 1
            else:
                pending[n_pending] = forest.right[u]
                pending[n_pending + 1] = forest.left[u]
                n_pending += 2
            if u != v:
                free_node(forest, u)
        # By size, then id: what stands for all does not depend on the tree's form.
        stays = start[at]
        for j in range(start[at] + 1, n):
            larger = atoms.size[members[j]] - atoms.size[members[stays]]
            if larger > 0 or (larger == 0 and members[j] < members[stays]):
                stays = j
        members[start[at]], members[stays] = members[stays], members[start[at]]
        kept = members[start[at]]
        for j in range(start[at] + 1, n):
            i = members[j]
            drop_atom(atoms, partition, i)
        forest.left[v] = _NONE
        forest.right[v] = _NONE
        forest.atom[v] = kept
        forest.leaf[kept] = v
        take_leaf(forest, atoms, kept, v)
    start[nodes.shape[0]] = n
    return start


@compiled
def restore(model: Model, forest: Forest, order: NDArray[np.int64]) -> None:
    """Balance and recompute a whole forest; ``order`` is :func:`forest_order`'s."""
    model, forest = by_reference(model), by_reference(forest)
    for at in range(order.shape[0]):
        v = order[at]
        if forest.left[v] == _NONE:
            refresh_leaf(model, forest, v)
        else:
            restore_node(model, forest, v)
