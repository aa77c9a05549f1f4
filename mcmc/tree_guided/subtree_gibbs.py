"""K1, windowed subtree Gibbs: the atoms of a block under a node move together.

Index (v, w, i): a node v, an ancestor w of v (or the root) and an atom i under v, picked by
probabilities that don't depend on the partition. The part B of i's block that lies under v is
redrawn among the blocks with atoms under w but none under v, and a new block. With v a leaf and w
the root this is collapsed Gibbs. It is a draw from the posterior restricted to a class of
partitions that is the same before and after, so it is exact for every guide (``tgmcmc-ibhc.md``
section 6.1). Cost: the pieces under w, and one evaluation a candidate block.
"""

from numpy.random import Generator

from weald.mcmc.state.atom_state import CONDITIONAL, NULL, Info
from weald.mcmc.state.pieces import Pieces, coalesce, move_part, new_epoch, next_piece, set_block
from weald.treecore.compiled.compile import inner
from weald.treecore.compiled.draw import choose
from weald.treecore.family.interface.base import log_marginal, log_marginal_sums
from weald.treecore.family.interface.batched_predictive import NEGLIGIBLE
from weald.treecore.guide.guide import Guide
from weald.treecore.partition.partition import (
    Model,
    block_log_marginal,
    close_block,
    log_join_above,
    mark_changed,
    open_block,
)
from weald.treecore.prior.base import log_growth, log_new_block, log_size
from weald.treecore.statistics.rows import add_row, clear_row, copy_row, subtract_row

__all__ = ["PART", "REST", "carry_part", "step"]

_NONE = -1
# The two scratch rows used here: the part that moves, and what is left of its block.
PART, REST = 0, 1


@inner
def _gather_part(guide: Guide, pieces: Pieces, v: int, c: int) -> int:
    """Sum the atoms of block c under v into the part row; returns their number of observations."""
    rows = pieces.part_rows
    if pieces.pure[v] != _NONE:
        copy_row(rows, PART, guide.rows, v)
        return guide.size[v]
    clear_row(rows, PART)
    count = 0
    end = v + guide.n_nodes[v]
    u = next_piece(pieces, v, end)
    while u < end:
        if pieces.pure[u] == c:
            add_row(rows, PART, guide.rows, u)
            count += guide.size[u]
        u = next_piece(pieces, u + guide.n_nodes[u], end)
    return count


@inner
def _stamp_blocks(guide: Guide, pieces: Pieces, v: int, stamp: int) -> None:
    """Stamp the blocks that have an atom under v."""
    end = v + guide.n_nodes[v]
    u = next_piece(pieces, v, end)
    while u < end:
        pieces.marked[pieces.pure[u]] = stamp
        u = next_piece(pieces, u + guide.n_nodes[u], end)


@inner
def _candidates(guide: Guide, pieces: Pieces, v: int, w: int, c: int) -> tuple[int, bool]:
    """List in ``order`` the blocks with atoms under w but none under v; c itself is never listed.

    Returns their number and whether block c has an atom under w that is not under v.
    """
    inside = new_epoch(pieces)
    _stamp_blocks(guide, pieces, v, inside)
    partition = pieces.partition
    n = 0
    # Under the root is every block, and what is left of c, without a walk over the pieces.
    if w == 0:
        for at in range(partition.n_blocks[0]):
            k = partition.slots[at]
            if pieces.marked[k] != inside:
                pieces.order[n] = k
                n += 1
        return n, True
    listed = new_epoch(pieces)
    rest_in_window = False
    u, end = w, w + guide.n_nodes[w]
    while u < end:
        block = _NONE if u == v else pieces.pure[u]
        if block == c:
            rest_in_window = True
        # Without either stamp a block has no atom under v and is not listed yet.
        elif block != _NONE and pieces.marked[block] < inside:
            pieces.marked[block] = listed
            pieces.order[n] = block
            n += 1
        # Into mixed nodes, past pieces, and past v, whose atoms are the part itself or of others
        # that may not be candidates.
        u += 1 if block == _NONE and u != v else guide.n_nodes[u]
    return n, rest_in_window


