"""State (K, S) of the entity/mention model: K entities, some of them empty, and their mentions."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.reference import held_by_reference
from weald.treecore.partition.partition import Atoms, Partition

__all__ = ["Entities", "EntityState"]


@held_by_reference
class Entities(NamedTuple):
    """Number of entities, and its prior.

    Attributes
    ----------
    number:
        K, int64 (1).
    log_prior:
        log P(K) for K = 0, 1, ...; minus infinity where K is impossible, so at 0 and at the end.
    """

    number: NDArray[np.int64]
    log_prior: NDArray[np.float64]


@held_by_reference
class EntityState(NamedTuple):
    """What :class:`~weald.mcmc.state.atom_state.State` holds, and the number of entities."""

    atoms: Atoms
    partition: Partition
    log_weights: NDArray[np.float64]
    members: NDArray[np.int64]
    order: NDArray[np.int64]
    side: NDArray[np.int8]
    entities: Entities
