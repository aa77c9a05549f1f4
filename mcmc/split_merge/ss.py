"""Smart split with smart merge: the baseline "SS" of Wang and Russell (2015), section 5.1.

The smart split and the smart merge of :mod:`weald.mcmc.split_merge.sdds`, each the other's reverse.
A merge that f_merge likes may be one that f_split would hardly propose to undo, which is what the
paper's pairs avoid.

A split with an empty side and a merge of a single block are null moves. Exact and irreducible
alone. Cost: two predictive densities an atom of the blocks, none where a merge is refused by what
else its ratio has, and two marginals of a union for every open block.
(``split-merge-samplers.md`` section 2.5.)
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
from weald.treecore.compiled.draw import coin
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model

from .proposal import (
    conclude_merge,
    draw_block,
    log_merge_ratio,
    null_move,
    refuse_early,
    settle_split,
)
from .sdds import allocate_blocks
from .selection import (
    Selection,
    draw_partner,
    draw_split,
    log_merged_choice,
    log_partner_sides,
    log_partners,
    log_split_choice,
)
from .trial_split import drop_sides, log_split_ratio, n_blocks, undivided

__all__ = ["SsPlan", "kernel", "step", "sweep"]

# Most merges are refused early: a sweep of so many costs a few passes, as other kernels' do.
_PROPOSALS = 20


class SsPlan(NamedTuple):
    """``proposals``: steps a sweep."""

    proposals: int = 1
    selection: Selection = Selection()


@inner
def _split(rng: Generator, state: BlockState, model: Model, selection: Selection) -> Info:
    k = draw_split(rng, state, model, selection)
    ratio = -log_split_choice(state, model, selection, k) - log(n_blocks(state) + 1)
    n, log_s = allocate_blocks(rng, state, model, (k, k), inf)
    if undivided(state, n):
        drop_sides(state, model, n)
        return null_move()
    ratio += log_split_ratio(state, model, k) - log_s - log(2.0)
    ratio += log_partner_sides(state, model, selection.merge, k)
    return settle_split(rng, state, model, k, n, ratio)


@inner
def _merge(rng: Generator, state: BlockState, model: Model, selection: Selection) -> Info:
    if n_blocks(state) < 2:
        return null_move()
    first = draw_block(rng, state)
    pair = (first, draw_partner(rng, state, model, selection.merge, first))
    gain = log_merge_ratio(state, model, pair[0], pair[1]) + log(2.0) + log(n_blocks(state))
    gain -= log_partners(state, model, selection.merge, pair)
    gain += log_merged_choice(state, model, selection, pair)
    if refuse_early(rng, gain):
        return Info(MERGE, gain, 0)
    n, log_s = allocate_blocks(rng, state, model, pair, gain)
    return conclude_merge(state, model, pair, n, gain, log_s)


@inner
def step(rng: Generator, state: BlockState, model: Model, plan: SsPlan) -> Info:
    """Propose a split or a merge; there must be a block."""
    if coin(rng, 0.5):
        return _split(rng, state, model, plan.selection)
    return _merge(rng, state, model, plan.selection)


@compiled
def sweep(
    rng: Generator,
    state: BlockState,
    model: Model,
    plan: SsPlan,
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
    return proposals(entry, sweep, SsPlan(_PROPOSALS), SsPlan())
