"""K2, tree-blocked split-merge: Jain and Neal's proposal with subtrees in place of points.

Index (i, j, open nodes): two leaves on different sides of a picked node, and a coin for every node
whether it is closed. The atoms A of the two blocks fall into frontier parts: going down from the
root, a node that doesn't hold both i and j and is closed is one part. Parts are allocated in order
of size to the sides of i and j, each in proportion to what the side makes of it. The frontier and
its order depend on the index and on A only, which are the same before and after, so the ratio needs
one recursion (``tgmcmc-ibhc.md`` section 6.2). A merge is refused as soon as coins for what is
known of its ratio say so, and then reports that bound. Cost: pieces of A times depth, and two
evaluations a part.

With atoms for parts no two blocks straddle: what has split one diffuse cluster in large pieces is
mended so. Then the direction is in the index too, as in K4 and K5, since a split of a large block
costs a pass and is hardly ever accepted; and neighbours in the guide are allocated far from each
other, so that both sides soon have their form. Both are ours.
"""

from math import exp, inf, log1p

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
from weald.treecore.compiled.draw import coin, survives_fall
from weald.treecore.family.interface.base import log_marginal, log_marginal_sum
from weald.treecore.guide.guide import Guide
from weald.treecore.partition.partition import Model, block_log_marginal, close_block, open_block
from weald.treecore.prior.base import log_new_block, log_size
from weald.treecore.statistics.rows import add_row, clear_row, copy_row

from .subtree_gather import LOG_SCATTERS, SCATTERS

__all__ = ["step"]

_NONE = -1
_LEAST_CLOSED = 0.9
# Scratch rows: the two sides; parts of mixed nodes follow from _FIRST_PART on.
_SIDE_I, _SIDE_J, _FIRST_PART = 0, 1, 2


@inner
def _stamp_ancestors(guide: Guide, pieces: Pieces, k: int, stamp: int) -> None:
    """Stamp in ``met`` every node with an atom of block k below it that is not inside a piece."""
    v = pieces.partition.head[k]
    while v != _NONE:
        u = v
        while u != _NONE and pieces.met[u] != stamp:
            pieces.met[u] = stamp
            u = guide.parent[u]
        v = pieces.partition.following[v]


@inner
def _is_closed(rng: Generator, guide: Guide, v: int, cap: int) -> bool:
    if guide.n_leaves[v] == 1:
        return True
    if guide.size[v] > cap:
        return False
    together = 1.0 / (1.0 + exp(guide.log_dissimilarity[v]))
    return coin(rng, max(_LEAST_CLOSED, together))


@inner
def _frontier(
    rng: Generator, guide: Guide, pieces: Pieces, node_i: int, node_j: int, cap: int, stamp: int
) -> int:
    """List in ``order`` the frontier nodes of the atoms whose blocks carry ``stamp``.

    The atoms of both leaves' blocks have their ancestors stamped in ``met``. Returns the length.
    """
    pure, marked, met = pieces.pure, pieces.marked, pieces.met
    n = 0
    v = 0
    n_nodes = guide.parent.shape[0]
    while v < n_nodes:
        end = v + guide.n_nodes[v]
        meets = met[v] == stamp if pure[v] == _NONE else marked[pure[v]] == stamp
        if not meets:
            v = end
            continue
        holds_both = v <= node_i < end and v <= node_j < end
        if not holds_both and _is_closed(rng, guide, v, cap):
            pieces.order[n] = v
            n += 1
            v = end
        else:
            v += 1
    return n


@inner
def _sort_by_size(pieces: Pieces, n: int) -> None:
    """Shell sort of ``order[:n]`` by falling ``part_count``, ties by position."""
    order, size = pieces.order, pieces.part_count
    gap = n // 2
    while gap > 0:
        for at in range(gap, n):
            v = order[at]
            to = at
            while to >= gap:
                u = order[to - gap]
                if size[u] > size[v] or (size[u] == size[v] and u < v):
                    break
                order[to] = u
                to -= gap
            order[to] = v
        gap //= 2


@inner
def _deal_out(pieces: Pieces, n: int) -> None:
    """Put ``order[:n]`` in an order in which neighbours are far from each other."""
    stride, at = wide_stride(n), 0
    for to in range(n):
        pieces.found[to] = pieces.order[at]
        at = (at + stride) % n
    for to in range(n):
        pieces.order[to] = pieces.found[to]


@inner
def _order(pieces: Pieces, n: int, cap: int) -> None:
    if cap == 0:
        _deal_out(pieces, n)
    else:
        _sort_by_size(pieces, n)


