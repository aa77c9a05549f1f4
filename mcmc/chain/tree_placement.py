"""An arrival's block by its place in the forest: what arrived with it moves together.

Observations that come one by one are put into blocks one by one, and where a cluster's first ones
joined a block that others hold, those that follow join it, too. The forest knows better: they are a
tree of its own. So an arrival with which its tree has grown to a power of two of leaves redraws the
block of *the part under the root of the arrival's block*, as one, given all the rest: among the
blocks without an atom under the root, a new one, and what its block is without it.

Refinement does this, too, and better: it is for arrivals between which there is none.

Exact: which trees do so, and when, follows from the data and their order, and the draw is a full
conditional (``tgmcmc-ibhc.md`` section 6, K1). Cost: the atoms of the tree and a marginal for each
block, at every doubling of a tree only.
"""

from typing import Final

from numpy.random import Generator

from weald.mcmc.state.atom_state import State
from weald.treecore.compiled.compile import inner
from weald.treecore.compiled.draw import choose
from weald.treecore.family.interface.base import log_marginal_sum
from weald.treecore.forest.forest import Forest
from weald.treecore.partition.partition import (
    Model,
    Partition,
    block_log_marginal,
    close_block,
    close_last_blocks,
    link,
    mark_changed,
    open_block,
    unlink,
)
from weald.treecore.prior.base import log_growth, log_new_block, log_size
from weald.treecore.statistics.rows import add_row, copy_row, subtract_row

__all__ = ["FEWEST", "place_by_tree"]

_NONE = -1
# Leaves of the trees that are looked at: a larger one costs too much at once, and its block has
# been found long before.
FEWEST: Final = 4
_MOST: Final = 1024


@inner
def _root_of(forest: Forest, i: int) -> int:
    v = forest.leaf[i]
    while forest.parent[v] != _NONE:
        v = forest.parent[v]
    return v


@inner
def _gather(forest: Forest, state: State, root: int, own: int) -> tuple[int, int]:
    """List in ``members`` the atoms under a root that are in a block, in ``order`` other blocks.

    These are the ones without an atom under the root. Returns how many there are of each.
    """
    partition, waiting = state.partition, forest.waiting
    # By slot: whether a block has an atom under the root. There is a weight for every slot.
    under = state.log_weights
    for at in range(partition.n_blocks[0]):
        under[partition.slots[at]] = 0.0
    waiting[0] = root
    n_waiting, n = 1, 0
    while n_waiting > 0:
        n_waiting -= 1
        v = waiting[n_waiting]
        if forest.left[v] != _NONE:
            waiting[n_waiting] = forest.right[v]
            waiting[n_waiting + 1] = forest.left[v]
            n_waiting += 2
            continue
        i = forest.atom[v]
        under[partition.label[i]] = 1.0
        if partition.label[i] == own:
            state.members[n] = i
            n += 1
    k = 0
    for at in range(partition.n_blocks[0]):
        if under[partition.slots[at]] == 0.0:
            state.order[k] = partition.slots[at]
            k += 1
    return n, k


@inner
def _log_join(model: Model, partition: Partition, part: int, k: int) -> float:
    """Log weight of the part, whose sums are in the spare block ``part``, in block k."""
    rows = partition.rows
    union = log_marginal_sum(model.family, rows, k, rows, part, model.work)
    growth = log_growth(model.seating, partition.size[k], partition.size[part])
    return growth + union - block_log_marginal(model, partition, k)


@inner
def _join(partition: Partition, part: int, target: int) -> None:
    """Add the statistics of the spare block ``part`` to those of another."""
    add_row(partition.rows, target, partition.rows, part)
    partition.size[target] += partition.size[part]
    mark_changed(partition, target)


@inner
def place_by_tree(
    rng: Generator, state: State, model: Model, forest: Forest, i: int
) -> tuple[int, int, int]:
    """Redraw the block of the part under the root of the block of atom i, if it is time to.

    Returns the number of atoms moved, which are first in ``members``, and their slots before and
    after.
    """
    partition, atoms, seating = state.partition, state.atoms, model.seating
    root = _root_of(forest, i)
    n_leaves = forest.n_leaves[root]
    # At doublings only: redraws visit each leaf of a tree about twice in all.
    if n_leaves < FEWEST or n_leaves > _MOST or n_leaves & (n_leaves - 1) != 0:
        return 0, _NONE, _NONE
    own, n_blocks = partition.label[i], partition.n_blocks[0]
    n, k = _gather(forest, state, root, own)
    # Without a rest, to stay and to become a new block are one outcome, which counts once.
    has_rest = n < partition.n_members[own]

    # Two spare blocks, of no atoms, hold the sums of the part and of what its block is without it.
    part, rest = open_block(partition), open_block(partition)
    for at in range(n):
        add_row(partition.rows, part, atoms.rows, state.members[at])
        partition.size[part] += atoms.size[state.members[at]]
    copy_row(partition.rows, rest, partition.rows, own)
    subtract_row(partition.rows, rest, partition.rows, part)
    partition.size[rest] = partition.size[own] - partition.size[part]

    # Full conditional of the part's block (section 6.1): what the prior and the likelihood of a
    # block grow by with it. In this order: the blocks listed, a new one (k), the own one (k + 1).
    weights = state.log_weights
    for at in range(k):
        weights[at] = _log_join(model, partition, part, state.order[at])
    weights[k] = log_new_block(seating, n_blocks if has_rest else n_blocks - 1)
    weights[k] += log_size(seating, partition.size[part])
    weights[k] += block_log_marginal(model, partition, part)
    if has_rest:
        weights[k + 1] = _log_join(model, partition, part, rest)
    chosen = choose(rng, weights, k + 2 if has_rest else k + 1)
    if chosen == k + 1 or (chosen == k and not has_rest):
        close_last_blocks(partition, 2)
        return 0, _NONE, _NONE

    if has_rest:
        copy_row(partition.rows, own, partition.rows, rest)
        partition.size[own] = partition.size[rest]
        mark_changed(partition, own)
    target = part
    if chosen < k:
        target = state.order[chosen]
        _join(partition, part, target)
    for at in range(n):
        unlink(partition, state.members[at])
        link(partition, state.members[at], target)
    close_block(partition, rest)
    if chosen < k:
        close_block(partition, part)
    if not has_rest:
        close_block(partition, own)
    return n, own, target
