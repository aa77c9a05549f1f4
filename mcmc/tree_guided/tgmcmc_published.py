"""Tree-guided MCMC as published, as a baseline; approximate.

Every cluster carries a tree. A global move chooses a cluster and merges it with those near it; when
none is chosen, it cuts the cluster's tree at a subtree and lets the parts find together anew. A
local move redraws the leaves of random subtrees by Gibbs. What is wrong: the trees are part of the
state, but the ratio has no term for them and a merge does not build the tree that a split took
apart; several paths lead to one partition, of which one is counted; and the leaves that the local
move visits depend on their clusters. The total variation is 0.04 to 0.3 on five observations, and
large data come out with too few clusters. The exact form is :mod:`weald.mcmc.tree_guided.tgmcmc`.

Sources: Lee and Choi (2015), section 3, equations 11 and 12; ``tgmcmc-ibhc.md`` section 5.
"""

from math import exp, log, log1p
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.contract import Entry, MixtureState
from weald.mcmc.state.atom_state import MERGE, NULL, SPLIT, Info, record_as
from weald.mcmc.sweeps import Sampler, sampler
from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.draw import below, choose, coin
from weald.treecore.compiled.reference import by_reference
from weald.treecore.family.interface.base import log_marginal, log_marginal_sum
from weald.treecore.forest.forest import (
    add_root,
    free_node,
    log_dissimilarity,
    new_node,
    refresh_node,
    remove_root,
)
from weald.treecore.partition.partition import Model
from weald.treecore.prior.base import log_growth, log_new_block, log_size
from weald.treecore.statistics.rows import copy_row, subtract_row

from .cluster_trees import (
    Trees,
    copy_tree,
    detach_leaf,
    forget_tree,
    labels_of_trees,
    list_below,
    log_insert_alone,
    log_sum,
    make_trees,
    refresh_trees,
    sample_subtree,
    sequential_insert,
    stochastic_insert,
)

__all__ = ["PARTS", "PLAN", "PublishedTgmcmcPlan", "kernel", "sweep"]

PARTS = ("global", "local")
_NONE = -1


class PublishedTgmcmcPlan(NamedTuple):
    """``moves`` global moves a sweep, then a local one at ``depth`` nested subtrees a cluster."""

    moves: int = 20
    depth: int = 2


# As the paper has it.
PLAN = PublishedTgmcmcPlan()


@inner
def _log_together(log_d: float) -> float:
    """Log of 1 / (1 + d): the probability that two clusters are put together."""
    return -max(log_d, 0.0) - log1p(exp(-abs(log_d)))


@inner
def _log_blocks(model: Model, before: int, after: int) -> float:
    """Log weight of going from so many blocks to more, sizes apart."""
    value = 0.0
    for k in range(before, after):
        value += log_new_block(model.seating, k)
    return value


@inner
def _log_block(model: Model, trees: Trees, v: int) -> float:
    """Log weight of the atoms below a node as one block, but for the number of blocks."""
    return log_size(model.seating, trees.forest.size[v]) + trees.forest.log_marginal[v]


@inner
def _log_all_apart(model: Model, trees: Trees, v: int, n: int, chosen: int) -> float:
    """Log probability that v is put together with none of ``roots[:n]``, ``chosen`` ones apart.

    With ``chosen`` not negative, the first so many of ``copies`` do not count.
    """
    forest = trees.forest
    value = 0.0
    for at in range(n):
        root = forest.roots[at]
        counts = True
        for each in range(chosen):
            counts = counts and trees.copies[each] != root
        if counts:
            d = log_dissimilarity(model, forest, v, root)
            value += d + _log_together(d)
    return value


@inner
def _log_gather(model: Model, trees: Trees, old: int, first: int) -> float:
    """Equation 11: log probability of merging ``roots[first:]`` from any of them.

    The other clusters are ``roots[:first]`` but for ``old``.
    """
    forest = trees.forest
    n_made = forest.n_roots[0] - first
    trees.copies[0] = old
    for at in range(n_made):
        root = forest.roots[first + at]
        value = _log_all_apart(model, trees, root, first, 1)
        for other in range(first, forest.n_roots[0]):
            if other != first + at:
                value += _log_together(log_dissimilarity(model, forest, root, forest.roots[other]))
        trees.log_weights[at] = value
    return log_sum(trees, n_made) - log(first - 1 + n_made)


