"""The state of a network's partition: made, and what it weighs to put vertices somewhere.

The same kernels' functions as for mixtures (:mod:`weald.mcmc.assignment.assignment`), with the
likelihood of the infinite relational model.
"""

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.assignment.assignment import (
    log_seat,
    log_seat_alone,
    log_target,
    new_block,
    put_in,
    set_aside,
    take_out,
)
from weald.mcmc.state.vertex_state import VertexState
from weald.treecore.compiled.compile import compiled, implements, inner
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model, Partition, empty_partition
from weald.treecore.prior.base import log_growth, log_new_block, log_size
from weald.treecore.prior.sequential import canonical_labels
from weald.treecore.relational.edges import EdgeFamily
from weald.treecore.relational.network import Network
from weald.treecore.relational.ties import empty_ties, open_slot, regard, seat, unseat
from weald.treecore.relational.weighing import log_likelihood, log_ties, log_ties_alone

# Split-merge moves and Gibbs sampling know the state by what is there.
from . import moves as _moves  # noqa: F401 - registers what it implements

__all__ = ["log_joint", "make_vertex_state", "room_for", "unseated_vertices"]

_LEAST_ROOM = 32


def room_for(n_blocks: int) -> int:
    """Capacity for a partition of so many blocks and some more."""
    return max(_LEAST_ROOM, n_blocks + n_blocks // 2 + 8)


def unseated_vertices(family: EdgeFamily, network: Network, n: int, room: int) -> VertexState:
    """State with room for n vertices and so many blocks, none of which is there.

    ``family`` is the edge likelihood.
    """
    return VertexState(
        network,
        empty_partition(family, n),
        empty_ties(n, room),
        np.zeros(n + 4),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.int8),
        np.zeros(n, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )


def make_vertex_state(
    model: Model, network: Network, labels: NDArray[np.int64], room: int | None = None
) -> VertexState:
    """State with the partition that ``labels`` (n, any integers) describe.

    ``room`` is how many blocks there may be; half as many again as there are, if not given.
    """
    n = network.n_vertices
    canonical = canonical_labels(labels)
    capacity = room_for(int(canonical.max(initial=-1)) + 1) if room is None else room
    state = unseated_vertices(model.family, network, n, min(capacity, n + 1))
    _seat_all(model, state, canonical)
    return state


@compiled
def _seat_all(model: Model, state: VertexState, labels: NDArray[np.int64]) -> None:
    model, state = by_reference(model), by_reference(state)
    slots = np.full(labels.shape[0], -1, dtype=np.int64)
    for v in range(labels.shape[0]):
        if slots[labels[v]] == -1:
            slots[labels[v]] = open_slot(state.partition, state.ties)
        seat(model, state.network, state.partition, state.ties, v, slots[labels[v]])


@implements(take_out, VertexState)
def _take_out(state: VertexState, model: Model, i: int) -> None:
    unseat(model, state.network, state.partition, state.ties, i)


@implements(put_in, VertexState)
def _put_in(state: VertexState, model: Model, i: int, k: int) -> None:
    seat(model, state.network, state.partition, state.ties, i, k)


@implements(new_block, VertexState)
def _new_block(state: VertexState) -> int:
    return open_slot(state.partition, state.ties)


@implements(set_aside, VertexState)
def _set_aside(state: VertexState, _model: Model, members: NDArray[np.int64], n: int) -> None:
    regard(state.network, state.partition, state.ties, members, n)


@inner
def _log_seat(state: VertexState, model: Model, k: int) -> float:
    value = log_growth(model.seating, state.partition.size[k], state.ties.looked_at[0])
    return value + log_ties(model, state.network, state.partition, state.ties, k)


@inner
def _log_seat_alone(state: VertexState, model: Model) -> float:
    value = log_new_block(model.seating, state.partition.n_blocks[0])
    value += log_size(model.seating, state.ties.looked_at[0])
    return value + log_ties_alone(model, state.network, state.partition, state.ties)


@implements(log_seat, VertexState)
def _log_seat_of(state: VertexState, model: Model, k: int) -> float:
    return _log_seat(state, model, k)


@implements(log_seat_alone, VertexState)
def _log_seat_alone_of(state: VertexState, model: Model) -> float:
    return _log_seat_alone(state, model)


@inner
def _log_prior(model: Model, partition: Partition) -> float:
    k = partition.n_blocks[0]
    value = model.seating.log_blocks[k]
    for at in range(k):
        value += log_size(model.seating, partition.size[partition.slots[at]])
    return value


@implements(log_target, VertexState)
def _log_target(state: VertexState, model: Model) -> float:
    likelihood = log_likelihood(state.network, state.partition, state.ties)
    return likelihood + _log_prior(model, state.partition)


@compiled
def log_joint(model: Model, state: VertexState) -> float:
    """Log of prior (as tabulated) times likelihood of the partition."""
    model, state = by_reference(model), by_reference(state)
    return log_target(state, model)
