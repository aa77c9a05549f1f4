"""Collapsed Gibbs: Neal (2000) algorithm 3, one atom after another.

Each atom is taken out and put back by a draw from its full conditional, so the step leaves the
posterior invariant for every partition prior of Gibbs type, and the sweep is irreducible. Cost: one
predictive density a block and atom. (``split-merge-samplers.md`` section 2.1.)
"""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.state.atom_state import CONDITIONAL, Info, State
from weald.mcmc.state.block_state import BlockState
from weald.mcmc.state.entity_state import EntityState
from weald.treecore.compiled.compile import (
    allocating,
    compiled,
    generic,
    generic_inner,
    implements,
    inner,
)
from weald.treecore.compiled.draw import choose
from weald.treecore.compiled.reference import by_reference
from weald.treecore.family.discrete.word_index import (
    WordIndex,
    enter_row,
    log_joins,
    make_index,
    withdraw_row,
)
from weald.treecore.family.interface.base import (
    log_predictive,
    log_predictive_of_member,
    make_batched,
    weigh,
)
from weald.treecore.family.interface.batched_predictive import (
    NEGLIGIBLE,
    BatchedPredictives,
    OneByOne,
)
from weald.treecore.partition.partition import (
    Model,
    end_of_slots,
    lift,
    link,
    log_join_above,
    open_block,
    place,
    show_block,
    unlink,
)
from weald.treecore.prior.base import log_growth, log_new_block, log_size
from weald.treecore.statistics.rows import Rows
from weald.treecore.statistics.sparse_rows import SparseRows

__all__ = [
    "log_alone",
    "scan",
    "seat",
    "seating_weights",
    "step",
    "sweep",
    "visit",
    "weights_by_words",
]

OfAtoms = State | EntityState


@inner
def seating_weights(state: OfAtoms, model: Model, i: int, alone: float) -> int:
    """Log weights of atom i, which is in no block, for each open block and then for a new one.

    ``alone`` is the last of them. They are written to ``state.log_weights``, minus infinity
    for some of those that are beyond notice; returns the number of open blocks.
    """
    atoms, partition = state.atoms, state.partition
    size = atoms.size[i]
    k = partition.n_blocks[0]
    largest = alone
    state.log_weights[k] = alone
    for at in range(k):
        slot = partition.slots[at]
        weight = log_growth(model.seating, partition.size[slot], size)
        least = largest - weight - NEGLIGIBLE
        weight += log_join_above(model, atoms, partition, i, slot, least)
        largest = max(largest, weight)
        state.log_weights[at] = weight
    return k


@generic_inner
def log_alone(state: OfAtoms, model: Model, i: int) -> float:
    """Log weight of a block of its own for atom i, which is in none."""
    raise NotImplementedError


@implements(log_alone, State)
def _log_alone(state: State, model: Model, i: int) -> float:
    alone = log_new_block(model.seating, state.partition.n_blocks[0])
    return alone + state.atoms.log_marginal[i] + log_size(model.seating, state.atoms.size[i])


@inner
def seat(rng: Generator, state: OfAtoms, i: int, k: int) -> int:
    """Put atom i, by ``state.log_weights``, into one of the k open blocks or a new one: which."""
    partition = state.partition
    chosen = choose(rng, state.log_weights, k + 1)
    slot = open_block(partition) if chosen == k else partition.slots[chosen]
    place(state.atoms, partition, i, slot)
    return slot


@inner
def step(rng: Generator, state: OfAtoms, model: Model, i: int) -> Info:
    """Redraw the block of atom i (which may be in no block yet) given all the others."""
    if state.partition.label[i] >= 0:
        lift(state.atoms, state.partition, i)
    k = seating_weights(state, model, i, log_alone(state, model, i))
    seat(rng, state, i, k)
    return Info(CONDITIONAL, 0.0, 1)


@generic
def _visit(
    rows: Rows, rng: Generator, state: OfAtoms, model: Model, visited: NDArray[np.int64]
) -> None:
    """One step for each atom of ``visited``; ``rows`` are the atoms' own."""
    raise NotImplementedError


