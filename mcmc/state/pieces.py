"""A partition as pieces of the guide: whole subtrees move in one step.

A *piece* is a maximal pure node: all its atoms are in one block, its parent's are not. The items of
the partition are guide nodes; those that are pieces stand in their block's list. ``pure[v]`` is the
block of node v if all its atoms share one, else -1, for every node, also inside pieces. Moving a
piece fills an interval of ``pure``; taking a part out of a piece makes pieces of the siblings on
the path; two siblings in one block become one piece again. (``tgmcmc-ibhc.md`` section 6.6.)
"""

from math import gcd
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.reference import by_reference, held_by_reference
from weald.treecore.family.interface.base import Family
from weald.treecore.guide.guide import Guide, right_child
from weald.treecore.partition.partition import (
    Atoms,
    Partition,
    close_all_blocks,
    empty_partition,
    link,
    mark_changed,
    open_block,
    place,
    set_log_marginal,
    unlink,
)
from weald.treecore.statistics.rows import Rows, copy_row, is_single, rows_like

__all__ = [
    "Pieces",
    "coalesce",
    "fill_pure",
    "labels_of_pieces",
    "make_pieces",
    "move_part",
    "new_epoch",
    "next_piece",
    "set_block",
    "wide_stride",
]

_NONE = -1
# Of the number of atoms: the golden section leaves no large gaps.
_STRIDE = 0.618


@held_by_reference
class Pieces(NamedTuple):
    """State of the tree-guided kernels.

    Attributes
    ----------
    nodes:
        The guide's nodes seen as movable items.
    partition:
        Blocks whose list members are the piece nodes.
    pure:
        Block of each node, -1 where its atoms are in several.
    marked, met:
        Stamps of the present epoch on slots and on nodes.
    epoch:
        The present epoch.
    found, tally, log_weights:
        Scratch: node ids, counts a slot, log weights a slot.
    part_rows, part_of, part_count, part_potential, part_d, part_label:
        Scratch about the part of a node's atoms that a move is about.
    """

    nodes: Atoms
    partition: Partition
    pure: NDArray[np.int64]
    marked: NDArray[np.int64]
    met: NDArray[np.int64]
    epoch: NDArray[np.int64]
    found: NDArray[np.int64]
    order: NDArray[np.int64]
    tally: NDArray[np.int64]
    log_weights: NDArray[np.float64]
    part_rows: Rows
    part_of: NDArray[np.int64]
    part_count: NDArray[np.int64]
    part_marginal: NDArray[np.float64]
    part_potential: NDArray[np.float64]
    part_d: NDArray[np.float64]
    part_label: NDArray[np.int64]


@compiled
def _mark_single(rows: Rows, single: NDArray[np.uint8]) -> None:
    for v in range(single.shape[0]):
        single[v] = is_single(rows, v)


def make_pieces(
    family: Family, guide: Guide, labels: NDArray[np.int64], spare: Pieces | None = None
) -> Pieces:
    """Pieces of the partition that canonical ``labels`` (one an atom of the guide) describe.

    ``spare`` are those of the same guide and family that nobody needs any more: their arrays are
    used.
    """
    if spare is not None:
        close_all_blocks(spare.partition)
        spare.pure.fill(_NONE)
        _settle(guide, spare, labels)
        return spare
    n_nodes = guide.parent.shape[0]
    single = np.zeros(n_nodes, dtype=np.uint8)
    _mark_single(guide.rows, single)
    partition = empty_partition(family, n_nodes, guide.rows)
    pieces = Pieces(
        nodes=Atoms(guide.size, guide.rows, guide.log_marginal, single),
        partition=partition,
        pure=np.full(n_nodes, _NONE, dtype=np.int64),
        marked=np.zeros(n_nodes + 4, dtype=np.int64),
        met=np.zeros(n_nodes, dtype=np.int64),
        epoch=np.zeros(1, dtype=np.int64),
        found=np.zeros(n_nodes, dtype=np.int64),
        order=np.zeros(n_nodes, dtype=np.int64),
        tally=np.zeros(n_nodes + 4, dtype=np.int64),
        log_weights=np.zeros(n_nodes + 4),
        part_rows=rows_like(guide.rows, n_nodes + 4, 2),
        part_of=np.zeros(n_nodes, dtype=np.int64),
        part_count=np.zeros(n_nodes, dtype=np.int64),
        part_marginal=np.zeros(n_nodes),
        part_potential=np.zeros(n_nodes),
        part_d=np.zeros(n_nodes),
        part_label=np.zeros(n_nodes, dtype=np.int64),
    )
    _settle(guide, pieces, labels)
    return pieces


