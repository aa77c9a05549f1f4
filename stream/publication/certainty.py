"""How sure the chain is of what is shown: the published partition against the chain's recent draws.

A publication is one partition; the chain visits many. Every refinement ends in one draw, the last
few of which are kept. An observation's *probability* is the share of draws in which it is in the
drawn block that holds most of its published cluster, its *stability* the mean share of its
cluster's other members that it is with. An observation is judged by the draws made since it came.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.storage.commit.commit import Certainty
from weald.stream.tables.atom_table import Roster
from weald.stream.tables.contingency import numbered, overlaps

__all__ = ["Judged", "RecentDraws", "judge"]

Ids = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

# Four bytes an observation each.
DRAWS_KEPT = 8
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


class RecentDraws:
    """The newest draws of the chain, and what was last told of them, by atom id."""

    def __init__(self) -> None:
        self._draws: list[NDArray[np.int32]] = []
        self._told = np.empty((2, 0), dtype=np.uint8)

    def add(self, labels: NDArray[np.integer]) -> None:
        """Keep one more draw: the block of every atom by its id, -1 for an id that none has."""
        self._draws = [*self._draws[1 - DRAWS_KEPT :], labels.astype(np.int32)]

    def forget(self, atoms: Ids) -> None:
        """Strike out atoms that have left, whose ids others will have."""
        for draw in self._draws:
            draw[atoms[atoms < len(draw)]] = -1
        self._told[:, atoms[atoms < self._told.shape[1]]] = _UNTOLD

    def certainty(self, roster: Roster) -> Certainty:
        """Judge the published partition, and return what changed since the last call."""
        atoms = roster.present
        clusters, sizes = roster.cluster[atoms], roster.size[atoms]
        judged = judge([_drawn(draw, atoms) for draw in self._draws], clusters, sizes)
        ids, place = numbered(clusters)
        weight = np.where(np.isnan(judged.probability), 0, sizes)
        total = np.maximum(np.bincount(place, weights=weight, minlength=len(ids)), 1)
        means = [
            np.bincount(place, weights=weight * np.nan_to_num(values), minlength=len(ids)) / total
            for values in judged
        ]
        percent = np.rint(np.nan_to_num(np.stack(judged)) * PERCENT).astype(np.uint8)
        told = np.full((2, roster.end), _UNTOLD, dtype=np.uint8)
        told[:, : self._told.shape[1]] = self._told
        changed = (told[:, atoms] != percent).any(axis=0) & (roster.seq[atoms] > 0)
        told[:, atoms] = percent
        self._told = told
        seen = weight > 0
        whole = tuple(
            float(np.average(values[seen], weights=weight[seen])) if seen.any() else math.nan
            for values in judged
        )
        told_of = roster.seq[atoms[changed]]
        return Certainty(
            told_of, percent[:, changed], ids, means[0], means[1], (whole[0], whole[1])
        )

    def state(self) -> Arrays:
        """Arrays from which `restore` goes on."""
        lengths = np.array([len(draw) for draw in self._draws], dtype=np.int64)
        joined = np.concatenate([np.empty(0, dtype=np.int32), *self._draws])
        return {"lengths": lengths, "labels": joined}

    @classmethod
    def restore(cls, state: Arrays) -> "RecentDraws":
        """Undo `state`.

        What SQL has been told is not known any more, so all of it is told again.
        """
        draws = cls()
        draws._draws = np.split(state["labels"], np.cumsum(state["lengths"])[:-1])
        draws._draws = draws._draws if len(state["lengths"]) else []
        return draws


def _drawn(draw: NDArray[np.int32], atoms: Ids) -> NDArray[np.int32]:
    known = atoms < len(draw)
    found = np.full(len(atoms), -1, dtype=np.int32)
    found[known] = draw[atoms[known]]
    return found


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
    _, place = numbered(clusters)
    for draw in draws:
        known = draw >= 0
        _, rows = numbered(place[known])
        _, columns = numbered(draw[known])
        cells = overlaps(rows, columns, sizes[known])
        # The largest block of each cluster; of equal ones the first.
        order = np.lexsort((-cells.column, cells.n))
        home = np.zeros(len(cells.row_size), dtype=np.int64)
        home[cells.row[order]] = cells.column[order]
        cell = cells.row * len(cells.column_size) + cells.column
        together = cells.n[np.searchsorted(cell, rows * len(cells.column_size) + columns)]
        others = cells.row_size[rows] - 1
        probability[known] += columns == home[rows]
        stability[known] += np.where(others > 0, (together - 1) / np.maximum(others, 1), 1.0)
        seen[known] += 1
    seen[seen == 0] = np.nan
    return Judged(probability / seen, stability / seen)
