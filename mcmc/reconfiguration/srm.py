"""Simplified reconfiguration moves: Herlau, Mørup, Schmidt and Teh, algorithm 2.

As :mod:`weald.mcmc.reconfiguration.arm` without guides: a uniform pair of atoms, and every atom of
their blocks is placed anew one by one. Exact and irreducible, alone too.
(``split-merge-samplers.md`` section 2.8.)
"""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.assignment.in_place import in_place
from weald.mcmc.assignment.scratch import Notes, Walk
from weald.mcmc.contract import Entry, PartitionState
from weald.mcmc.split_merge.proposal import draw_anchors
from weald.mcmc.state.atom_state import record
from weald.mcmc.state.block_state import BlockState
from weald.mcmc.sweeps import Sampler
from weald.treecore.compiled.compile import compiled
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model

from .reconfiguration import reconfigure

__all__ = ["PLAN", "kernel", "sweep"]

PLAN = Walk(guided=0, whole=0)


@compiled
def sweep(
    rng: Generator,
    state: BlockState,
    model: Model,
    plan: Walk,
    notes: Notes,
    live: NDArray[np.int64],
    tally: NDArray[np.float64],
) -> None:
    """One step on the atoms ``live``, which are all in blocks."""
    state, model, notes = by_reference(state), by_reference(model), by_reference(notes)
    if live.shape[0] < 2:
        return
    pair = draw_anchors(rng, live)
    record(tally, reconfigure(rng, state, model, notes, plan, notes.own, pair, live))


def kernel(entry: Entry) -> Sampler[PartitionState[BlockState]]:
    """The kernel, as the registry names it."""
    return in_place(entry, sweep, PLAN, PLAN)
