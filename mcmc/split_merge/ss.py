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

from weald.mcmc.contract import Entry, MixtureState
from weald.mcmc.state.atom_state import MERGE, Info, State, record
from weald.mcmc.sweeps import Sampler, proposals
from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.draw import below, coin
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model, block_log_marginal

from .proposal import (
    conclude_merge,
    log_merge_ratio,
    log_split_ratio,
    null_move,
    refuse_early,
    settle_split,
)
from .sdds import allocate_blocks, log_merged_choice
from .selection import (
    Selection,
    draw_partner,
    draw_split,
    log_partners,
    log_split_choice,
    split_score,
)
from .trial_split import drop_sides, side_slot, slot_at

__all__ = ["SsPlan", "kernel", "step", "sweep"]

# Most merges are refused early: a sweep of so many costs a few passes, as other kernels' do.
_PROPOSALS = 20


class SsPlan(NamedTuple):
    """``proposals``: steps a sweep."""

    proposals: int = 1
    selection: Selection = Selection()


@inner
def _split(rng: Generator, state: State, model: Model, selection: Selection) -> Info:
    partition = state.partition
    k = draw_split(rng, state, model, selection, 0)
    n = partition.n_members[k]
    log_s = allocate_blocks(rng, state, model, k, k, inf)
    sides = (side_slot(partition, 0), side_slot(partition, 1))
    if partition.n_members[sides[0]] in (0, n):
        drop_sides(partition)
        return null_move()
    score = split_score(selection, partition.size[k], block_log_marginal(model, partition, k))
    ratio = log_split_ratio(model, partition, k) - log_s - log(2.0)
    ratio += log_partners(state, model, selection.merge, sides, k, 0)
    ratio -= log_split_choice(state, model, selection, score, (k, k), 0)
    ratio -= log(partition.n_blocks[0] + 1)
    return settle_split(rng, state, k, n, ratio)


@inner
def _merge(rng: Generator, state: State, model: Model, selection: Selection) -> Info:
    partition = state.partition
    n_blocks = partition.n_blocks[0]
    if n_blocks < 2:
        return null_move()
    first = slot_at(partition, below(rng, n_blocks))
    second = draw_partner(rng, state, model, selection.merge, first, 0)
    gain = log_merge_ratio(model, partition, first, second) + log(2.0) + log(n_blocks)
    gain -= log_partners(state, model, selection.merge, (first, second), first, 0)
    gain += log_merged_choice(state, model, selection, first, second)
    if refuse_early(rng, gain):
        return Info(MERGE, gain, 0)
    log_s = allocate_blocks(rng, state, model, first, second, gain)
    return conclude_merge(state, first, second, gain, log_s)


@inner
def step(rng: Generator, state: State, model: Model, plan: SsPlan) -> Info:
    """Propose a split or a merge; there must be a block."""
    if coin(rng, 0.5):
        return _split(rng, state, model, plan.selection)
    return _merge(rng, state, model, plan.selection)


@compiled
def sweep(
    rng: Generator,
    state: State,
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


def kernel(entry: Entry) -> Sampler[MixtureState]:
    """The kernel, as the registry names it."""
    return proposals(entry, sweep, SsPlan(_PROPOSALS), SsPlan())