@implements(_visit, np.ndarray)
def _visit_dense(
    _rows: Rows, rng: Generator, state: OfAtoms, model: Model, visited: NDArray[np.int64]
) -> None:
    room = make_batched(model.family, 2 * end_of_slots(state.partition))
    _visit_blocks(room, rng, state, model, visited)


@generic
def _visit_blocks(
    batched: OneByOne | BatchedPredictives,
    rng: Generator,
    state: OfAtoms,
    model: Model,
    visited: NDArray[np.int64],
) -> None:
    """One step for each atom of ``visited``, asking the blocks as the family's tables stand."""
    raise NotImplementedError


@implements(_visit_blocks, OneByOne)
def _visit_one_by_one(
    _batched: OneByOne, rng: Generator, state: OfAtoms, model: Model, visited: NDArray[np.int64]
) -> None:
    for at in range(visited.shape[0]):
        step(rng, state, model, visited[at])


@implements(_visit_blocks, BatchedPredictives)
def _visit_batched(
    batched: BatchedPredictives,
    rng: Generator,
    state: OfAtoms,
    model: Model,
    visited: NDArray[np.int64],
) -> None:
    at = _visit_within(batched, rng, state, model, visited, 0)
    while at < visited.shape[0]:
        batched = make_batched(model.family, 2 * end_of_slots(state.partition))
        at = _visit_within(batched, rng, state, model, visited, at)


@inner
def _visit_within(
    batched: BatchedPredictives,
    rng: Generator,
    state: OfAtoms,
    model: Model,
    visited: NDArray[np.int64],
    at: int,
) -> int:
    """Steps from ``visited[at]`` on while there is room; returns where to go on."""
    batched, partition = by_reference(batched), state.partition
    n, left, entered = end_of_slots(partition), -1, -1
    for block in range(partition.n_blocks[0]):
        show_block(batched, model, partition, partition.slots[block])
    while at < visited.shape[0] and n <= batched.found.shape[0]:
        i = visited[at]
        show_block(batched, model, partition, left)
        show_block(batched, model, partition, entered)
        there = _log_among_others(state, model, i)
        if np.isfinite(there):
            k = _weights_in_place(batched, n, state, model, i, there)
            left, entered = _move(rng, state, i, k)
        else:
            left = lift(state.atoms, partition, i) if partition.label[i] >= 0 else -1
            show_block(batched, model, partition, left)
            alone = log_alone(state, model, i)
            if state.atoms.single[i]:
                k = _weights_batched(batched, n, state, model, i, alone, left)
            else:
                k = seating_weights(state, model, i, alone)
            left, entered = -1, seat(rng, state, i, k)
        n = max(n, entered + 1)
        at += 1
    return at


@inner
def _log_among_others(state: OfAtoms, model: Model, i: int) -> float:
    """Log density of atom i given the others in its block, by the table of that block.

    Not finite where there is no such block, or its table does not tell.
    """
    partition, k = state.partition, state.partition.label[i]
    if k < 0 or partition.n_members[k] == 1 or not state.atoms.single[i]:
        return np.nan
    weight, rows = partition.rows[k, 1], state.atoms.rows
    return log_predictive_of_member(model.family, partition.predictive, k, weight, rows, i)


@inner
def _weights_in_place(
    batched: BatchedPredictives, n: int, state: OfAtoms, model: Model, i: int, there: float
) -> int:
    """:func:`seating_weights` of a single observation that is in a block with others.

    It has the log density ``there`` given these. What the block's column says is of a block that
    has it already, and is left out.
    """
    partition, weights = state.partition, state.log_weights
    k, own = partition.n_blocks[0], partition.label[i]
    there += log_growth(model.seating, partition.size[own] - 1, 1)
    weights[k] = log_alone(state, model, i)
    prior = batched.prior[own]
    batched.prior[own] = -np.inf
    largest = max(weights[k], there)
    slots, rows = partition.slots[:k], state.atoms.rows
    weigh(model.family, batched, n, slots, rows, i, largest, weights)
    batched.prior[own] = prior
    weights[partition.position[own]] = there
    return k


