"""What every split-merge kernel shares: anchors, posterior ratios, decision, bookkeeping.

A kernel gathers the atoms of one or two blocks, divides them over two trial sides
(:mod:`weald.mcmc.split_merge.trial_split`), adds up its log ratio and calls one of the ``settle``
functions. Merges that an allocation has to be imagined for are refused early where that is sure:
their coins are thrown while a bound on the ratio falls, and ``conclude_merge`` does what they came
to. All ratios are for unlabelled partitions. (``split-merge-samplers.md`` sections 0 and 1.)
"""

from math import exp, inf
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.state.atom_state import EXCHANGE, MERGE, NULL, SPLIT, Info, State
from weald.treecore.compiled.compile import inner
from weald.treecore.compiled.draw import below, coin
from weald.treecore.family.interface.base import log_marginal_sum
from weald.treecore.partition.partition import (
    Model,
    Partition,
    block_log_marginal,
    close_block,
    mark_changed,
)
from weald.treecore.prior.base import log_new_block, log_size
from weald.treecore.statistics.rows import add_row

from .trial_split import adopt_sides, block_of, drop_sides, side_slot, slot_at

__all__ = [
    "conclude_merge",
    "decide",
    "draw_anchors",
    "draw_blocks",
    "draw_near_anchors",
    "gather_anchored",
    "gather_blocks",
    "log_block_weight",
    "log_merge_ratio",
    "log_split_ratio",
    "log_union",
    "merge_blocks",
    "null_move",
    "refuse_early",
    "settle_exchange",
    "settle_merge",
    "settle_split",
]

# How far apart in their order near anchors may be.
_REACH = 16


@inner
def draw_anchors(rng: Generator, live: NDArray[np.int64]) -> tuple[int, int]:
    """Two different atoms of ``live`` (at least two), uniformly."""
    first = below(rng, live.shape[0])
    second = below(rng, live.shape[0] - 1)
    if second >= first:
        second += 1
    return live[first], live[second]


@inner
def draw_near_anchors(rng: Generator, live: NDArray[np.int64]) -> tuple[int, int]:
    """Two different atoms of ``live`` (at least two) that are near each other in its order.

    The order must not depend on the partition; its ends are neighbours too.
    """
    n = live.shape[0]
    first = below(rng, n)
    second = (first + 1 + below(rng, min(_REACH, n - 1))) % n
    return live[first], live[second]


@inner
def draw_blocks(rng: Generator, partition: Partition) -> tuple[int, int]:
    """Two different open blocks (there must be two), uniformly."""
    k = partition.n_blocks[0]
    first = below(rng, k)
    second = below(rng, k - 1)
    if second >= first:
        second += 1
    return slot_at(partition, first), slot_at(partition, second)


@inner
def _gather(state: Any, k: int, at: int, first: int, second: int) -> int:
    i = state.partition.head[k]
    while i >= 0:
        if i not in (first, second):
            state.members[at] = i
            at += 1
        i = state.partition.following[i]
    return at


@inner
def gather_blocks(state: Any, first: int, second: int) -> int:
    """Atoms of one or two blocks of a state of either kind into ``members``; returns how many."""
    n = _gather(state, first, 0, -1, -1)
    return n if second == first else _gather(state, second, n, -1, -1)


@inner
def gather_anchored(state: Any, i: int, j: int) -> int:
    """Atoms of the blocks of i and j into ``members``, i and j behind the others.

    Returns the number of the others.
    """
    first, second = block_of(state.partition, i), block_of(state.partition, j)
    n = _gather(state, first, 0, i, j)
    if second != first:
        n = _gather(state, second, n, i, j)
    state.members[n] = i
    state.members[n + 1] = j
    return n


@inner
def log_union(model: Model, partition: Partition, first: int, second: int) -> float:
    """Log marginal likelihood of two blocks or sides together."""
    rows = partition.rows
    return log_marginal_sum(model.family, rows, first, rows, second, model.work)


