"""K5, subtree join: blocks that lie under a node become one, or one is allocated afresh.

Index: a node v, an atom i under it, a number s, a direction, and where a walk over atoms begins. U
is the union of the blocks that lie entirely under v and have at most s observations, and of i's,
which must lie there too. *Join* makes one block of U in one step; *scatter* is its exact reverse:
where U is one block, its atoms are allocated one by one, as in collapsed Gibbs, to the new blocks
so far or to one more, of which none but i's may have more than s. So U, and the order of its atoms,
are the same before and after. It is the sequential split-merge (``split-merge-samplers.md``, SAMS)
with as many blocks as there are, chosen by the guide: many small clusters become a diffuse one
without a way through worse partitions, which K3 does only where they follow the guide.

What a join would gain bounds its ratio, so most are refused before anything is allocated; of the
others the allocation is given up as soon as it has become too improbable. A scatter is rarely
accepted and costs a pass, so it is tried rarely; the two directions' probabilities are in the
ratio. Reducible alone. Cost: the pieces under v; of an allocation, the atoms of U times the blocks.
Ours; no paper has it.
"""

from math import exp, inf, log

from numpy.random import Generator

from weald.mcmc.state.atom_state import MERGE, NULL, SPLIT, Info
from weald.mcmc.state.pieces import (
    Pieces,
    coalesce,
    move_part,
    new_epoch,
    next_piece,
    set_block,
    wide_stride,
)
from weald.treecore.compiled.compile import inner
from weald.treecore.compiled.draw import below, choose, coin, survives_fall
from weald.treecore.family.interface.base import log_marginal
from weald.treecore.guide.guide import Guide
from weald.treecore.partition.partition import (
    Model,
    block_log_marginal,
    close_block,
    close_last_blocks,
    log_join,
    mark_changed,
    open_block,
)
from weald.treecore.prior.base import log_growth, log_new_block, log_size
from weald.treecore.statistics.rows import add_row, clear_row

from .subtree_gather import LOG_SCATTERS, SCATTERS
from .subtree_repartition import stamp_inner_blocks

__all__ = ["step"]

_NONE = -1
_UNION = 0


@inner
def _list_blocks(pieces: Pieces, inside: int, own: int, most: int) -> int:
    """List in ``order`` block ``own`` and the others that carry the stamp and are small enough.

    The others lose the stamp. Returns the number of those that keep it.
    """
    partition = pieces.partition
    n = 0
    for at in range(partition.n_blocks[0]):
        k = partition.slots[at]
        if pieces.marked[k] == inside:
            if k == own or partition.size[k] <= most:
                pieces.order[n] = k
                n += 1
            else:
                pieces.marked[k] = 0
    return n


@inner
def _list_leaves(guide: Guide, pieces: Pieces, v: int, stamp: int) -> int:
    """List in ``found`` the leaves under v whose blocks carry the stamp; returns their number."""
    n = 0
    end = v + guide.n_nodes[v]
    u = next_piece(pieces, v, end)
    while u < end:
        if pieces.marked[pieces.pure[u]] == stamp:
            for at in range(guide.first[u], guide.first[u] + guide.n_leaves[u]):
                pieces.found[n] = guide.node[at]
                n += 1
        u = next_piece(pieces, u + guide.n_nodes[u], end)
    return n


@inner
def _weigh(
    guide: Guide, pieces: Pieces, model: Model, leaf: int, n_others: int, n_new: int
) -> float:
    """Log weights of a leaf in each of the blocks opened last and in one more; returns their sum's.

    ``log_weights`` has them, and so has ``part_d``, which no draw overwrites.
    """
    partition, seating = pieces.partition, model.seating
    weights, weights_kept = pieces.log_weights, pieces.part_d
    before = partition.n_blocks[0] - n_new
    count = guide.size[leaf]
    weights[n_new] = log_new_block(seating, n_others + n_new) + log_size(seating, count)
    weights[n_new] += guide.log_marginal[leaf]
    largest = weights[n_new]
    for j in range(n_new):
        k = partition.slots[before + j]
        weights[j] = log_growth(seating, partition.size[k], count)
        weights[j] += log_join(model, pieces.nodes, partition, leaf, k)
        largest = max(largest, weights[j])
    total = 0.0
    for j in range(n_new + 1):
        total += exp(weights[j] - largest)
        weights_kept[j] = weights[j]
    return largest + log(total)


