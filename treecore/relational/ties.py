"""Statistics of every pair of blocks, and what it weighs to put vertices into a block.

Vertices are put into blocks and taken out one at a time; each costs its edges and two terms of the
likelihood for every block. A set of vertices is weighed whole: its edges, and for each block one
term a block. Sums of counts are exact in float64, so nothing drifts.

``regard`` looks at a set of vertices that are in no block and counts what lies between them and
every block; ``log_ties`` then says what joining a block weighs. There is room for a bounded number
of blocks, because there is a row for each. Where more are opened ``crowded`` says that what follows
is void: the partition stays one, but nothing more is counted and everything weighs 0.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compile import compiled, inner
from ..partition import Model, Partition, close_block, link, open_block, unlink
from ..reference import by_reference, held_by_reference
from .edges import log_pair
from .network import HIDDEN, HIDDEN_BACK, RECEIVED, SENT, Network

__all__ = [
    "Ties",
    "empty_ties",
    "log_block",
    "log_fusion",
    "log_likelihood",
    "log_ties",
    "log_ties_alone",
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
def _n_pairs(network: Network, first: int, second: int, same: bool) -> int:  # noqa: FBT001 - compiled
    """Pairs of vertices between blocks of these sizes, or inside one."""
    if not same:
        return first * second
    ordered = first * (first - 1)
    return ordered if network.directed[0] else ordered // 2


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
    size = partition.n_members[k]
    n_pairs = _n_pairs(network, size, partition.n_members[other], k == other)
    ties.total[k, other] += amount
    value = log_pair(model.family, ties.total[k, other], n_pairs - ties.hidden[k, other])
    ties.log_value[k, other] = value
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
    size = partition.n_members[k]
    for at in range(partition.n_blocks[0]):
        other = partition.slots[at]
        n_pairs = _n_pairs(network, size, partition.n_members[other], k == other)
        value = log_pair(model.family, ties.total[k, other], n_pairs - ties.hidden[k, other])
        ties.log_value[k, other] = value
        if network.directed[0]:
            value = log_pair(model.family, ties.total[other, k], n_pairs - ties.hidden[other, k])
        ties.log_value[other, k] = value


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


@inner
def log_ties(model: Model, network: Network, partition: Partition, ties: Ties, k: int) -> float:
    """Log likelihood ratio of the set that is looked at joining block k."""
    if ties.crowded[0]:
        return 0.0
    toward, total, hidden = ties.toward, ties.total, ties.hidden
    n_set, size = ties.looked_at[0], partition.n_members[k]
    directed = network.directed[0] == 1
    value = 0.0
    for at in range(partition.n_blocks[0]):
        other = partition.slots[at]
        if other == k:
            continue
        n_pairs = (size + n_set) * partition.n_members[other]
        value += log_pair(
            model.family,
            total[k, other] + toward[SENT, other],
            n_pairs - hidden[k, other] - toward[HIDDEN, other],
        )
        value -= ties.log_value[k, other]
        if directed:
            value += log_pair(
                model.family,
                total[other, k] + toward[RECEIVED, other],
                n_pairs - hidden[other, k] - toward[HIDDEN_BACK, other],
            )
            value -= ties.log_value[other, k]
    inside = total[k, k] + toward[SENT, k] + ties.within[0]
    concealed = hidden[k, k] + toward[HIDDEN, k] + ties.within[1]
    if directed:
        inside += toward[RECEIVED, k]
        concealed += toward[HIDDEN_BACK, k]
    n_pairs = _n_pairs(network, size + n_set, size + n_set, True)  # noqa: FBT003 - compiled
    return value + log_pair(model.family, inside, n_pairs - concealed) - ties.log_value[k, k]


@inner
def log_ties_alone(model: Model, network: Network, partition: Partition, ties: Ties) -> float:
    """Log likelihood ratio of the set that is looked at becoming a block."""
    if ties.crowded[0]:
        return 0.0
    toward, n_set = ties.toward, ties.looked_at[0]
    value = 0.0
    for at in range(partition.n_blocks[0]):
        other = partition.slots[at]
        n_pairs = n_set * partition.n_members[other]
        value += log_pair(model.family, toward[SENT, other], n_pairs - toward[HIDDEN, other])
        if network.directed[0]:
            value += log_pair(
                model.family, toward[RECEIVED, other], n_pairs - toward[HIDDEN_BACK, other]
            )
    n_pairs = _n_pairs(network, n_set, n_set, True)  # noqa: FBT003 - compiled
    return value + log_pair(model.family, ties.within[0], n_pairs - ties.within[1])


@inner
def _log_tie(network: Network, ties: Ties, k: int, other: int) -> float:
    """Log likelihood of the pairs between two blocks, in both directions, or inside one."""
    value = ties.log_value[k, other]
    if network.directed[0] and k != other:
        value += ties.log_value[other, k]
    return value


@inner
def log_block(network: Network, partition: Partition, ties: Ties, k: int) -> float:
    """Log likelihood of all pairs that vertices of block k are in."""
    if ties.crowded[0]:
        return 0.0
    value = 0.0
    for at in range(partition.n_blocks[0]):
        value += _log_tie(network, ties, k, partition.slots[at])
    return value


@inner
def log_fusion(
    model: Model, network: Network, partition: Partition, ties: Ties, first: int, second: int
) -> float:
    """Log likelihood ratio of merging two blocks."""
    if ties.crowded[0]:
        return 0.0
    total, hidden = ties.total, ties.hidden
    directed = network.directed[0] == 1
    size = partition.n_members[first] + partition.n_members[second]
    value = 0.0
    for at in range(partition.n_blocks[0]):
        k = partition.slots[at]
        if k in (first, second):
            continue
        n_pairs = size * partition.n_members[k]
        value += log_pair(
            model.family,
            total[first, k] + total[second, k],
            n_pairs - hidden[first, k] - hidden[second, k],
        )
        if directed:
            value += log_pair(
                model.family,
                total[k, first] + total[k, second],
                n_pairs - hidden[k, first] - hidden[k, second],
            )
        value -= _log_tie(network, ties, first, k) + _log_tie(network, ties, second, k)
    inside = total[first, first] + total[second, second] + total[first, second]
    concealed = hidden[first, first] + hidden[second, second] + hidden[first, second]
    if directed:
        inside += total[second, first]
        concealed += hidden[second, first]
    n_pairs = _n_pairs(network, size, size, True)  # noqa: FBT003 - compiled
    value += log_pair(model.family, inside, n_pairs - concealed)
    value -= _log_tie(network, ties, first, second)
    return value - ties.log_value[first, first] - ties.log_value[second, second]


@compiled
def log_likelihood(network: Network, partition: Partition, ties: Ties) -> float:
    """Log likelihood of the network given the blocks."""
    network, partition = by_reference(network), by_reference(partition)
    ties = by_reference(ties)
    if ties.crowded[0]:
        return 0.0
    value = network.log_constant[0]
    for at in range(partition.n_blocks[0]):
        k = partition.slots[at]
        for before in range(at + 1):
            value += _log_tie(network, ties, k, partition.slots[before])
    return value
