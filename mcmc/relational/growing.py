"""A network's state for a stream: room to spare, enlarged as vertices and blocks come, saved."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.state.vertex_state import VertexState
from weald.treecore.partition.partition import Model
from weald.treecore.relational.family import Relational
from weald.treecore.relational.network import Links, Network
from weald.treecore.relational.ties import empty_ties, recount

from .arrival import seat_blocks
from .vertices import room_for, unseated_vertices

__all__ = [
    "empty_vertices",
    "more_blocks",
    "more_vertices",
    "restored_vertices",
    "settled_vertices",
    "vertex_arrays",
]

Ids = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

_BY_ATOM = ("label", "following", "preceding")
_BY_BLOCK = ("head", "n_members", "size")


def empty_vertices(family: Relational, n: int, room: int) -> VertexState:
    """State with room for n vertices and so many blocks, none of which is there.

    It holds no edges, only their sums between blocks.
    """
    network = Network(
        np.zeros(1, dtype=np.int64),
        np.zeros(0, dtype=np.int64),
        np.zeros((0, 4 if family.directed else 2)),
        np.array([int(family.directed)], dtype=np.int64),
        np.zeros(1),
    )
    return unseated_vertices(family.edges, network, n, room)


def more_vertices(family: Relational, state: VertexState, n: int) -> VertexState:
    """The same state with room for n vertices at least; the given one is used up."""
    held = len(state.members)
    if n <= held:
        return state
    larger = empty_vertices(family, max(n, 2 * held), state.ties.total.shape[0])
    for name in state.partition._fields:
        old = getattr(state.partition, name)
        getattr(larger.partition, name)[: old.shape[0]] = old
    return larger._replace(ties=state.ties._replace(marked=larger.ties.marked))


def more_blocks(state: VertexState, n_blocks: int) -> VertexState:
    """The same state with room for the sums of so many blocks at least."""
    ties = state.ties
    held = ties.total.shape[0]
    # Slots are used from the lowest on, so that none is beyond the most that were ever open.
    if n_blocks < held:
        return state
    larger = empty_ties(len(state.members), room_for(n_blocks + 1))
    for name in ("total", "hidden", "log_value"):
        getattr(larger, name)[:held, :held] = getattr(ties, name)
    return state._replace(ties=larger)


def settled_vertices(
    family: Relational, model: Model, blocks: tuple[Ids, Ids], links: Links, n: int
) -> VertexState:
    """State of a partition with every sum counted afresh.

    Parameters
    ----------
    family, model:
        The model, and its tables for so many vertices and blocks.
    blocks:
        Atoms that are there, and their labels without gaps from 0.
    links:
        Edges by atoms; those of atoms that are not there are passed over.
    n:
        Room for atoms.
    """
    present, labels = blocks
    n_blocks = int(labels.max(initial=-1)) + 1
    state = empty_vertices(family, n, room_for(n_blocks))
    seat_blocks(state.partition, present, labels, n_blocks)
    source, target = state.partition.label[links.source], state.partition.label[links.target]
    known = (source >= 0) & (target >= 0)
    total = state.ties.total
    np.add.at(total, (source[known], target[known]), links.weight[known])
    if not family.directed:
        within = np.diag(total).copy()
        total += total.T
        np.fill_diagonal(total, within)
    recount(model, state.network, state.partition, state.ties)
    return state


def vertex_arrays(state: VertexState, end: int) -> Arrays:
    """What :func:`restored_vertices` needs to go on bit for bit, for atoms 0 to end - 1."""
    partition = state.partition
    used = partition.slots[: int(partition.n_blocks[0])]
    saved: Arrays = {name: getattr(partition, name)[:end].copy() for name in _BY_ATOM}
    saved |= {"slots": partition.slots.copy(), "n_blocks": partition.n_blocks.copy()}
    saved |= {f"block_{name}": getattr(partition, name)[used] for name in _BY_BLOCK}
    saved["total"] = state.ties.total[np.ix_(used, used)]
    return saved


def restored_vertices(family: Relational, model: Model, saved: Arrays) -> VertexState:
    """State from :func:`vertex_arrays`."""
    n, end = saved["slots"].shape[0] - 4, saved["label"].shape[0]
    used = saved["slots"][: int(saved["n_blocks"][0])]
    state = empty_vertices(family, n, room_for(int(used.max(initial=0)) + 1))
    partition = state.partition
    for name in _BY_ATOM:
        getattr(partition, name)[:end] = saved[name]
    partition.slots[:] = saved["slots"]
    partition.position[partition.slots] = np.arange(n + 4, dtype=np.int64)
    partition.n_blocks[:] = saved["n_blocks"]
    for name in _BY_BLOCK:
        getattr(partition, name)[used] = saved[f"block_{name}"]
    state.ties.total[np.ix_(used, used)] = saved["total"]
    recount(model, state.network, partition, state.ties)
    return state
