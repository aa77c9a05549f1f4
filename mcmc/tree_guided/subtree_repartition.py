"""K3, subtree re-partition: a Gibbs draw from the tree posterior of hierarchical clustering.

Index: a node v. U is the union of the blocks that lie entirely under v, t the guide restricted to
U. Where the blocks of U are all nodes of t they are redrawn top-down: a node of t stays one block
with probability ``1 / (1 + d)``, else both children are asked. That is the conditional posterior
over the tree-consistent partitions of U for a prior of product form; for another prior of Gibbs
type the draw is a proposal, whose ratio is what the number of blocks adds (``tgmcmc-ibhc.md``
section 6.3). Reducible alone. Cost: the pieces under v.
"""

from math import exp, log1p

from numpy.random import Generator

from weald.mcmc.state.atom_state import CONDITIONAL, NULL, Info
from weald.mcmc.state.pieces import Pieces, coalesce, move_part, new_epoch, next_piece, set_block
from weald.treecore.compiled.compile import inner
from weald.treecore.compiled.draw import coin
from weald.treecore.family.interface.base import log_marginal
from weald.treecore.forest.forest import log_hypothesis
from weald.treecore.guide.guide import Guide, right_child
from weald.treecore.partition.partition import Model, close_block, open_block
from weald.treecore.statistics.rows import add_row, copy_row

__all__ = ["stamp_inner_blocks", "step"]

_NONE = -1
_EMPTY, _SEVERAL = -2, -1


@inner
def stamp_inner_blocks(guide: Guide, pieces: Pieces, v: int) -> tuple[int, int]:
    """Stamp the blocks that lie entirely under v; returns their number and the stamp."""
    partition, n_seen = pieces.partition, pieces.tally
    seen = new_epoch(pieces)
    inner = new_epoch(pieces)
    n_inner = 0
    end = v + guide.n_nodes[v]
    u = next_piece(pieces, v, end)
    while u < end:
        block = pieces.pure[u]
        if pieces.partition.label[u] == _NONE:
            return 0, inner
        if pieces.marked[block] < seen:
            pieces.marked[block] = seen
            n_seen[block] = 0
        n_seen[block] += guide.size[u]
        if n_seen[block] == partition.size[block]:
            pieces.marked[block] = inner
            n_inner += 1
        u = next_piece(pieces, u + guide.n_nodes[u], end)
    return n_inner, inner


@inner
def _combine(guide: Guide, pieces: Pieces, model: Model, u: int, n_rows: int) -> int:
    """Part of U under the mixed node u from its children's; returns the next free scratch row."""
    left, right = u + 1, right_child(guide, u)
    part_of, label = pieces.part_of, pieces.part_label
    # A node with atoms of U on one side only is no node of the restricted tree: its child stands
    # for it.
    if label[left] == _EMPTY or label[right] == _EMPTY:
        only = right if label[left] == _EMPTY else left
        part_of[u] = part_of[only]
        label[u] = label[only]
        pieces.part_count[u] = pieces.part_count[only]
        pieces.part_marginal[u] = pieces.part_marginal[only]
        pieces.part_potential[u] = pieces.part_potential[only]
        return n_rows
    # Sums of both sides; those of a part that is a whole guide node are in the guide's own rows.
    for part in range(2):
        child = left if part == 0 else right
        row = part_of[child]
        if part == 0:
            if row < 0:
                copy_row(pieces.part_rows, n_rows, guide.rows, -1 - row)
            else:
                copy_row(pieces.part_rows, n_rows, pieces.part_rows, row)
        elif row < 0:
            add_row(pieces.part_rows, n_rows, guide.rows, -1 - row)
        else:
            add_row(pieces.part_rows, n_rows, pieces.part_rows, row)
    part_of[u] = n_rows
    label[u] = label[left] if label[left] == label[right] else _SEVERAL
    count = pieces.part_count[left] + pieces.part_count[right]
    pieces.part_count[u] = count
    pieces.part_marginal[u] = log_marginal(model.family, pieces.part_rows, n_rows, model.work)
    # log phi = log(e^together + e^apart) and d = apart / together, as for the whole guide (section
    # 2).
    together = log_hypothesis(model, count, pieces.part_marginal[u])
    d = pieces.part_potential[left] + pieces.part_potential[right] - together
    pieces.part_d[u] = d
    pieces.part_potential[u] = together + max(d, 0.0) + log1p(exp(-abs(d)))
    return n_rows + 1


