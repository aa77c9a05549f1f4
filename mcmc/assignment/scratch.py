"""What a reconfiguration notes down on its walk: where atoms were, which move whole, who stays.

See :mod:`weald.mcmc.reconfiguration.reconfiguration` for the walk.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.state.block_state import BlockState
from weald.treecore.compiled.compile import inner
from weald.treecore.compiled.reference import held_by_reference

__all__ = [
    "OPEN",
    "PLACED",
    "SETTLED",
    "Notes",
    "Walk",
    "begin",
    "claim_homes",
    "cut",
    "make_notes",
]

OPEN, PLACED, SETTLED = 0, 1, 2

Labels = NDArray[np.int64]


@held_by_reference
class Notes(NamedTuple):
    """Scratch of a reconfiguration of up to n atoms, in up to s slots.

    Attributes
    ----------
    before, after:
        Slots of the atoms before the move, and as proposed (n).
    own, inside, standing:
        For each atom of a walk: its slot at the start, whether it is an insider, and whether it was
        placed and may move again, or has settled (n).
    n_original:
        For each slot, atoms in it that were there at the start (s).
    home:
        The slot where a block of the walk's goal sits for good, or -1; then what each slot is the
        home of, or -1 (2 s).
    piece, following, n_in_piece, first_of, pieces:
        Piece of each atom and the next atom in it, or -1 (n); for each piece its size and its first
        atom (2 n); the pieces in the order in which they move (n).
    tally:
        Where pieces of each size begin in that order (n + 2).
    log_kept:
        Log weights that a draw overwrites, float64 (n + 4).
    """

    before: Labels
    after: Labels
    own: Labels
    inside: NDArray[np.int8]
    standing: NDArray[np.int8]
    n_original: Labels
    home: Labels
    piece: Labels
    following: Labels
    n_in_piece: Labels
    first_of: Labels
    pieces: Labels
    tally: Labels
    log_kept: NDArray[np.float64]


class Walk(NamedTuple):
    """``guided``: i and j come with their pieces; ``whole``: the other pieces move first."""

    guided: int
    whole: int


def make_notes(n: int, n_slots: int) -> Notes:
    """Scratch for n atoms in a partition with ``n_slots`` slots."""

    def integers(size: int) -> Labels:
        return np.zeros(size, dtype=np.int64)

    return Notes(
        integers(n),
        integers(n),
        integers(n),
        np.zeros(n, dtype=np.int8),
        np.zeros(n, dtype=np.int8),
        integers(n_slots),
        integers(2 * n_slots),
        integers(n),
        integers(n),
        integers(2 * n),
        integers(2 * n),
        integers(n),
        integers(n + 2),
        np.zeros(n + 4),
    )


@inner
def claim_homes(
    state: BlockState, notes: Notes, goal: Labels, live: Labels, pair: tuple[int, int]
) -> bool:
    """Say where outsiders that stay keep a place for their blocks; False if two want one place."""
    n_slots = state.partition.slots.shape[0]
    notes.home[:] = -1
    first, second = goal[pair[0]], goal[pair[1]]
    for at in range(live.shape[0]):
        v = live[at]
        if notes.inside[v] or goal[v] in (first, second):
            continue
        k, label = notes.own[v], goal[v]
        if notes.home[label] == -1 and notes.home[n_slots + k] == -1:
            notes.home[label] = k
            notes.home[n_slots + k] = label
        elif notes.home[label] != k:
            return False
    return True


@inner
def begin(state: BlockState, notes: Notes, live: Labels, pair: tuple[int, int]) -> None:
    """Note where everything is."""
    partition = state.partition
    first, second = partition.label[pair[0]], partition.label[pair[1]]
    for at in range(live.shape[0]):
        v = live[at]
        k = partition.label[v]
        notes.own[v] = k
        notes.inside[v] = 1 if k in (first, second) else 0
        notes.standing[v] = OPEN
    for at in range(partition.n_blocks[0]):
        k = partition.slots[at]
        notes.n_original[k] = partition.n_members[k]


@inner
def cut(notes: Notes, common: Labels, order: Labels, second: int) -> int:
    """Divide the insiders into pieces and put these in the order in which they move.

    ``second`` is the slot of j at the start: atoms of different blocks are no piece. Returns the
    number of pieces.
    """
    n, largest, n_pieces = order.shape[0], 0, 0
    for at in range(n):
        # Two pieces for each label: one in the block of i, one in that of j.
        notes.n_in_piece[2 * common[order[at]]] = 0
        notes.n_in_piece[2 * common[order[at]] + 1] = 0
        notes.tally[at] = 0
    notes.tally[n] = notes.tally[n + 1] = 0
    # Linked from the back, so that each list begins with its first atom by the order.
    for at in range(n - 1, -1, -1):
        v = order[at]
        if notes.inside[v]:
            piece = 2 * common[v] + (1 if notes.own[v] == second else 0)
            notes.following[v] = notes.first_of[piece] if notes.n_in_piece[piece] > 0 else -1
            notes.first_of[piece] = v
            notes.piece[v] = piece
            notes.n_in_piece[piece] += 1
            largest = max(largest, notes.n_in_piece[piece])
    # Sorted by counting, from the largest size; atoms come in order, so first atoms do too.
    for at in range(n):
        v = order[at]
        if notes.inside[v] and notes.first_of[notes.piece[v]] == v:
            notes.tally[largest - notes.n_in_piece[notes.piece[v]] + 1] += 1
            n_pieces += 1
    # Running sums: where the pieces of each size begin.
    for size in range(1, largest + 1):
        notes.tally[size] += notes.tally[size - 1]
    for at in range(n):
        v = order[at]
        if notes.inside[v] and notes.first_of[notes.piece[v]] == v:
            place = largest - notes.n_in_piece[notes.piece[v]]
            notes.pieces[notes.tally[place]] = notes.piece[v]
            notes.tally[place] += 1
    return n_pieces
