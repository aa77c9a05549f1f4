"""How a sampler that takes reference partitions becomes a kernel, of mixtures or of networks."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.assignment.scratch import Notes, make_notes
from weald.mcmc.contract import Entry, PartitionState
from weald.mcmc.state.atom_state import make_tally
from weald.mcmc.state.block_state import BlockState
from weald.mcmc.sweeps import Sampler, Tally, moves_of, sampler
from weald.treecore.errors import ParameterError
from weald.treecore.partition.partition import Model

from .reference_partitions import Guides, make_guides

__all__ = ["draw_guides", "guided"]

Labels = NDArray[np.int64]
P = TypeVar("P")
GuidedSweep = Callable[[Generator, BlockState, Model, P, Guides, Notes, Labels, Tally], None]


def draw_guides(rng: Generator, entry: Entry, at: PartitionState[object]) -> Guides | None:
    """Two of the partitions that guide a chain, or None where there are not two.

    They are the present ones of other chains, or past ones for a kernel that needs these. Raises
    ParameterError if the chain runs alone.
    """
    if "past" in entry.needs:
        if at.history is None:
            raise ParameterError(f"{entry.name} needs the history of a population of chains")
        found = at.history[0].draw(rng, at.history[1])
        return None if found is None else make_guides(*found)
    guides = at.guides
    if len(guides) < 2:
        raise ParameterError(f"{entry.name} takes its guides from other chains: ask for 4 at least")
    first, second = rng.choice(len(guides), size=2, replace=False)
    return make_guides(guides[first], guides[second])


def guided(
    entry: Entry, sweep: GuidedSweep[P], plan: P, least: P
) -> Sampler[PartitionState[BlockState]]:
    """Kernel of a sweep ``(rng, state, model, plan, guides, notes, live, tally)``.

    ``least`` is the plan of one proposal.
    """

    def by(chosen: P) -> Callable[[Generator, PartitionState[BlockState]], Tally]:
        def run(rng: Generator, at: PartitionState[BlockState]) -> Tally:
            guides = draw_guides(rng, entry, at)
            if guides is None:
                return np.zeros((1, 3))
            live = np.arange(at.n_atoms, dtype=np.int64)

            def once(state: BlockState) -> Tally:
                tally, notes = make_tally(), make_notes(at.n_atoms, at.n_atoms + 4)
                sweep(rng, state, at.model, chosen, guides, notes, live, tally)
                return moves_of(tally)

            return at.run(rng, once)

        return run

    return sampler(entry, by(plan), least=by(least))
