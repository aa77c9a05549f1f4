"""Split-merge on the entity/mention model: Wang and Russell (2015), sections 2 and 5.

The kernels of :mod:`~weald.mcmc.split_merge.sdds`, :mod:`~weald.mcmc.split_merge.ss`,
:mod:`~weald.mcmc.split_merge.rm` and :mod:`~weald.mcmc.split_merge.rgsm`, chosen by the type of
their plan, for the state (K, S) in which entities may be empty. An empty entity is an ordinary
entity: it may be split into two empty ones (a birth) or merged (a death), and a split with an empty
side is a real move. The factor of K + 1 for labels, which the paper leaves out, is here. Sequential
allocation weighs sides by predictive densities alone (equation 5).

All exact. Smart-dumb (both pairs, each alone) and smart-smart are irreducible; random mixing and
restricted Gibbs touch entities with mentions only and need :func:`gibbs_sweep` besides. Cost: as
the forms for the Dirichlet process. (``split-merge-samplers.md`` section 2.6.)
"""

from math import inf, log
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.gibbs.gibbs import seating_weights
from weald.mcmc.split_merge import rgsm, rm, sdds, ss
from weald.mcmc.split_merge.proposal import (
    draw_anchors,
    gather_blocks,
    log_union,
    null_move,
    refuse_early,
    settle_exchange,
)
from weald.mcmc.split_merge.selection import (
    Selection,
    draw_partner,
    draw_split,
    log_partners,
    log_split_choice,
    split_score,
)
from weald.mcmc.split_merge.trial_split import (
    block_of,
    drop_sides,
    join_side,
    open_sides,
    side_slot,
    slot_at,
)
from weald.mcmc.state.atom_state import CONDITIONAL, MERGE, Info, State, record
from weald.treecore.compiled.compile import compiled, generic, implements, inner
from weald.treecore.compiled.draw import below, choose, coin
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model, block_log_marginal, lift, open_block, place

from .entities import (
    Entities,
    conclude_fusion,
    draw_entity,
    empty_slot,
    entity_at,
    has_none,
    log_division,
    log_fusion,
    n_empty,
    n_other_empty,
    settle_division,
    settle_fusion,
)

__all__ = ["gibbs_step", "gibbs_sweep", "propose", "sweep"]


Pair = tuple[int, int]


@generic
def propose(plan: Any, rng: Generator, state: State, model: Model, entities: Entities) -> Info:
    """One step of the kernel that the plan belongs to."""
    raise NotImplementedError


@inner
def _draw_smartly(
    rng: Generator, state: State, model: Model, selection: Selection, entities: Entities
) -> int:
    partition = state.partition
    k = draw_split(rng, state, model, selection, n_empty(partition, entities))
    return k if k >= 0 else empty_slot(partition)


@inner
def _draw_smart_pair(
    rng: Generator, state: State, model: Model, rule: int, entities: Entities
) -> Pair:
    """Two entities (there must be two), the second by f_merge."""
    partition = state.partition
    first = draw_entity(rng, partition, entities)
    n_void = n_empty(partition, entities) - has_none(partition, first)
    second = draw_partner(rng, state, model, rule, first, n_void)
    return first, second if second >= 0 else empty_slot(partition)


@inner
def _log_smart_split(
    rng: Generator, state: State, model: Model, selection: Selection, entities: Entities, k: int
) -> float:
    """Divide k sequentially over the sides; weights over the probability of that proposal."""
    partition = state.partition
    log_s = sdds.allocate_blocks(rng, state, model, k, k, inf)
    n_void = n_empty(partition, entities) - has_none(partition, k)
    score = split_score(selection, partition.size[k], block_log_marginal(model, partition, k))
    ratio = log_division(state, model, entities, k) - log_s
    return ratio - log_split_choice(state, model, selection, score, (k, k), n_void)


@inner
def _log_union_choice(
    state: State, model: Model, selection: Selection, entities: Entities, pair: Pair
) -> float:
    """Log probability that f_split chooses the union of a pair, once they are one."""
    partition = state.partition
    n_void = n_other_empty(partition, entities, pair)
    size = partition.size[pair[0]] + partition.size[pair[1]]
    score = split_score(selection, size, log_union(model, partition, pair[0], pair[1]))
    return log_split_choice(state, model, selection, score, pair, n_void)


