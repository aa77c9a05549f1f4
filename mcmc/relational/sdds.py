"""Smart-dumb, dumb-smart split-merge for the infinite relational model.

The two pairs of :mod:`weald.mcmc.split_merge.sdds` with the same choices and the same ratios, in
place: f_split and f_merge are functions of the blocks in the state that they choose from, so each
is taken in that very state. What a block weighs here (log m there) is the log likelihood of all
pairs that it is in; f_merge is the posterior ratio of the merge. Exact.
(``split-merge-samplers.md`` section 2.5.)
"""

from math import exp, log

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.assignment.assignment import (
    go_to,
    log_seat,
    log_seat_alone,
    log_target,
    new_block,
    normalizer,
    put_in,
    set_aside,
)
from weald.mcmc.assignment.in_place import in_place
from weald.mcmc.assignment.restricted_gibbs import join, leave_all, put_in_order
from weald.mcmc.assignment.scratch import Notes
from weald.mcmc.contract import Entry, PartitionState
from weald.mcmc.split_merge.proposal import decide, draw_blocks, gather_blocks, null_move
from weald.mcmc.split_merge.sdds import SddsPlan
from weald.mcmc.split_merge.selection import Selection, split_score
from weald.mcmc.state.atom_state import MERGE, SPLIT, Info, record
from weald.mcmc.sweeps import Sampler
from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.draw import below, choose, coin
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model, Partition
from weald.treecore.prior.base import log_size
from weald.treecore.relational.weighing import log_block, log_fusion

from .vertices import VertexState

__all__ = ["SddsPlan", "kernel", "sweep"]


@inner
def _score_blocks(state: VertexState, selection: Selection) -> float:
    """Scores of f_split into ``log_weights``; returns their normaliser."""
    partition = state.partition
    n_blocks = partition.n_blocks[0]
    for at in range(n_blocks):
        k = partition.slots[at]
        value = log_block(state.network, partition, state.ties, k)
        state.log_weights[at] = split_score(selection, partition.n_members[k], value)
    return normalizer(state.log_weights, n_blocks)


@inner
def _log_split_choice(state: VertexState, selection: Selection, k: int) -> float:
    """Log probability that f_split chooses block k."""
    log_total = _score_blocks(state, selection)
    share = exp(state.log_weights[state.partition.position[k]] - log_total)
    floor = selection.floor / state.partition.n_blocks[0]
    return log((1.0 - selection.floor) * share + floor)


@inner
def _draw_split(rng: Generator, state: VertexState, selection: Selection) -> int:
    n_blocks = state.partition.n_blocks[0]
    if coin(rng, selection.floor):
        return state.partition.slots[below(rng, n_blocks)]
    _score_blocks(state, selection)
    return state.partition.slots[choose(rng, state.log_weights, n_blocks)]


@inner
def _log_merged(state: VertexState, model: Model, first: int, second: int) -> float:
    """Log posterior ratio of merging two blocks, the weight of their number apart."""
    partition, seating = state.partition, model.seating
    sizes = (partition.n_members[first], partition.n_members[second])
    value = log_fusion(model, state.network, partition, state.ties, first, second)
    value += log_size(seating, sizes[0] + sizes[1])
    return value - log_size(seating, sizes[0]) - log_size(seating, sizes[1])


@inner
def _weigh_partners(state: VertexState, model: Model, k: int) -> int:
    """Log weights of f_merge(. | k) for the other blocks, in order; returns their number."""
    n_others = 0
    for at in range(state.partition.n_blocks[0]):
        other = state.partition.slots[at]
        if other != k:
            state.log_weights[n_others] = _log_merged(state, model, k, other)
            n_others += 1
    return n_others


@inner
def _at_among_others(partition: Partition, k: int, other: int) -> int:
    at = partition.position[other]
    return at - 1 if at > partition.position[k] else at


@inner
def _log_partners(state: VertexState, model: Model, first: int, second: int) -> float:
    """``log(f_merge(second | first) + f_merge(first | second))``."""
    partition = state.partition
    n_others = _weigh_partners(state, model, first)
    log_total = normalizer(state.log_weights, n_others)
    share = exp(state.log_weights[_at_among_others(partition, first, second)] - log_total)
    n_others = _weigh_partners(state, model, second)
    log_total = normalizer(state.log_weights, n_others)
    share += exp(state.log_weights[_at_among_others(partition, second, first)] - log_total)
    return log(share)


@inner
def _allocate(
    rng: Generator, state: VertexState, model: Model, notes: Notes, n: int, second: int
) -> tuple[float, int, int]:
    """Put ``order[:n]`` one after another on two sides that are empty at first.

    With ``second`` not negative, those that were in that block are forced to side 1, the others to
    side 0. Returns the log probability and the sides' slots, -1 for one that stayed empty.
    """
    log_s = 0.0
    side_0, side_1 = -1, -1
    for at in range(n):
        v = state.order[at]
        state.members[0] = v
        set_aside(state, model, state.members, 1)
        alone = log_seat_alone(state, model)
        first = alone if side_0 < 0 else log_seat(state, model, side_0)
        other = alone if side_1 < 0 else log_seat(state, model, side_1)
        state.log_weights[0], state.log_weights[1] = first, other
        log_total = normalizer(state.log_weights, 2)
        if second >= 0:
            chosen = 1 if notes.before[v] == second else 0
        else:
            chosen = choose(rng, state.log_weights, 2)
        log_s += (first if chosen == 0 else other) - log_total
        if chosen == 0 and side_0 < 0:
            side_0 = new_block(state)
        if chosen == 1 and side_1 < 0:
            side_1 = new_block(state)
        put_in(state, model, v, side_0 if chosen == 0 else side_1)
    return log_s, side_0, side_1


