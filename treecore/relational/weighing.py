"""What it weighs to put vertices into a block, to merge blocks, and what a partition weighs.

A set of vertices is weighed whole: its edges, and for each block one term a block. A single vertex
asks for these terms only where it meets the other block; the rest are kept from one vertex to the
next, as long as neither block changes.
"""

from math import isnan

from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model, Partition

from .edges import log_pair
from .network import HIDDEN, HIDDEN_BACK, RECEIVED, SENT, Network
from .ties import Ties, n_pairs_inside

__all__ = [
    "log_block",
    "log_block_beside",
    "log_block_of_union",
    "log_fusion",
    "log_likelihood",
    "log_ties",
    "log_ties_alone",
]

Pair = tuple[int, int]


@inner
def _meets(network: Network, ties: Ties, other: int) -> bool:
    """Whether anything but unlinked, observed pairs is between what is looked at and a block."""
    toward = ties.toward
    if toward[SENT, other] != 0.0 or toward[HIDDEN, other] != 0.0:
        return True
    if not network.directed[0]:
        return False
    return toward[RECEIVED, other] != 0.0 or toward[HIDDEN_BACK, other] != 0.0


@inner
def _log_gain(
    model: Model, network: Network, partition: Partition, ties: Ties, k: int, other: int
) -> float:
    """What the pairs of k and another block gain should the set that is looked at join k."""
    toward, total, hidden = ties.toward, ties.total, ties.hidden
    n_pairs = (partition.n_members[k] + ties.looked_at[0]) * partition.n_members[other]
    value = log_pair(
        model.family,
        total[k, other] + toward[SENT, other],
        n_pairs - hidden[k, other] - toward[HIDDEN, other],
    )
    value -= ties.log_value[k, other]
    if network.directed[0]:
        value += log_pair(
            model.family,
            total[other, k] + toward[RECEIVED, other],
            n_pairs - hidden[other, k] - toward[HIDDEN_BACK, other],
        )
        value -= ties.log_value[other, k]
    return value


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
        if n_set > 1 or _meets(network, ties, other):
            value += _log_gain(model, network, partition, ties, k, other)
            continue
        if isnan(ties.log_gain[k, other]):
            ties.log_gain[k, other] = _log_gain(model, network, partition, ties, k, other)
        value += ties.log_gain[k, other]
    inside = total[k, k] + toward[SENT, k] + ties.within[0]
    concealed = hidden[k, k] + toward[HIDDEN, k] + ties.within[1]
    if directed:
        inside += toward[RECEIVED, k]
        concealed += toward[HIDDEN_BACK, k]
    n_pairs = n_pairs_inside(network, size + n_set)
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
    n_pairs = n_pairs_inside(network, n_set)
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
def _log_tie_of_union(
    model: Model, network: Network, partition: Partition, ties: Ties, pair: Pair, k: int
) -> float:
    """Log likelihood of the pairs between block k and two other blocks, once these are one."""
    total, hidden = ties.total, ties.hidden
    first, second = pair
    size = partition.n_members[first] + partition.n_members[second]
    n_pairs = size * partition.n_members[k]
    value = log_pair(
        model.family,
        total[first, k] + total[second, k],
        n_pairs - hidden[first, k] - hidden[second, k],
    )
    if network.directed[0] == 1:
        value += log_pair(
            model.family,
            total[k, first] + total[k, second],
            n_pairs - hidden[k, first] - hidden[k, second],
        )
    return value


@inner
def _log_inside_union(
    model: Model, network: Network, partition: Partition, ties: Ties, pair: Pair
) -> float:
    """Log likelihood of the pairs inside two blocks, once they are one."""
    total, hidden = ties.total, ties.hidden
    first, second = pair
    # What was between the two is inside now.
    inside = total[first, first] + total[second, second] + total[first, second]
    concealed = hidden[first, first] + hidden[second, second] + hidden[first, second]
    if network.directed[0] == 1:
        inside += total[second, first]
        concealed += hidden[second, first]
    size = partition.n_members[first] + partition.n_members[second]
    return log_pair(model.family, inside, n_pairs_inside(network, size) - concealed)


@inner
def log_block_of_union(
    model: Model, network: Network, partition: Partition, ties: Ties, pair: Pair
) -> float:
    """:func:`log_block` of a pair of blocks, once they are one."""
    if ties.crowded[0]:
        return 0.0
    value = _log_inside_union(model, network, partition, ties, pair)
    for at in range(partition.n_blocks[0]):
        k = partition.slots[at]
        if k not in pair:
            value += _log_tie_of_union(model, network, partition, ties, pair, k)
    return value


@inner
def log_block_beside(
    model: Model, network: Network, partition: Partition, ties: Ties, pair: Pair, k: int
) -> float:
    """:func:`log_block` of k, once a pair of other blocks is one."""
    if ties.crowded[0]:
        return 0.0
    value = log_block(network, partition, ties, k)
    value += _log_tie_of_union(model, network, partition, ties, pair, k)
    value -= _log_tie(network, ties, k, pair[0])
    return value - _log_tie(network, ties, k, pair[1])


@inner
def log_fusion(
    model: Model, network: Network, partition: Partition, ties: Ties, first: int, second: int
) -> float:
    """Log likelihood ratio of merging two blocks."""
    if ties.crowded[0]:
        return 0.0
    # Only pairs of blocks with the first or the second change: those with each other block, and
    # those inside both.
    pair = (first, second)
    value = 0.0
    for at in range(partition.n_blocks[0]):
        k = partition.slots[at]
        if k not in pair:
            value += _log_tie_of_union(model, network, partition, ties, pair, k)
            value -= _log_tie(network, ties, first, k) + _log_tie(network, ties, second, k)
    value += _log_inside_union(model, network, partition, ties, pair)
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
