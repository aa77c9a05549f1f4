"""What every split-merge kernel shares: anchors, posterior ratios, decision, bookkeeping.

A kernel gathers the atoms of one or two blocks, divides them over two sides
(:mod:`weald.mcmc.split_merge.trial_split`), adds up its log ratio and calls one of the ``settle``
functions. Merges that an allocation has to be imagined for are refused early where that is sure:
their coins are thrown while a bound on the ratio falls, and ``conclude_merge`` does what they came
to. All ratios are for unlabelled partitions. (``split-merge-samplers.md`` sections 0 and 1.)
"""

from math import exp, inf

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.state.atom_state import EXCHANGE, MERGE, NULL, SPLIT, Info
from weald.mcmc.state.block_state import BlockState
from weald.treecore.compiled.compile import inner
from weald.treecore.compiled.draw import below, coin
from weald.treecore.partition.partition import Model

from .trial_split import (
    adopt_sides,
    block_at,
    block_of,
    drop_sides,
    fuse,
    log_fusion,
    log_number,
    n_blocks,
)

__all__ = [
    "conclude_merge",
    "decide",
    "draw_anchors",
    "draw_block",
    "draw_blocks",
    "draw_near_anchors",
    "gather_anchored",
    "gather_blocks",
    "log_merge_ratio",
    "null_move",
    "refuse_early",
    "settle_exchange",
    "settle_merge",
    "settle_split",
]

# How far apart in their order near anchors may be.
_REACH = 16

Pair = tuple[int, int]


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
def draw_block(rng: Generator, state: BlockState) -> int:
    """A block, uniformly; there must be one."""
    return block_at(state, below(rng, n_blocks(state)))


@inner
def draw_blocks(rng: Generator, state: BlockState) -> Pair:
    """Two different blocks (there must be two), uniformly."""
    k = n_blocks(state)
    first = below(rng, k)
    second = below(rng, k - 1)
    if second >= first:
        second += 1
    return block_at(state, first), block_at(state, second)


@inner
def _gather(state: BlockState, k: int, at: int, first: int, second: int) -> int:
    i = state.partition.head[k]
    while i >= 0:
        if i not in (first, second):
            state.members[at] = i
            at += 1
        i = state.partition.following[i]
    return at


@inner
def gather_blocks(state: BlockState, first: int, second: int) -> int:
    """Atoms of one or two blocks into ``members``; returns how many."""
    n = _gather(state, first, 0, -1, -1)
    return n if second == first else _gather(state, second, n, -1, -1)


@inner
def gather_anchored(state: BlockState, i: int, j: int) -> int:
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
def log_merge_ratio(state: BlockState, model: Model, first: int, second: int) -> float:
    """Log posterior with two blocks merged, over that of the present state."""
    return log_fusion(state, model, first, second) + log_number(state, model, -1)


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
def settle_split(
    rng: Generator, state: BlockState, model: Model, k: int, n: int, log_ratio: float
) -> Info:
    """Decide on replacing block k, whose atoms are ``members[:n]``, by the sides."""
    info = decide(rng, SPLIT, log_ratio)
    if info.accepted:
        adopt_sides(state, model, (k, k), n)
    else:
        drop_sides(state, model, n)
    return info


@inner
def settle_exchange(
    rng: Generator, state: BlockState, model: Model, pair: Pair, n: int, log_ratio: float
) -> Info:
    """Decide on replacing two blocks, whose atoms are ``members[:n]``, by the sides."""
    info = decide(rng, EXCHANGE, log_ratio)
    if info.accepted:
        adopt_sides(state, model, pair, n)
    else:
        drop_sides(state, model, n)
    return info


@inner
def settle_merge(
    rng: Generator, state: BlockState, model: Model, pair: Pair, log_ratio: float
) -> Info:
    """Decide on merging two blocks; there must be no sides."""
    info = decide(rng, MERGE, log_ratio)
    if info.accepted:
        fuse(state, model, pair[0], pair[1])
    return info


@inner
def conclude_merge(
    state: BlockState, model: Model, pair: Pair, n: int, gain: float, log_q: float
) -> Info:
    """Merge two blocks, whose atoms are ``members[:n]``, unless ``log_q`` is minus infinity.

    The coins for it have been thrown before.
    """
    drop_sides(state, model, n)
    if not log_q > -inf:
        return Info(MERGE, gain, 0)
    fuse(state, model, pair[0], pair[1])
    return Info(MERGE, gain + log_q, 1)
