"""Merges of two random blocks, and no split: for tests, and for `docs/add-a-kernel.md`.

An ordered pair of different blocks is drawn, and merged with the posterior ratio (Jain and Neal,
equation 9, without the probability of a way back). Nothing ever takes a merge back, so the
posterior is not left invariant. Cost: one marginal of a union a step.
"""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.contract import Entry, MixtureState
from weald.mcmc.split_merge.proposal import draw_blocks, log_merge_ratio, settle_merge
from weald.mcmc.state.atom_state import State, record
from weald.mcmc.sweeps import Sampler, proposals
from weald.treecore.compiled.compile import compiled
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model

__all__ = ["Plan", "kernel", "sweep"]


class Plan(NamedTuple):
    """``proposals``: steps a sweep."""

    proposals: int = 1


@compiled
def sweep(
    rng: Generator,
    state: State,
    model: Model,
    plan: Plan,
    live: NDArray[np.int64],  # noqa: ARG001 - the signature of all proposals
    tally: NDArray[np.float64],
) -> None:
    """``plan.proposals`` steps."""
    state, model = by_reference(state), by_reference(model)
    partition = state.partition
    for _ in range(plan.proposals):
        if partition.n_blocks[0] < 2:
            return
        first, second = draw_blocks(rng, partition)
        ratio = log_merge_ratio(model, partition, first, second)
        record(tally, settle_merge(rng, state, first, second, ratio))


def kernel(entry: Entry) -> Sampler[MixtureState]:
    """The kernel, as the registry names it."""
    return proposals(entry, sweep, Plan(5), Plan())
