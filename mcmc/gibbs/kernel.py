"""Collapsed Gibbs: Neal (2000) algorithm 3, for all atoms in turn, or for some.

Each atom is taken out and put back by a draw from its full conditional. Exact for every partition
prior of Gibbs type, and irreducible. Cost: one predictive density a block and atom; on a network
the vertex's edges, and one term of the likelihood for every pair of blocks.
(``split-merge-samplers.md`` section 2.1.)
"""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.contract import Entry, SweptState
from weald.mcmc.state.block_state import BlockState
from weald.mcmc.sweeps import Sampler, Tally, redrawn, sampler
from weald.treecore.compiled.draw import below

from . import gibbs

__all__ = ["gibbs_on", "kernel"]

_Visited = Callable[[Generator, int], NDArray[np.int64]]


def kernel(entry: Entry) -> Sampler[SweptState[BlockState]]:
    """The kernel, as the registry names it."""
    return sampler(entry, _scan(_all), least=_scan(_any))


def gibbs_on(limit: int, share: float = 0.0) -> Sampler[SweptState[BlockState]]:
    """Collapsed Gibbs on some atoms a sweep, drawn without regard to the partition.

    They are ``limit`` many, or this share of all where that is more.
    """

    def some(rng: Generator, n_atoms: int) -> NDArray[np.int64]:
        visited = min(n_atoms, max(limit, int(share * n_atoms)))
        drawn = rng.choice(n_atoms, size=visited, replace=False, shuffle=False)
        return np.asarray(drawn, dtype=np.int64)

    return Sampler("gibbs", "exact", ("gibbs",), _scan(some))


def _all(_rng: Generator, n_atoms: int) -> NDArray[np.int64]:
    return np.arange(n_atoms, dtype=np.int64)


def _any(rng: Generator, n_atoms: int) -> NDArray[np.int64]:
    return np.array([below(rng, n_atoms)], dtype=np.int64)


def _scan(visited: _Visited) -> Callable[[Generator, SweptState[BlockState]], Tally]:
    def run(rng: Generator, at: SweptState[BlockState]) -> Tally:
        atoms = visited(rng, at.n_atoms)
        at.run(rng, lambda state: gibbs.sweep(rng, state, at.model, atoms))
        return redrawn(len(atoms))

    return run
