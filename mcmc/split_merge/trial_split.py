"""What a split-merge move asks of a state, and the two sides of a division that it tries.

Every kernel of this folder is written once, over the generic functions here; they are chosen by the
type of the state. The *sides* are the two blocks that a division would leave.
``state.members[:n]`` are the atoms to divide, ``state.side[i]`` (0 or 1) says where atom i is.
Between :func:`open_sides` and :func:`drop_sides` or :func:`adopt_sides` nothing else may open or
close a block. What is asked of the present state is asked before the sides are opened, of the
proposed one (:func:`log_split_ratio`, sides as a pair of blocks) when all atoms are on them.

For mixtures, here, the sides stand beside the partition: they live in the first two closed slots,
so every function on blocks works on them, while labels and lists still show the present state, and
nothing has to be put back. A likelihood that couples all blocks does not allow that: for networks
(:mod:`weald.mcmc.relational.moves`) the partition itself goes to the state that is tried. Where
blocks may be empty is in :mod:`weald.mcmc.entities.entities`.
"""

from math import exp, inf, log1p

import numpy as np
from numpy.random import Generator

from weald.mcmc.state.atom_state import State
from weald.mcmc.state.block_state import BlockState
from weald.mcmc.state.entity_state import EntityState
from weald.mcmc.state.vertex_state import VertexState
from weald.treecore.compiled.compile import generic_inner, implements, inner
from weald.treecore.compiled.draw import coin, survives_fall
from weald.treecore.family.interface.base import log_marginal_sum
from weald.treecore.partition.partition import (
    Model,
    Partition,
    block_log_marginal,
    close_block,
    link,
    log_join,
    mark_changed,
    set_log_marginal,
)
from weald.treecore.prior.base import log_growth, log_new_block, log_size
from weald.treecore.statistics.rows import add_row, clear_row, subtract_row

__all__ = [
    "adopt_blocks",
    "adopt_sides",
    "allocate",
    "block_at",
    "block_of",
    "drawn_side",
    "drop_sides",
    "fuse",
    "fuse_blocks",
    "join_side",
    "leave_side",
    "likelier_side",
    "log_apart",
    "log_block_weight",
    "log_fusion",
    "log_number",
    "log_probability",
    "log_split_ratio",
    "log_union",
    "log_value",
    "log_value_beside",
    "n_blocks",
    "n_empty",
    "n_on_side",
    "open_sides",
    "rescan",
    "seat_on_side",
    "side_block",
    "side_slot",
    "slot_at",
    "undivided",
]

Pair = tuple[int, int]
OfAtoms = State | EntityState


@generic_inner
def n_empty(state: BlockState) -> int:
    """Blocks without atoms, where a state has such."""
    raise NotImplementedError


@generic_inner
def log_number(state: BlockState, model: Model, more: int) -> float:
    """Log prior weight of one block more (``more`` 1) or less (-1), sizes apart."""
    raise NotImplementedError


@generic_inner
def log_value(state: BlockState, model: Model, k: int) -> float:
    """Log likelihood of all that block k has a part in."""
    raise NotImplementedError


@generic_inner
def log_value_beside(state: BlockState, model: Model, k: int, pair: Pair) -> float:
    """The same for a block beside a pair, once that is one block."""
    raise NotImplementedError


@generic_inner
def log_union(state: BlockState, model: Model, first: int, second: int) -> float:
    """The same for two blocks or sides, once they are one."""
    raise NotImplementedError


@generic_inner
def log_fusion(state: BlockState, model: Model, first: int, second: int) -> float:
    """Log posterior ratio of making one of two blocks or sides, :func:`log_number` apart."""
    raise NotImplementedError


@generic_inner
def log_apart(state: BlockState, model: Model, first: int, second: int) -> float:
    """Log weight of two blocks or sides, up to what depends on their union only."""
    raise NotImplementedError


@generic_inner
def log_split_ratio(state: BlockState, model: Model, k: int) -> float:
    """Log posterior with block k divided into the two sides, over that of the present state."""
    raise NotImplementedError