@inner
def _restrict(guide: Guide, pieces: Pieces, model: Model, v: int, inner: int) -> int:
    """Potentials of the guide restricted to U at and under v.

    Returns how many blocks are nodes of it. ``part_of`` is a scratch row, or -1 - node where the
    part is all of a guide node.
    """
    partition, label = pieces.partition, pieces.part_label
    n_found = 0
    n = 0
    # Nodes above the pieces and the pieces themselves, parents first.
    u, end = v, v + guide.n_nodes[v]
    while u < end:
        pieces.found[n] = u
        n += 1
        u += 1 if pieces.pure[u] == _NONE else guide.n_nodes[u]
    n_rows = 0
    # Backwards children come before their parents.
    for at in range(n - 1, -1, -1):
        u = pieces.found[at]
        block = pieces.pure[u]
        if block == _NONE:
            joined = label[u + 1] != _EMPTY and label[right_child(guide, u)] != _EMPTY
            n_rows = _combine(guide, pieces, model, u, n_rows)
            new_node = joined
        elif pieces.marked[block] == inner:
            label[u] = block
            pieces.part_of[u] = -1 - u
            pieces.part_count[u] = guide.size[u]
            pieces.part_marginal[u] = guide.log_marginal[u]
            pieces.part_potential[u] = guide.log_potential[u]
            new_node = True
        else:
            label[u] = _EMPTY
            new_node = False
        # A block is a node of the restricted tree where all of its observations are in one part;
        # above that, a node that one child stands for would count it twice.
        if new_node and label[u] >= 0:
            n_found += pieces.part_count[u] == partition.size[label[u]]
    return n_found


@inner
def _redraw(rng: Generator, guide: Guide, pieces: Pieces, v: int) -> int:
    """List in ``found`` the nodes whose parts of U become blocks; returns their number."""
    order, label = pieces.order, pieces.part_label
    order[0] = v
    n_waiting, n_drawn = 1, 0
    while n_waiting > 0:
        n_waiting -= 1
        u = order[n_waiting]
        inside_piece = pieces.pure[u] != _NONE
        # Strictly inside a piece nothing was restricted: the guide's own d holds there.
        if not inside_piece:
            left, right = u + 1, right_child(guide, u)
            if label[left] == _EMPTY or label[right] == _EMPTY:
                order[n_waiting] = right if label[left] == _EMPTY else left
                n_waiting += 1
                continue
        whole = guide.n_leaves[u] == 1
        if not whole:
            d = guide.log_dissimilarity[u] if inside_piece else pieces.part_d[u]
            # d is p(apart) / p(together): this is the posterior probability of one block.
            whole = coin(rng, 1.0 / (1.0 + exp(d)))
        if whole:
            pieces.found[n_drawn] = u
            n_drawn += 1
        else:
            order[n_waiting] = right_child(guide, u)
            order[n_waiting + 1] = u + 1
            n_waiting += 2
    return n_drawn


@inner
def _apply(guide: Guide, pieces: Pieces, n_drawn: int, inner: int) -> None:
    """Make each listed node's part of U a block, leaving alone those that already are one."""
    partition, closing = pieces.partition, pieces.tally
    n_old = 0
    for at in range(n_drawn):
        u = pieces.found[at]
        block = pieces.part_label[u]
        if pieces.pure[u] != _NONE and partition.label[u] == _NONE:
            # Strictly inside a piece: nothing was computed for it.
            block = _SEVERAL
            pieces.part_of[u] = -1 - u
        if block >= 0 and pieces.part_count[u] == partition.size[block]:
            pieces.order[at] = block
            # Unstamped, it is neither moved nor closed.
            pieces.marked[block] = 0
        else:
            pieces.order[at] = _NONE
    for at in range(partition.n_blocks[0]):
        k = partition.slots[at]
        if pieces.marked[k] == inner:
            closing[n_old] = k
            n_old += 1
    for at in range(n_drawn):
        u = pieces.found[at]
        # New blocks take their sums from a guide node or a scratch row, without a pass over atoms.
        if pieces.order[at] != _NONE:
            continue
        k = open_block(partition)
        pieces.order[at] = -2 - k
        if pieces.part_of[u] < 0:
            w = -1 - pieces.part_of[u]
            set_block(pieces, k, guide.rows, w, guide.size[w], guide.log_marginal[w])
        else:
            row = pieces.part_of[u]
            set_block(
                pieces, k, pieces.part_rows, row, pieces.part_count[u], pieces.part_marginal[u]
            )
        move_part(guide, pieces, u, inner, k)
    # Pieces are made maximal after all have moved: what was just coalesced must not be moved again.
    for at in range(n_drawn):
        if pieces.order[at] < _NONE:
            coalesce(guide, pieces, pieces.found[at])
    for at in range(n_old):
        close_block(partition, closing[at])


@inner
def step(rng: Generator, guide: Guide, pieces: Pieces, model: Model, v: int) -> Info:
    """Redraw the blocks that lie entirely under v, where they are nodes of the restricted guide."""
    seating, partition = model.seating, pieces.partition
    n_inner, inner = stamp_inner_blocks(guide, pieces, v)
    if n_inner == 0 or _restrict(guide, pieces, model, v, inner) < n_inner:
        return Info(NULL, 0.0, 0)
    n_drawn = _redraw(rng, guide, pieces, v)
    ratio = 0.0
    if not seating.is_product:
        before = partition.n_blocks[0]
        after = before + n_drawn - n_inner
        ratio = seating.log_blocks[after] - seating.log_blocks[before]
        ratio -= seating.slope * (after - before)
        if not coin(rng, exp(min(ratio, 0.0))):
            return Info(CONDITIONAL, ratio, 0)
    _apply(guide, pieces, n_drawn, inner)
    return Info(CONDITIONAL, ratio, 1)
