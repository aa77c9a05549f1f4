"""Moving atoms where they are: what kernels share that work on mixtures and on networks alike.

Reconfigurations (:mod:`weald.mcmc.reconfiguration.reconfiguration`) move many atoms before they are
decided on: the partition itself goes to the proposed state, its log joint is taken there, and a
rejected proposal is taken back. A set of atoms that is in no block is *regarded*; then each block,
or a new one, tells what it weighs to put the set there.

Functions are chosen by the type of the state: :class:`~weald.mcmc.state.atom_state.State` for
mixtures, :class:`~weald.mcmc.state.vertex_state.VertexState` for networks.
"""

from math import exp, inf, log

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.state.atom_state import State
from weald.mcmc.state.block_state import BlockState
from weald.treecore.compiled.compile import generic, implements, inner
from weald.treecore.compiled.draw import choose
from weald.treecore.family.interface.base import log_marginal, log_marginal_sum
from weald.treecore.partition.partition import (
    Model,
    Partition,
    block_log_marginal,
    lift,
    log_join,
    open_block,
    place,
)
from weald.treecore.partition.partition import log_joint as mixture_log_joint
from weald.treecore.prior.base import log_growth, log_new_block, log_size
from weald.treecore.statistics.rows import add_row, clear_row

__all__ = [
    "go_to",
    "log_seat",
    "log_seat_alone",
    "log_target",
    "log_weights_everywhere",
    "new_block",
    "normalizer",
    "put_in",
    "reseat_freely",
    "set_aside",
    "take_out",
]


@generic
def take_out(state: BlockState, model: Model, i: int) -> None:
    """Take atom i out of its block, which is closed if that empties it."""
    raise NotImplementedError


@generic
def put_in(state: BlockState, model: Model, i: int, k: int) -> None:
    """Put atom i, which is in no block, into block k."""
    raise NotImplementedError


@generic
def new_block(state: BlockState) -> int:
    """Slot of a new, empty block."""
    raise NotImplementedError


@generic
def set_aside(state: BlockState, model: Model, members: NDArray[np.int64], n: int) -> None:
    """Regard the atoms ``members[:n]``, none of which is in a block."""
    raise NotImplementedError


@generic
def log_seat(state: BlockState, model: Model, k: int) -> float:
    """Log posterior ratio of putting the regarded set into block k."""
    raise NotImplementedError


@generic
def log_seat_alone(state: BlockState, model: Model) -> float:
    """Log posterior ratio of making the regarded set a block of its own."""
    raise NotImplementedError


@generic
def log_target(state: BlockState, model: Model) -> float:
    """Log of prior times likelihood of the atoms that are in blocks, as they are."""
    raise NotImplementedError


@inner
def _spare(partition: Partition) -> int:
    """The slot that is opened last of all: it holds the sum of a regarded set."""
    return partition.slots[partition.slots.shape[0] - 1]


@inner
def _regard(state: State, members: NDArray[np.int64], n: int) -> None:
    partition, atoms = state.partition, state.atoms
    spare = _spare(partition)
    # Kept from one regard to the next: a block's row may not keep anything when it is opened, and
    # this slot is never opened.
    clear_row(partition.rows, spare)
    partition.size[spare] = 0
    partition.head[spare] = members[0]
    partition.n_members[spare] = n
    for at in range(n):
        partition.size[spare] += atoms.size[members[at]]
        if n > 1:
            add_row(partition.rows, spare, atoms.rows, members[at])


@inner
def _unregard(state: State) -> None:
    clear_row(state.partition.rows, _spare(state.partition))


@inner
def _log_seat(state: State, model: Model, k: int) -> float:
    partition, rows = state.partition, state.partition.rows
    spare = _spare(partition)
    value = log_growth(model.seating, partition.size[k], partition.size[spare])
    if partition.n_members[spare] == 1:
        return value + log_join(model, state.atoms, partition, partition.head[spare], k)
    union = log_marginal_sum(model.family, rows, k, rows, spare, model.work)
    return value + union - block_log_marginal(model, partition, k)


