"""Smart choices of what to split and what to merge: Wang and Russell (2015), equations 2 to 6.

``f_split`` chooses a block, ``f_merge`` a partner for a block. Both may be any function of the
blocks, as long as it is evaluated in the state that the choice starts from. The paper's f_split,
proportional to 1 / m(X), is a hard arg max, since log m is extensive: the default weighs a block by
N exp(-tau log m / N) instead, with a floor. The paper's f_merge lacks 1 / m(X_j) and prefers small
partners: the default is the posterior ratio of the merge. Empty blocks occur in the entity/mention
model only. (``split-merge-samplers.md`` sections 2.5 and 2.6.)
"""

from math import exp, inf, log
from typing import NamedTuple

from numpy.random import Generator

from weald.mcmc.state.block_state import BlockState
from weald.treecore.compiled.compile import inner
from weald.treecore.compiled.draw import below, choose, coin
from weald.treecore.partition.partition import Model

from .trial_split import (
    block_at,
    log_fusion,
    log_union,
    log_value,
    log_value_beside,
    n_empty,
    side_block,
    slot_at,
)

__all__ = [
    "EQUAL",
    "PAPER_MERGE",
    "PER_NAT",
    "STATE_RATIO",
    "TEMPERED",
    "Selection",
    "draw_partner",
    "draw_split",
    "log_merged_choice",
    "log_partner_sides",
    "log_partners",
    "log_split_choice",
    "paper_selection",
]

Pair = tuple[int, int]

PER_NAT = 0
TEMPERED = 1
EQUAL = 2

STATE_RATIO = 0
PAPER_MERGE = 1


class Selection(NamedTuple):
    """How blocks and partners are chosen.

    Attributes
    ----------
    split:
        f_split: PER_NAT, TEMPERED (m^-tau) or EQUAL.
    tau, floor:
        Its temperature, and the share of the choices that is uniform.
    merge:
        f_merge: STATE_RATIO or PAPER_MERGE (equation 6).
    """

    split: int = PER_NAT
    tau: float = 1.0
    floor: float = 0.1
    merge: int = STATE_RATIO


def paper_selection() -> Selection:
    """The choices that the paper prints."""
    return Selection(TEMPERED, 1.0, 0.0, PAPER_MERGE)


@inner
def _score(selection: Selection, count: int, value: float) -> float:
    """Log of f_split for a block of ``count`` observations, unnormalised and without floor.

    ``value`` is its log marginal likelihood.
    """
    if selection.split == EQUAL:
        return 0.0
    if selection.split == TEMPERED:
        return -selection.tau * value
    if count == 0:
        return -inf
    return log(count) - selection.tau * value / count


@inner
def _other_empty(state: BlockState, k: int) -> int:
    """Empty blocks besides block k."""
    n = n_empty(state)
    return n - 1 if n > 0 and state.partition.n_members[k] == 0 else n


@inner
def _n_void_beside(state: BlockState, pair: Pair) -> int:
    """Empty blocks besides a pair of different blocks."""
    return _other_empty(state, pair[0]) + _other_empty(state, pair[1]) - n_empty(state)


@inner
def draw_split(rng: Generator, state: BlockState, model: Model, selection: Selection) -> int:
    """A block drawn by f_split."""
    partition = state.partition
    n_open, n_void = partition.n_blocks[0], n_empty(state)
    if coin(rng, selection.floor):
        chosen = below(rng, n_open + n_void)
    else:
        for at in range(n_open):
            k = slot_at(partition, at)
            value = log_value(state, model, k)
            state.log_weights[at] = _score(selection, partition.size[k], value)
        if n_void > 0:
            state.log_weights[n_open] = log(n_void) + _score(selection, 0, 0.0)
        chosen = choose(rng, state.log_weights, n_open + min(n_void, 1))
    return block_at(state, chosen)


@inner
def _log_add(total: float, value: float) -> float:
    """``log(exp(total) + exp(value))``."""
    high, low = max(total, value), min(total, value)
    if low < high - 745.0:
        return high
    return high + log(1.0 + exp(low - high))