@inner
def _gather_parts(guide: Guide, pieces: Pieces, n: int, stamp: int) -> bool:
    """Statistics and block of each frontier part; False when a part straddles two blocks.

    ``part_of`` is the scratch row of a mixed node's part, -1 for a pure node.
    """
    n_rows = _FIRST_PART
    for at in range(n):
        v = pieces.order[at]
        if pieces.pure[v] != _NONE:
            pieces.part_of[v] = _NONE
            pieces.part_count[v] = guide.size[v]
            pieces.part_label[v] = pieces.pure[v]
            continue
        clear_row(pieces.part_rows, n_rows)
        pieces.part_of[v] = n_rows
        pieces.part_count[v] = 0
        pieces.part_label[v] = _NONE
        end = v + guide.n_nodes[v]
        u = next_piece(pieces, v, end)
        while u < end:
            block = pieces.pure[u]
            if pieces.marked[block] == stamp:
                # A part in both blocks could not have been allocated so: no split leads back here,
                # and the merge has probability 0 (section 6.2).
                if pieces.part_label[v] != _NONE and pieces.part_label[v] != block:
                    return False
                pieces.part_label[v] = block
                pieces.part_count[v] += guide.size[u]
                add_row(pieces.part_rows, n_rows, guide.rows, u)
            u = next_piece(pieces, u + guide.n_nodes[u], end)
        n_rows += 1
    return True


@inner
def _grow_side(guide: Guide, pieces: Pieces, side: int, v: int) -> None:
    if pieces.part_of[v] == _NONE:
        add_row(pieces.part_rows, side, guide.rows, v)
    else:
        add_row(pieces.part_rows, side, pieces.part_rows, pieces.part_of[v])


@inner
def _start_side(guide: Guide, pieces: Pieces, model: Model, side: int, v: int) -> float:
    clear_row(pieces.part_rows, side)
    _grow_side(guide, pieces, side, v)
    return log_marginal(model.family, pieces.part_rows, side, model.work)


@inner
def _marginal_with(guide: Guide, pieces: Pieces, model: Model, side: int, v: int) -> float:
    rows, row = pieces.part_rows, pieces.part_of[v]
    if row == _NONE:
        return log_marginal_sum(model.family, rows, side, guide.rows, v, model.work)
    return log_marginal_sum(model.family, rows, side, rows, row, model.work)


@inner
def _allocate(
    rng: Generator,
    guide: Guide,
    pieces: Pieces,
    model: Model,
    n: int,
    forced_j: int,
    gain: float,
) -> tuple[float, float, float, int, int, bool]:
    """Allocate the frontier in order; ``tally[v]`` becomes the side of each part.

    The parts that hold i and j come with ``part_label`` -2 and -3. With ``forced_j`` a block, the
    parts of that block go to side j, the others to side i, as they are now. Returns the log
    probability of the allocation, both sides' log marginals and both sizes, and whether a proposal
    whose log ratio is the sum of this probability and ``gain`` has survived the coins for it, which
    are thrown as it falls.
    """
    # Both sides begin with the part that holds their anchor, which no draw has put there.
    side_of = pieces.tally
    sizes_i, sizes_j = 0, 0
    marginal_i, marginal_j = 0.0, 0.0
    for at in range(n):
        v = pieces.order[at]
        if side_of[v] == 1:
            marginal_i = _start_side(guide, pieces, model, _SIDE_I, v)
            sizes_i = pieces.part_count[v]
        elif side_of[v] == 2:
            marginal_j = _start_side(guide, pieces, model, _SIDE_J, v)
            sizes_j = pieces.part_count[v]
    # Then each part by what the sides make of it, the prior's growth included.
    log_q, survives = 0.0, min(gain, 0.0)
    seating = model.seating
    for at in range(n):
        v = pieces.order[at]
        if side_of[v] != 0:
            continue
        count = pieces.part_count[v]
        with_i = _marginal_with(guide, pieces, model, _SIDE_I, v)
        with_j = _marginal_with(guide, pieces, model, _SIDE_J, v)
        gain_i = with_i - marginal_i + log_size(seating, sizes_i + count)
        gain_i -= log_size(seating, sizes_i)
        gain_j = with_j - marginal_j + log_size(seating, sizes_j + count)
        gain_j -= log_size(seating, sizes_j)
        difference = gain_j - gain_i
        # log of 1 / (1 + e^difference), and of its complement, without overflow
        log_i = -max(difference, 0.0) - log1p(exp(-abs(difference)))
        log_j = log_i + difference
        to_j = not coin(rng, exp(log_i)) if forced_j == _NONE else pieces.part_label[v] == forced_j
        if to_j:
            side_of[v] = 2
            _grow_side(guide, pieces, _SIDE_J, v)
            marginal_j = with_j
            sizes_j += count
            log_q += log_j
        else:
            side_of[v] = 1
            _grow_side(guide, pieces, _SIDE_I, v)
            marginal_i = with_i
            sizes_i += count
            log_q += log_i
        # The acceptance coin of a merge, thrown piece by piece as the bound on its ratio falls.
        left = min(gain + log_q, 0.0)
        if not survives_fall(rng, survives, left):
            return log_q, marginal_i, marginal_j, sizes_i, sizes_j, False
        survives = left
    return log_q, marginal_i, marginal_j, sizes_i, sizes_j, True