@inner
def _gather(rng: Generator, state: VertexState, first: int, second: int) -> int:
    n = gather_blocks(state, first, second)
    put_in_order(rng, state, n)
    return n


@inner
def _settle(
    rng: Generator,
    state: VertexState,
    model: Model,
    notes: Notes,
    n: int,
    move: int,
    log_ratio: float,
) -> Info:
    info = decide(rng, move, log_ratio)
    if not info.accepted:
        go_to(state, model, notes.before, state.order[:n], notes.home)
    return info


@inner
def _smart_split(
    rng: Generator, state: VertexState, model: Model, notes: Notes, selection: Selection
) -> Info:
    n_blocks = state.partition.n_blocks[0]
    k = _draw_split(rng, state, selection)
    log_f = _log_split_choice(state, selection, k)
    n = _gather(rng, state, k, k)
    ratio = -log_target(state, model)
    leave_all(state, model, notes, n)
    log_s, first, second = _allocate(rng, state, model, notes, n, -1)
    if first < 0 or second < 0:
        return null_move()
    ratio += log_target(state, model) - log_f - log_s - log(n_blocks) - log(n_blocks + 1)
    return _settle(rng, state, model, notes, n, SPLIT, ratio)


@inner
def _dumb_merge(
    rng: Generator, state: VertexState, model: Model, notes: Notes, selection: Selection
) -> Info:
    n_blocks = state.partition.n_blocks[0]
    pair = draw_blocks(rng, state.partition)
    n = _gather(rng, state, pair[0], pair[1])
    ratio = -log_target(state, model)
    leave_all(state, model, notes, n)
    log_s, first, second = _allocate(rng, state, model, notes, n, pair[1])
    join(state, model, n, second, first)
    ratio += log_target(state, model) + _log_split_choice(state, selection, first) + log_s
    ratio += log(n_blocks) + log(n_blocks - 1)
    return _settle(rng, state, model, notes, n, MERGE, ratio)


@inner
def _dumb_split(rng: Generator, state: VertexState, model: Model, notes: Notes) -> Info:
    n_blocks = state.partition.n_blocks[0]
    k = state.partition.slots[below(rng, n_blocks)]
    n = _gather(rng, state, k, k)
    ratio = -log_target(state, model)
    leave_all(state, model, notes, n)
    side_0, side_1 = -1, -1
    for at in range(n):
        if coin(rng, 0.5):
            side_0 = new_block(state) if side_0 < 0 else side_0
            put_in(state, model, state.order[at], side_0)
        else:
            side_1 = new_block(state) if side_1 < 0 else side_1
            put_in(state, model, state.order[at], side_1)
    if side_0 < 0 or side_1 < 0:
        return null_move()
    ratio += log_target(state, model) + (n - 1) * log(2.0) + log(n_blocks) - log(n_blocks + 1)
    ratio += _log_partners(state, model, side_0, side_1)
    return _settle(rng, state, model, notes, n, SPLIT, ratio)


@inner
def _smart_merge(rng: Generator, state: VertexState, model: Model, notes: Notes) -> Info:
    partition = state.partition
    n_blocks = partition.n_blocks[0]
    first = partition.slots[below(rng, n_blocks)]
    at = choose(rng, state.log_weights, _weigh_partners(state, model, first))
    second = partition.slots[at + 1 if at >= partition.position[first] else at]
    n = _gather(rng, state, first, second)
    ratio = -log_target(state, model) - (n - 1) * log(2.0) + log(n_blocks) - log(n_blocks - 1)
    ratio -= _log_partners(state, model, first, second)
    for i in range(n):
        notes.before[state.order[i]] = partition.label[state.order[i]]
    join(state, model, n, second, first)
    ratio += log_target(state, model)
    return _settle(rng, state, model, notes, n, MERGE, ratio)


@inner
def _step(rng: Generator, state: VertexState, model: Model, notes: Notes, plan: SddsPlan) -> Info:
    smart = coin(rng, plan.smart_splits)
    if coin(rng, 0.5):
        if smart:
            return _smart_split(rng, state, model, notes, plan.selection)
        return _dumb_split(rng, state, model, notes)
    if state.partition.n_blocks[0] < 2:
        return null_move()
    if smart:
        return _dumb_merge(rng, state, model, notes, plan.selection)
    return _smart_merge(rng, state, model, notes)


@compiled
def sweep(
    rng: Generator,
    state: VertexState,
    model: Model,
    plan: SddsPlan,
    notes: Notes,
    live: NDArray[np.int64],
    tally: NDArray[np.float64],
) -> None:
    """``plan.proposals`` steps; ``live`` are the vertices that are in blocks."""
    state, model, notes = by_reference(state), by_reference(model), by_reference(notes)
    if live.shape[0] < 2:
        return
    for _ in range(plan.proposals):
        record(tally, _step(rng, state, model, notes, plan))


def kernel(entry: Entry) -> Sampler[PartitionState[VertexState]]:
    """The kernel, as the registry names it."""
    return in_place(entry, sweep, SddsPlan(), SddsPlan())
