"""What the chain's recent draws support, and how sure they are of what is shown.

A publication is one partition; the chain visits many, and the newest of them are kept, one for
each round of a refinement. What is shown is the partition of least expected variation of
information over them, each observation put where it is most probable: that of highest log joint has
too few clusters where they overlap. An
observation's *probability* is the mean share of its drawn block that lies in its cluster, its
*stability* the mean share of its cluster's other members that it is with; of one that is shown
alone, the share of draws in which it is. An observation is judged by the draws made since it came.
"""

import math
from collections.abc import Callable
from itertools import compress
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.estimate.consensus import consensus_partition
from weald.storage.commit.commit import Certainty
from weald.stream.tables.atom_table import AtomTable
from weald.stream.tables.contingency import cells_of, numbered, overlaps
from weald.treecore.prior.sequential import canonical_labels

__all__ = [
    "DRAWS_KEPT",
    "MOST_UNSEEN",
    "MOST_WORK",
    "PERCENT",
    "Judged",
    "RecentDraws",
    "affordable",
    "judge",
]

Ids = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]
_Draw = TypeVar("_Draw")

# Four bytes an observation each.
DRAWS_KEPT = 16
# Blocks weighed when draws are relabelled; so many draws, evenly spaced, tell the shown partition
# nearly as well as all of them.
_MOST_WEIGHED = 1e7
_ENOUGH_DRAWS = 8
# A draw that has not seen a larger share of what is held says too little of what is now.
MOST_UNSEEN = 0.1
# Bounds of the search, above which fewer draws are looked at: counts in its table, and those that a
# sweep looks up, for which there are always a few.
_MOST_COUNTS = 1e6
_MOST_LOOKED_UP = 4e7
_FEW_DRAWS = 4
MOST_WORK = 2e7
# Certainties are kept in whole percent, one byte each.
PERCENT = 100.0
_UNTOLD = 255


class Judged(NamedTuple):
    """What the draws say of each observation; NaN for one that no draw has seen.

    Parameters
    ----------
    probability, stability : ndarray of float64, shape (n,)
    """

    probability: NDArray[np.float64]
    stability: NDArray[np.float64]


def _as_drawn(draws: Ids) -> Ids:
    return draws


def affordable(draws: list[_Draw], blocks: int, n: int) -> list[_Draw]:
    """The newest draws (n each) that a search has room and time for, with so many blocks each."""
    most = max(_MOST_LOOKED_UP / max(blocks * n, 1), _FEW_DRAWS)
    return draws[-max(int(min(most, _MOST_COUNTS / blocks**2)), 1) :]


