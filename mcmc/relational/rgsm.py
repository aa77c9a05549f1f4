"""Restricted Gibbs split-merge for the infinite relational model: Jain and Neal's algorithm 2.

Uniform anchors, fair sides at launch, ``scans`` restricted Gibbs scans, and one that proposes; in
place (:mod:`weald.mcmc.assignment.restricted_gibbs`). Exact and irreducible. Cost: scans + 2
reassignments of every vertex of one or two blocks. (``split-merge-samplers.md`` section 2.3.)
"""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.assignment.in_place import in_place
from weald.mcmc.assignment.restricted_gibbs import divide_or_join
from weald.mcmc.assignment.scratch import Notes
from weald.mcmc.contract import Entry, PartitionState
from weald.mcmc.split_merge.proposal import draw_anchors
from weald.mcmc.state.atom_state import record
from weald.mcmc.sweeps import Sampler
from weald.treecore.compiled.compile import compiled
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model

from .vertices import VertexState

__all__ = ["NetworkRgsmPlan", "kernel", "sweep"]


class NetworkRgsmPlan(NamedTuple):
    """``scans`` (t) and ``proposals`` (m)."""

    scans: int = 5
    proposals: int = 1


@compiled
def sweep(
    rng: Generator,
    state: VertexState,
    model: Model,
    plan: NetworkRgsmPlan,
    notes: Notes,
    live: NDArray[np.int64],
    tally: NDArray[np.float64],
) -> None:
    """``plan.proposals`` steps, with uniform anchors from the vertices ``live``."""
    state, model, notes = by_reference(state), by_reference(model), by_reference(notes)
    if live.shape[0] < 2:
        return
    for _ in range(plan.proposals):
        pair = draw_anchors(rng, live)
        record(tally, divide_or_join(rng, state, model, notes, plan.scans, notes.before[:0], pair))


def kernel(entry: Entry) -> Sampler[PartitionState[VertexState]]:
    """The kernel, as the registry names it."""
    return in_place(entry, sweep, NetworkRgsmPlan(), NetworkRgsmPlan(scans=0))
