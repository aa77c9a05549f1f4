"""Collapsed Gibbs for the infinite relational model, one vertex after another.

Each vertex is taken out and put back by a draw from its full conditional, so the step leaves the
posterior invariant, and the sweep is irreducible. Cost: the vertex's edges, and one term of the
likelihood for every pair of blocks. (``split-merge-samplers.md`` section 2.1.)
"""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.assignment.assignment import reseat_freely
from weald.mcmc.contract import Entry, PartitionState
from weald.mcmc.sweeps import Sampler, Tally, redrawn, sampler
from weald.treecore.compiled.compile import compiled
from weald.treecore.compiled.draw import below
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model

from .vertices import VertexState

__all__ = ["kernel", "sweep"]

Labels = NDArray[np.int64]


@compiled
def sweep(rng: Generator, state: VertexState, model: Model, visited: NDArray[np.int64]) -> None:
    """One step for each vertex of ``visited`` (int64), in that order.

    The order must not depend on the partition.
    """
    state, model = by_reference(state), by_reference(model)
    for at in range(visited.shape[0]):
        reseat_freely(rng, state, model, visited[at])


def kernel(entry: Entry) -> Sampler[PartitionState[VertexState]]:
    """The kernel, as the registry names it."""

    def visit(rng: Generator, at: PartitionState[VertexState], visited: Labels) -> Tally:
        at.run(rng, lambda state: sweep(rng, state, at.model, visited))
        return redrawn(len(visited))

    def run(rng: Generator, at: PartitionState[VertexState]) -> Tally:
        return visit(rng, at, np.arange(at.n_atoms, dtype=np.int64))

    def least(rng: Generator, at: PartitionState[VertexState]) -> Tally:
        return visit(rng, at, np.array([below(rng, at.n_atoms)], dtype=np.int64))

    return sampler(entry, run, least=least)
