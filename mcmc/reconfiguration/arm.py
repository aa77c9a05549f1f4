"""Adaptive reconfiguration moves: Herlau, Mørup, Schmidt and Teh, algorithm 3.

Two guides, in one of which two atoms are together and in the other apart, give the pair to join or
separate and the pieces to move whole: the coarsest common refinement of both guides and the state,
on the blocks of the pair. The walk is in :mod:`weald.mcmc.reconfiguration.reconfiguration`.

Exact for guides that do not depend on the state: current states of chains of the other half of a
population, of which one half moves at a time. Guides out of a growing history (the paper) contain
the present state, and are exact in the limit only. A pair of equal guides gives a null move.

Cost: two walks, each with a few predictive densities for every atom outside the blocks of the pair
and one a block for every atom inside. (``split-merge-samplers.md`` section 2.8.)
"""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.assignment.scratch import Notes, Walk
from weald.mcmc.contract import Entry, PartitionState
from weald.mcmc.split_merge.proposal import null_move
from weald.mcmc.state.atom_state import Info, record
from weald.mcmc.state.block_state import BlockState
from weald.mcmc.sweeps import Sampler
from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model

from .guided import guided
from .reconfiguration import reconfigure
from .reference_partitions import Guides, draw_disagreement

__all__ = ["PLAN", "kernel", "step", "sweep"]

PLAN = Walk(guided=1, whole=1)


@inner
def step(
    rng: Generator,
    state: BlockState,
    model: Model,
    plan: Walk,
    guides: Guides,
    notes: Notes,
    live: NDArray[np.int64],
) -> Info:
    """Propose one reconfiguration of the atoms ``live``, on a pair that the guides disagree on."""
    if guides.apart[guides.apart.shape[0] - 1] == 0.0:
        return null_move()
    pair = draw_disagreement(rng, guides)
    return reconfigure(rng, state, model, notes, plan, guides.common, pair, live)


@compiled
def sweep(
    rng: Generator,
    state: BlockState,
    model: Model,
    plan: Walk,
    guides: Guides,
    notes: Notes,
    live: NDArray[np.int64],
    tally: NDArray[np.float64],
) -> None:
    """One step; every atom that the guides know must be in a block and in ``live``."""
    state, model = by_reference(state), by_reference(model)
    guides, notes = by_reference(guides), by_reference(notes)
    record(tally, step(rng, state, model, plan, guides, notes, live))


def kernel(entry: Entry) -> Sampler[PartitionState[BlockState]]:
    """The kernel, as the registry names it."""
    return guided(entry, sweep, PLAN, PLAN)