@inner
def _move_side(guide: Guide, pieces: Pieces, n: int, side: int, target: int, stamp: int) -> None:
    """Move every part on the given side to block ``target``, then make pieces maximal again."""
    side_of = pieces.tally
    for at in range(n):
        v = pieces.order[at]
        if side_of[v] == side:
            move_part(guide, pieces, v, stamp, target)
    for at in range(n):
        v = pieces.order[at]
        if side_of[v] == side:
            coalesce(guide, pieces, v)


@inner
def _merge_gain(pieces: Pieces, model: Model, a: int, b: int) -> tuple[float, float]:
    """Log posterior ratio of merging blocks a and b, and their union's log marginal."""
    partition, seating = pieces.partition, model.seating
    size_a, size_b = partition.size[a], partition.size[b]
    union = log_marginal_sum(model.family, partition.rows, a, partition.rows, b, model.work)
    gain = log_size(seating, size_a + size_b) - log_size(seating, size_a)
    gain -= log_size(seating, size_b) + log_new_block(seating, partition.n_blocks[0] - 1)
    gain += union - block_log_marginal(model, partition, a)
    return gain - block_log_marginal(model, partition, b), union


@inner
def _split(
    rng: Generator,
    guide: Guide,
    pieces: Pieces,
    model: Model,
    n: int,
    a: int,
    sides: tuple[tuple[int, float], tuple[int, float]],
    log_q: float,
) -> Info:
    """Give side j of block a, whose n parts are allocated, a block of its own, or leave it."""
    partition, seating = pieces.partition, model.seating
    (size_i, marginal_i), (size_j, marginal_j) = sides
    ratio = log_new_block(seating, partition.n_blocks[0]) - log_size(seating, partition.size[a])
    ratio += log_size(seating, size_i) + log_size(seating, size_j)
    ratio += marginal_i + marginal_j - block_log_marginal(model, partition, a) - log_q
    if not coin(rng, exp(min(ratio, 0.0))):
        return Info(SPLIT, ratio, 0)
    target = open_block(partition)
    _move_side(guide, pieces, n, 2, target, pieces.marked[a])
    set_block(pieces, a, pieces.part_rows, _SIDE_I, size_i, marginal_i)
    set_block(pieces, target, pieces.part_rows, _SIDE_J, size_j, marginal_j)
    return Info(SPLIT, ratio, 1)


@inner
def step(
    rng: Generator, guide: Guide, pieces: Pieces, model: Model, leaf_i: int, leaf_j: int, cap: int
) -> Info:
    """Propose to split the block of two leaf positions, or to merge their blocks.

    Nodes with more than ``cap`` observations are always open; with a cap of 0 the parts are atoms.
    """
    partition = pieces.partition
    node_i, node_j = guide.node[leaf_i], guide.node[leaf_j]
    a, b = pieces.pure[node_i], pieces.pure[node_j]
    by_atoms = cap == 0
    if by_atoms and coin(rng, SCATTERS) != (a == b):
        return Info(NULL, 0.0, 0)
    favour = LOG_SCATTERS if by_atoms else 0.0
    gain, union = inf, 0.0
    if a != b:
        # What a merge gains bounds its ratio: most are refused before anything is allocated.
        gain, union = _merge_gain(pieces, model, a, b)
        gain += favour
        if not coin(rng, exp(min(gain, 0.0))):
            return Info(MERGE, gain, 0)
    # One stamp for both blocks: from here on the move sees their union, as its reverse does.
    stamp = new_epoch(pieces)
    pieces.marked[a] = stamp
    pieces.marked[b] = stamp
    _stamp_ancestors(guide, pieces, a, stamp)
    if b != a:
        _stamp_ancestors(guide, pieces, b, stamp)
    n = _frontier(rng, guide, pieces, node_i, node_j, cap, stamp)
    if not _gather_parts(guide, pieces, n, stamp):
        return Info(NULL, 0.0, 0)
    side_of = pieces.tally
    for at in range(n):
        v = pieces.order[at]
        end = v + guide.n_nodes[v]
        # Sides: 1 has i, 2 has j, 0 is not allocated yet.
        side_of[v] = 1 if v <= node_i < end else (2 if v <= node_j < end else 0)
    _order(pieces, n, cap)
    log_q, marginal_i, marginal_j, size_i, size_j, survives = _allocate(
        rng, guide, pieces, model, n, _NONE if a == b else b, gain
    )

    # Split and merge share what is above; a split's ratio needs the sides' final sizes.
    if a == b:
        sides = ((size_i, marginal_i), (size_j, marginal_j))
        return _split(rng, guide, pieces, model, n, a, sides, log_q + favour)
    if not survives:
        return Info(MERGE, gain + log_q, 0)
    copy_row(pieces.part_rows, _SIDE_I, partition.rows, a)
    add_row(pieces.part_rows, _SIDE_I, partition.rows, b)
    # Block a stays and takes side j: its own pieces, without the stamp, are not moved.
    pieces.marked[a] = 0
    _move_side(guide, pieces, n, 2, a, stamp)
    set_block(pieces, a, pieces.part_rows, _SIDE_I, size_i + size_j, union)
    close_block(partition, b)
    return Info(MERGE, gain + log_q, 1)
