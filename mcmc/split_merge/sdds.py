"""Smart-dumb, dumb-smart split-merge: Wang and Russell (2015), sections 3 and 4.

A fair coin chooses between two pairs of moves, each reversible by itself: (a) a smart split (a
block chosen by f_split, divided by sequential allocation to two empty sides) with a dumb merge (a
uniform pair), and (b) a dumb split (a uniform block, fair sides) with a smart merge (a uniform
block and a partner chosen by f_merge). Within a pair a fair coin chooses split or merge.

The paper counts one side order of a split and two orders of a merge in places, and its block
counts mix the states before and after the move; here both are counted as unlabelled proposals,
each with the number of blocks of the state it starts from. Allocation visits the atoms in a random
order drawn anew for each proposal, merges included.

A split with an empty side and a merge of a single block are null moves. Exact; (a) and (b) are each
irreducible alone. Cost: (a) two predictive densities an atom of the blocks, none where a merge is
refused by what else its ratio has, as most are; (b) a split one addition of rows an atom, and in
both directions two marginals of a union for every open block. (``split-merge-samplers.md`` section
2.5; the choices are in :mod:`weald.mcmc.split_merge.selection`.)
"""

from math import inf, log
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.contract import Entry, MixtureState
from weald.mcmc.state.atom_state import MERGE, Info, State, record
from weald.mcmc.sweeps import Sampler, proposals
from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.draw import below, coin, shuffle
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model, block_log_marginal

from .proposal import (
    conclude_merge,
    draw_blocks,
    gather_blocks,
    log_merge_ratio,
    log_split_ratio,
    log_union,
    null_move,
    refuse_early,
    settle_merge,
    settle_split,
)
from .selection import (
    Selection,
    draw_partner,
    draw_split,
    log_partners,
    log_split_choice,
    split_score,
)
from .trial_split import allocate, drop_sides, join_side, open_sides, side_slot, slot_at

__all__ = [
    "SddsPlan",
    "allocate_blocks",
    "dumb_merge",
    "dumb_split",
    "kernel",
    "log_merged_choice",
    "smart_merge",
    "smart_split",
    "step",
    "sweep",
]

# Most merges are refused early: a sweep of so many costs a few passes, as other kernels' do.
_PROPOSALS = 20


class SddsPlan(NamedTuple):
    """``proposals``: steps a sweep; ``smart_splits``: share of pair (a), 1 or 0 for one alone."""

    proposals: int = 1
    smart_splits: float = 0.5
    selection: Selection = Selection()


@inner
def allocate_blocks(
    rng: Generator, state: State, model: Model, first: int, second: int, gain: float
) -> float:
    """Divide one block over the sides sequentially, or imagine that it leads to two blocks.

    ``first == second`` divides that block. The sides start empty, and an empty side draws with the
    weight of a new block, so the log probability that is returned, log s(A, B), doesn't change when
    the sides are exchanged. ``members`` holds the atoms afterwards. ``gain`` is as in
    :func:`~weald.mcmc.split_merge.trial_split.allocate`.
    """
    n = gather_blocks(state, first, second)
    shuffle(rng, state.members, n)
    open_sides(state.partition)
    return allocate(rng, state, model, n, -1 if first == second else second, gain)


@inner
def log_merged_choice(
    state: State, model: Model, selection: Selection, first: int, second: int
) -> float:
    """Log probability that f_split chooses the union, in the state where two blocks are merged."""
    partition = state.partition
    count = partition.size[first] + partition.size[second]
    score = split_score(selection, count, log_union(model, partition, first, second))
    return log_split_choice(state, model, selection, score, (first, second), 0)


