"""Collapsed Gibbs: Neal (2000) algorithm 3, one atom after another.

Each atom is taken out and put back by a draw from its full conditional, so the step leaves the
posterior invariant for every partition prior of Gibbs type, and the sweep is irreducible. Cost: one
predictive density a block and atom. (``split-merge-samplers.md`` section 2.1.)
"""

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..treecore.compile import allocating, compiled, generic, implements, inner
from ..treecore.draw import choose
from ..treecore.family.sparse_rows import SparseRows
from ..treecore.family.word_index import enter_row, log_joins, make_index, withdraw_row
from ..treecore.partition import Model, lift, log_join_above, open_block, place
from ..treecore.prior.base import log_new_block, log_size
from ..treecore.reference import by_reference
from ..treecore.rows import Rows
from .state import Info, State

__all__ = ["log_alone", "seating_weights", "step", "sweep", "visit"]

_CONDITIONAL = 3
# A weight that is this much smaller than another, in nats, changes no bit of their sum: a double
# has 53 bits, which are 37 nats.
_NEGLIGIBLE = 50.0


@inner
def seating_weights(state: State, model: Model, i: int, log_alone: float) -> int:
    """Log weights of atom i, which is in no block, for each open block and then for a new one.

    ``log_alone`` is the last of them. They are written to ``state.log_weights``, minus infinity
    for some of those that are beyond notice; returns the number of open blocks.
    """
    atoms, partition, seating = state.atoms, state.partition, model.seating
    size = atoms.size[i]
    k = partition.n_blocks[0]
    largest = log_alone
    state.log_weights[k] = log_alone
    for at in range(k):
        slot = partition.slots[at]
        count = partition.size[slot]
        weight = log_size(seating, count + size) - log_size(seating, count)
        least = largest - weight - _NEGLIGIBLE
        weight += log_join_above(model, atoms, partition, i, slot, least)
        largest = max(largest, weight)
        state.log_weights[at] = weight
    return k


@inner
def log_alone(state: State, model: Model, i: int) -> float:
    """Log weight of a block of its own for atom i, which is in none."""
    alone = log_new_block(model.seating, state.partition.n_blocks[0])
    return alone + state.atoms.log_marginal[i] + log_size(model.seating, state.atoms.size[i])


@inner
def _seat(rng: Generator, state: State, i: int, k: int) -> int:
    """Put atom i, by ``state.log_weights``, into one of the k open blocks or a new one: which."""
    partition = state.partition
    chosen = choose(rng, state.log_weights, k + 1)
    slot = open_block(partition) if chosen == k else partition.slots[chosen]
    place(state.atoms, partition, i, slot)
    return slot


@inner
def step(rng: Generator, state: State, model: Model, i: int) -> Info:
    """Redraw the block of atom i (which may be in no block yet) given all the others."""
    if state.partition.label[i] >= 0:
        lift(state.atoms, state.partition, i)
    k = seating_weights(state, model, i, log_alone(state, model, i))
    _seat(rng, state, i, k)
    return Info(_CONDITIONAL, 0.0, 1)


@generic
def _visit(
    rows: Rows, rng: Generator, state: State, model: Model, visited: NDArray[np.int64]
) -> None:
    """One step for each atom of ``visited``; ``rows`` are the atoms' own."""
    raise NotImplementedError


@implements(_visit, np.ndarray)
def _visit_dense(
    _rows: Rows, rng: Generator, state: State, model: Model, visited: NDArray[np.int64]
) -> None:
    for at in range(visited.shape[0]):
        step(rng, state, model, visited[at])


@implements(_visit, SparseRows)
def _visit_sparse(
    rows: Any, rng: Generator, state: State, model: Model, visited: NDArray[np.int64]
) -> None:
    partition, seating = state.partition, model.seating
    slots, log_weights = partition.slots, state.log_weights
    index = make_index(rows, partition.label, slots.shape[0], model.family.vocabulary)
    for at in range(visited.shape[0]):
        i = visited[at]
        if partition.label[i] >= 0:
            withdraw_row(index, lift(state.atoms, partition, i), rows, i)
        k, size = partition.n_blocks[0], state.atoms.size[i]
        log_joins(index, model.family, partition.rows, slots[:k], rows, i, log_weights)
        for j in range(k):
            count = partition.size[slots[j]]
            log_weights[j] += log_size(seating, count + size) - log_size(seating, count)
        log_weights[k] = log_alone(state, model, i)
        enter_row(index, _seat(rng, state, i, k), rows, i)


@allocating
def visit(rng: Generator, state: State, model: Model, visited: NDArray[np.int64]) -> None:
    """One step for each atom of ``visited`` (int64), in that order.

    The order must not depend on the partition. Sparse rows are looked up by an index of words.
    """
    _visit(state.atoms.rows, rng, state, model, visited)


@compiled
def sweep(rng: Generator, state: State, model: Model, visited: NDArray[np.int64]) -> None:
    """:func:`visit`, to be called from Python."""
    visit(rng, by_reference(state), by_reference(model), visited)
