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

from weald.mcmc.state.atom_state import State
from weald.treecore.compiled.compile import inner
from weald.treecore.compiled.draw import below, choose, coin
from weald.treecore.partition.partition import Model, Partition, block_log_marginal
from weald.treecore.prior.base import log_size

from .proposal import log_union
from .trial_split import slot_at

__all__ = [
    "EQUAL",
    "PAPER_MERGE",
    "PER_NAT",
    "STATE_RATIO",
    "TEMPERED",
    "Selection",
    "draw_partner",
    "draw_split",
    "log_partner",
    "log_partners",
    "log_split_choice",
    "paper_selection",
    "split_score",
]

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
def split_score(selection: Selection, count: int, log_marginal: float) -> float:
    """Log of f_split for a block of ``count`` observations, unnormalised and without floor."""
    if selection.split == EQUAL:
        return 0.0
    if selection.split == TEMPERED:
        return -selection.tau * log_marginal
    if count == 0:
        return -inf
    return log(count) - selection.tau * log_marginal / count


@inner
def _open_score(model: Model, partition: Partition, selection: Selection, k: int) -> float:
    return split_score(selection, partition.size[k], block_log_marginal(model, partition, k))


@inner
def draw_split(
    rng: Generator, state: State, model: Model, selection: Selection, n_void: int
) -> int:
    """An open block drawn by f_split, or -1 for one of ``n_void`` empty blocks."""
    partition = state.partition
    n_blocks = partition.n_blocks[0]
    if coin(rng, selection.floor):
        chosen = below(rng, n_blocks + n_void)
    else:
        for at in range(n_blocks):
            state.log_weights[at] = _open_score(model, partition, selection, slot_at(partition, at))
        if n_void > 0:
            state.log_weights[n_blocks] = log(n_void) + split_score(selection, 0, 0.0)
        chosen = choose(rng, state.log_weights, n_blocks + min(n_void, 1))
    return slot_at(partition, chosen) if chosen < n_blocks else -1


@inner
def _log_add(total: float, value: float) -> float:
    """``log(exp(total) + exp(value))``."""
    high, low = max(total, value), min(total, value)
    if low < high - 745.0:
        return high
    return high + log(1.0 + exp(low - high))


@inner
def log_split_choice(
    state: State,
    model: Model,
    selection: Selection,
    score: float,
    absent: tuple[int, int],
    n_void: int,
) -> float:
    """Log probability that f_split chooses the block with this score.

    The choice is among it, ``n_void`` empty blocks, and the open blocks other than the two
    ``absent`` ones (may be equal, or -1).
    """
    partition = state.partition
    total = score
    n_choices = 1 + n_void
    for at in range(partition.n_blocks[0]):
        k = slot_at(partition, at)
        if k not in absent:
            total = _log_add(total, _open_score(model, partition, selection, k))
            n_choices += 1
    if n_void > 0:
        total = _log_add(total, log(n_void) + split_score(selection, 0, 0.0))
    if selection.floor == 0.0:
        return score - total
    return log((1.0 - selection.floor) * exp(score - total) + selection.floor / n_choices)


@inner
def log_partner(model: Model, partition: Partition, rule: int, k: int, other: int) -> float:
    """Log of f_merge(other | k), not normalised; ``k`` and ``other`` are open blocks or sides."""
    union = log_union(model, partition, k, other)
    if rule == PAPER_MERGE:
        return union
    size = partition.size[other]
    union += log_size(model.seating, partition.size[k] + size) - log_size(model.seating, size)
    return union - block_log_marginal(model, partition, other)


@inner
def _log_void_partner(model: Model, partition: Partition, rule: int, k: int) -> float:
    """The same for an empty block as partner."""
    value = block_log_marginal(model, partition, k)
    return value if rule == PAPER_MERGE else value + log_size(model.seating, partition.size[k])


@inner
def draw_partner(rng: Generator, state: State, model: Model, rule: int, k: int, n_void: int) -> int:
    """Another open block drawn by f_merge(. | k), or -1 for one of ``n_void`` empty ones.

    ``k`` is an open block or the slot of an empty one.
    """
    partition = state.partition
    n_blocks = partition.n_blocks[0]
    n_others = 0
    for at in range(n_blocks):
        other = slot_at(partition, at)
        if other != k:
            state.log_weights[n_others] = log_partner(model, partition, rule, k, other)
            n_others += 1
    last = n_others
    if n_void > 0:
        state.log_weights[last] = log(n_void) + _log_void_partner(model, partition, rule, k)
        last += 1
    chosen = choose(rng, state.log_weights, last)
    if chosen == n_others:
        return -1
    return slot_at(partition, chosen + 1 if chosen >= partition.position[k] else chosen)


@inner
def _log_one_partner(
    state: State, model: Model, rule: int, pair: tuple[int, int], absent: int, n_void: int
) -> float:
    partition = state.partition
    score = log_partner(model, partition, rule, pair[0], pair[1])
    total = score
    for at in range(partition.n_blocks[0]):
        k = slot_at(partition, at)
        if k != absent and k not in pair:
            total = _log_add(total, log_partner(model, partition, rule, pair[0], k))
    if n_void > 0:
        total = _log_add(total, log(n_void) + _log_void_partner(model, partition, rule, pair[0]))
    return score - total


@inner
def log_partners(
    state: State, model: Model, rule: int, pair: tuple[int, int], absent: int, n_void: int
) -> float:
    """``log(f_merge(j | i) + f_merge(i | j))`` for the pair (i, j) of open blocks or sides.

    The other candidates are ``n_void`` empty blocks and the open blocks except ``absent``, which
    may be one of the pair.
    """
    forward = _log_one_partner(state, model, rule, pair, absent, n_void)
    backward = _log_one_partner(state, model, rule, (pair[1], pair[0]), absent, n_void)
    return _log_add(forward, backward)