@inner
def smart_split(rng: Generator, state: State, model: Model, selection: Selection) -> Info:
    """Split of pair (a)."""
    partition = state.partition
    k = draw_split(rng, state, model, selection, 0)
    n = partition.n_members[k]
    log_s = allocate_blocks(rng, state, model, k, k, inf)
    if partition.n_members[side_slot(partition, 0)] in (0, n):
        drop_sides(partition)
        return null_move()
    score = split_score(selection, partition.size[k], block_log_marginal(model, partition, k))
    n_blocks = partition.n_blocks[0]
    ratio = log_split_ratio(model, partition, k) - log_s
    ratio -= log_split_choice(state, model, selection, score, (k, k), 0)
    ratio -= log(n_blocks) + log(n_blocks + 1)
    return settle_split(rng, state, k, n, ratio)


@inner
def dumb_merge(rng: Generator, state: State, model: Model, selection: Selection) -> Info:
    """Merge of pair (a); there must be two blocks."""
    partition = state.partition
    first, second = draw_blocks(rng, partition)
    n_blocks = partition.n_blocks[0]
    gain = log_merge_ratio(model, partition, first, second)
    gain += log_merged_choice(state, model, selection, first, second)
    gain += log(n_blocks) + log(n_blocks - 1)
    if refuse_early(rng, gain):
        return Info(MERGE, gain, 0)
    log_s = allocate_blocks(rng, state, model, first, second, gain)
    return conclude_merge(state, first, second, gain, log_s)


@inner
def dumb_split(rng: Generator, state: State, model: Model, selection: Selection) -> Info:
    """Split of pair (b)."""
    partition = state.partition
    n_blocks = partition.n_blocks[0]
    k = slot_at(partition, below(rng, n_blocks))
    n = gather_blocks(state, k, k)
    open_sides(partition)
    for at in range(n):
        join_side(state, state.members[at], 0 if coin(rng, 0.5) else 1)
    sides = (side_slot(partition, 0), side_slot(partition, 1))
    if partition.n_members[sides[0]] in (0, n):
        drop_sides(partition)
        return null_move()
    ratio = log_split_ratio(model, partition, k) + (n - 1) * log(2.0)
    ratio += log(n_blocks) - log(n_blocks + 1)
    ratio += log_partners(state, model, selection.merge, sides, k, 0)
    return settle_split(rng, state, k, n, ratio)


@inner
def smart_merge(rng: Generator, state: State, model: Model, selection: Selection) -> Info:
    """Merge of pair (b); there must be two blocks."""
    partition = state.partition
    n_blocks = partition.n_blocks[0]
    first = slot_at(partition, below(rng, n_blocks))
    second = draw_partner(rng, state, model, selection.merge, first, 0)
    n = partition.n_members[first] + partition.n_members[second]
    ratio = log_merge_ratio(model, partition, first, second) - (n - 1) * log(2.0)
    ratio += log(n_blocks) - log(n_blocks - 1)
    ratio -= log_partners(state, model, selection.merge, (first, second), first, 0)
    return settle_merge(rng, state, first, second, ratio)


@inner
def step(rng: Generator, state: State, model: Model, plan: SddsPlan) -> Info:
    """Propose one move of one of the pairs; there must be a block."""
    smart = coin(rng, plan.smart_splits)
    if coin(rng, 0.5):
        if smart:
            return smart_split(rng, state, model, plan.selection)
        return dumb_split(rng, state, model, plan.selection)
    if state.partition.n_blocks[0] < 2:
        return null_move()
    if smart:
        return dumb_merge(rng, state, model, plan.selection)
    return smart_merge(rng, state, model, plan.selection)


@compiled
def sweep(
    rng: Generator,
    state: State,
    model: Model,
    plan: SddsPlan,
    live: NDArray[np.int64],
    tally: NDArray[np.float64],
) -> None:
    """``plan.proposals`` steps; ``live`` are the atoms that are in blocks."""
    state, model = by_reference(state), by_reference(model)
    if live.shape[0] < 2:
        return
    for _ in range(plan.proposals):
        record(tally, step(rng, state, model, plan))


def kernel(entry: Entry) -> Sampler[MixtureState]:
    """The kernel, as the registry names it."""
    return proposals(entry, sweep, SddsPlan(_PROPOSALS), SddsPlan())