class RecentDraws:
    """The newest draws of the chain, and what was last told of them, by atom id."""

    def __init__(self) -> None:
        self._draws: list[NDArray[np.int32]] = []
        # Records that had come when each of them was made.
        self._after: list[int] = []
        self._told = np.empty((2, 0), dtype=np.uint8)

    def add(self, labels: NDArray[np.integer], seq: int) -> None:
        """Keep one more draw: the block of every atom by its id, -1 for an id that none has.

        ``seq`` records had come when it was made.
        """
        self._draws = [*self._draws[1 - DRAWS_KEPT :], labels.astype(np.int32)]
        self._after = [*self._after[1 - DRAWS_KEPT :], seq]

    def forget(self, atoms: Ids) -> None:
        """Strike out atoms that have left, whose ids others will have."""
        for draw in self._draws:
            draw[atoms[atoms < len(draw)]] = -1
        self._told[:, atoms[atoms < self._told.shape[1]]] = _UNTOLD

    def lacking(self, seq: int, held: int) -> int:
        """How many draws are to be made before the next publication.

        ``seq`` records have come, of which the model holds ``held``.
        """
        return DRAWS_KEPT - sum(self._timely(seq, held))

    def timely(self, seq: int, held: int) -> list[NDArray[np.int32]]:
        """Draws that saw nearly all that is held: the block of every atom by its id, or -1.

        ``seq`` records have come, of which the model holds ``held``.
        """
        return list(compress(self._draws, self._timely(seq, held)))

    def _timely(self, seq: int, held: int) -> list[bool]:
        """Whether each draw was made when nearly all that is held now had come."""
        return [seq - after <= MOST_UNSEEN * held for after in self._after]

    def best(
        self,
        atom_table: AtomTable,
        labels: NDArray[np.integer],
        seq: int,
        held: int,
        relabelled: Callable[[Ids], Ids] = _as_drawn,
    ) -> Ids:
        """Partition (n) of the table's atoms that the draws support, or what is shown now.

        ``labels`` are the chain's own blocks by atom id; ``seq`` records have come, of which the
        model holds ``held``. What came after a draw is put there where most of its block's other
        members are; then ``relabelled`` puts what draws (t, n) do not agree on where it is most
        probable. Only what is shown now and the draws' own blocks are looked at: the cost is
        that of the observations that draws do not agree on.
        """
        atoms = atom_table.present
        sizes, now = atom_table.size[atoms], canonical_labels(labels[atoms])
        drawn = [_drawn(draw, atoms) for draw in self.timely(seq, held)]
        blocks = int(now.max(initial=0)) + 1
        drawn = affordable(drawn, blocks, len(atoms))
        enough = max(_MOST_WEIGHED / max(blocks * len(atoms), 1), _ENOUGH_DRAWS)
        drawn = drawn[::-1][:: max(math.ceil(len(drawn) / enough), 1)][::-1]
        if not drawn or len(atoms) == 0:
            return now
        filled = np.stack([canonical_labels(_filled(draw, now, sizes)) for draw in drawn])
        shown = canonical_labels(atom_table.cluster[atoms])
        return consensus_partition(
            relabelled(filled), "vi", [shown], weight=sizes, starts=1, most_work=MOST_WORK
        )

    def certainty(self, atom_table: AtomTable) -> Certainty:
        """Judge the published partition, and return what changed since the last call."""
        atoms = atom_table.present
        clusters, sizes = atom_table.cluster[atoms], atom_table.size[atoms]
        judged = judge([_drawn(draw, atoms) for draw in self._draws], clusters, sizes)
        ids, place = numbered(clusters)
        weight = np.where(np.isnan(judged.probability), 0, sizes)
        # Of nothing the counts are whole numbers, among which there is no NaN.
        total = np.bincount(place, weights=weight, minlength=len(ids)).astype(np.float64)
        total[total == 0] = np.nan
        means = [
            np.bincount(place, weights=weight * np.nan_to_num(values), minlength=len(ids)) / total
            for values in judged
        ]
        percent = np.rint(np.nan_to_num(np.stack(judged)) * PERCENT).astype(np.uint8)
        seen = weight > 0
        changed = self.news(atoms, percent, (atom_table.seq[atoms] > 0) & seen)
        whole = tuple(
            float(np.average(values[seen], weights=weight[seen])) if seen.any() else math.nan
            for values in judged
        )
        told_of = atom_table.seq[atoms[changed]]
        return Certainty(
            told_of, percent[:, changed], ids, means[0], means[1], (whole[0], whole[1])
        )

    def news(
        self, atoms: Ids, percent: NDArray[np.uint8], among: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Which ``among`` these atoms (n) something else is said of (2, n) than last; noted."""
        end = max(int(atoms.max(initial=-1)) + 1, self._told.shape[1])
        told = np.full((2, end), _UNTOLD, dtype=np.uint8)
        told[:, : self._told.shape[1]] = self._told
        changed: NDArray[np.bool_] = (told[:, atoms] != percent).any(axis=0) & among
        told[:, atoms[changed]] = percent[:, changed]
        self._told = told
        return changed

    def state(self) -> Arrays:
        """Arrays from which `restore` goes on."""
        lengths = np.array([len(draw) for draw in self._draws], dtype=np.int64)
        joined = np.concatenate([np.empty(0, dtype=np.int32), *self._draws])
        return {"lengths": lengths, "labels": joined, "after": np.array(self._after)}

    @classmethod
    def restore(cls, state: Arrays) -> "RecentDraws":
        """Undo `state`.

        What SQL has been told is not known any more, so all of it is told again.
        """
        draws = cls()
        draws._draws = np.split(state["labels"], np.cumsum(state["lengths"])[:-1])
        draws._draws = draws._draws if len(state["lengths"]) else []
        draws._after = state["after"].astype(np.int64).tolist()
        return draws


def _drawn(draw: NDArray[np.int32], atoms: Ids) -> NDArray[np.int32]:
    known = atoms < len(draw)
    found = np.full(len(atoms), -1, dtype=np.int32)
    found[known] = draw[atoms[known]]
    return found


def _filled(draw: NDArray[np.int32], now: Ids, sizes: Ids) -> Ids:
    """A draw in which what it has not seen (-1) is with the others of its block of ``now``."""
    known = draw >= 0
    if known.all():
        return draw.astype(np.int64)
    blocks, columns = numbered(draw[known])
    cells = overlaps(now[known], columns, sizes[known])
    # A block that came after the draw altogether is one of its own.
    home = int(draw.max()) + 1 + np.arange(int(now.max()) + 1)
    order = np.lexsort((-cells.column, cells.n))
    home[cells.row[order]] = blocks[cells.column[order]]
    return np.where(known, draw, home[now])


def judge(draws: list[NDArray[np.int32]], clusters: Ids, sizes: Ids) -> Judged:
    """Compare a partition with draws.

    Parameters
    ----------
    draws : list of ndarray of int32, shape (n,)
        -1 for what came after the draw.
    clusters : ndarray of int64, shape (n,)
    sizes : ndarray of int64, shape (n,)
        Observations that each stands for.
    """
    n = len(clusters)
    probability, stability, seen = np.zeros(n), np.zeros(n), np.zeros(n)
    ids, place = numbered(clusters)
    for draw in draws:
        # All of a cluster that are in one block of the draw have the same share: what is not in
        # it is in column 0, and has none.
        width = int(draw.max(initial=-1)) + 2
        cells, cell = cells_of(place * width + draw + 1, len(ids) * width)
        together = np.bincount(cell, weights=sizes, minlength=len(cells))
        row, column = np.divmod(cells, width)
        known = column > 0
        block = np.bincount(column, weights=together)[column]
        others = np.bincount(row, weights=together * known)[row] - 1
        share = together / np.maximum(block, 1)
        stays = np.where(others > 0, (together - 1) / np.maximum(others, 1), block == 1)
        probability += np.where(known, share, 0.0)[cell]
        stability += np.where(known, stays, 0.0)[cell]
        seen += draw >= 0
    seen[seen == 0] = np.nan
    return Judged(probability / seen, stability / seen)