@compiled
def _settle(guide: Guide, pieces: Pieces, labels: NDArray[np.int64]) -> None:
    guide, pieces = by_reference(guide), by_reference(pieces)
    slots = np.full(labels.shape[0], _NONE, dtype=np.int64)
    pure = pieces.pure
    for v in range(pure.shape[0] - 1, -1, -1):
        if guide.n_leaves[v] == 1:
            label = labels[guide.atom[guide.first[v]]]
            if slots[label] == _NONE:
                slots[label] = open_block(pieces.partition)
            pure[v] = slots[label]
        elif pure[v + 1] == pure[right_child(guide, v)]:
            pure[v] = pure[v + 1]
    for v in range(pure.shape[0]):
        if pure[v] != _NONE and (v == 0 or pure[guide.parent[v]] == _NONE):
            place(pieces.nodes, pieces.partition, v, pure[v])


@compiled
def labels_of_pieces(guide: Guide, pieces: Pieces, labels: NDArray[np.int64]) -> None:
    """Write the block slot of each atom of the guide into ``labels``."""
    guide, pieces = by_reference(guide), by_reference(pieces)
    for leaf in range(guide.atom.shape[0]):
        labels[guide.atom[leaf]] = pieces.pure[guide.node[leaf]]


@inner
def new_epoch(pieces: Pieces) -> int:
    """A stamp that nothing carries yet."""
    pieces.epoch[0] += 1
    return pieces.epoch[0]


@inner
def wide_stride(n: int) -> int:
    """With this stride round a circle, every one of n places is met once, and neighbours late."""
    stride = max(1, int(_STRIDE * n))
    while gcd(stride, n) > 1:
        stride += 1
    return stride


@inner
def fill_pure(guide: Guide, pieces: Pieces, v: int, k: int) -> None:
    """Say that every atom of v is in block k."""
    for u in range(v, v + guide.n_nodes[v]):
        pieces.pure[u] = k


@inner
def _cut_out(guide: Guide, pieces: Pieces, v: int) -> None:
    """Make v, which lies strictly inside a piece, a piece of its own that is in no list."""
    k = pieces.pure[v]
    u = v
    while pieces.partition.label[u] == _NONE:
        above = guide.parent[u]
        other = above + 1 if above + 1 != u else right_child(guide, above)
        link(pieces.partition, other, k)
        u = above
        # Set before the topmost is found: no node on the path is pure once v leaves.
        pieces.pure[u] = _NONE
    unlink(pieces.partition, u)


@inner
def next_piece(pieces: Pieces, u: int, end: int) -> int:
    """First node from u on, in preorder, that is all of one block; ``end`` where there is none.

    With it a walk under a node meets each piece once: from a piece it goes on behind its nodes.
    """
    while u < end and pieces.pure[u] == _NONE:
        u += 1
    return u


@inner
def move_part(guide: Guide, pieces: Pieces, v: int, stamp: int, k: int) -> None:
    """Move those atoms of v whose block's slot carries ``stamp`` into the list of block k.

    Lists and purity only: the rows and counts of the blocks are the caller's, and so is calling
    :func:`coalesce` on v once all parts have moved. The slot k must not carry the stamp.
    """
    partition = pieces.partition
    if pieces.pure[v] != _NONE:
        if pieces.marked[pieces.pure[v]] == stamp:
            if partition.label[v] == _NONE:
                _cut_out(guide, pieces, v)
            else:
                unlink(partition, v)
            link(partition, v, k)
            fill_pure(guide, pieces, v, k)
        return
    end = v + guide.n_nodes[v]
    u = next_piece(pieces, v, end)
    while u < end:
        if pieces.marked[pieces.pure[u]] == stamp:
            unlink(partition, u)
            link(partition, u, k)
            fill_pure(guide, pieces, u, k)
        u = next_piece(pieces, u + guide.n_nodes[u], end)


@inner
def _coalesce_up(guide: Guide, pieces: Pieces, v: int) -> None:
    partition = pieces.partition
    k = pieces.pure[v]
    while v != 0:
        above = guide.parent[v]
        other = above + 1 if above + 1 != v else right_child(guide, above)
        if pieces.pure[other] != k:
            return
        unlink(partition, v)
        unlink(partition, other)
        link(partition, above, k)
        pieces.pure[above] = k
        v = above


@inner
def coalesce(guide: Guide, pieces: Pieces, v: int) -> None:
    """Restore maximality of the pieces at and under v, and above it."""
    if pieces.pure[v] != _NONE:
        if pieces.partition.label[v] != _NONE:
            _coalesce_up(guide, pieces, v)
        return
    # Going down in preorder, a piece that has just become part of its parent is passed over.
    end = v + guide.n_nodes[v]
    u = next_piece(pieces, v, end)
    while u < end:
        if pieces.partition.label[u] != _NONE:
            _coalesce_up(guide, pieces, u)
        u = next_piece(pieces, u + guide.n_nodes[u], end)


@inner
def set_block(pieces: Pieces, k: int, rows: Rows, i: int, count: int, log_marginal: float) -> None:
    """Give block k the statistics ``rows[i]``, whose log marginal is known."""
    partition = pieces.partition
    copy_row(partition.rows, k, rows, i)
    partition.size[k] = count
    mark_changed(partition, k)
    set_log_marginal(partition, k, log_marginal)