@inner
def _log_seat_alone(state: State, model: Model) -> float:
    partition = state.partition
    spare = _spare(partition)
    value = log_new_block(model.seating, partition.n_blocks[0])
    value += log_size(model.seating, partition.size[spare])
    if partition.n_members[spare] == 1:
        return value + state.atoms.log_marginal[partition.head[spare]]
    return value + log_marginal(model.family, partition.rows, spare, model.work)


@implements(take_out, State)
def _take_out(state: State, _model: Model, i: int) -> None:
    lift(state.atoms, state.partition, i)


@implements(put_in, State)
def _put_in(state: State, _model: Model, i: int, k: int) -> None:
    _unregard(state)
    place(state.atoms, state.partition, i, k)


@implements(new_block, State)
def _new_block(state: State) -> int:
    return open_block(state.partition)


@implements(set_aside, State)
def _set_aside(state: State, _model: Model, members: NDArray[np.int64], n: int) -> None:
    _regard(state, members, n)


@implements(log_seat, State)
def _log_seat_of(state: State, model: Model, k: int) -> float:
    return _log_seat(state, model, k)


@implements(log_seat_alone, State)
def _log_seat_alone_of(state: State, model: Model) -> float:
    return _log_seat_alone(state, model)


@implements(log_target, State)
def _log_target(state: State, model: Model) -> float:
    return mixture_log_joint(model, state.partition)


@inner
def normalizer(log_weights: NDArray[np.float64], n: int) -> float:
    """Log of the sum of ``exp(log_weights[:n])``; minus infinity where all of them are."""
    largest = -inf
    for at in range(n):
        largest = max(largest, log_weights[at])
    if largest == -inf:
        return -inf
    total = 0.0
    for at in range(n):
        total += exp(log_weights[at] - largest)
    return largest + log(total)


@inner
def log_weights_everywhere(state: BlockState, model: Model) -> int:
    """Log weights of the regarded set for each open block and then for a new one.

    They are written to ``state.log_weights``; returns the number of open blocks.
    """
    k = state.partition.n_blocks[0]
    for at in range(k):
        state.log_weights[at] = log_seat(state, model, state.partition.slots[at])
    state.log_weights[k] = log_seat_alone(state, model)
    return k


@inner
def reseat_freely(rng: Generator, state: BlockState, model: Model, i: int) -> None:
    """Redraw the block of atom i (which may be in no block yet) given all the others."""
    if state.partition.label[i] >= 0:
        take_out(state, model, i)
    state.members[0] = i
    set_aside(state, model, state.members, 1)
    k = log_weights_everywhere(state, model)
    chosen = choose(rng, state.log_weights, k + 1)
    slot = new_block(state) if chosen == k else state.partition.slots[chosen]
    put_in(state, model, i, slot)


@inner
def go_to(
    state: BlockState,
    model: Model,
    labels: NDArray[np.int64],
    live: NDArray[np.int64],
    home: NDArray[np.int64],
) -> None:
    """Make ``labels`` (int64, from 0 to the number of slots) the partition of the atoms ``live``.

    Blocks keep their slots where they can, and only atoms whose block changes move. ``home`` is
    scratch, int64, two for each slot.
    """
    partition = state.partition
    n_slots = partition.slots.shape[0]
    home[: 2 * n_slots] = -1
    for at in range(live.shape[0]):
        i = live[at]
        k, label = partition.label[i], labels[i]
        # A block stays where its first atom is, unless another block stays there already.
        if home[label] == -1 and home[n_slots + k] == -1:
            home[label] = k
            home[n_slots + k] = label
    for at in range(live.shape[0]):
        i = live[at]
        if home[labels[i]] == partition.label[i]:
            continue
        take_out(state, model, i)
        if home[labels[i]] == -1:
            home[labels[i]] = new_block(state)
        put_in(state, model, i, home[labels[i]])
