"""How a sampler that moves atoms in place becomes a kernel, of mixtures or of networks."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.contract import Entry, PartitionState
from weald.mcmc.state.atom_state import make_tally
from weald.mcmc.sweeps import Sampler, Tally, moves_of, sampler
from weald.treecore.partition.partition import Model

from .scratch import Notes, make_notes

__all__ = ["InPlaceSweep", "in_place"]

Labels = NDArray[np.int64]
P = TypeVar("P")
S = TypeVar("S")
# A sweep ``(rng, state, model, plan, notes, live, tally)``.
InPlaceSweep = Callable[[Generator, S, Model, P, Notes, Labels, Tally], None]


def in_place(
    entry: Entry, sweep: InPlaceSweep[S, P], plan: P, least: P
) -> Sampler[PartitionState[S]]:
    """Kernel of a sweep that takes back in place what is rejected; ``least`` proposes once."""

    def by(chosen: P) -> Callable[[Generator, PartitionState[S]], Tally]:
        def run(rng: Generator, at: PartitionState[S]) -> Tally:
            live = np.arange(at.n_atoms, dtype=np.int64)

            def once(state: S) -> Tally:
                tally, notes = make_tally(), make_notes(at.n_atoms, at.n_atoms + 4)
                sweep(rng, state, at.model, chosen, notes, live, tally)
                return moves_of(tally)

            return at.run(rng, once)

        return run

    return sampler(entry, by(plan), least=by(least))
