"""Simple random split-merge: Jain and Neal (2004), algorithm 1.

Two anchors are drawn without looking at the partition. If they share a block it is split, each of
its other atoms going to a fair side; if not, their blocks are merged (equations 8, 9, 12 to 17,
with any prior of Gibbs type in place of the Dirichlet process). The same pair drives the reverse
move, so anchors from any law that ignores the partition are right too: see :func:`step`.

Exact and irreducible alone. Cost: a split one addition of rows an atom, a merge O(1) and,
accepted, the smaller block. (``split-merge-samplers.md`` section 2.2.)
"""

from math import log
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.contract import Entry, SweptState
from weald.mcmc.state.atom_state import Info, record
from weald.mcmc.state.block_state import BlockState
from weald.mcmc.sweeps import Sampler, proposals
from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.draw import coin
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model

from .proposal import draw_anchors, gather_anchored, log_merge_ratio, settle_merge, settle_split
from .trial_split import block_of, join_side, log_split_ratio, open_sides

__all__ = ["RsmPlan", "kernel", "step", "sweep"]

# A sweep costs a few passes over the atoms whichever kernel makes it, so that names compare.
_PROPOSALS = 5


class RsmPlan(NamedTuple):
    """``proposals``: steps a sweep."""

    proposals: int = 1


@inner
def step(rng: Generator, state: BlockState, model: Model, i: int, j: int) -> Info:
    """Propose to separate or to join the blocks of the atoms i and j, which must differ.

    How i and j are chosen must not depend on the partition; near neighbours, say, are allowed.
    """
    partition = state.partition
    first, second = block_of(partition, i), block_of(partition, j)
    if first != second:
        n = partition.n_members[first] + partition.n_members[second] - 2
        ratio = log_merge_ratio(state, model, first, second) - n * log(2.0)
        return settle_merge(rng, state, model, (first, second), ratio)
    n = gather_anchored(state, i, j)
    open_sides(state, model, (first, second), n + 2)
    join_side(state, model, i, 0)
    join_side(state, model, j, 1)
    for at in range(n):
        join_side(state, model, state.members[at], 0 if coin(rng, 0.5) else 1)
    ratio = log_split_ratio(state, model, first) + n * log(2.0)
    return settle_split(rng, state, model, first, n + 2, ratio)


@compiled
def sweep(
    rng: Generator,
    state: BlockState,
    model: Model,
    plan: RsmPlan,
    live: NDArray[np.int64],
    tally: NDArray[np.float64],
) -> None:
    """``plan.proposals`` steps with uniform anchors from ``live``, the atoms that are in blocks."""
    state, model = by_reference(state), by_reference(model)
    if live.shape[0] < 2:
        return
    for _ in range(plan.proposals):
        i, j = draw_anchors(rng, live)
        record(tally, step(rng, state, model, i, j))


def kernel(entry: Entry) -> Sampler[SweptState[BlockState]]:
    """The kernel, as the registry names it."""
    return proposals(entry, sweep, RsmPlan(_PROPOSALS), RsmPlan())
