"""Trial blocks: the two sides of a proposed division, beside the partition until it is decided.

The sides live in the first two closed slots, so every function on blocks works on them, while
labels and lists still show the current state. ``state.members[:n]`` are the atoms to divide,
``state.side[i]`` (0 or 1) says where atom i is. Opening or closing a block moves the sides:
nothing of that kind may happen between :func:`open_sides` and :func:`drop_sides` or
:func:`adopt_sides`.
"""

from math import exp, log1p

from numpy.random import Generator

from ..treecore.compile import compiled
from ..treecore.draw import coin
from ..treecore.partition import Model, Partition, close_block, log_join
from ..treecore.prior.base import log_size
from ..treecore.rows import add_row, clear_row, subtract_row
from .state import State

__all__ = [
    "adopt_sides",
    "allocate",
    "drop_sides",
    "join_side",
    "leave_side",
    "open_sides",
    "rescan",
    "side_slot",
]

# Neither the log marginal nor the predictive table is known: both bits of treecore's `stale`.
_STALE = 3


@compiled
def side_slot(partition: Partition, side: int) -> int:
    """Slot of the trial block ``side`` (0 or 1)."""
    return partition.slots[partition.n_blocks[0] + side]


@compiled
def open_sides(partition: Partition) -> None:
    """Make both sides empty."""
    for side in range(2):
        k = side_slot(partition, side)
        partition.head[k] = -1
        partition.size[k] = 0
        partition.n_members[k] = 0
        partition.stale[k] = _STALE


@compiled
def drop_sides(partition: Partition) -> None:
    """Forget both sides."""
    for side in range(2):
        clear_row(partition.rows, side_slot(partition, side))


@compiled
def join_side(state: State, i: int, side: int) -> None:
    """Count atom i into a side."""
    atoms, partition = state.atoms, state.partition
    k = side_slot(partition, side)
    add_row(partition.rows, k, atoms.rows, i)
    partition.size[k] += atoms.size[i]
    partition.n_members[k] += 1
    partition.stale[k] = _STALE
    state.side[i] = side


@compiled
def leave_side(state: State, i: int) -> None:
    """Take atom i out of its side."""
    atoms, partition = state.atoms, state.partition
    k = side_slot(partition, state.side[i])
    subtract_row(partition.rows, k, atoms.rows, i)
    partition.size[k] -= atoms.size[i]
    partition.n_members[k] -= 1
    partition.stale[k] = _STALE


@compiled
def _log_weight(state: State, model: Model, i: int, k: int) -> float:
    atoms, partition, seating = state.atoms, state.partition, model.seating
    before = partition.size[k]
    if before == 0:
        return seating.slope + log_size(seating, atoms.size[i]) + atoms.log_marginal[i]
    weight = log_size(seating, before + atoms.size[i]) - log_size(seating, before)
    return weight + log_join(model, atoms, partition, i, k)


@compiled
def _log_odds_to_log(odds: float) -> float:
    """Log of the probability whose log odds are given."""
    if odds < -36.0:
        return odds
    return -log1p(exp(-odds))


@compiled
def _seat(rng: Generator, state: State, model: Model, i: int, second: int) -> float:
    """Put atom i on a side; returns the log probability of that choice."""
    first, other = side_slot(state.partition, 0), side_slot(state.partition, 1)
    odds = _log_weight(state, model, i, first) - _log_weight(state, model, i, other)
    if second < 0:
        side = 0 if coin(rng, exp(_log_odds_to_log(odds))) else 1
    else:
        side = 1 if state.partition.label[i] == second else 0
    join_side(state, i, side)
    return _log_odds_to_log(odds if side == 0 else -odds)


@compiled
def allocate(rng: Generator, state: State, model: Model, n: int, second: int) -> float:
    """Put ``members[:n]`` on the sides, one after another; returns the log probability.

    Each chooses a side with probability proportional to its seating weight times its predictive
    density. With ``second`` not negative the choice is not drawn but imagined: atoms of block
    ``second`` go to side 1, the others to side 0.
    """
    log_q = 0.0
    for at in range(n):
        log_q += _seat(rng, state, model, state.members[at], second)
    return log_q


@compiled
def rescan(rng: Generator, state: State, model: Model, n: int, second: int) -> float:
    """One restricted Gibbs scan of ``members[:n]``, which are on sides; like :func:`allocate`."""
    log_q = 0.0
    for at in range(n):
        i = state.members[at]
        leave_side(state, i)
        log_q += _seat(rng, state, model, i, second)
    return log_q


@compiled
def adopt_sides(state: State, first: int, second: int, n: int) -> None:
    """Replace the blocks ``first`` and ``second`` (may be equal) by the sides.

    ``members[:n]`` must be all of their atoms and neither side empty.
    """
    partition = state.partition
    partition.n_blocks[0] += 2
    last = partition.n_blocks[0]
    for at in range(n):
        i = state.members[at]
        k = partition.slots[last - 2 + state.side[i]]
        above = partition.head[k]
        partition.following[i] = above
        partition.preceding[i] = -1
        if above >= 0:
            partition.preceding[above] = i
        partition.head[k] = i
        partition.label[i] = k
    close_block(partition, first)
    if second != first:
        close_block(partition, second)