@inner
def _split(rng: Generator, model: Model, trees: Trees, c: int, log_q: float) -> Info:
    """Propose to cut the tree c, on a copy; ``log_q`` is that it is c, and alone."""
    forest = trees.forest
    first = forest.n_roots[0]
    if forest.left[c] == _NONE:
        return Info(NULL, 0.0, 0)
    at, log_p = sample_subtree(rng, trees, c, 2, _NONE)
    log_q += log_p
    # On a copy, since the old tree comes back if the proposal is refused.
    v = copy_tree(trees, c, at)[1]
    # The subtree's two children become clusters; the path up to the root falls apart.
    left, right = forest.left[v], forest.right[v]
    forest.parent[left], forest.parent[right] = _NONE, _NONE
    add_root(forest, left)
    add_root(forest, right)
    while forest.parent[v] != _NONE:
        above = forest.parent[v]
        other = forest.right[above] if forest.left[above] == v else forest.left[above]
        forest.parent[other] = _NONE
        free_node(forest, v)
        # Equation 12: each of what hung beside the path finds a new cluster by its own draw.
        log_q += stochastic_insert(rng, model, trees, first, other)
        v = above
    free_node(forest, v)

    # Equation 11 for the way back; as published, the trees themselves have no term.
    ratio = _log_gather(model, trees, c, first) - log_q - _log_block(model, trees, c)
    for made in range(first, forest.n_roots[0]):
        ratio += _log_block(model, trees, forest.roots[made])
    ratio += _log_blocks(model, first, forest.n_roots[0] - 1)
    accepted = coin(rng, exp(min(ratio, 0.0)))
    if accepted:
        for made in range(first, forest.n_roots[0]):
            for each in range(list_below(trees, forest.roots[made])):
                u = trees.listed[each]
                if forest.left[u] == _NONE:
                    forest.leaf[forest.atom[u]] = u
        remove_root(forest, c)
        forget_tree(trees, c)
    else:
        while forest.n_roots[0] > first:
            root = forest.roots[forest.n_roots[0] - 1]
            remove_root(forest, root)
            forget_tree(trees, root)
    return Info(SPLIT, ratio, int(accepted))


@inner
def _merge(rng: Generator, model: Model, trees: Trees, n_merged: int, log_q: float) -> Info:
    """Propose to join the trees ``copies[:n_merged]`` in a cascade, in the order of the list."""
    forest, merged = trees.forest, trees.copies
    # Each tree joins those before it by a node of its own; the old roots stay until it is accepted.
    top, lowest = merged[0], _NONE
    for at in range(1, n_merged):
        p = new_node(forest)
        forest.left[p], forest.right[p] = top, merged[at]
        forest.parent[top], forest.parent[merged[at]] = p, p
        refresh_node(model, forest, p)
        lowest = p if lowest == _NONE else lowest
        top = p

    # The way back is a split: it has to draw this cluster, with no other to merge with (equation
    # 11), and the lowest of the new nodes as the subtree to cut.
    n_blocks = forest.n_roots[0]
    after = n_blocks - n_merged + 1
    log_back = sample_subtree(rng, trees, top, 2, lowest)[1] - log(after)
    log_back += _log_all_apart(model, trees, top, n_blocks, n_merged)
    # Equation 12: there, what hung beside the path found a cluster of its own, one by one.
    for at in range(2, n_merged):
        log_back += log_insert_alone(model, trees, 0, at)
    ratio = log_back - log_q + _log_block(model, trees, top) - _log_blocks(model, after, n_blocks)
    for at in range(n_merged):
        ratio -= _log_block(model, trees, merged[at])
    accepted = coin(rng, exp(min(ratio, 0.0)))
    if accepted:
        for at in range(n_merged):
            remove_root(forest, merged[at])
        add_root(forest, top)
        return Info(MERGE, ratio, 1)
    # Refused: the cascade comes apart again, from its top.
    while top != merged[0]:
        left = forest.left[top]
        forest.parent[left], forest.parent[forest.right[top]] = _NONE, _NONE
        free_node(forest, top)
        top = left
    return Info(MERGE, ratio, 0)


@inner
def global_step(rng: Generator, model: Model, trees: Trees) -> Info:
    """One global move: the clusters to merge with a random one, or else a split of it."""
    forest = trees.forest
    n_blocks = forest.n_roots[0]
    at = below(rng, n_blocks)
    c = forest.roots[at]
    log_q = -log(n_blocks)
    trees.copies[0] = c
    n_merged = 1
    for other in range(n_blocks):
        if other == at:
            continue
        root = forest.roots[other]
        d = log_dissimilarity(model, forest, c, root)
        if coin(rng, exp(_log_together(d))):
            trees.copies[n_merged] = root
            n_merged += 1
            log_q += _log_together(d)
        else:
            log_q += d + _log_together(d)
    if n_merged == 1:
        return _split(rng, model, trees, c, log_q)
    return _merge(rng, model, trees, n_merged, log_q)