@inner
def _log_choice(
    state: BlockState, model: Model, selection: Selection, score: float, pair: Pair, n_void: int
) -> float:
    """Log probability that f_split chooses the block with this score.

    The choice is among it, ``n_void`` empty blocks, and the open blocks beside a pair that it is in
    the place of (or is, where both are the same).
    """
    partition = state.partition
    total = score
    n_choices = 1 + n_void
    for at in range(partition.n_blocks[0]):
        k = slot_at(partition, at)
        if k not in pair:
            value = log_value_beside(state, model, k, pair)
            total = _log_add(total, _score(selection, partition.size[k], value))
            n_choices += 1
    if n_void > 0:
        total = _log_add(total, log(n_void) + _score(selection, 0, 0.0))
    if selection.floor == 0.0:
        return score - total
    return log((1.0 - selection.floor) * exp(score - total) + selection.floor / n_choices)


@inner
def log_split_choice(state: BlockState, model: Model, selection: Selection, k: int) -> float:
    """Log probability that f_split chooses block k; there must be no sides."""
    score = _score(selection, state.partition.size[k], log_value(state, model, k))
    return _log_choice(state, model, selection, score, (k, k), _other_empty(state, k))


@inner
def log_merged_choice(state: BlockState, model: Model, selection: Selection, pair: Pair) -> float:
    """Log probability that f_split chooses the union of a pair, once they are one."""
    count = state.partition.size[pair[0]] + state.partition.size[pair[1]]
    score = _score(selection, count, log_union(state, model, pair[0], pair[1]))
    return _log_choice(state, model, selection, score, pair, _n_void_beside(state, pair))


@inner
def _log_partner(state: BlockState, model: Model, rule: int, k: int, other: int) -> float:
    """Log of f_merge(other | k), not normalised; ``k`` and ``other`` are open blocks or sides."""
    if rule == PAPER_MERGE:
        return log_union(state, model, k, other)
    return log_fusion(state, model, k, other)


@inner
def _log_void_partner(state: BlockState, model: Model, rule: int, k: int) -> float:
    """The same for an empty block as partner."""
    return log_value(state, model, k) if rule == PAPER_MERGE else 0.0


@inner
def draw_partner(rng: Generator, state: BlockState, model: Model, rule: int, k: int) -> int:
    """Another block drawn by f_merge(. | k)."""
    partition = state.partition
    n_void = _other_empty(state, k)
    n_others = 0
    for at in range(partition.n_blocks[0]):
        other = slot_at(partition, at)
        if other != k:
            state.log_weights[n_others] = _log_partner(state, model, rule, k, other)
            n_others += 1
    last = n_others
    if n_void > 0:
        state.log_weights[last] = log(n_void) + _log_void_partner(state, model, rule, k)
        last += 1
    chosen = choose(rng, state.log_weights, last)
    if chosen == n_others:
        return block_at(state, partition.n_blocks[0])
    return slot_at(partition, chosen + 1 if chosen >= partition.position[k] else chosen)


@inner
def _log_one_partner(
    state: BlockState, model: Model, rule: int, pair: Pair, absent: int, n_void: int
) -> float:
    partition = state.partition
    score = _log_partner(state, model, rule, pair[0], pair[1])
    total = score
    for at in range(partition.n_blocks[0]):
        k = slot_at(partition, at)
        if k != absent and k not in pair:
            total = _log_add(total, _log_partner(state, model, rule, pair[0], k))
    if n_void > 0:
        total = _log_add(total, log(n_void) + _log_void_partner(state, model, rule, pair[0]))
    return score - total


@inner
def _log_either_partner(
    state: BlockState, model: Model, rule: int, pair: Pair, absent: int, n_void: int
) -> float:
    """``log(f_merge(j | i) + f_merge(i | j))`` for the pair (i, j) of open blocks or sides.

    The other candidates are ``n_void`` empty blocks and the open blocks except ``absent``.
    """
    forward = _log_one_partner(state, model, rule, pair, absent, n_void)
    backward = _log_one_partner(state, model, rule, (pair[1], pair[0]), absent, n_void)
    return _log_add(forward, backward)


@inner
def log_partners(state: BlockState, model: Model, rule: int, pair: Pair) -> float:
    """``log(f_merge(j | i) + f_merge(i | j))`` for the pair (i, j) of blocks."""
    return _log_either_partner(state, model, rule, pair, -1, _n_void_beside(state, pair))


@inner
def log_partner_sides(state: BlockState, model: Model, rule: int, k: int) -> float:
    """The same for the sides, once they are in the place of block k."""
    pair = (side_block(state, 0), side_block(state, 1))
    return _log_either_partner(state, model, rule, pair, k, _other_empty(state, k))