@generic_inner
def fuse(state: BlockState, model: Model, first: int, second: int) -> None:
    """Make one of two blocks; there must be no sides."""
    raise NotImplementedError


@generic_inner
def open_sides(state: BlockState, model: Model, pair: Pair, n: int) -> None:
    """Begin to divide ``members[:n]``, all atoms of a pair of blocks (may be equal).

    Both sides are empty then.
    """
    raise NotImplementedError


@generic_inner
def side_block(state: BlockState, side: int) -> int:
    """Slot of side 0 or 1; may be -1 for one that is empty."""
    raise NotImplementedError


@generic_inner
def join_side(state: BlockState, model: Model, i: int, side: int) -> None:
    """Put atom i, which is on no side, on a side."""
    raise NotImplementedError


@generic_inner
def leave_side(state: BlockState, model: Model, i: int) -> None:
    """Take atom i off its side."""
    raise NotImplementedError


@generic_inner
def seat_on_side(state: BlockState, rng: Generator, model: Model, i: int, second: int) -> float:
    """Put atom i, which is on no side, on one by what it weighs there; the log probability.

    With ``second`` not negative it goes to side 1 if that was its block, else to side 0.
    """
    raise NotImplementedError


@generic_inner
def likelier_side(state: BlockState, model: Model, i: int) -> int:
    """The side, neither of which is empty, that predicts atom i better; it is on none."""
    raise NotImplementedError


@generic_inner
def undivided(state: BlockState, n: int) -> bool:
    """Whether the sides are no division of ``members[:n]``, since one is empty."""
    raise NotImplementedError


@generic_inner
def drop_sides(state: BlockState, model: Model, n: int) -> None:
    """Take the division of ``members[:n]`` back; some of them may be on no side yet.

    The blocks are in their slots again.
    """
    raise NotImplementedError


@generic_inner
def adopt_sides(state: BlockState, model: Model, pair: Pair, n: int) -> None:
    """Replace a pair of blocks (may be equal), whose atoms are ``members[:n]``, by the sides."""
    raise NotImplementedError


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
def n_blocks(state: BlockState) -> int:
    """Number of blocks, empty ones included."""
    return state.partition.n_blocks[0] + n_empty(state)


@inner
def _empty_slot(partition: Partition) -> int:
    """A closed slot beyond the sides, made to stand for an empty block."""
    k = side_slot(partition, 2)
    partition.head[k] = -1
    partition.size[k] = 0
    partition.n_members[k] = 0
    partition.log_marginal[k] = 0.0
    partition.stale[k] = 0
    return k


@inner
def block_at(state: BlockState, at: int) -> int:
    """Slot of the block at a position from 0 to the number of blocks; the empty ones come last."""
    partition = state.partition
    return slot_at(partition, at) if at < partition.n_blocks[0] else _empty_slot(partition)


@inner
def n_on_side(state: BlockState, side: int) -> int:
    """Atoms on side 0 or 1."""
    k = side_block(state, side)
    return state.partition.n_members[k] if k >= 0 else 0


@inner
def log_probability(odds: float) -> float:
    """Log of the probability whose log odds are given."""
    if odds < -36.0:
        return odds
    return -log1p(exp(-odds))


@inner
def drawn_side(rng: Generator, odds: float, forced: int) -> int:
    """Side 0 with these log odds, or side 1; ``forced`` where that is not negative."""
    if forced >= 0:
        return forced
    return 0 if coin(rng, exp(log_probability(odds))) else 1


@inner
def allocate(
    rng: Generator, state: BlockState, model: Model, n: int, second: int, gain: float
) -> float:
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
        log_q += seat_on_side(state, rng, model, state.members[at], second)
        if not survives_fall(rng, min(gain + before, 0.0), min(gain + log_q, 0.0)):
            return -inf
    return log_q


