"""Split-merge moves and Gibbs sampling of networks: the partition goes where it is tried.

The likelihood couples all blocks, so that a division is weighed where it is: the vertices leave
their blocks when the sides are opened, and a rejected proposal takes them back. A merge needs no
more than the sums between the pair and each other block: it is weighed before anything moves.
(:mod:`weald.mcmc.split_merge.trial_split` says what each function does.)
"""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.assignment.assignment import log_seat, reseat_freely, set_aside
from weald.mcmc.gibbs.gibbs import scan
from weald.mcmc.split_merge.trial_split import (
    adopt_sides,
    drawn_side,
    drop_sides,
    fuse,
    join_side,
    leave_side,
    likelier_side,
    log_apart,
    log_fusion,
    log_number,
    log_probability,
    log_split_ratio,
    log_union,
    log_value,
    log_value_beside,
    open_sides,
    seat_on_side,
    side_block,
)
from weald.mcmc.state.vertex_state import VertexState
from weald.treecore.compiled.compile import implements, inner
from weald.treecore.partition.partition import Model, Partition
from weald.treecore.prior.base import log_size
from weald.treecore.relational import weighing
from weald.treecore.relational.ties import open_slot, seat, unseat

Pair = tuple[int, int]

_NONE = -1


@implements(scan, VertexState)
def _scan(state: VertexState, rng: Generator, model: Model, visited: NDArray[np.int64]) -> None:
    for at in range(visited.shape[0]):
        reseat_freely(rng, state, model, visited[at])


@implements(log_value, VertexState)
def _log_value(state: VertexState, _model: Model, k: int) -> float:
    return weighing.log_block(state.network, state.partition, state.ties, k)


@implements(log_value_beside, VertexState)
def _log_value_beside(state: VertexState, model: Model, k: int, pair: Pair) -> float:
    network, partition, ties = state.network, state.partition, state.ties
    if pair[0] == pair[1]:
        return weighing.log_block(network, partition, ties, k)
    return weighing.log_block_beside(model, network, partition, ties, pair, k)


@implements(log_union, VertexState)
def _log_union(state: VertexState, model: Model, first: int, second: int) -> float:
    pair = (first, second)
    return weighing.log_block_of_union(model, state.network, state.partition, state.ties, pair)


@implements(log_fusion, VertexState)
def _log_fusion(state: VertexState, model: Model, first: int, second: int) -> float:
    partition, seating = state.partition, model.seating
    sizes = (partition.n_members[first], partition.n_members[second])
    value = weighing.log_fusion(model, state.network, partition, state.ties, first, second)
    value += log_size(seating, sizes[0] + sizes[1])
    return value - log_size(seating, sizes[0]) - log_size(seating, sizes[1])


@implements(log_apart, VertexState)
def _log_apart(state: VertexState, model: Model, first: int, second: int) -> float:
    return -log_fusion(state, model, first, second)


@implements(log_split_ratio, VertexState)
def _log_split_ratio(state: VertexState, model: Model, _k: int) -> float:
    # The merge that would take it back, weighed in the state that is tried.
    return -log_fusion(state, model, state.sides[0], state.sides[1]) - log_number(state, model, -1)


@implements(fuse, VertexState)
def _fuse(state: VertexState, model: Model, first: int, second: int) -> None:
    partition = state.partition
    smaller = partition.n_members[first] < partition.n_members[second]
    source, target = (first, second) if smaller else (second, first)
    i = partition.head[source]
    while i >= 0:
        following = partition.following[i]
        unseat(model, state.network, partition, state.ties, i)
        seat(model, state.network, partition, state.ties, i, target)
        i = following


@implements(open_sides, VertexState)
def _open_sides(state: VertexState, model: Model, pair: Pair, n: int) -> None:
    partition = state.partition
    for at in range(n):
        i = state.members[at]
        state.own[i] = partition.label[i]
        unseat(model, state.network, partition, state.ties, i)
    # Sides take the slots of the blocks, so that a division that leads back to them is they again.
    state.homes[0], state.homes[1] = pair
    if pair[0] == pair[1]:
        at = partition.n_blocks[0]
        free = partition.slots[at]
        state.homes[1] = partition.slots[at + 1] if free == pair[0] else free
    state.sides[0] = state.sides[1] = _NONE


@inner
def _open_at(state: VertexState, k: int) -> None:
    """Open a block in a slot that is closed."""
    partition = state.partition
    at, last = partition.position[k], partition.n_blocks[0]
    other = partition.slots[last]
    partition.slots[at], partition.position[other] = other, at
    partition.slots[last], partition.position[k] = k, last
    if k >= state.ties.total.shape[0]:
        state.ties.crowded[0] = 1
    open_slot(partition, state.ties)


@inner
def _is_open(partition: Partition, k: int) -> bool:
    return partition.position[k] < partition.n_blocks[0]


@implements(side_block, VertexState)
def _side_block(state: VertexState, side: int) -> int:
    return int(state.sides[side])


@implements(join_side, VertexState)
def _join_side(state: VertexState, model: Model, i: int, side: int) -> None:
    if state.sides[side] == _NONE:
        state.sides[side] = state.homes[side]
        _open_at(state, state.homes[side])
    seat(model, state.network, state.partition, state.ties, i, state.sides[side])
    state.side[i] = side


@implements(leave_side, VertexState)
def _leave_side(state: VertexState, model: Model, i: int) -> None:
    side = state.side[i]
    unseat(model, state.network, state.partition, state.ties, i)
    if not _is_open(state.partition, state.sides[side]):
        state.sides[side] = _NONE


@inner
def _look_at(state: VertexState, model: Model, i: int) -> None:
    state.order[0] = i
    set_aside(state, model, state.order, 1)


@inner
def _log_weight(state: VertexState, model: Model, side: int) -> float:
    """Log weight of the vertex that is looked at on a side."""
    if state.sides[side] == _NONE:
        alone = weighing.log_ties_alone(model, state.network, state.partition, state.ties)
        return model.seating.slope + log_size(model.seating, 1) + alone
    return log_seat(state, model, state.sides[side])


@implements(seat_on_side, VertexState)
def _seat_on_side(state: VertexState, rng: Generator, model: Model, i: int, second: int) -> float:
    _look_at(state, model, i)
    odds = _log_weight(state, model, 0) - _log_weight(state, model, 1)
    forced = -1
    if second >= 0:
        forced = 1 if state.own[i] == second else 0
    side = drawn_side(rng, odds, forced)
    join_side(state, model, i, side)
    return log_probability(odds if side == 0 else -odds)


@implements(likelier_side, VertexState)
def _likelier_side(state: VertexState, model: Model, i: int) -> int:
    _look_at(state, model, i)
    return 0 if _log_weight(state, model, 0) >= _log_weight(state, model, 1) else 1


@implements(drop_sides, VertexState)
def _drop_sides(state: VertexState, model: Model, n: int) -> None:
    partition = state.partition
    for at in range(n):
        i = state.members[at]
        k = state.own[i]
        if partition.label[i] == k:
            continue
        if partition.label[i] >= 0:
            unseat(model, state.network, partition, state.ties, i)
        if not _is_open(partition, k):
            _open_at(state, k)
        seat(model, state.network, partition, state.ties, i, k)


@implements(adopt_sides, VertexState)
def _adopt_sides(_state: VertexState, _model: Model, _pair: Pair, _n: int) -> None:
    return
