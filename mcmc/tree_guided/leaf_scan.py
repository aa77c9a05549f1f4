"""K1 at leaves in the whole tree, many in a row: collapsed Gibbs while the partition is pieces.

Index: a leaf, from which a walk with wide strides visits others too. Each is redrawn among all
blocks and a new one, as K1 does with the root for a window, but the blocks' predictive tables are
kept side by side from one visit to the next, and a leaf that stays where it is changes nothing. A
window seldom has the block that an atom of the wrong cluster belongs to; this has all of them.

Families that ask blocks one after another, among them that of sparse rows, are not visited: there a
visit costs as much as many moves of the other kernels. Which families these are is known
beforehand, so every scan is exact. Cost: one table and one predictive density a block, for each
leaf.
"""

import numpy as np
from numpy.random import Generator

from weald.mcmc.state.pieces import Pieces, wide_stride
from weald.treecore.compiled.compile import allocating, generic, implements, inner
from weald.treecore.compiled.draw import below, choose
from weald.treecore.compiled.reference import by_reference
from weald.treecore.family.interface.base import (
    fill_predictive,
    log_predictive,
    make_batched,
    weigh,
)
from weald.treecore.family.interface.batched_predictive import BatchedPredictives, OneByOne
from weald.treecore.guide.guide import Guide
from weald.treecore.partition.partition import (
    Model,
    close_block,
    end_of_slots,
    mark_changed,
    open_block,
    show_block,
)
from weald.treecore.prior.base import log_growth, log_new_block, log_size
from weald.treecore.statistics.rows import copy_row, subtract_row

from . import subtree_gibbs
from .subtree_gibbs import PART, REST, carry_part

__all__ = ["scan"]


@inner
def _weigh(
    batched: BatchedPredictives,
    end: int,
    guide: Guide,
    pieces: Pieces,
    model: Model,
    v: int,
    c: int,
) -> int:
    """Log weights of leaf v, of block c, in the open blocks and in a new one; their number.

    That of c is without v, and its rest is left in the scratch row; where nothing is left, the new
    block stands for c.
    """
    partition, seating, weights = pieces.partition, model.seating, pieces.log_weights
    k = partition.n_blocks[0]
    left = partition.size[c] - guide.size[v]
    n_others = k if left > 0 else k - 1
    weights[k] = log_new_block(seating, n_others) + log_size(seating, guide.size[v])
    weights[k] += guide.log_marginal[v]
    largest, there = weights[k], -np.inf
    if left > 0:
        # A closed slot's table is anybody's.
        spare = partition.slots[k]
        copy_row(pieces.part_rows, REST, partition.rows, c)
        subtract_row(pieces.part_rows, REST, guide.rows, v)
        table = partition.predictive
        fill_predictive(model.family, pieces.part_rows, REST, table, spare, model.work)
        there = log_growth(seating, left, guide.size[v])
        there += log_predictive(model.family, table, spare, guide.rows, v)
        largest = max(largest, there)
    # What c's column says is with v in it.
    with_it = batched.prior[c]
    batched.prior[c] = -np.inf
    weigh(model.family, batched, end, partition.slots[:k], guide.rows, v, largest, weights)
    batched.prior[c] = with_it
    weights[partition.position[c]] = there
    return k + 1


@inner
def _move(guide: Guide, pieces: Pieces, v: int, c: int, target: int) -> None:
    """Carry leaf v over from block c, whose rest is in the scratch row, to ``target``."""
    partition, count = pieces.partition, guide.size[v]
    copy_row(pieces.part_rows, PART, guide.rows, v)
    carry_part(guide, pieces, v, c, target, count)
    if partition.size[c] == count:
        close_block(partition, c)
        return
    copy_row(partition.rows, c, pieces.part_rows, REST)
    partition.size[c] -= count
    mark_changed(partition, c)


@inner
def _visit(
    batched: BatchedPredictives,
    end: int,
    rng: Generator,
    guide: Guide,
    pieces: Pieces,
    model: Model,
    leaf: int,
) -> int:
    """Redraw the block of a leaf; returns a number that all open slots are below."""
    partition = pieces.partition
    v = guide.node[leaf]
    c = pieces.pure[v]
    if pieces.nodes.single[v] == 1:
        new = _weigh(batched, end, guide, pieces, model, v, c) - 1
        chosen = choose(rng, pieces.log_weights, new + 1)
        # A leaf alone in its block that draws a new one is where it was.
        stays = (
            partition.size[c] == guide.size[v] if chosen == new else partition.slots[chosen] == c
        )
        if stays:
            return end
        target = open_block(partition) if chosen == new else partition.slots[chosen]
        _move(guide, pieces, v, c, target)
    else:
        # A bundle of several observations: K1 with the root for a window (section 6.1).
        subtree_gibbs.step(rng, guide, pieces, model, v, 0, leaf)
    target = pieces.pure[v]
    # Only the two blocks that changed have other tables for the next leaf.
    if target < batched.found.shape[0]:
        show_block(batched, model, partition, c)
        show_block(batched, model, partition, target)
    return max(end, target + 1)


@inner
def _visit_within(
    batched: BatchedPredictives,
    rng: Generator,
    guide: Guide,
    pieces: Pieces,
    model: Model,
    walk: tuple[int, int, int],
) -> tuple[int, int]:
    """Visits while there is room; ``walk`` is the next leaf, the stride and how many are left.

    Returns the next leaf and how many are left.
    """
    batched, partition = by_reference(batched), pieces.partition
    leaf, stride, left = walk
    end = end_of_slots(partition)
    for at in range(partition.n_blocks[0]):
        show_block(batched, model, partition, partition.slots[at])
    while left > 0 and end <= batched.found.shape[0]:
        end = _visit(batched, end, rng, guide, pieces, model, leaf)
        leaf = (leaf + stride) % guide.n_leaves[0]
        left -= 1
    return leaf, left


@generic
def _scan_blocks(
    batched: OneByOne | BatchedPredictives,
    rng: Generator,
    guide: Guide,
    pieces: Pieces,
    model: Model,
    n: int,
) -> int:
    """Visit n leaves, asking the blocks as the family's tables stand; returns how many were."""
    raise NotImplementedError


@implements(_scan_blocks, OneByOne)
def _scan_none(
    _batched: OneByOne, _rng: Generator, _guide: Guide, _pieces: Pieces, _model: Model, _n: int
) -> int:
    return 0


@implements(_scan_blocks, BatchedPredictives)
def _scan_batched(
    batched: BatchedPredictives, rng: Generator, guide: Guide, pieces: Pieces, model: Model, n: int
) -> int:
    stride, left = wide_stride(guide.n_leaves[0]), n
    leaf = below(rng, guide.n_leaves[0])
    leaf, left = _visit_within(batched, rng, guide, pieces, model, (leaf, stride, left))
    while left > 0:
        batched = make_batched(model.family, 2 * end_of_slots(pieces.partition))
        leaf, left = _visit_within(batched, rng, guide, pieces, model, (leaf, stride, left))
    return n


@allocating
def scan(rng: Generator, guide: Guide, pieces: Pieces, model: Model, n: int) -> int:
    """Redraw the blocks of ``n`` leaves, or of none; returns how many were visited."""
    room = make_batched(model.family, 2 * end_of_slots(pieces.partition))
    return _scan_blocks(room, rng, guide, pieces, model, n)