@inner
def _fuse_undivided(
    rng: Generator, state: State, model: Model, entities: Entities, pair: Pair, gain: float
) -> Info:
    """Decide on making one of a pair, which sequential allocation would have to divide again.

    ``gain`` is the log ratio without the posterior's and without the probability of that.
    """
    gain += log_fusion(state, model, entities, pair)
    if refuse_early(rng, gain):
        return Info(MERGE, gain, 0)
    log_s = sdds.allocate_blocks(rng, state, model, pair[0], pair[1], gain)
    return conclude_fusion(state, entities, pair, gain, log_s)


@inner
def _smart_split(
    rng: Generator, state: State, model: Model, selection: Selection, entities: Entities
) -> Info:
    k = _draw_smartly(rng, state, model, selection, entities)
    ratio = _log_smart_split(rng, state, model, selection, entities, k)
    ratio -= log(entities.number[0])
    return settle_division(rng, state, entities, k, state.partition.n_members[k], ratio)


@inner
def _dumb_merge(
    rng: Generator, state: State, model: Model, selection: Selection, entities: Entities
) -> Info:
    partition, n_entities = state.partition, entities.number[0]
    first = below(rng, n_entities)
    second = below(rng, n_entities - 1)
    if second >= first:
        second += 1
    pair = (entity_at(partition, first), entity_at(partition, second))
    gain = _log_union_choice(state, model, selection, entities, pair) + log(n_entities - 1)
    return _fuse_undivided(rng, state, model, entities, pair, gain)


@inner
def _dumb_split(rng: Generator, state: State, model: Model, rule: int, entities: Entities) -> Info:
    partition = state.partition
    k = draw_entity(rng, partition, entities)
    n = gather_blocks(state, k, k)
    open_sides(partition)
    for at in range(n):
        join_side(state, state.members[at], 0 if coin(rng, 0.5) else 1)
    sides = (side_slot(partition, 0), side_slot(partition, 1))
    n_void = n_empty(partition, entities) - has_none(partition, k)
    ratio = log_division(state, model, entities, k) + (n - 1) * log(2.0)
    ratio += log(entities.number[0]) + log_partners(state, model, rule, sides, k, n_void)
    return settle_division(rng, state, entities, k, n, ratio)


@inner
def _smart_merge(rng: Generator, state: State, model: Model, rule: int, entities: Entities) -> Info:
    partition = state.partition
    pair = _draw_smart_pair(rng, state, model, rule, entities)
    n = partition.n_members[pair[0]] + partition.n_members[pair[1]]
    n_void = n_other_empty(partition, entities, pair)
    ratio = log_fusion(state, model, entities, pair) - (n - 1) * log(2.0)
    ratio -= log(entities.number[0] - 1)
    ratio -= log_partners(state, model, rule, pair, pair[0], n_void)
    return settle_fusion(rng, state, entities, pair, ratio)


@implements(propose, sdds.SddsPlan)
def _sdds(
    plan: sdds.SddsPlan, rng: Generator, state: State, model: Model, entities: Entities
) -> Info:
    smart = coin(rng, plan.smart_splits)
    if coin(rng, 0.5):
        if smart:
            return _smart_split(rng, state, model, plan.selection, entities)
        return _dumb_split(rng, state, model, plan.selection.merge, entities)
    if entities.number[0] < 2:
        return null_move()
    if smart:
        return _dumb_merge(rng, state, model, plan.selection, entities)
    return _smart_merge(rng, state, model, plan.selection.merge, entities)


@implements(propose, ss.SsPlan)
def _ss(plan: ss.SsPlan, rng: Generator, state: State, model: Model, entities: Entities) -> Info:
    selection, partition = plan.selection, state.partition
    if coin(rng, 0.5):
        k = _draw_smartly(rng, state, model, selection, entities)
        ratio = _log_smart_split(rng, state, model, selection, entities, k) - log(2.0)
        sides = (side_slot(partition, 0), side_slot(partition, 1))
        n_void = n_empty(partition, entities) - has_none(partition, k)
        ratio += log_partners(state, model, selection.merge, sides, k, n_void)
        return settle_division(rng, state, entities, k, partition.n_members[k], ratio)
    if entities.number[0] < 2:
        return null_move()
    pair = _draw_smart_pair(rng, state, model, selection.merge, entities)
    n_void = n_other_empty(partition, entities, pair)
    gain = log(2.0) - log_partners(state, model, selection.merge, pair, pair[0], n_void)
    gain += _log_union_choice(state, model, selection, entities, pair)
    return _fuse_undivided(rng, state, model, entities, pair, gain)