@inner
def _allocate(
    rng: Generator, guide: Guide, pieces: Pieces, model: Model, n: int, n_others: int, gain: float
) -> tuple[float, int, bool]:
    """Allocate the n listed leaves to blocks that are opened for them, ``part_label`` of each.

    With a finite ``gain`` they are apart as they are now, and ``tally`` of those blocks is -1; else
    it is a draw. There are ``n_others`` blocks beside. Returns the log probability, the number of
    blocks, and whether a proposal whose log ratio is the sum of this and ``gain`` has survived the
    coins for it, which are thrown as it falls.
    """
    partition, forced = pieces.partition, gain < inf
    opened_for, weights_kept = pieces.tally, pieces.part_d
    stride = wide_stride(n)
    log_q, survives = 0.0, min(gain, 0.0)
    # In long strides from a drawn place: neighbours in the guide are alike, and blocks that begin
    # with all atoms of one region would take a form that the others do not fit.
    at, n_new = below(rng, n), 0
    for _ in range(n):
        leaf = pieces.found[at]
        log_total = _weigh(guide, pieces, model, leaf, n_others, n_new)
        # The join's reverse: each atom goes where it is, and a block counts as opened when the
        # first of its atoms comes.
        if forced:
            block = pieces.pure[leaf]
            if opened_for[block] == _NONE:
                opened_for[block] = n_new
            chosen = opened_for[block]
        else:
            chosen = choose(rng, pieces.log_weights, n_new + 1)
        log_q += weights_kept[chosen] - log_total
        # The acceptance coin is thrown piece by piece, as the bound on the ratio falls: the product
        # of the pieces is the probability of acceptance, and a hopeless allocation ends early.
        left = min(gain + log_q, 0.0)
        if not survives_fall(rng, survives, left):
            return log_q, n_new, False
        survives = left
        if chosen == n_new:
            open_block(partition)
            n_new += 1
        k = partition.slots[partition.n_blocks[0] - n_new + chosen]
        add_row(partition.rows, k, guide.rows, leaf)
        partition.size[k] += guide.size[leaf]
        mark_changed(partition, k)
        pieces.part_label[at] = k
        at = (at + stride) % n
    return log_q, n_new, True


@inner
def _join(
    rng: Generator, guide: Guide, pieces: Pieces, model: Model, v: int, n: int, stamp: int
) -> Info:
    """Make one block of the n listed ones."""
    partition, seating = pieces.partition, model.seating
    n_blocks = partition.n_blocks[0]
    clear_row(pieces.part_rows, _UNION)
    # What the join gains before the allocation's probability, which can only lower the ratio.
    count = 0
    gain = seating.log_blocks[n_blocks - n + 1] - seating.log_blocks[n_blocks] + LOG_SCATTERS
    for at in range(n):
        k = pieces.order[at]
        pieces.tally[k] = _NONE
        add_row(pieces.part_rows, _UNION, partition.rows, k)
        count += partition.size[k]
        gain -= log_size(seating, partition.size[k]) + block_log_marginal(model, partition, k)
    marginal = log_marginal(model.family, pieces.part_rows, _UNION, model.work)
    gain += log_size(seating, count) + marginal
    # The first piece of the acceptance coin, before anything is allocated.
    if not coin(rng, exp(min(gain, 0.0))):
        return Info(MERGE, gain, 0)
    n_leaves = _list_leaves(guide, pieces, v, stamp)
    log_q, n_new, survives = _allocate(rng, guide, pieces, model, n_leaves, n_blocks - n, gain)
    # The allocation was a rehearsal of the reverse move: its blocks go.
    close_last_blocks(partition, n_new)
    if not survives:
        return Info(MERGE, gain + log_q, 0)
    target = open_block(partition)
    pieces.marked[target] = 0
    move_part(guide, pieces, v, stamp, target)
    coalesce(guide, pieces, v)
    set_block(pieces, target, pieces.part_rows, _UNION, count, marginal)
    for at in range(n):
        close_block(partition, pieces.order[at])
    return Info(MERGE, gain + log_q, 1)


