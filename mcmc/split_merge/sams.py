"""Sequentially allocated merge-split: Dahl (2003).

As simple random split-merge, but the atoms of a block to be split choose their sides one after
another, in a random order, by seating weight times predictive density given those already placed;
the probability of the choices enters the ratio. A merge imagines the allocation that would lead
back. The order is drawn anew for every proposal, merges included: it is an auxiliary variable with
the same law in both directions.

Exact and irreducible alone. Cost: two predictive densities an atom of the block or the two blocks;
one marginal of a union for a merge that its posterior ratio alone refuses, as most are.
(``split-merge-samplers.md`` section 2.4.)
"""

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.contract import Entry, SweptState
from weald.mcmc.state.atom_state import MERGE, Info, record
from weald.mcmc.state.block_state import BlockState
from weald.mcmc.sweeps import Sampler, Tally, proposals, sampler
from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.draw import coin, shuffle
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model

from .proposal import (
    conclude_merge,
    draw_anchors,
    draw_near_anchors,
    gather_anchored,
    log_merge_ratio,
    refuse_early,
    settle_split,
)
from .trial_split import allocate, block_of, join_side, log_split_ratio, open_sides

__all__ = ["SamsPlan", "kernel", "sams_within", "step", "sweep"]

# Most merges are refused early: a sweep of so many costs a few passes, as other kernels' do.
_PROPOSALS = 20


class SamsPlan(NamedTuple):
    """``proposals``: steps a sweep; ``near``: the share of them with anchors near each other."""

    proposals: int = 1
    near: float = 0.0


@inner
def step(rng: Generator, state: BlockState, model: Model, i: int, j: int) -> Info:
    """Propose to separate or to join the blocks of the atoms i and j, which must differ.

    How i and j are chosen must not depend on the partition; near neighbours, say, are allowed.
    """
    partition = state.partition
    first, second = block_of(partition, i), block_of(partition, j)
    gain = inf
    if first != second:
        gain = log_merge_ratio(state, model, first, second)
        if refuse_early(rng, gain):
            return Info(MERGE, gain, 0)
    n = gather_anchored(state, i, j)
    shuffle(rng, state.members, n)
    open_sides(state, model, (first, second), n + 2)
    join_side(state, model, i, 0)
    join_side(state, model, j, 1)
    log_q = allocate(rng, state, model, n, -1 if first == second else second, gain)
    if first == second:
        ratio = log_split_ratio(state, model, first) - log_q
        return settle_split(rng, state, model, first, n + 2, ratio)
    return conclude_merge(state, model, (first, second), n + 2, gain, log_q)


@compiled
def sweep(
    rng: Generator,
    state: BlockState,
    model: Model,
    plan: SamsPlan,
    live: NDArray[np.int64],
    tally: NDArray[np.float64],
) -> None:
    """``plan.proposals`` steps with anchors from ``live``, the atoms that are in blocks.

    They are uniform, or near each other in the order of ``live``, which must then come from the
    data.
    """
    state, model = by_reference(state), by_reference(model)
    if live.shape[0] < 2:
        return
    for _ in range(plan.proposals):
        near = plan.near > 0.0 and coin(rng, plan.near)
        i, j = draw_near_anchors(rng, live) if near else draw_anchors(rng, live)
        record(tally, step(rng, state, model, i, j))


def kernel(entry: Entry) -> Sampler[SweptState[BlockState]]:
    """The kernel, as the registry names it."""
    return proposals(entry, sweep, SamsPlan(_PROPOSALS), SamsPlan())


def sams_within(entry: Entry, most: int, limit: int) -> Sampler[SweptState[BlockState]]:
    """The kernel with ``most`` proposals a sweep, or as many as look at ``limit`` atoms in all.

    How many depends on the number of atoms alone. A split of a block that is everything looks at
    each of them, and while there are few blocks most proposals are splits.
    """

    def run(rng: Generator, at: SweptState[BlockState]) -> Tally:
        plan = SamsPlan(max(1, min(most, limit // max(at.n_atoms, 1))))
        kernel: Sampler[SweptState[BlockState]] = proposals(entry, sweep, plan, plan)
        return kernel.sweep(rng, at)

    return sampler(entry, run)