@implements(propose, rm.RmPlan)
def _rm(plan: rm.RmPlan, rng: Generator, state: State, model: Model, entities: Entities) -> Info:
    partition, n_entities = state.partition, entities.number[0]
    first = draw_entity(rng, partition, entities)
    second = draw_entity(rng, partition, entities)
    # The reverse of a move that leaves or meets an empty entity would have to put it back.
    if has_none(partition, first) or has_none(partition, second):
        return null_move()
    n = gather_blocks(state, first, second)
    open_sides(partition)
    n_first = rm.draw_sides(rng, state, n, plan.share)
    log_present = rm.log_assignment(
        plan.share, partition.n_members[first], n - partition.n_members[first]
    )
    log_other = rm.log_assignment(plan.share, n_first, n - n_first)
    if n_first not in (0, n) and first != second:
        ratio = rm.log_exchange_ratio(model, partition, first, second) + log_present - log_other
        return settle_exchange(rng, state, first, second, n, ratio)
    if n_first not in (0, n):
        ratio = log_division(state, model, entities, first) + log_present - log_other + log(2.0)
        ratio += 2.0 * log(n_entities / (n_entities + 1.0)) + log(n_entities + 1.0)
        return settle_division(rng, state, entities, first, n, ratio)
    drop_sides(partition)
    if first == second:
        return null_move()
    pair = (first, second)
    ratio = log_fusion(state, model, entities, pair) + log_present - log_other - log(2.0)
    ratio += 2.0 * log(n_entities / (n_entities - 1.0)) - log(n_entities)
    return settle_fusion(rng, state, entities, pair, ratio)


@implements(propose, rgsm.RgsmPlan)
def _rgsm(
    plan: rgsm.RgsmPlan, rng: Generator, state: State, model: Model, entities: Entities
) -> Info:
    partition = state.partition
    if entities.live.shape[0] < 2:
        return null_move()
    i, j = draw_anchors(rng, entities.live)
    first, second = block_of(partition, i), block_of(partition, j)
    gain = inf
    if first != second:
        gain = log_fusion(state, model, entities, (first, second)) - log(entities.number[0])
        if refuse_early(rng, gain):
            return Info(MERGE, gain, 0)
    n, log_q = rgsm.divide(rng, state, model, plan, (i, j), gain)
    if first == second:
        ratio = log_division(state, model, entities, first) - log_q
        ratio += log(entities.number[0] + 1)
        return settle_division(rng, state, entities, first, n, ratio)
    return conclude_fusion(state, entities, (first, second), gain, log_q)


@inner
def gibbs_step(rng: Generator, state: State, model: Model, entities: Entities, i: int) -> Info:
    """Redraw the entity of atom i, with or without other mentions, given K and all the others."""
    partition = state.partition
    lift(state.atoms, partition, i)
    n_void = n_empty(partition, entities)
    alone = log(n_void) + state.atoms.log_marginal[i] if n_void > 0 else -inf
    k = seating_weights(state, model, i, alone)
    chosen = choose(rng, state.log_weights, k + 1)
    slot = open_block(partition) if chosen == k else slot_at(partition, chosen)
    place(state.atoms, partition, i, slot)
    return Info(CONDITIONAL, 0.0, 1)


@compiled
def gibbs_sweep(rng: Generator, state: State, model: Model, entities: Entities) -> None:
    """One Gibbs step for each atom."""
    state, model = by_reference(state), by_reference(model)
    for at in range(entities.live.shape[0]):
        gibbs_step(rng, state, model, entities, entities.live[at])


@compiled
def sweep(
    rng: Generator,
    state: State,
    model: Model,
    plan: Any,
    entities: Entities,
    tally: NDArray[np.float64],
) -> None:
    """``plan.proposals`` steps of the kernel that the plan belongs to.

    ``model.seating`` is :func:`~weald.mcmc.entities.entities.entity_seating`.
    """
    state, model = by_reference(state), by_reference(model)
    for _ in range(plan.proposals):
        record(tally, propose(plan, rng, state, model, entities))