@inner
def _weigh_joins(model: Model, pieces: Pieces, v: int, n: int, count: int, largest: float) -> None:
    """Log weights of the part in each of the n candidates; ``largest`` is that of another place.

    A weight that is beyond notice beside it may be minus infinity.
    """
    partition, seating = pieces.partition, model.seating
    order, weights = pieces.order, pieces.log_weights
    single = pieces.nodes.single[v] == 1
    if not single:
        rows, part, work = partition.rows, pieces.part_rows, model.work
        log_marginal_sums(model.family, rows, order[:n], part, PART, weights[:n], work)
    for at in range(n):
        k = order[at]
        weight = log_growth(seating, partition.size[k], count)
        if single:
            least = largest - weight - NEGLIGIBLE
            weights[at] = weight + log_join_above(model, pieces.nodes, partition, v, k, least)
            largest = max(largest, weights[at])
        else:
            weights[at] += weight - block_log_marginal(model, partition, k)


@inner
def carry_part(guide: Guide, pieces: Pieces, v: int, c: int, target: int, count: int) -> None:
    """Carry the part under v, of ``count`` observations, over to the open block ``target``.

    Its sums are in row ``PART``. What is left of its block c is for the caller to set.
    """
    partition = pieces.partition
    stamp = new_epoch(pieces)
    pieces.marked[c] = stamp
    add_row(partition.rows, target, pieces.part_rows, PART)
    partition.size[target] += count
    mark_changed(partition, target)
    move_part(guide, pieces, v, stamp, target)
    coalesce(guide, pieces, v)


@inner
def step(
    rng: Generator, guide: Guide, pieces: Pieces, model: Model, v: int, w: int, leaf: int
) -> Info:
    """Redraw the block of the part under v of the block of the atom at leaf position ``leaf``.

    ``w`` is an ancestor of v, or the root (node 0); ``leaf`` lies under v.
    """
    partition, seating = pieces.partition, model.seating
    c = pieces.pure[guide.node[leaf]]
    count = _gather_part(guide, pieces, v, c)
    total = partition.size[c]
    n, rest_in_window = _candidates(guide, pieces, v, w, c)
    has_rest = total > count
    # What is left of the block has no atom in the window, so that it would be no candidate for the
    # way back: such an index moves nothing.
    if has_rest and not rest_in_window:
        return Info(NULL, 0.0, 0)

    # Candidates stand in this order: the blocks listed, a new one (n), the own block (n + 1).
    weights = pieces.log_weights
    n_others = partition.n_blocks[0] if has_rest else partition.n_blocks[0] - 1
    weights[n] = log_new_block(seating, n_others) + log_size(seating, count)
    # A part that is a whole node of the guide has its marginal there already.
    if pieces.pure[v] != _NONE:
        weights[n] += guide.log_marginal[v]
    else:
        weights[n] += log_marginal(model.family, pieces.part_rows, PART, model.work)
    rest = 0.0
    # What the part adds where it is: the whole block against the block without it.
    if has_rest:
        copy_row(pieces.part_rows, REST, partition.rows, c)
        subtract_row(pieces.part_rows, REST, pieces.part_rows, PART)
        rest = log_marginal(model.family, pieces.part_rows, REST, model.work)
        weights[n + 1] = log_growth(seating, total - count, count)
        weights[n + 1] += block_log_marginal(model, partition, c) - rest
    # Weighed last, against the weight of staying: what is beyond notice beside it is not computed.
    _weigh_joins(model, pieces, v, n, count, weights[n + 1] if has_rest else weights[n])

    chosen = choose(rng, weights, n + 2 if has_rest else n + 1)
    if chosen == n + 1 or (chosen == n and not has_rest):
        return Info(CONDITIONAL, 0.0, 1)
    # A draw from the full conditional: accepted as it is.
    target = open_block(partition) if chosen == n else pieces.order[chosen]
    carry_part(guide, pieces, v, c, target, count)
    if has_rest:
        set_block(pieces, c, pieces.part_rows, REST, total - count, rest)
    else:
        close_block(partition, c)
    return Info(CONDITIONAL, 0.0, 1)
