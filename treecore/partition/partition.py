"""The partition being sampled: a block for each atom, with the blocks' statistics.

Blocks live in slots; ``slots[:n_blocks]`` are the open ones, in an order without meaning. The atoms
of a block form a doubly linked list. What follows from a block's row (its log marginal, its
predictive table) is recomputed only when somebody asks: ``stale`` holds one bit for each.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.reference import by_reference, held_by_reference
from weald.treecore.errors import ObservationError
from weald.treecore.family.interface.base import (
    Family,
    fill_predictive,
    log_marginal,
    log_marginal_sum,
    log_predictive,
    log_predictive_above,
    make_predictive,
    statistics_width,
)
from weald.treecore.family.interface.batched_predictive import BatchedPredictives, show
from weald.treecore.family.totals import log_marginals
from weald.treecore.prior.base import Seating, log_growth, log_size
from weald.treecore.statistics.rows import (
    Rows,
    add_row,
    clear_row,
    is_single,
    rows_like,
    subtract_row,
)

__all__ = [
    "Atoms",
    "Model",
    "Partition",
    "block_log_marginal",
    "close_all_blocks",
    "close_block",
    "close_last_blocks",
    "empty_partition",
    "end_of_slots",
    "finite_log_marginals",
    "lift",
    "link",
    "log_join",
    "log_join_above",
    "log_joint",
    "log_likelihood",
    "lower_slots",
    "make_atoms",
    "mark_changed",
    "open_block",
    "place",
    "rebuild_rows",
    "refresh_predictive",
    "require_finite",
    "set_log_marginal",
    "show_block",
    "unlink",
]

_STALE_MARGINAL = 1
_STALE_PREDICTIVE = 2
_NONE = -1


@held_by_reference
class Model(NamedTuple):
    """What every kernel needs besides the state: family, tabulated prior, scratch of one thread."""

    family: Any
    seating: Seating
    work: Rows


@held_by_reference
class Atoms(NamedTuple):
    """The smallest things that kernels move: an observation, or a compacted block of them.

    Attributes
    ----------
    size:
        Observations in each atom, int64 (n).
    rows:
        Their statistics rows.
    log_marginal:
        Log marginal likelihood of each atom alone (n).
    single:
        1 where the atom is one unweighted observation, so that the predictive table applies.
    """

    size: NDArray[np.int64]
    rows: Rows
    log_marginal: NDArray[np.float64]
    single: NDArray[np.uint8]


@held_by_reference
class Partition(NamedTuple):
    """Blocks of atoms. ``label[i]`` is the slot of atom i, -1 while it is in no block.

    Slot arrays have room for one block an atom and four to spare; unused slots may be dirty, except
    that the rows of closed slots are zero.
    """

    label: NDArray[np.int64]
    following: NDArray[np.int64]
    preceding: NDArray[np.int64]
    head: NDArray[np.int64]
    n_members: NDArray[np.int64]
    size: NDArray[np.int64]
    rows: Rows
    log_marginal: NDArray[np.float64]
    predictive: Rows
    stale: NDArray[np.uint8]
    slots: NDArray[np.int64]
    position: NDArray[np.int64]
    n_blocks: NDArray[np.int64]


@compiled
def _describe_atoms(family: Family, atoms: Atoms, work: Rows) -> None:
    atoms = by_reference(atoms)
    for i in range(atoms.size.shape[0]):
        atoms.log_marginal[i] = log_marginal(family, atoms.rows, i, work)
        atoms.single[i] = is_single(atoms.rows, i)


def require_finite(log_marginal: NDArray[np.float64]) -> None:
    """Raise ObservationError for the first of these observations (n) whose density is no number.

    Kernels compare densities, and follow pointers that they found by comparing: none is ever to see
    what compares to nothing.
    """
    if np.isfinite(log_marginal).all():
        return
    at = int(np.flatnonzero(~np.isfinite(log_marginal))[0])
    raise ObservationError(
        f"observation {at}: its log density under the family is {log_marginal[at]}: "
        "scale the values, or give the family less extreme parameters"
    )


def finite_log_marginals(family: Family, rows: Rows) -> NDArray[np.float64]:
    """Log marginals (k) of blocks with these statistics (k, m); raises as :func:`make_atoms`."""
    found = log_marginals(family, rows)
    require_finite(found)
    return found


def make_atoms(family: Family, rows: Rows, size: NDArray[np.int64], work: Rows) -> Atoms:
    """Atoms from their statistics rows; ``size`` int64 (n), observations in each.

    Raises ObservationError where the family has no finite density for one of them.
    """
    n = size.shape[0]
    atoms = Atoms(size, rows, np.empty(n), np.zeros(n, dtype=np.uint8))
    _describe_atoms(family, atoms, work)
    require_finite(atoms.log_marginal)
    return atoms


def empty_partition(family: Family, n: int, like: Rows | None = None) -> Partition:
    """Partition of n atoms, none of which is in a block yet.

    ``like`` are the atoms' rows, where these are not dense.
    """
    capacity = n + 4
    if like is None:
        like = np.zeros((0, statistics_width(family)))
    # The four to spare may hold what is in blocks too.
    rows = rows_like(like, capacity, 5)
    slots = np.arange(capacity, dtype=np.int64)
    # Zeroed pages cost no memory until they are touched, and low slots are used first.
    return Partition(
        label=np.full(n, _NONE, dtype=np.int64),
        following=np.full(n, _NONE, dtype=np.int64),
        preceding=np.full(n, _NONE, dtype=np.int64),
        head=np.full(capacity, _NONE, dtype=np.int64),
        n_members=np.zeros(capacity, dtype=np.int64),
        size=np.zeros(capacity, dtype=np.int64),
        rows=rows,
        log_marginal=np.zeros(capacity),
        predictive=make_predictive(family, capacity, rows),
        stale=np.zeros(capacity, dtype=np.uint8),
        slots=slots,
        position=slots.copy(),
        n_blocks=np.zeros(1, dtype=np.int64),
    )


@inner
def open_block(partition: Partition) -> int:
    """A new, empty block; returns its slot."""
    k = partition.slots[partition.n_blocks[0]]
    partition.n_blocks[0] += 1
    partition.head[k] = _NONE
    partition.n_members[k] = 0
    partition.size[k] = 0
    mark_changed(partition, k)
    return k


@inner
def close_block(partition: Partition, k: int) -> None:
    """Give back the slot of an empty block."""
    last = partition.n_blocks[0] - 1
    at = partition.position[k]
    other = partition.slots[last]
    partition.slots[at] = other
    partition.position[other] = at
    partition.slots[last] = k
    partition.position[k] = last
    partition.n_blocks[0] = last
    clear_row(partition.rows, k)


@compiled
def close_all_blocks(partition: Partition) -> None:
    """Leave the partition as if it had just been made: no atom in a block, low slots used first."""
    partition = by_reference(partition)
    while partition.n_blocks[0] > 0:
        close_block(partition, partition.slots[partition.n_blocks[0] - 1])
    for i in range(partition.label.shape[0]):
        partition.label[i] = _NONE
    for k in range(partition.slots.shape[0]):
        partition.slots[k] = k
        partition.position[k] = k


@inner
def close_last_blocks(partition: Partition, n: int) -> None:
    """Give back the slots of the n blocks that were opened last."""
    for _ in range(n):
        close_block(partition, partition.slots[partition.n_blocks[0] - 1])


@inner
def end_of_slots(partition: Partition) -> int:
    """A number that all open slots are below."""
    end = 1
    for at in range(partition.n_blocks[0]):
        end = max(end, partition.slots[at] + 1)
    return end


@compiled
def lower_slots(partition: Partition) -> None:
    """Give the open blocks the lowest slots, in their order, where many below them are closed.

    Tables of all blocks side by side have a column a slot. Their rows are left to rebuild.
    """
    partition = by_reference(partition)
    slots, position, n_blocks = partition.slots, partition.position, partition.n_blocks[0]
    if end_of_slots(partition) <= 2 * n_blocks:
        return
    free = 0
    for at in range(n_blocks):
        k = slots[at]
        if k < n_blocks:
            continue
        while position[free] < n_blocks:
            free += 1
        place = position[free]
        slots[at], position[free] = free, at
        slots[place], position[k] = k, place
        partition.head[free] = partition.head[k]
        partition.n_members[free] = partition.n_members[k]
        partition.size[free] = partition.size[k]
        clear_row(partition.rows, k)
        i = partition.head[free]
        while i != _NONE:
            partition.label[i] = free
            i = partition.following[i]


@inner
def link(partition: Partition, i: int, k: int) -> None:
    """Enter atom i, which is in no block, in the list of block k; the statistics stay."""
    partition.n_members[k] += 1
    first = partition.head[k]
    partition.following[i] = first
    partition.preceding[i] = _NONE
    if first != _NONE:
        partition.preceding[first] = i
    partition.head[k] = i
    partition.label[i] = k


@inner
def unlink(partition: Partition, i: int) -> int:
    """Strike atom i off the list of its block, whose slot is returned; the statistics stay."""
    k = partition.label[i]
    partition.n_members[k] -= 1
    before, after = partition.preceding[i], partition.following[i]
    if before == _NONE:
        partition.head[k] = after
    else:
        partition.following[before] = after
    if after != _NONE:
        partition.preceding[after] = before
    partition.label[i] = _NONE
    return k


@inner
def mark_changed(partition: Partition, k: int) -> None:
    """Say that the row of block k has changed."""
    partition.stale[k] = _STALE_MARGINAL | _STALE_PREDICTIVE


@inner
def place(atoms: Atoms, partition: Partition, i: int, k: int) -> None:
    """Put atom i, which is in no block, into block k."""
    add_row(partition.rows, k, atoms.rows, i)
    partition.size[k] += atoms.size[i]
    mark_changed(partition, k)
    link(partition, i, k)


@inner
def lift(atoms: Atoms, partition: Partition, i: int) -> int:
    """Take atom i out of its block and close the block if that empties it; returns its slot."""
    k = unlink(partition, i)
    partition.size[k] -= atoms.size[i]
    mark_changed(partition, k)
    if partition.n_members[k] == 0:
        close_block(partition, k)
    else:
        subtract_row(partition.rows, k, atoms.rows, i)
    return k


@inner
def block_log_marginal(model: Model, partition: Partition, k: int) -> float:
    """Log marginal likelihood of block k."""
    if partition.stale[k] & _STALE_MARGINAL:
        partition.log_marginal[k] = log_marginal(model.family, partition.rows, k, model.work)
        partition.stale[k] ^= _STALE_MARGINAL
    return partition.log_marginal[k]


@inner
def set_log_marginal(partition: Partition, k: int, value: float) -> None:
    """Note the log marginal of block k, whose row has just been marked as changed."""
    partition.log_marginal[k] = value
    partition.stale[k] = _STALE_PREDICTIVE


@inner
def refresh_predictive(model: Model, partition: Partition, k: int) -> None:
    """Bring the table up to date; not returned, because an inner function cannot pass arrays on."""
    if partition.stale[k] & _STALE_PREDICTIVE:
        fill_predictive(model.family, partition.rows, k, partition.predictive, k, model.work)
        partition.stale[k] ^= _STALE_PREDICTIVE


@inner
def show_block(batched: BatchedPredictives, model: Model, partition: Partition, k: int) -> None:
    """Bring the column of block k up to date; of none where it is closed, or -1."""
    if k >= 0 and partition.position[k] < partition.n_blocks[0]:
        refresh_predictive(model, partition, k)
        show(batched, k, partition.predictive, log_growth(model.seating, partition.size[k], 1))


@inner
def log_join(model: Model, atoms: Atoms, partition: Partition, i: int, k: int) -> float:
    """Log predictive likelihood of atom i, which is not in block k, given block k."""
    if atoms.single[i]:
        refresh_predictive(model, partition, k)
        return log_predictive(model.family, partition.predictive, k, atoms.rows, i)
    union = log_marginal_sum(model.family, partition.rows, k, atoms.rows, i, model.work)
    return union - block_log_marginal(model, partition, k)


@inner
def log_join_above(
    model: Model, atoms: Atoms, partition: Partition, i: int, k: int, least: float
) -> float:
    """:func:`log_join`, or minus infinity for a single observation where it is below ``least``."""
    if atoms.single[i]:
        refresh_predictive(model, partition, k)
        return log_predictive_above(model.family, partition.predictive, k, atoms.rows, i, least)
    return log_join(model, atoms, partition, i, k)


@compiled
def log_likelihood(model: Model, partition: Partition) -> float:
    """Sum of the blocks' log marginal likelihoods."""
    model, partition = by_reference(model), by_reference(partition)
    total = 0.0
    for at in range(partition.n_blocks[0]):
        total += block_log_marginal(model, partition, partition.slots[at])
    return total


@compiled
def log_joint(model: Model, partition: Partition) -> float:
    """Log of prior (as tabulated) times likelihood of the partition."""
    total = log_likelihood(model, partition)
    model, partition = by_reference(model), by_reference(partition)
    k = partition.n_blocks[0]
    for at in range(k):
        total += log_size(model.seating, partition.size[partition.slots[at]])
    return total + model.seating.log_blocks[k]


@compiled
def rebuild_rows(atoms: Atoms, partition: Partition) -> None:
    """Recompute every block's statistics from its atoms: this ends the drift of subtraction."""
    atoms, partition = by_reference(atoms), by_reference(partition)
    for at in range(partition.n_blocks[0]):
        k = partition.slots[at]
        clear_row(partition.rows, k)
        partition.stale[k] = _STALE_MARGINAL | _STALE_PREDICTIVE
        i = partition.head[k]
        while i != _NONE:
            add_row(partition.rows, k, atoms.rows, i)
            i = partition.following[i]