@inner
def log_block_weight(model: Model, partition: Partition, k: int) -> float:
    """What block or side k contributes to the log joint."""
    return log_size(model.seating, partition.size[k]) + block_log_marginal(model, partition, k)


@inner
def log_split_ratio(model: Model, partition: Partition, k: int) -> float:
    """Log posterior of block k divided into the two sides, over that of the present state."""
    value = log_new_block(model.seating, partition.n_blocks[0])
    for side in range(2):
        value += log_block_weight(model, partition, side_slot(partition, side))
    return value - log_block_weight(model, partition, k)


@inner
def log_merge_ratio(model: Model, partition: Partition, first: int, second: int) -> float:
    """Log posterior with two blocks merged, over that of the present state."""
    value = log_union(model, partition, first, second)
    value += log_size(model.seating, partition.size[first] + partition.size[second])
    value -= log_block_weight(model, partition, first)
    value -= log_block_weight(model, partition, second)
    return value - log_new_block(model.seating, partition.n_blocks[0] - 1)


@inner
def decide(rng: Generator, move: int, log_ratio: float) -> Info:
    """Metropolis-Hastings: accept with probability min(1, exp(log_ratio))."""
    accepted = coin(rng, exp(min(log_ratio, 0.0)))
    return Info(move, log_ratio, 1 if accepted else 0)


@inner
def refuse_early(rng: Generator, gain: float) -> bool:
    """Whether to refuse a merge before anything is allocated; its log ratio is at most ``gain``.

    Most are. The coins for the rest of the ratio are thrown in
    :func:`~weald.mcmc.split_merge.trial_split.allocate`.
    """
    # A ratio that is no number is refused, as decide() would.
    return not (gain >= 0.0 or coin(rng, exp(gain)))


@inner
def null_move() -> Info:
    """A proposal that was impossible: the state stays, nothing is renormalised."""
    return Info(NULL, 0.0, 0)


@inner
def settle_split(rng: Generator, state: State, k: int, n: int, log_ratio: float) -> Info:
    """Decide on replacing block k, whose atoms are ``members[:n]``, by the sides."""
    info = decide(rng, SPLIT, log_ratio)
    if info.accepted:
        adopt_sides(state, k, k, n)
    else:
        drop_sides(state.partition)
    return info


@inner
def settle_exchange(
    rng: Generator, state: State, first: int, second: int, n: int, log_ratio: float
) -> Info:
    """Decide on replacing two blocks, whose atoms are ``members[:n]``, by the sides."""
    info = decide(rng, EXCHANGE, log_ratio)
    if info.accepted:
        adopt_sides(state, first, second, n)
    else:
        drop_sides(state.partition)
    return info


@inner
def settle_merge(rng: Generator, state: State, first: int, second: int, log_ratio: float) -> Info:
    """Decide on merging two blocks; there must be no sides."""
    info = decide(rng, MERGE, log_ratio)
    if info.accepted:
        merge_blocks(state.partition, first, second)
    return info


@inner
def conclude_merge(state: State, first: int, second: int, gain: float, log_q: float) -> Info:
    """Merge two blocks unless ``log_q`` is minus infinity, and drop the sides.

    The coins for it have been thrown before.
    """
    drop_sides(state.partition)
    if not log_q > -inf:
        return Info(MERGE, gain, 0)
    merge_blocks(state.partition, first, second)
    return Info(MERGE, gain + log_q, 1)


@inner
def merge_blocks(partition: Partition, first: int, second: int) -> None:
    """Move the atoms of the smaller block into the other and close it."""
    smaller = partition.n_members[first] < partition.n_members[second]
    source, target = (first, second) if smaller else (second, first)
    i = partition.head[source]
    last = i
    while i >= 0:
        partition.label[i] = target
        last = i
        i = partition.following[i]
    top = partition.head[target]
    partition.following[last] = top
    partition.preceding[top] = last
    partition.head[target] = partition.head[source]
    add_row(partition.rows, target, partition.rows, source)
    partition.size[target] += partition.size[source]
    partition.n_members[target] += partition.n_members[source]
    mark_changed(partition, target)
    close_block(partition, source)
