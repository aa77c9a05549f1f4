"""Moving whole what two guides agree on: sets of atoms that are together in both, by Gibbs.

For each such set in turn one of its atoms is drawn, its *leader*, and with it moves the leader's
*piece*: the atoms of the set that share its block. The piece is taken out and put back by a draw
from its full conditional over a new block and all blocks without another piece of its set. Where
there is one it cannot go: both would be one piece from then on. So from wherever the piece goes,
the same leader moves the same piece over the same blocks, and the draw, which nothing rejects,
leaves the posterior invariant. Single atoms are left to :mod:`weald.mcmc.gibbs.gibbs`.

This is step 2 of a reconfiguration (Herlau et al. algorithm 3) on its own: there no pair of atoms
is forced apart or together, and no other atom has to find its way back. Sets are those of the first
guide, of the second, or of their common refinement, drawn anew for each sweep. Guides and claims
as in :mod:`weald.mcmc.reconfiguration.arm`.

Cost: the atoms that move, and one predictive density a block for each set of two atoms or more.
"""

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.assignment.assignment import (
    log_weights_everywhere,
    new_block,
    put_in,
    set_aside,
    take_out,
)
from weald.mcmc.assignment.scratch import Notes
from weald.mcmc.contract import Entry, PartitionState
from weald.mcmc.state.atom_state import CONDITIONAL, Info, record
from weald.mcmc.state.block_state import BlockState
from weald.mcmc.sweeps import Sampler
from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.draw import below, choose, shuffle
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model

from .guided import guided
from .reference_partitions import Guides

__all__ = ["PLAN", "AccordPlan", "kernel", "sweep"]

_NONE = -1


class AccordPlan(NamedTuple):
    """``sets``: 0 for those of the first guide, 1 the second, 2 both, 3 one of these at random."""

    sets: int = 3


PLAN = AccordPlan()


@inner
def _list_sets(notes: Notes, sets: NDArray[np.int64], order: NDArray[np.int64], n: int) -> None:
    """Link the atoms of each set in the given order, beginning with ``first_of`` it."""
    notes.first_of[:] = _NONE
    for at in range(n - 1, -1, -1):
        v = order[at]
        notes.following[v] = notes.first_of[sets[v]]
        notes.first_of[sets[v]] = v


@inner
def _move(rng: Generator, state: BlockState, model: Model, notes: Notes, leader: int) -> int:
    """Redraw the block of the leader's piece of its set, which the leader begins.

    Returns 1 if it went elsewhere, 0 if not, -1 if the leader has no company to move with.
    """
    partition = state.partition
    own = partition.label[leader]
    # The piece: atoms of the leader's set that share its block now.
    n, v = 0, leader
    while v != _NONE:
        if partition.label[v] == own:
            state.members[n] = v
            n += 1
        v = notes.following[v]
    if n == 1:
        return -1
    # Taken out whole, a block is gone, and going to a new one is staying.
    whole = n == partition.n_members[own]
    for at in range(n):
        take_out(state, model, state.members[at])
    set_aside(state, model, state.members, n)
    k = log_weights_everywhere(state, model)
    # Blocks with another piece of the set are closed: entered, both would be one piece, and the way
    # back would be another draw.
    v = leader
    while v != _NONE:
        if partition.label[v] >= 0:
            state.log_weights[partition.position[partition.label[v]]] = -inf
        v = notes.following[v]
    chosen = choose(rng, state.log_weights, k + 1)
    stays = chosen == k if whole else chosen < k and partition.slots[chosen] == own
    slot = new_block(state) if chosen == k else partition.slots[chosen]
    for at in range(n):
        put_in(state, model, state.members[at], slot)
    return 0 if stays else 1


@compiled
def sweep(
    rng: Generator,
    state: BlockState,
    model: Model,
    plan: AccordPlan,
    guides: Guides,
    notes: Notes,
    live: NDArray[np.int64],
    tally: NDArray[np.float64],
) -> None:
    """One draw for each set; every atom that the guides know must be in a block and in ``live``."""
    state, model = by_reference(state), by_reference(model)
    guides, notes = by_reference(guides), by_reference(notes)
    which = below(rng, 3) if plan.sets == 3 else plan.sets
    sets = guides.first if which == 0 else (guides.second if which == 1 else guides.common)
    n = live.shape[0]
    for at in range(n):
        state.order[at] = live[at]
    # In a random order the first atom of each set, its leader, is any of its atoms.
    shuffle(rng, state.order, n)
    _list_sets(notes, sets, state.order, n)
    for at in range(n):
        v = state.order[at]
        if notes.first_of[sets[v]] == v:
            moved = _move(rng, state, model, notes, v)
            if moved >= 0:
                record(tally, Info(CONDITIONAL, 0.0, moved))


def kernel(entry: Entry) -> Sampler[PartitionState[BlockState]]:
    """The kernel, as the registry names it."""
    return guided(entry, sweep, PLAN, PLAN)