@inner
def _move(rng: Generator, state: OfAtoms, i: int, k: int) -> tuple[int, int]:
    """Draw a block for atom i, which is in one with others; returns which it left and entered.

    Both are -1 where it stays, as most do: then neither a sum nor a table has to change.
    """
    partition = state.partition
    own, chosen = partition.label[i], choose(rng, state.log_weights, k + 1)
    if chosen == partition.position[own]:
        # First of the members, as if taken out and put back: what a seed draws is the same.
        link(partition, i, unlink(partition, i))
        return -1, -1
    slot = open_block(partition) if chosen == k else partition.slots[chosen]
    lift(state.atoms, partition, i)
    place(state.atoms, partition, i, slot)
    return own, slot


@inner
def _weights_batched(
    batched: BatchedPredictives,
    n: int,
    state: OfAtoms,
    model: Model,
    i: int,
    alone: float,
    left: int,
) -> int:
    """:func:`seating_weights` of a single observation, by tables that are right below slot n.

    The block that it ``left`` (-1: none), if that is still open, is likely the best one, and tells
    early what is beyond notice.
    """
    partition, rows, weights = state.partition, state.atoms.rows, state.log_weights
    k, largest = partition.n_blocks[0], alone
    weights[k] = alone
    if left >= 0 and partition.n_members[left] > 0:
        there = batched.prior[left]
        there += log_predictive(model.family, partition.predictive, left, rows, i)
        largest = max(largest, there)
    weigh(model.family, batched, n, partition.slots[:k], rows, i, largest, weights)
    return k


@implements(_visit, SparseRows)
def _visit_sparse(
    rows: SparseRows, rng: Generator, state: OfAtoms, model: Model, visited: NDArray[np.int64]
) -> None:
    partition = state.partition
    index = make_index(rows, partition.label, partition.slots.shape[0], model.family.vocabulary)
    for at in range(visited.shape[0]):
        i = visited[at]
        if partition.label[i] >= 0:
            withdraw_row(index, lift(state.atoms, partition, i), rows, i)
        k = weights_by_words(index, state, model, i)
        enter_row(index, seat(rng, state, i, k), rows, i)


@allocating
def weights_by_words(index: WordIndex, state: OfAtoms, model: Model, i: int) -> int:
    """:func:`seating_weights` of an atom that is a bag of words, by the index of all blocks."""
    partition, log_weights = state.partition, state.log_weights
    k, size, rows = partition.n_blocks[0], state.atoms.size[i], state.atoms.rows
    log_joins(index, model.family, partition.rows, partition.slots[:k], rows, i, log_weights)
    for at in range(k):
        log_weights[at] += log_growth(model.seating, partition.size[partition.slots[at]], size)
    log_weights[k] = log_alone(state, model, i)
    return k


@generic
def scan(state: BlockState, rng: Generator, model: Model, visited: NDArray[np.int64]) -> None:
    """One step for each atom of ``visited``, for mixtures here."""
    raise NotImplementedError


@implements(scan, State, EntityState)
def _scan_atoms(state: OfAtoms, rng: Generator, model: Model, visited: NDArray[np.int64]) -> None:
    _visit(state.atoms.rows, rng, state, model, visited)


@allocating
def visit(rng: Generator, state: BlockState, model: Model, visited: NDArray[np.int64]) -> None:
    """One step for each atom of ``visited`` (int64), in that order.

    The order must not depend on the partition. Sparse rows are looked up by an index of words.
    """
    scan(state, rng, model, visited)


@compiled
def sweep(rng: Generator, state: BlockState, model: Model, visited: NDArray[np.int64]) -> None:
    """:func:`visit`, to be called from Python."""
    visit(rng, by_reference(state), by_reference(model), visited)
