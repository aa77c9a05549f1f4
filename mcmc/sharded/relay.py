"""Sequential allocation that goes from shard to shard.

Of two blocks that are to be joined, or one that is to be split, every shard has some atoms. Each in
turn puts its own on the two sides, one after another and in a random order, by seating weight times
predictive density given all that are there already, and hands the sums of the sides on. So all of
them together make the allocation of :mod:`~weald.mcmc.split_merge.sams`, in an order that is drawn
without a look at the partition: whole shards one after the other, and the atoms of each.
"""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.split_merge.trial_split import allocate, join_side, open_sides
from weald.mcmc.state.atom_state import State, make_state
from weald.treecore.compiled.compile import compiled
from weald.treecore.compiled.draw import shuffle
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model, make_atoms
from weald.treecore.prior.sequential import canonical_labels

__all__ = ["Allocated", "allocate_own"]

Ids = NDArray[np.int64]
Matrix = NDArray[np.float64]


class Allocated(NamedTuple):
    """The side (n) of each atom, 0 or 1, and the log probability of all of them."""

    side: Ids
    log_q: float


@compiled
def _allocate(rng: Generator, state: State, model: Model, n: int, second: int) -> float:
    state, model = by_reference(state), by_reference(model)
    for i in range(n):
        state.members[i] = i
    shuffle(rng, state.members, n)
    open_sides(state, model, (0, 0), n)
    join_side(state, model, n, 0)
    join_side(state, model, n + 1, 1)
    return allocate(rng, state, model, n, second, np.inf)


def allocate_own(
    rng: Generator, model: Model, atoms: tuple[Ids, Matrix], sides: Matrix, forced: Ids | None
) -> Allocated:
    """Put atoms of these sizes (n) and rows (n, m) on sides whose sums are ``sides`` (2, m).

    Neither side is empty. With ``forced`` (n) nothing is drawn: it says where each atom goes, and
    what is returned is how probable that was.
    """
    size, rows = atoms
    n = size.shape[0]
    there = np.rint(sides[:, 0]).astype(np.int64)
    every = make_atoms(
        model.family, np.concatenate([rows, sides]), np.concatenate([size, there]), model.work
    )
    # The sides' sums have blocks of their own, where nobody looks for them.
    labels = np.concatenate([np.zeros(n, np.int64) if forced is None else forced, [2, 3]])
    state = make_state(model.family, every, canonical_labels(labels))
    second = -1
    if forced is not None:
        # Where no atom is to go to side 1 it is a block that none of them is in.
        at = int(np.argmax(labels == 1)) if (forced == 1).any() else n
        second = int(state.partition.label[at])
    log_q = float(_allocate(rng, state, model, n, second))
    return Allocated(state.side[:n].astype(np.int64), log_q)
