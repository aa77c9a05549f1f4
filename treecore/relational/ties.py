"""Statistics of every pair of blocks, kept while vertices come and go.

Vertices are put into blocks and taken out one at a time; each costs its edges and two terms of the
likelihood for every block. Sums of counts are exact in float64, so nothing drifts.

``regard`` looks at a set of vertices that are in no block and counts what lies between them and
every block; :mod:`weald.treecore.relational.weighing` then says what joining a block weighs. There
is room for a bounded number of blocks, because there is a row for each. Where more are opened
``crowded`` says that what follows is void: the partition stays one, but nothing more is counted and
everything weighs 0.
"""

from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.reference import by_reference, held_by_reference
from weald.treecore.partition.partition import (
    Model,
    Partition,
    close_block,
    link,
    open_block,
    unlink,
)

from .edges import log_pair
from .network import HIDDEN, HIDDEN_BACK, RECEIVED, SENT, Network

__all__ = [
    "Ties",
    "empty_ties",
    "n_pairs_inside",
    "open_slot",
    "recount",
    "regard",
    "regard_newcomer",
    "seat",
    "tie",
    "unseat",
]

_NOBODY = -1


@held_by_reference
class Ties(NamedTuple):
    """Pairs of blocks, and the set of vertices that is being looked at.

    Attributes
    ----------
    total, hidden, log_value:
        float64 (c, c) by slots: sum of the edges from one block to the other, hidden pairs, and the
        log likelihood of the pair. Symmetric where edges have no direction; a block with itself
        counts every pair of its vertices once.
    log_gain:
        float64 (c, c): log likelihood ratio of a pair of blocks, both directions together, should
        the first gain a vertex that has no edge to the second and no hidden pair. NaN until
        weighing asks for it; a vertex meets few blocks, and for all others these terms hold.
    toward:
        float64 (4, c): between the set that is looked at and each block, by the columns of
        :class:`~weald.treecore.relational.network.Network`.
    within:
        float64 (2): sum of the edges and hidden pairs inside the set.
    looked_at:
        int64 (2): size of the set, and its only vertex, or -1.
    marked:
        1 for the vertices of the set while it is read (n).
    crowded:
        int64 (1): 1 once a block was asked for that there was no room for.
    """

    total: NDArray[np.float64]
    hidden: NDArray[np.float64]
    log_value: NDArray[np.float64]
    log_gain: NDArray[np.float64]
    toward: NDArray[np.float64]
    within: NDArray[np.float64]
    looked_at: NDArray[np.int64]
    marked: NDArray[np.int8]
    crowded: NDArray[np.int64]


def empty_ties(n: int, capacity: int) -> Ties:
    """Ties of up to ``capacity`` blocks of n vertices, all of them empty."""
    square = (capacity, capacity)
    return Ties(
        np.zeros(square),
        np.zeros(square),
        np.zeros(square),
        np.full(square, nan),
        np.zeros((4, capacity)),
        np.zeros(2),
        np.array([0, _NOBODY], dtype=np.int64),
        np.zeros(n, dtype=np.int8),
        np.zeros(1, dtype=np.int64),
    )


@inner
def open_slot(partition: Partition, ties: Ties) -> int:
    """A new, empty block; ``crowded`` where there is no room for its statistics."""
    if partition.n_blocks[0] >= ties.total.shape[0]:
        ties.crowded[0] = 1
    return open_block(partition)


@inner
def n_pairs_inside(network: Network, size: int) -> int:
    """Pairs of vertices inside a block of this size."""
    ordered = size * (size - 1)
    return ordered if network.directed[0] else ordered // 2


@inner
def _n_pairs(network: Network, partition: Partition, k: int, other: int) -> int:
    """Pairs of vertices between two blocks, or inside one."""
    size = partition.n_members[k]
    return n_pairs_inside(network, size) if k == other else size * partition.n_members[other]


@inner
def _read(network: Network, partition: Partition, ties: Ties, v: int) -> None:
    """Count what lies between vertex v and the blocks, and the marked vertices."""
    toward, within = ties.toward, ties.within
    for at in range(network.start[v], network.start[v + 1]):
        u = network.neighbour[at]
        if ties.marked[u]:
            within[0] += network.between[at, SENT]
            within[1] += network.between[at, HIDDEN]
            continue
        k = partition.label[u]
        if k >= 0:
            for column in range(network.between.shape[1]):
                toward[column, k] += network.between[at, column]


@inner
def _forget(partition: Partition, ties: Ties) -> None:
    for at in range(partition.n_blocks[0]):
        k = partition.slots[at]
        for column in range(4):
            ties.toward[column, k] = 0.0
    ties.within[0] = ties.within[1] = 0.0


@inner
def _look_at(network: Network, partition: Partition, ties: Ties, v: int) -> None:
    if ties.looked_at[1] == v:
        return
    _forget(partition, ties)
    _read(network, partition, ties, v)
    ties.looked_at[0] = 1
    ties.looked_at[1] = v


