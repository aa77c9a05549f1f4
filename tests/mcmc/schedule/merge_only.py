"""Merges of two random blocks, and no split: for tests, and for `docs/add-a-kernel.md`.

An ordered pair of different blocks is drawn, and merged with the posterior ratio (Jain and Neal,
equation 9, without the probability of a way back). Nothing ever takes a merge back, so the
posterior is not left invariant. Cost: one marginal of a union a step.
"""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.contract import Entry, PartitionState
from weald.mcmc.split_merge.proposal import draw_blocks, log_merge_ratio, settle_merge
from weald.mcmc.split_merge.trial_split import n_blocks
from weald.mcmc.state.atom_state import record
from weald.mcmc.state.block_state import BlockState
from weald.mcmc.sweeps import Sampler, proposals
from weald.treecore.compiled.compile import compiled
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model

__all__ = ["MergeOnlyPlan", "kernel", "sweep"]


class MergeOnlyPlan(NamedTuple):
    """``proposals``: steps a sweep."""

    proposals: int = 1


@compiled
def sweep(
    rng: Generator,
    state: BlockState,
    model: Model,
    plan: MergeOnlyPlan,
    live: NDArray[np.int64],  # noqa: ARG001 - the signature of all proposals
    tally: NDArray[np.float64],
) -> None:
    """``plan.proposals`` steps."""
    state, model = by_reference(state), by_reference(model)
    for _ in range(plan.proposals):
        if n_blocks(state) < 2:
            return
        pair = draw_blocks(rng, state)
        ratio = log_merge_ratio(state, model, pair[0], pair[1])
        record(tally, settle_merge(rng, state, model, pair, ratio))


def kernel(entry: Entry) -> Sampler[PartitionState[BlockState]]:
    """The kernel, as the registry names it."""
    return proposals(entry, sweep, MergeOnlyPlan(5), MergeOnlyPlan())
