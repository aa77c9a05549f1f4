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

from weald.mcmc.contract import Entry, SweptState
from weald.mcmc.state.atom_state import MERGE, Info, record
from weald.mcmc.state.block_state import BlockState
from weald.mcmc.sweeps import Sampler, proposals
from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.draw import coin, shuffle
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model

from .proposal import (
    conclude_merge,
    draw_block,
    draw_blocks,
    gather_blocks,
    log_merge_ratio,
    null_move,
    refuse_early,
    settle_merge,
    settle_split,
)
from .selection import (
    Selection,
    draw_partner,
    draw_split,
    log_merged_choice,
    log_partner_sides,
    log_partners,
    log_split_choice,
)
from .trial_split import (
    allocate,
    drop_sides,
    join_side,
    log_split_ratio,
    n_blocks,
    open_sides,
    undivided,
)

__all__ = [
    "SddsPlan",
    "allocate_blocks",
    "dumb_merge",
    "dumb_split",
    "kernel",
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
    rng: Generator, state: BlockState, model: Model, pair: tuple[int, int], gain: float
) -> tuple[int, float]:
    """Divide one block over the sides sequentially, or imagine that it leads to two blocks.

    A pair of the same block twice divides that block. The sides start empty, and an empty side
    draws with the weight of a new block, so the log probability that is returned, log s(A, B),
    doesn't change when the sides are exchanged. Returns also, and first, how many atoms there are,
    in ``members``. ``gain`` is as in :func:`~weald.mcmc.split_merge.trial_split.allocate`.
    """
    n = gather_blocks(state, pair[0], pair[1])
    shuffle(rng, state.members, n)
    open_sides(state, model, pair, n)
    return n, allocate(rng, state, model, n, -1 if pair[0] == pair[1] else pair[1], gain)


@inner
def smart_split(rng: Generator, state: BlockState, model: Model, selection: Selection) -> Info:
    """Split of pair (a)."""
    k = draw_split(rng, state, model, selection)
    ratio = -log_split_choice(state, model, selection, k)
    ratio -= log(n_blocks(state)) + log(n_blocks(state) + 1)
    n, log_s = allocate_blocks(rng, state, model, (k, k), inf)
    if undivided(state, n):
        drop_sides(state, model, n)
        return null_move()
    ratio += log_split_ratio(state, model, k) - log_s
    return settle_split(rng, state, model, k, n, ratio)


@inner
def dumb_merge(rng: Generator, state: BlockState, model: Model, selection: Selection) -> Info:
    """Merge of pair (a); there must be two blocks."""
    pair = draw_blocks(rng, state)
    gain = log_merge_ratio(state, model, pair[0], pair[1])
    gain += log_merged_choice(state, model, selection, pair)
    gain += log(n_blocks(state)) + log(n_blocks(state) - 1)
    if refuse_early(rng, gain):
        return Info(MERGE, gain, 0)
    n, log_s = allocate_blocks(rng, state, model, pair, gain)
    return conclude_merge(state, model, pair, n, gain, log_s)


@inner
def dumb_split(rng: Generator, state: BlockState, model: Model, selection: Selection) -> Info:
    """Split of pair (b)."""
    n_before = n_blocks(state)
    k = draw_block(rng, state)
    n = gather_blocks(state, k, k)
    open_sides(state, model, (k, k), n)
    for at in range(n):
        join_side(state, model, state.members[at], 0 if coin(rng, 0.5) else 1)
    if undivided(state, n):
        drop_sides(state, model, n)
        return null_move()
    ratio = log_split_ratio(state, model, k) + (n - 1) * log(2.0)
    ratio += log(n_before) - log(n_before + 1)
    ratio += log_partner_sides(state, model, selection.merge, k)
    return settle_split(rng, state, model, k, n, ratio)


@inner
def smart_merge(rng: Generator, state: BlockState, model: Model, selection: Selection) -> Info:
    """Merge of pair (b); there must be two blocks."""
    partition = state.partition
    first = draw_block(rng, state)
    pair = (first, draw_partner(rng, state, model, selection.merge, first))
    n = partition.n_members[pair[0]] + partition.n_members[pair[1]]
    ratio = log_merge_ratio(state, model, pair[0], pair[1]) - (n - 1) * log(2.0)
    ratio += log(n_blocks(state)) - log(n_blocks(state) - 1)
    ratio -= log_partners(state, model, selection.merge, pair)
    return settle_merge(rng, state, model, pair, ratio)


@inner
def step(rng: Generator, state: BlockState, model: Model, plan: SddsPlan) -> Info:
    """Propose one move of one of the pairs; there must be a block."""
    smart = coin(rng, plan.smart_splits)
    if coin(rng, 0.5):
        if smart:
            return smart_split(rng, state, model, plan.selection)
        return dumb_split(rng, state, model, plan.selection)
    if n_blocks(state) < 2:
        return null_move()
    if smart:
        return dumb_merge(rng, state, model, plan.selection)
    return smart_merge(rng, state, model, plan.selection)


@compiled
def sweep(
    rng: Generator,
    state: BlockState,
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


def kernel(entry: Entry) -> Sampler[SweptState[BlockState]]:
    """The kernel, as the registry names it."""
    # On a network a split that is tried moves every vertex of its block.
    plan = SddsPlan(_PROPOSALS if entry.data == "mixture" else 1)
    return proposals(entry, sweep, plan, SddsPlan())