@inner
def _is_allowed(pieces: Pieces, n_leaves: int, n_new: int, leaf: int, most: int) -> bool:
    """Whether no new block but the leaf's has too many observations."""
    partition = pieces.partition
    n_large = 0
    for j in range(1, n_new + 1):
        if partition.size[partition.slots[partition.n_blocks[0] - j]] > most:
            n_large += 1
    for at in range(n_leaves):
        if pieces.found[at] == leaf and partition.size[pieces.part_label[at]] > most:
            n_large -= 1
    return n_large == 0


@inner
def _scatter(
    rng: Generator, guide: Guide, pieces: Pieces, model: Model, v: int, leaf: int, most: int
) -> Info:
    """Allocate the atoms of the leaf's block, the only one listed, afresh."""
    partition, seating = pieces.partition, model.seating
    own, n_blocks = pieces.pure[leaf], partition.n_blocks[0]
    n_leaves = _list_leaves(guide, pieces, v, pieces.marked[own])
    log_q, n_new, _ = _allocate(rng, guide, pieces, model, n_leaves, n_blocks - 1, inf)
    ratio = seating.log_blocks[n_blocks - 1 + n_new] - seating.log_blocks[n_blocks]
    for j in range(n_new):
        k = partition.slots[n_blocks + j]
        ratio += log_size(seating, partition.size[k]) + block_log_marginal(model, partition, k)
    ratio -= log_size(seating, partition.size[own]) + block_log_marginal(model, partition, own)
    ratio -= log_q + LOG_SCATTERS
    changes = n_new > 1 and _is_allowed(pieces, n_leaves, n_new, leaf, most)
    if not changes or not coin(rng, exp(min(ratio, 0.0))):
        close_last_blocks(partition, n_new)
        return Info(SPLIT, ratio, 0) if changes else Info(NULL, 0.0, 0)
    # Only now are pieces of the guide changed: up to here the blocks stood beside the old one.
    stamp = new_epoch(pieces)
    pieces.marked[own] = stamp
    for at in range(n_leaves):
        move_part(guide, pieces, pieces.found[at], stamp, pieces.part_label[at])
    coalesce(guide, pieces, v)
    close_block(partition, own)
    return Info(SPLIT, ratio, 1)


@inner
def step(
    rng: Generator, guide: Guide, pieces: Pieces, model: Model, v: int, leaf: int, most: int
) -> Info:
    """Join the blocks under v of at most ``most`` observations and that of a leaf under v.

    Now and then, where they are one already, allocate its atoms afresh. ``leaf`` is a position.
    """
    is_scatter = coin(rng, SCATTERS)
    n_inside, stamp = stamp_inner_blocks(guide, pieces, v)
    node = guide.node[leaf]
    own = pieces.pure[node]
    if n_inside == 0 or pieces.marked[own] != stamp:
        return Info(NULL, 0.0, 0)
    n = _list_blocks(pieces, stamp, own, most)
    if (n == 1) != is_scatter:
        return Info(NULL, 0.0, 0)
    if is_scatter:
        return _scatter(rng, guide, pieces, model, v, node, most)
    return _join(rng, guide, pieces, model, v, n, stamp)