@inner
def rescan(
    rng: Generator, state: BlockState, model: Model, n: int, second: int, gain: float
) -> float:
    """One restricted Gibbs scan of ``members[:n]``, which are on sides; like :func:`allocate`."""
    log_q = 0.0
    for at in range(n):
        i = state.members[at]
        leave_side(state, model, i)
        before = log_q
        log_q += seat_on_side(state, rng, model, i, second)
        if not survives_fall(rng, min(gain + before, 0.0), min(gain + log_q, 0.0)):
            return -inf
    return log_q


# Mixtures.


@inner
def side_slot(partition: Partition, side: int) -> int:
    """Slot of a side that stands beside the partition."""
    return slot_at(partition, partition.n_blocks[0] + side)


@inner
def log_block_weight(model: Model, partition: Partition, k: int) -> float:
    """What block or side k contributes to the log joint."""
    return log_size(model.seating, partition.size[k]) + block_log_marginal(model, partition, k)


@implements(n_empty, State, VertexState)
def _n_empty(_state: State | VertexState) -> int:
    return 0


@implements(log_number, State, VertexState)
def _log_number(state: State | VertexState, model: Model, more: int) -> float:
    k = state.partition.n_blocks[0]
    return log_new_block(model.seating, k) if more > 0 else -log_new_block(model.seating, k - 1)


@implements(log_value, State, EntityState)
def _log_value(state: OfAtoms, model: Model, k: int) -> float:
    return block_log_marginal(model, state.partition, k)


@implements(log_value_beside, State, EntityState)
def _log_value_beside(state: OfAtoms, model: Model, k: int, _pair: Pair) -> float:
    return block_log_marginal(model, state.partition, k)


@implements(log_union, State, EntityState)
def _log_union(state: OfAtoms, model: Model, first: int, second: int) -> float:
    rows = state.partition.rows
    return log_marginal_sum(model.family, rows, first, rows, second, model.work)


@implements(log_fusion, State, EntityState)
def _log_fusion(state: OfAtoms, model: Model, first: int, second: int) -> float:
    partition = state.partition
    value = log_union(state, model, first, second)
    value += log_size(model.seating, partition.size[first] + partition.size[second])
    value -= log_block_weight(model, partition, first)
    return value - log_block_weight(model, partition, second)


@implements(log_apart, State, EntityState)
def _log_apart(state: OfAtoms, model: Model, first: int, second: int) -> float:
    partition = state.partition
    return log_block_weight(model, partition, first) + log_block_weight(model, partition, second)


@implements(log_split_ratio, State, EntityState)
def _log_split_ratio(state: OfAtoms, model: Model, k: int) -> float:
    partition = state.partition
    value = log_number(state, model, 1)
    value += log_apart(state, model, side_slot(partition, 0), side_slot(partition, 1))
    return value - log_block_weight(model, partition, k)


@inner
def fuse_blocks(partition: Partition, first: int, second: int) -> None:
    """Move the atoms of the smaller block into the other and close it."""
    smaller = partition.n_members[first] < partition.n_members[second]
    source, target = (first, second) if smaller else (second, first)
    i = partition.head[source]
    last = i
    while i >= 0:
        partition.label[i] = target
        last = i
        i = partition.following[i]
    top = partition.head[target]
    partition.following[last] = top
    partition.preceding[top] = last
    partition.head[target] = partition.head[source]
    add_row(partition.rows, target, partition.rows, source)
    partition.size[target] += partition.size[source]
    partition.n_members[target] += partition.n_members[source]
    mark_changed(partition, target)
    close_block(partition, source)


@implements(fuse, State)
def _fuse(state: State, _model: Model, first: int, second: int) -> None:
    fuse_blocks(state.partition, first, second)


@implements(open_sides, State, EntityState)
def _open_sides(state: OfAtoms, _model: Model, _pair: Pair, _n: int) -> None:
    partition = state.partition
    for side in range(2):
        k = side_slot(partition, side)
        partition.head[k] = -1
        partition.size[k] = 0
        partition.n_members[k] = 0
        mark_changed(partition, k)


