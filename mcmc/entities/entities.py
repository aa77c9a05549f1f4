"""State (K, S) of the entity/mention model: K entities, some of them empty, and their mentions.

Its weight over the partitions with D blocks is ``P(K) K^-n K! / (K - D)!`` times the likelihood.
Entities carry exchangeable labels, of which nothing needs to be stored: the blocks of the partition
are the entities with mentions, and the number K says how many there are besides. All ratios are for
states with labels, where a split puts its two sides at a uniformly random pair of positions.
(``split-merge-samplers.md`` sections 1 and 2.6.)
"""

from math import inf, log
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.split_merge.proposal import decide, log_union, merge_blocks
from weald.mcmc.split_merge.trial_split import adopt_sides, drop_sides, side_slot, slot_at
from weald.mcmc.state.atom_state import MERGE, SPLIT, Info, State
from weald.treecore.compiled.compile import inner
from weald.treecore.compiled.draw import below
from weald.treecore.partition.partition import Model, Partition, block_log_marginal
from weald.treecore.prior.base import Seating, make_seating

__all__ = [
    "Entities",
    "conclude_fusion",
    "draw_entity",
    "empty_slot",
    "entity_at",
    "entity_seating",
    "has_none",
    "log_division",
    "log_fusion",
    "log_one_more",
    "make_entities",
    "n_empty",
    "n_other_empty",
    "settle_division",
    "settle_fusion",
]


class Entities(NamedTuple):
    """Number of entities, its prior, and the mentions.

    Attributes
    ----------
    number:
        K, int64 (1).
    log_prior:
        log P(K) for K = 0, 1, ...; minus infinity where K is impossible, so at 0 and at the end.
    live:
        Atoms that are in blocks, int64.
    """

    number: NDArray[np.int64]
    log_prior: NDArray[np.float64]
    live: NDArray[np.int64]


def make_entities(
    n_entities: int, log_prior: NDArray[np.float64], live: NDArray[np.int64]
) -> Entities:
    """State with K entities; ``log_prior`` as ``UniformAssignment.log_entities`` gives it."""
    return Entities(np.array([n_entities], dtype=np.int64), np.append(log_prior, -inf), live)


def entity_seating(n_blocks: int) -> Seating:
    """Seating given K for the model's kernels: neither sizes nor the number of blocks matter."""
    return make_seating(0.0, 0.0, 0.0, np.zeros(n_blocks + 2), 0.0)


@inner
def n_empty(partition: Partition, entities: Entities) -> int:
    """Entities without mentions."""
    return entities.number[0] - partition.n_blocks[0]


@inner
def has_none(partition: Partition, k: int) -> int:
    """1 where the entity in slot k has no mentions."""
    return 1 if partition.n_members[k] == 0 else 0


@inner
def n_other_empty(partition: Partition, entities: Entities, pair: tuple[int, int]) -> int:
    """Empty entities besides a pair of different entities."""
    n = n_empty(partition, entities)
    return n - has_none(partition, pair[0]) - has_none(partition, pair[1])


@inner
def empty_slot(partition: Partition) -> int:
    """A closed slot beyond the sides, made to stand for an empty entity."""
    k = side_slot(partition, 2)
    partition.head[k] = -1
    partition.size[k] = 0
    partition.n_members[k] = 0
    partition.log_marginal[k] = 0.0
    partition.stale[k] = 0
    return k


@inner
def entity_at(partition: Partition, at: int) -> int:
    """Slot of the entity at a position from 0 to K - 1; the empty ones come last."""
    return slot_at(partition, at) if at < partition.n_blocks[0] else empty_slot(partition)


@inner
def draw_entity(rng: Generator, partition: Partition, entities: Entities) -> int:
    """Slot of an entity, uniformly."""
    return entity_at(partition, below(rng, entities.number[0]))


@inner
def log_one_more(state: State, entities: Entities) -> float:
    """What K + 1 entities for the mentions weigh more than K, labels given."""
    k = entities.number[0]
    n = 0
    for at in range(state.partition.n_blocks[0]):
        n += state.partition.size[slot_at(state.partition, at)]
    return entities.log_prior[k + 1] - entities.log_prior[k] + n * (log(k) - log(k + 1))


@inner
def log_division(state: State, model: Model, entities: Entities, k: int) -> float:
    """Log weight with entity k divided into the two sides, over the present one."""
    partition = state.partition
    value = log_one_more(state, entities)
    for side in range(2):
        value += block_log_marginal(model, partition, side_slot(partition, side))
    return value - block_log_marginal(model, partition, k)


@inner
def log_fusion(state: State, model: Model, entities: Entities, pair: tuple[int, int]) -> float:
    """Log weight with two entities made one, over the present one."""
    partition = state.partition
    value = log_union(model, partition, pair[0], pair[1])
    value -= block_log_marginal(model, partition, pair[0])
    value -= block_log_marginal(model, partition, pair[1])
    entities.number[0] -= 1
    value -= log_one_more(state, entities)
    entities.number[0] += 1
    return value


@inner
def settle_division(
    rng: Generator, state: State, entities: Entities, k: int, n: int, log_ratio: float
) -> Info:
    """Decide on dividing entity k, whose mentions are ``members[:n]``, into the sides."""
    partition = state.partition
    info = decide(rng, SPLIT, log_ratio)
    if info.accepted:
        entities.number[0] += 1
    if info.accepted and partition.n_members[side_slot(partition, 0)] not in (0, n):
        adopt_sides(state, k, k, n)
    else:
        drop_sides(partition)
    return info


@inner
def conclude_fusion(
    state: State, entities: Entities, pair: tuple[int, int], gain: float, log_q: float
) -> Info:
    """Make one of two entities unless ``log_q`` is minus infinity, and drop the sides.

    The coins for it have been thrown before.
    """
    drop_sides(state.partition)
    if not log_q > -inf:
        return Info(MERGE, gain, 0)
    _fuse(state, entities, pair)
    return Info(MERGE, gain + log_q, 1)


@inner
def _fuse(state: State, entities: Entities, pair: tuple[int, int]) -> None:
    sizes = state.partition.n_members
    if sizes[pair[0]] > 0 and sizes[pair[1]] > 0:
        merge_blocks(state.partition, pair[0], pair[1])
    entities.number[0] -= 1


@inner
def settle_fusion(
    rng: Generator, state: State, entities: Entities, pair: tuple[int, int], log_ratio: float
) -> Info:
    """Decide on making one of two entities; there must be no sides."""
    info = decide(rng, MERGE, log_ratio)
    if info.accepted:
        _fuse(state, entities, pair)
    return info
