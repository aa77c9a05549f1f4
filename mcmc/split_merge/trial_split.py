"""Trial blocks: the two sides of a proposed division, beside the partition until it is decided.

The sides live in the first two closed slots, so every function on blocks works on them, while
labels and lists still show the current state. ``state.members[:n]`` are the atoms to divide,
``state.side[i]`` (0 or 1) says where atom i is. Opening or closing a block moves the sides:
nothing of that kind may happen between :func:`open_sides` and :func:`drop_sides` or
:func:`adopt_sides`.
"""

from math import exp, inf, log1p

import numpy as np
from numpy.random import Generator

from weald.mcmc.state.atom_state import State
from weald.treecore.compiled.compile import inner
from weald.treecore.compiled.draw import coin, survives_fall
from weald.treecore.family.interface.base import log_marginal_sum
from weald.treecore.partition.partition import (
    Model,
    Partition,
    block_log_marginal,
    close_block,
    link,
    mark_changed,
    set_log_marginal,
)
from weald.treecore.prior.base import log_growth, log_size
from weald.treecore.statistics.rows import add_row, clear_row, subtract_row

__all__ = [
    "adopt_sides",
    "allocate",
    "block_of",
    "drop_sides",
    "join_side",
    "leave_side",
    "open_sides",
    "rescan",
    "side_slot",
    "slot_at",
]


@inner
def slot_at(partition: Partition, at: int) -> int:
    """Slot at a position of ``partition.slots``."""
    # Slots of one width everywhere: what takes them is compiled once.
    return int(np.int64(partition.slots[at]))


@inner
def block_of(partition: Partition, i: int) -> int:
    """Slot of the block of atom i."""
    return int(np.int64(partition.label[i]))


@inner
def side_slot(partition: Partition, side: int) -> int:
    """Slot of the trial block ``side`` (0 or 1)."""
    return slot_at(partition, partition.n_blocks[0] + side)


@inner
def open_sides(partition: Partition) -> None:
    """Make both sides empty."""
    for side in range(2):
        k = side_slot(partition, side)
        partition.head[k] = -1
        partition.size[k] = 0
        partition.n_members[k] = 0
        mark_changed(partition, k)


@inner
def drop_sides(partition: Partition) -> None:
    """Forget both sides."""
    for side in range(2):
        clear_row(partition.rows, side_slot(partition, side))


@inner
def join_side(state: State, i: int, side: int) -> None:
    """Count atom i into a side."""
    atoms, partition = state.atoms, state.partition
    k = side_slot(partition, side)
    add_row(partition.rows, k, atoms.rows, i)
    partition.size[k] += atoms.size[i]
    partition.n_members[k] += 1
    mark_changed(partition, k)
    state.side[i] = side


@inner
def leave_side(state: State, i: int) -> None:
    """Take atom i out of its side."""
    atoms, partition = state.atoms, state.partition
    k = side_slot(partition, state.side[i])
    subtract_row(partition.rows, k, atoms.rows, i)
    partition.size[k] -= atoms.size[i]
    partition.n_members[k] -= 1
    mark_changed(partition, k)


@inner
def _log_with(state: State, model: Model, i: int, k: int) -> float:
    """Log marginal of side k once atom i is in it."""
    rows, atoms = state.partition.rows, state.atoms
    if state.partition.size[k] == 0:
        return atoms.log_marginal[i]
    return log_marginal_sum(model.family, rows, k, atoms.rows, i, model.work)


@inner
def _log_weight(state: State, model: Model, i: int, k: int, log_with: float) -> float:
    partition, seating = state.partition, model.seating
    before, size = partition.size[k], state.atoms.size[i]
    if before == 0:
        return seating.slope + log_size(seating, size) + log_with
    weight = log_growth(seating, before, size)
    return weight + log_with - block_log_marginal(model, partition, k)


@inner
def _log_odds_to_log(odds: float) -> float:
    """Log of the probability whose log odds are given."""
    if odds < -36.0:
        return odds
    return -log1p(exp(-odds))


@inner
def _seat(rng: Generator, state: State, model: Model, i: int, second: int) -> float:
    """Put atom i on a side; returns the log probability of that choice."""
    # A predictive table would serve one atom only before its side changes: marginals cost less.
    k = (side_slot(state.partition, 0), side_slot(state.partition, 1))
    log_with = (_log_with(state, model, i, k[0]), _log_with(state, model, i, k[1]))
    odds = _log_weight(state, model, i, k[0], log_with[0])
    odds -= _log_weight(state, model, i, k[1], log_with[1])
    if second < 0:
        side = 0 if coin(rng, exp(_log_odds_to_log(odds))) else 1
    else:
        side = 1 if block_of(state.partition, i) == second else 0
    join_side(state, i, side)
    set_log_marginal(state.partition, k[side], log_with[side])
    return _log_odds_to_log(odds if side == 0 else -odds)


@inner
def allocate(rng: Generator, state: State, model: Model, n: int, second: int, gain: float) -> float:
    """Put ``members[:n]`` on the sides, one after another; returns the log probability.

    Each chooses a side with probability proportional to its seating weight times its predictive
    density. With ``second`` not negative the choice is not drawn but imagined: atoms of block
    ``second`` go to side 1, the others to side 0. It is for a merge, whose log ratio is ``gain``
    (infinity in other cases) and this probability: the coins for accepting it, after those for
    ``gain``, are thrown as it falls, and where one says no, minus infinity is returned at once.
    """
    log_q = 0.0
    for at in range(n):
        before = log_q
        log_q += _seat(rng, state, model, state.members[at], second)
        if not survives_fall(rng, min(gain + before, 0.0), min(gain + log_q, 0.0)):
            return -inf
    return log_q


@inner
def rescan(rng: Generator, state: State, model: Model, n: int, second: int, gain: float) -> float:
    """One restricted Gibbs scan of ``members[:n]``, which are on sides; like :func:`allocate`."""
    log_q = 0.0
    for at in range(n):
        i = state.members[at]
        leave_side(state, i)
        before = log_q
        log_q += _seat(rng, state, model, i, second)
        if not survives_fall(rng, min(gain + before, 0.0), min(gain + log_q, 0.0)):
            return -inf
    return log_q


@inner
def adopt_sides(state: State, first: int, second: int, n: int) -> None:
    """Replace the blocks ``first`` and ``second`` (may be equal) by the sides.

    ``members[:n]`` must be all of their atoms and neither side empty.
    """
    partition = state.partition
    for side in range(2):
        partition.n_members[side_slot(partition, side)] = 0
    for at in range(n):
        i = state.members[at]
        link(partition, i, side_slot(partition, state.side[i]))
    partition.n_blocks[0] += 2
    close_block(partition, first)
    if second != first:
        close_block(partition, second)
