"""K4, subtree gather: all atoms under a node in one block of their own, or scattered as urns draw.

Index: a node v and a direction. *Gather* takes every atom under v out of its block and makes one
new block of them; *scatter* is its exact reverse: from the block that v is, each atom in turn joins
an earlier one or, with weight 1, any of the blocks outside or a new one, all alike. Nothing of the
data goes into that draw, so its log probability, which a gather's ratio gains, is read off the
counts: a partition that cuts right across the guide costs no more than one that follows it. That is
what the other tree-guided kernels lack: K1 moves one block's part at a time and never to a block
that has atoms under the node, K2 and K3 stop where blocks straddle.

A scatter is hardly ever accepted; it is there to make a gather legal, and is tried rarely: the two
directions' probabilities are in the ratio too. Reducible alone. Cost: the pieces under v and two
evaluations a block under it; a scatter's: the atoms under v. Ours; no paper has it.
"""

from math import exp, lgamma, log
from typing import Final

from numpy.random import Generator

from weald.mcmc.state.atom_state import MERGE, NULL, SPLIT, Info
from weald.mcmc.state.pieces import Pieces, coalesce, move_part, new_epoch, next_piece, set_block
from weald.treecore.compiled.compile import inner
from weald.treecore.compiled.draw import below, coin
from weald.treecore.family.interface.base import log_marginal
from weald.treecore.guide.guide import Guide
from weald.treecore.partition.partition import (
    Model,
    block_log_marginal,
    close_block,
    close_last_blocks,
    open_block,
)
from weald.treecore.prior.base import log_size
from weald.treecore.statistics.rows import add_row, clear_row, copy_row, subtract_row

__all__ = ["LOG_SCATTERS", "SCATTERS", "step"]

_NONE = -1
# Of the tries, of K5 and of K2 by atoms too; any constant is exact.
SCATTERS: Final = 0.02
LOG_SCATTERS = log(SCATTERS / (1.0 - SCATTERS))


@inner
def _note(pieces: Pieces, k: int, n: int, stamp: int) -> int:
    """Place of block k among the n listed; a new one gets a scratch row that is the block's own.

    Listed blocks carry ``stamp``; ``order`` has them, ``part_count`` and ``part_of`` their
    observations on the other side of the move and their atoms under v.
    """
    if pieces.marked[k] == stamp:
        return pieces.tally[k]
    pieces.marked[k] = stamp
    pieces.tally[k] = n
    pieces.order[n] = k
    pieces.part_count[n] = pieces.partition.size[k]
    pieces.part_of[n] = 0
    copy_row(pieces.part_rows, n, pieces.partition.rows, k)
    return n


@inner
def _take_out(guide: Guide, pieces: Pieces, v: int, stamp: int) -> int:
    """List the blocks with atoms under v, as they are without them; returns their number."""
    n = 0
    end = v + guide.n_nodes[v]
    u = next_piece(pieces, v, end)
    while u < end:
        at = _note(pieces, pieces.pure[u], n, stamp)
        n = max(n, at + 1)
        subtract_row(pieces.part_rows, at, guide.rows, u)
        pieces.part_count[at] -= guide.size[u]
        pieces.part_of[at] += guide.n_leaves[u]
        u = next_piece(pieces, u + guide.n_nodes[u], end)
    return n


@inner
def _draw_scattered(rng: Generator, guide: Guide, pieces: Pieces, v: int, stamp: int) -> int:
    """Draw a block for each atom under v, of which the block consists, into ``part_label``.

    Lists those blocks as they are with the atoms; new ones are open, and empty. Returns how many.
    """
    partition, label = pieces.partition, pieces.part_label
    n_outside = partition.n_blocks[0] - 1
    own = partition.position[pieces.pure[v]]
    n = 0
    for i in range(guide.n_leaves[v]):
        earlier = below(rng, i + 1)
        if earlier < i:
            label[i] = label[earlier]
        else:
            at = below(rng, n_outside + 1)
            if at == n_outside:
                label[i] = open_block(partition)
            else:
                label[i] = partition.slots[at if at < own else at + 1]
        at = _note(pieces, label[i], n, stamp)
        n = max(n, at + 1)
        leaf = guide.node[guide.first[v] + i]
        add_row(pieces.part_rows, at, guide.rows, leaf)
        pieces.part_count[at] += guide.size[leaf]
        pieces.part_of[at] += 1
    return n


@inner
def _is_inside(pieces: Pieces, at: int) -> bool:
    """Whether a listed block is nowhere but under v, on the side of the move where it exists."""
    return pieces.partition.size[pieces.order[at]] == 0 or pieces.part_count[at] == 0


@inner
def _count_inside(pieces: Pieces, n: int) -> int:
    n_inside = 0
    for at in range(n):
        if _is_inside(pieces, at):
            n_inside += 1
    return n_inside


