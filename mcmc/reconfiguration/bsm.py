"""Split-merge with an informed launch: bSM of Herlau, Mørup, Schmidt and Teh, section 3.6.2.

Restricted Gibbs split-merge whose anchors are a pair on which two guides disagree; atoms that both
guides keep with an anchor are launched on its side, the others on fair sides.

The paper launches from the common refinement of the guides *and the state*. That makes the launch
of a split differ from that of its reverse, and biases the sampler (section 4, E9): the refinement
of the guides alone is exact. Guides as in :mod:`weald.mcmc.reconfiguration.arm`.
(``split-merge-samplers.md`` section 2.8.)
"""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.assignment.scratch import Notes
from weald.mcmc.contract import Entry, PartitionState
from weald.mcmc.split_merge.proposal import null_move
from weald.mcmc.split_merge.rgsm import FAIR, divide_or_join
from weald.mcmc.state.atom_state import Info, record
from weald.mcmc.state.block_state import BlockState
from weald.mcmc.sweeps import Sampler
from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model

from .guided import guided
from .reference_partitions import Guides, draw_disagreement

__all__ = ["PLAN", "BsmPlan", "kernel", "sweep"]


class BsmPlan(NamedTuple):
    """``scans``: restricted Gibbs scans of the launch (L)."""

    scans: int = 5


PLAN = BsmPlan()


@inner
def _step(rng: Generator, state: BlockState, model: Model, plan: BsmPlan, guides: Guides) -> Info:
    if guides.apart[guides.apart.shape[0] - 1] == 0.0:
        return null_move()
    pair = draw_disagreement(rng, guides)
    return divide_or_join(rng, state, model, plan.scans, FAIR, guides.common, pair)


@compiled
def sweep(
    rng: Generator,
    state: BlockState,
    model: Model,
    plan: BsmPlan,
    guides: Guides,
    notes: Notes,  # noqa: ARG001 - the signature of the other guided kernels
    live: NDArray[np.int64],  # noqa: ARG001 - the same
    tally: NDArray[np.float64],
) -> None:
    """One step; every atom that the guides know must be in a block."""
    state, model, guides = by_reference(state), by_reference(model), by_reference(guides)
    record(tally, _step(rng, state, model, plan, guides))


def kernel(entry: Entry) -> Sampler[PartitionState[BlockState]]:
    """The kernel, as the registry names it."""
    return guided(entry, sweep, PLAN, BsmPlan(scans=0))
