"""Split-merge on the entity/mention model: Wang and Russell (2015), sections 2 and 5.

What differs from a partition where an entity may be empty. The weight of a state (K, S) over the
partitions with D blocks is ``P(K) K^-n K! / (K - D)!`` times the likelihood. Entities carry
exchangeable labels, of which nothing needs to be stored: the blocks of the partition are the
entities with mentions, and the number K says how many there are besides. A split puts its two sides
at a uniformly random pair of the K + 1 positions, a factor that the paper leaves out;
:func:`~weald.mcmc.split_merge.trial_split.log_number` has it.

An empty entity is an ordinary entity: it may be split into two empty ones (a birth) or merged (a
death), and a split with an empty side is a real move. Sequential allocation weighs sides by
predictive densities alone (equation 5), since ``model.seating`` is
:func:`entity_seating`.

All exact. Smart-dumb (both pairs, each alone) and smart-smart are irreducible; the other kernels
touch entities with mentions only, and need Gibbs sampling besides. Cost: as on partitions.
(``split-merge-samplers.md`` section 2.6.)
"""

from math import inf, log

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.gibbs.gibbs import log_alone
from weald.mcmc.split_merge.trial_split import (
    adopt_blocks,
    adopt_sides,
    drop_sides,
    fuse,
    fuse_blocks,
    log_number,
    n_empty,
    n_on_side,
    slot_at,
    undivided,
)
from weald.mcmc.state.atom_state import State
from weald.mcmc.state.entity_state import Entities, EntityState
from weald.treecore.compiled.compile import implements
from weald.treecore.partition.partition import Model
from weald.treecore.prior.base import Seating, make_seating

__all__ = ["entity_log_number", "entity_seating", "make_entity_state"]

Pair = tuple[int, int]


def make_entity_state(state: State, n_entities: int, log_prior: NDArray[np.float64]) -> EntityState:
    """State with K entities and that partition of the mentions; it takes the arrays over.

    ``log_prior`` is as ``UniformAssignment.log_entities`` gives it.
    """
    number = np.array([n_entities], dtype=np.int64)
    return EntityState(*state, Entities(number, np.append(log_prior, -inf)))


def entity_seating(n_blocks: int) -> Seating:
    """Seating given K for the model's kernels: neither sizes nor the number of blocks matter."""
    return make_seating(0.0, 0.0, 0.0, np.zeros(n_blocks + 2), 0.0)


@implements(n_empty, EntityState)
def _n_empty(state: EntityState) -> int:
    return state.entities.number[0] - state.partition.n_blocks[0]


@implements(log_number, EntityState)
def entity_log_number(state: EntityState, _model: Model, more: int) -> float:
    """What an entity more or less weighs; a split has K + 1 positions for a side."""
    k = state.entities.number[0] + min(more, 0)
    n = 0
    for at in range(state.partition.n_blocks[0]):
        n += state.partition.size[slot_at(state.partition, at)]
    log_prior = state.entities.log_prior
    value = log_prior[k + 1] - log_prior[k] + n * (log(k) - log(k + 1)) + log(k + 1)
    return value if more > 0 else -value


@implements(undivided, EntityState)
def _undivided(_state: EntityState, _n: int) -> bool:
    return False


@implements(adopt_sides, EntityState)
def _adopt_sides(state: EntityState, model: Model, pair: Pair, n: int) -> None:
    if pair[0] == pair[1]:
        state.entities.number[0] += 1
    if n_on_side(state, 0) in (0, n):
        drop_sides(state, model, n)
    else:
        adopt_blocks(state, pair, n)


@implements(fuse, EntityState)
def _fuse(state: EntityState, _model: Model, first: int, second: int) -> None:
    state.entities.number[0] -= 1
    sizes = state.partition.n_members
    if sizes[first] > 0 and sizes[second] > 0:
        fuse_blocks(state.partition, first, second)


@implements(log_alone, EntityState)
def _log_alone(state: EntityState, _model: Model, i: int) -> float:
    # Given K, any of the empty entities will do.
    n_void = n_empty(state)
    return log(n_void) + state.atoms.log_marginal[i] if n_void > 0 else -inf