@inner
def _gain(pieces: Pieces, model: Model, n: int) -> float:
    """Log posterior that the listed blocks gain by the move, by their sizes and likelihood."""
    partition, seating = pieces.partition, model.seating
    gain = 0.0
    for at in range(n):
        k = pieces.order[at]
        if partition.size[k] > 0:
            gain -= log_size(seating, partition.size[k]) + block_log_marginal(model, partition, k)
        if pieces.part_count[at] > 0:
            pieces.part_marginal[at] = log_marginal(model.family, pieces.part_rows, at, model.work)
            gain += log_size(seating, pieces.part_count[at]) + pieces.part_marginal[at]
    return gain


@inner
def _log_scattered(pieces: Pieces, n: int, n_outside: int, n_atoms: int) -> float:
    """Log probability with which a scatter draws the listed blocks' ``n_atoms`` atoms under v."""
    share = 1.0 / (n_outside + 1.0)
    log_q = -lgamma(n_atoms + 1.0)
    for at in range(n):
        n_under = pieces.part_of[at]
        if _is_inside(pieces, at):
            log_q += log(share) + lgamma(float(n_under))
        else:
            log_q += lgamma(n_under + share) - lgamma(share)
    return log_q


@inner
def _set_blocks(pieces: Pieces, n: int) -> None:
    """Give the listed blocks what they have after the move, and close those left empty."""
    for at in range(n):
        k = pieces.order[at]
        if pieces.part_count[at] > 0:
            count, marginal = pieces.part_count[at], pieces.part_marginal[at]
            set_block(pieces, k, pieces.part_rows, at, count, marginal)
        else:
            close_block(pieces.partition, k)


@inner
def _clear_rows(pieces: Pieces, n: int) -> None:
    """Give back the room of the listed blocks' scratch rows, which may be whole large blocks'."""
    for at in range(n):
        clear_row(pieces.part_rows, at)


@inner
def _gather(rng: Generator, guide: Guide, pieces: Pieces, model: Model, v: int) -> Info:
    partition, seating = pieces.partition, model.seating
    n_blocks = partition.n_blocks[0]
    stamp = new_epoch(pieces)
    n = _take_out(guide, pieces, v, stamp)
    n_outside = n_blocks - _count_inside(pieces, n)
    ratio = _gain(pieces, model, n) + log_size(seating, guide.size[v]) + guide.log_marginal[v]
    ratio += seating.log_blocks[n_outside + 1] - seating.log_blocks[n_blocks]
    ratio += _log_scattered(pieces, n, n_outside, guide.n_leaves[v]) + LOG_SCATTERS
    if not coin(rng, exp(min(ratio, 0.0))):
        _clear_rows(pieces, n)
        return Info(MERGE, ratio, 0)
    target = open_block(partition)
    move_part(guide, pieces, v, stamp, target)
    coalesce(guide, pieces, v)
    set_block(pieces, target, guide.rows, v, guide.size[v], guide.log_marginal[v])
    _set_blocks(pieces, n)
    _clear_rows(pieces, n)
    return Info(MERGE, ratio, 1)


@inner
def _scatter(rng: Generator, guide: Guide, pieces: Pieces, model: Model, v: int) -> Info:
    partition, seating = pieces.partition, model.seating
    own, before = pieces.pure[v], partition.n_blocks[0]
    n = _draw_scattered(rng, guide, pieces, v, new_epoch(pieces))
    n_new = partition.n_blocks[0] - before
    ratio = _gain(pieces, model, n) - log_size(seating, guide.size[v]) - guide.log_marginal[v]
    ratio += seating.log_blocks[before - 1 + n_new] - seating.log_blocks[before]
    ratio -= _log_scattered(pieces, n, before - 1, guide.n_leaves[v]) + LOG_SCATTERS
    stays = n == 1 and n_new == 1
    if stays or not coin(rng, exp(min(ratio, 0.0))):
        close_last_blocks(partition, n_new)
        _clear_rows(pieces, n)
        return Info(NULL, 0.0, 0) if stays else Info(SPLIT, ratio, 0)
    stamp = new_epoch(pieces)
    pieces.marked[own] = stamp
    for i in range(guide.n_leaves[v]):
        leaf = guide.node[guide.first[v] + i]
        move_part(guide, pieces, leaf, stamp, pieces.part_label[i])
    coalesce(guide, pieces, v)
    _set_blocks(pieces, n)
    _clear_rows(pieces, n)
    close_block(partition, own)
    return Info(SPLIT, ratio, 1)


@inner
def step(rng: Generator, guide: Guide, pieces: Pieces, model: Model, v: int) -> Info:
    """Gather the atoms under v; now and then, where they are one block already, scatter them."""
    is_scatter = coin(rng, SCATTERS)
    k = pieces.pure[v]
    is_gathered = k != _NONE and pieces.partition.size[k] == guide.size[v]
    if is_gathered != is_scatter:
        return Info(NULL, 0.0, 0)
    if is_scatter:
        return _scatter(rng, guide, pieces, model, v)
    return _gather(rng, guide, pieces, model, v)