@implements(side_block, State, EntityState)
def _side_block(state: OfAtoms, side: int) -> int:
    return side_slot(state.partition, side)


@implements(join_side, State, EntityState)
def _join_side(state: OfAtoms, _model: Model, i: int, side: int) -> None:
    atoms, partition = state.atoms, state.partition
    k = side_slot(partition, side)
    add_row(partition.rows, k, atoms.rows, i)
    partition.size[k] += atoms.size[i]
    partition.n_members[k] += 1
    mark_changed(partition, k)
    state.side[i] = side


@implements(leave_side, State, EntityState)
def _leave_side(state: OfAtoms, _model: Model, i: int) -> None:
    atoms, partition = state.atoms, state.partition
    k = side_slot(partition, state.side[i])
    subtract_row(partition.rows, k, atoms.rows, i)
    partition.size[k] -= atoms.size[i]
    partition.n_members[k] -= 1
    mark_changed(partition, k)


@inner
def _log_with(state: OfAtoms, model: Model, i: int, k: int) -> float:
    """Log marginal of side k once atom i is in it."""
    rows, atoms = state.partition.rows, state.atoms
    if state.partition.size[k] == 0:
        return atoms.log_marginal[i]
    return log_marginal_sum(model.family, rows, k, atoms.rows, i, model.work)


@inner
def _log_weight(state: OfAtoms, model: Model, i: int, k: int, log_with: float) -> float:
    partition, seating = state.partition, model.seating
    before, size = partition.size[k], state.atoms.size[i]
    if before == 0:
        return seating.slope + log_size(seating, size) + log_with
    weight = log_growth(seating, before, size)
    return weight + log_with - block_log_marginal(model, partition, k)


@implements(seat_on_side, State, EntityState)
def _seat_on_side(state: OfAtoms, rng: Generator, model: Model, i: int, second: int) -> float:
    # A predictive table would serve one atom only before its side changes: marginals cost less.
    partition = state.partition
    k = (side_slot(partition, 0), side_slot(partition, 1))
    log_with = (_log_with(state, model, i, k[0]), _log_with(state, model, i, k[1]))
    odds = _log_weight(state, model, i, k[0], log_with[0])
    odds -= _log_weight(state, model, i, k[1], log_with[1])
    forced = -1
    if second >= 0:
        forced = 1 if block_of(partition, i) == second else 0
    side = drawn_side(rng, odds, forced)
    join_side(state, model, i, side)
    set_log_marginal(partition, k[side], log_with[side])
    return log_probability(odds if side == 0 else -odds)


@implements(likelier_side, State, EntityState)
def _likelier_side(state: OfAtoms, model: Model, i: int) -> int:
    atoms, partition = state.atoms, state.partition
    first = log_join(model, atoms, partition, i, side_slot(partition, 0))
    return 0 if first >= log_join(model, atoms, partition, i, side_slot(partition, 1)) else 1


@implements(undivided, State, VertexState)
def _undivided(state: State | VertexState, n: int) -> bool:
    return n_on_side(state, 0) in (0, n)


@implements(drop_sides, State, EntityState)
def _drop_sides(state: OfAtoms, _model: Model, _n: int) -> None:
    for side in range(2):
        clear_row(state.partition.rows, side_slot(state.partition, side))


@inner
def adopt_blocks(state: OfAtoms, pair: Pair, n: int) -> None:
    """Replace a pair of blocks, whose atoms are ``members[:n]``, by the sides; none is empty."""
    partition = state.partition
    for side in range(2):
        partition.n_members[side_slot(partition, side)] = 0
    for at in range(n):
        i = state.members[at]
        link(partition, i, side_slot(partition, state.side[i]))
    partition.n_blocks[0] += 2
    close_block(partition, pair[0])
    if pair[1] != pair[0]:
        close_block(partition, pair[1])


@implements(adopt_sides, State)
def _adopt_sides(state: State, _model: Model, pair: Pair, n: int) -> None:
    adopt_blocks(state, pair, n)