@inner
def _redraw_leaf(rng: Generator, model: Model, trees: Trees, atom: int) -> bool:
    """Gibbs for one leaf; whether it moved. A leaf that stays leaves its tree as it was."""
    forest, seating = trees.forest, model.seating
    x = forest.leaf[atom]
    size, alone = forest.size[x], forest.log_marginal[x]
    # The root above it is the cluster that it is in now.
    own = x
    while forest.parent[own] != _NONE:
        own = forest.parent[own]
    n_blocks = forest.n_roots[0]
    n_choices = n_blocks if own == x else n_blocks + 1
    new = log_new_block(seating, n_choices - 1) + log_size(seating, size) + alone
    for at in range(n_blocks):
        root = forest.roots[at]
        with_x, marginal = forest.size[root] + size, forest.log_marginal[root]
        # Its own cluster is weighed without the leaf; a leaf that is alone weighs as a new cluster.
        if root == own:
            if own == x:
                trees.log_weights[at] = new
                continue
            scratch = new_node(forest)
            copy_row(forest.rows, scratch, forest.rows, root)
            subtract_row(forest.rows, scratch, forest.rows, x)
            with_x -= size
            gain = marginal - log_marginal(model.family, forest.rows, scratch, model.work)
            free_node(forest, scratch)
        else:
            union = log_marginal_sum(model.family, forest.rows, root, forest.rows, x, model.work)
            gain = union - marginal
        gain += log_growth(seating, with_x - size, size)
        trees.log_weights[at] = gain
    # A leaf that is alone has its place among the roots, so that there is no other new one.
    trees.log_weights[n_choices - 1] = new if own != x else trees.log_weights[n_choices - 1]
    chosen = choose(rng, trees.log_weights, n_choices)
    target = forest.roots[chosen] if chosen < n_blocks else _NONE
    # Only a leaf that moves is inserted anew.
    if target == own:
        return False
    if own == x:
        remove_root(forest, x)
    else:
        detach_leaf(model, forest, x)
    if target == _NONE:
        add_root(forest, x)
    else:
        sequential_insert(model, forest, target, x)
    return True


@inner
def local_sweep(
    rng: Generator, model: Model, trees: Trees, depth: int, tally: NDArray[np.float64]
) -> None:
    """Gibbs for the leaves of one subtree a cluster, drawn ``depth`` times one in another."""
    forest, visited = trees.forest, trees.copies
    n = 0
    for at in range(forest.n_roots[0]):
        n += forest.n_leaves[forest.roots[at]]
    for i in range(n):
        visited[i] = 0
    for at in range(forest.n_roots[0]):
        v = forest.roots[at]
        for _ in range(depth):
            v = sample_subtree(rng, trees, v, 1, _NONE)[0]
        for each in range(list_below(trees, v)):
            u = trees.listed[each]
            if forest.left[u] == _NONE:
                visited[forest.atom[u]] = 1
    # In the order of their ids: one that followed the trees would be wrong even for all leaves.
    for i in range(n):
        if visited[i]:
            tally[1, 0] += 1.0
            tally[1, 1] += _redraw_leaf(rng, model, trees, i)


@compiled
def sweep(
    rng: Generator,
    model: Model,
    trees: Trees,
    plan: PublishedTgmcmcPlan,
    tally: NDArray[np.float64],
) -> None:
    """``plan.moves`` global moves and a local sweep; ``tally`` (2, 3) gains a row for each part."""
    model, trees = by_reference(model), by_reference(trees)
    refresh_trees(model, trees)
    for _ in range(plan.moves):
        info = global_step(rng, model, trees)
        if info.move != NULL:
            record_as(tally, 0, info)
    if plan.depth >= 0:
        local_sweep(rng, model, trees, plan.depth, tally)


class _Kept(NamedTuple):
    """The clusters' trees, and the labels (n) that they had when they were kept."""

    trees: Trees
    labels: NDArray[np.int64]


def kernel(entry: Entry) -> Sampler[MixtureState]:
    """The kernel, as the registry names it; keeps trees as long as nobody else moves the blocks."""

    def run(rng: Generator, at: MixtureState) -> NDArray[np.float64]:
        labels, model = at.labels(), at.model
        kept = at.kept.get(entry.name)
        if not isinstance(kept, _Kept) or not np.array_equal(kept.labels, labels):
            kept = _Kept(make_trees(at.family, at.atoms, labels, model), labels)
        tally, found = np.zeros((len(PARTS), 3)), np.empty(at.n_atoms, dtype=np.int64)
        sweep(rng, model, kept.trees, PLAN, tally)
        labels_of_trees(kept.trees, found)
        at.set_labels(found)
        at.kept[entry.name] = kept._replace(labels=at.labels())
        return tally

    return sampler(entry, run, PARTS)
