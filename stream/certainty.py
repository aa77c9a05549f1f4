"""How sure the chain is of what is shown: the published partition against the chain's recent draws.

A publication is one partition; the chain visits many. Every refinement ends in one draw, the last
few of which are kept. An observation's *probability* is the share of draws in which it is in the
drawn block that holds most of its published cluster, its *stability* the mean share of its
cluster's other members that it is with. An observation is judged by the draws made since it came.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..storage.commit import CERTAINTY_CHUNK, Certainty, CertaintyChunk
from .contingency import numbered, overlaps

__all__ = ["Judged", "RecentDraws", "judge"]

Ids = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

# Four bytes an observation each.
DRAWS_KEPT = 8
# Certainties are kept in whole percent, one byte each.
PERCENT = 100.0


class Judged(NamedTuple):
    """What the draws say of each observation; NaN for one that no draw has seen.

    Parameters
    ----------
    probability, stability : ndarray of float64, shape (n,)
    """

    probability: NDArray[np.float64]
    stability: NDArray[np.float64]


class RecentDraws:
    """The newest draws of the chain, and what was last told of them."""

    def __init__(self) -> None:
        self._draws: list[NDArray[np.int32]] = []
        self._told = np.empty((2, 0), dtype=np.uint8)

    def add(self, labels: NDArray[np.integer]) -> None:
        """Keep one more draw: the block of every observation so far, shape (n,)."""
        self._draws = [*self._draws[1 - DRAWS_KEPT :], labels.astype(np.int32)]

    def certainty(self, clusters: Ids) -> Certainty:
        """Judge a partition, and return the chunks that changed since the last call.

        Parameters
        ----------
        clusters : ndarray of int64, shape (n,)
            Published cluster of each observation.
        """
        judged = judge(self._draws, clusters)
        ids, place = numbered(clusters)
        seen = ~np.isnan(judged.probability)
        weight = np.maximum(np.bincount(place[seen], minlength=len(ids)), 1)
        means = [
            np.bincount(place[seen], weights=values[seen], minlength=len(ids)) / weight
            for values in judged
        ]
        told = np.rint(np.nan_to_num(np.stack(judged)) * PERCENT).astype(np.uint8)
        chunks = [
            CertaintyChunk(number, *told[:, start : start + CERTAINTY_CHUNK])
            for number, start in enumerate(range(0, len(clusters), CERTAINTY_CHUNK))
            if not np.array_equal(
                told[:, start : start + CERTAINTY_CHUNK],
                self._told[:, start : start + CERTAINTY_CHUNK],
            )
        ]
        self._told = told
        whole = (float(np.nanmean(judged.probability)), float(np.nanmean(judged.stability)))
        return Certainty(chunks, ids, means[0], means[1], whole)

    def state(self) -> Arrays:
        """Arrays from which `restore` goes on."""
        lengths = np.array([len(draw) for draw in self._draws], dtype=np.int64)
        joined = np.concatenate([np.empty(0, dtype=np.int32), *self._draws])
        return {"lengths": lengths, "labels": joined}

    @classmethod
    def restore(cls, state: Arrays) -> "RecentDraws":
        """Undo `state`; a snapshot of an earlier version has none, and the draws begin anew.

        What SQL has been told is not known any more, so all of it is told again.
        """
        draws = cls()
        if state:
            draws._draws = np.split(state["labels"], np.cumsum(state["lengths"])[:-1])
            draws._draws = draws._draws if len(state["lengths"]) else []
        return draws


def judge(draws: list[NDArray[np.int32]], clusters: Ids) -> Judged:
    """Compare a partition with draws, each of the first so many of its observations.

    Parameters
    ----------
    draws : list of ndarray of int32
    clusters : ndarray of int64, shape (n,)
    """
    n = len(clusters)
    probability, stability, seen = np.zeros(n), np.zeros(n), np.zeros(n)
    _, place = numbered(clusters)
    for draw in draws:
        m = min(len(draw), n)
        _, rows = numbered(place[:m])
        _, columns = numbered(draw[:m])
        cells = overlaps(rows, columns)
        # The largest block of each cluster; of equal ones the first.
        order = np.lexsort((-cells.column, cells.n))
        home = np.zeros(len(cells.row_size), dtype=np.int64)
        home[cells.row[order]] = cells.column[order]
        cell = cells.row * len(cells.column_size) + cells.column
        together = cells.n[np.searchsorted(cell, rows * len(cells.column_size) + columns)]
        others = cells.row_size[rows] - 1
        probability[:m] += columns == home[rows]
        stability[:m] += np.where(others > 0, (together - 1) / np.maximum(others, 1), 1.0)
        seen[:m] += 1
    seen[seen == 0] = np.nan
    return Judged(probability / seen, stability / seen)