@inner
def regard(
    network: Network, partition: Partition, ties: Ties, members: NDArray[np.int64], n: int
) -> None:
    """Look at the set ``members[:n]``, none of which is in a block."""
    if ties.crowded[0]:
        return
    if n == 1:
        _look_at(network, partition, ties, members[0])
        return
    _forget(partition, ties)
    for at in range(n):
        ties.marked[members[at]] = 1
    for at in range(n):
        _read(network, partition, ties, members[at])
    for at in range(n):
        ties.marked[members[at]] = 0
    if not network.directed[0]:
        # Each edge inside was met at both of its ends.
        ties.within[0] /= 2.0
        ties.within[1] /= 2.0
    ties.looked_at[0] = n
    ties.looked_at[1] = _NOBODY


@inner
def regard_newcomer(
    network: Network, partition: Partition, ties: Ties, v: int, known: tuple[int, int, float]
) -> None:
    """Look at a vertex that no row of the network holds yet, with the one edge known of it.

    ``known`` is the column (SENT, RECEIVED), the other vertex, and the edge; nothing else of v has
    been seen, so that to all others there is none.
    """
    _forget(partition, ties)
    column, other, edge = known
    k = partition.label[other]
    if k >= 0:
        ties.toward[column if network.directed[0] else SENT, k] = edge
    ties.looked_at[0] = 1
    ties.looked_at[1] = v


@inner
def tie(
    model: Model, network: Network, partition: Partition, ties: Ties, edge: tuple[int, int, float]
) -> None:
    """Add to the edge between two vertices that are in blocks: source, target, what to add."""
    source, target, amount = edge
    k, other = partition.label[source], partition.label[target]
    n_pairs = _n_pairs(network, partition, k, other)
    ties.total[k, other] += amount
    value = log_pair(model.family, ties.total[k, other], n_pairs - ties.hidden[k, other])
    ties.log_value[k, other] = value
    ties.log_gain[k, other] = ties.log_gain[other, k] = nan
    if not network.directed[0]:
        ties.total[other, k] = ties.total[k, other]
        ties.log_value[other, k] = value


@compiled
def recount(model: Model, network: Network, partition: Partition, ties: Ties) -> None:
    """Work out again what all pairs of blocks contribute, from their sums of edges."""
    model, network = by_reference(model), by_reference(network)
    partition, ties = by_reference(partition), by_reference(ties)
    for at in range(partition.n_blocks[0]):
        _refresh(model, network, partition, ties, partition.slots[at])


@inner
def _refresh(model: Model, network: Network, partition: Partition, ties: Ties, k: int) -> None:
    """Work out again what pairs with block k contribute."""
    for at in range(partition.n_blocks[0]):
        other = partition.slots[at]
        n_pairs = _n_pairs(network, partition, k, other)
        value = log_pair(model.family, ties.total[k, other], n_pairs - ties.hidden[k, other])
        ties.log_value[k, other] = value
        if network.directed[0]:
            value = log_pair(model.family, ties.total[other, k], n_pairs - ties.hidden[other, k])
        ties.log_value[other, k] = value
        ties.log_gain[k, other] = ties.log_gain[other, k] = nan


@inner
def _count(network: Network, partition: Partition, ties: Ties, k: int, sign: float) -> None:
    """Add the vertex that is looked at to the statistics of block k, or take it off them."""
    toward, total, hidden = ties.toward, ties.total, ties.hidden
    for at in range(partition.n_blocks[0]):
        other = partition.slots[at]
        total[k, other] += sign * toward[SENT, other]
        hidden[k, other] += sign * toward[HIDDEN, other]
        if network.directed[0]:
            total[other, k] += sign * toward[RECEIVED, other]
            hidden[other, k] += sign * toward[HIDDEN_BACK, other]
        elif other != k:
            total[other, k] = total[k, other]
            hidden[other, k] = hidden[k, other]


@inner
def seat(model: Model, network: Network, partition: Partition, ties: Ties, v: int, k: int) -> None:
    """Put vertex v, which is in no block, into block k."""
    counting = ties.crowded[0] == 0
    if counting:
        _look_at(network, partition, ties, v)
        _count(network, partition, ties, k, 1.0)
    link(partition, v, k)
    partition.size[k] += 1
    if counting:
        _refresh(model, network, partition, ties, k)
    ties.looked_at[1] = _NOBODY


@inner
def unseat(model: Model, network: Network, partition: Partition, ties: Ties, v: int) -> None:
    """Take vertex v out of its block, look at it, and close the block if that empties it."""
    counting = ties.crowded[0] == 0
    if counting:
        _look_at(network, partition, ties, v)
    k = unlink(partition, v)
    partition.size[k] -= 1
    if counting:
        _count(network, partition, ties, k, -1.0)
    if partition.n_members[k] == 0:
        close_block(partition, k)
    elif counting:
        _refresh(model, network, partition, ties, k)
