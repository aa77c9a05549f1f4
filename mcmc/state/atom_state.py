"""What kernels work on: atoms, the partition being sampled, and scratch space.

A kernel may write into the arrays of the state it is given. Between kernels of different kinds the
partition travels as plain labels, one block slot an atom.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.reference import by_reference, held_by_reference
from weald.treecore.family.interface.base import Family
from weald.treecore.partition.partition import (
    Atoms,
    Partition,
    close_all_blocks,
    empty_partition,
    open_block,
    place,
)
from weald.treecore.prior.sequential import canonical_labels

__all__ = [
    "CONDITIONAL",
    "EXCHANGE",
    "MERGE",
    "NULL",
    "SPLIT",
    "Info",
    "State",
    "make_state",
    "make_tally",
    "record",
    "record_as",
    "set_labels",
]

NULL = 0
SPLIT = 1
MERGE = 2
CONDITIONAL = 3
EXCHANGE = 4

_LOWEST_RATIO = -1000.0


class Info(NamedTuple):
    """What one step did.

    ``move`` is NULL, SPLIT, MERGE, CONDITIONAL (a draw that is always accepted) or EXCHANGE
    (between two blocks that both remain); ``log_ratio`` the log acceptance ratio (0 for conditional
    draws and null moves), or of a merge that was refused early a bound that it does not exceed.
    """

    move: int
    log_ratio: float
    accepted: int


@held_by_reference
class State(NamedTuple):
    """Atoms with their partition, and scratch arrays that no kernel expects to find clean.

    ``log_weights`` float64 (n + 4), ``members`` and ``order`` int64 (n), ``side`` int8 (n).
    """

    atoms: Atoms
    partition: Partition
    log_weights: NDArray[np.float64]
    members: NDArray[np.int64]
    order: NDArray[np.int64]
    side: NDArray[np.int8]


def make_state(
    family: Family,
    atoms: Atoms,
    labels: NDArray[np.int64],
    spare: State | None = None,
    places: NDArray[np.int64] | None = None,
) -> State:
    """State with the partition that ``labels`` (n, any integers) describe.

    ``spare`` is one of the same atoms and family that nobody needs any more: its arrays are used.
    ``places`` (n), rising, say which of the atoms these are, where there are others: those are in
    no block.
    """
    labels = canonical_labels(labels)
    if places is not None:
        every = np.full(atoms.size.shape[0], -1, dtype=np.int64)
        every[places] = labels
        labels = every
    if spare is not None:
        close_all_blocks(spare.partition)
        set_labels(atoms, spare.partition, labels)
        return spare
    n = labels.shape[0]
    state = State(
        atoms,
        empty_partition(family, n, atoms.rows),
        np.zeros(n + 4),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.int8),
    )
    set_labels(atoms, state.partition, labels)
    return state


@compiled
def set_labels(atoms: Atoms, partition: Partition, labels: NDArray[np.int64]) -> None:
    """Fill an empty partition; ``labels`` are canonical, -1 for an atom that is in no block."""
    atoms, partition = by_reference(atoms), by_reference(partition)
    slots = np.full(labels.shape[0], -1, dtype=np.int64)
    for i in range(labels.shape[0]):
        if labels[i] < 0:
            continue
        if slots[labels[i]] == -1:
            slots[labels[i]] = open_block(partition)
        place(atoms, partition, i, slots[labels[i]])


def make_tally() -> NDArray[np.float64]:
    """Zeroed counts for a sweep, one row a move: proposed, accepted, sum of log ratios."""
    return np.zeros((5, 3))


@inner
def record(tally: NDArray[np.float64], info: Info) -> None:
    """Add a step to the tally."""
    record_as(tally, info.move, info)


@inner
def record_as(tally: NDArray[np.float64], part: int, info: Info) -> None:
    """Add a step to a row of a tally that has one for each of a kernel's parts."""
    tally[part, 0] += 1.0
    tally[part, 1] += info.accepted
    # A proposal that the prior forbids has a log ratio of minus infinity: it would hide the others.
    tally[part, 2] += max(info.log_ratio, _LOWEST_RATIO)
