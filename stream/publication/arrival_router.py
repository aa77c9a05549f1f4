"""Which published cluster an observation joins between two publications.

It joins the cluster that most members of its block have, or a new one when the block is new. The
answer for a block is settled when the interval begins: arrivals can only confirm a majority, so it
does not matter where the stream is cut, or whether it was restarted in between.
"""

import numpy as np
from numpy.typing import NDArray

from weald.stream.tables.atom_table import Roster
from weald.stream.tables.contingency import numbered, overlaps

__all__ = ["Arrivals"]

Ids = NDArray[np.int64]


class Arrivals:
    """The blocks of the partition being sampled, each with its published cluster.

    Parameters
    ----------
    slots : ndarray of int, shape (n,)
        Block slot of every observation so far.
    clusters : ndarray of int64, shape (n,)
        Published cluster of every observation so far.
    next_cluster : int
        The id that the next new cluster gets.
    sizes : ndarray of int64, shape (n,), optional
        Observations that each row stands for, one by default.
    """

    def __init__(
        self,
        slots: NDArray[np.integer],
        clusters: Ids,
        next_cluster: int,
        sizes: Ids | None = None,
    ) -> None:
        blocks, block = numbered(slots)
        ids, place = numbered(clusters)
        cells = overlaps(block, place, sizes)
        # By size, and by age where sizes are equal; the last one written stays.
        order = np.lexsort((-cells.column, cells.n))
        homes = np.zeros(len(blocks), dtype=np.int64)
        homes[cells.row[order]] = ids[cells.column[order]]
        self._homes = dict(zip(blocks.tolist(), homes.tolist(), strict=True))
        self._next_cluster = next_cluster

    @classmethod
    def settled(cls, slots: Ids, roster: Roster, next_cluster: int) -> "Arrivals":
        """Where the blocks' arrivals go, by the block slot of every atom by its id (n)."""
        present = roster.present
        return cls(slots[present], roster.cluster[present], next_cluster, roster.size[present])

    def place(self, slots: NDArray[np.integer]) -> tuple[Ids, list[int]]:
        """Assign arrivals, in order.

        Parameters
        ----------
        slots : ndarray of int, shape (n,)
            Block slot that each was drawn into.

        Returns
        -------
        ndarray of int64, shape (n,)
        list of int
            Indices of the arrivals with which a cluster was born.
        """
        clusters = np.empty(len(slots), dtype=np.int64)
        born: list[int] = []
        for i, slot in enumerate(slots.tolist()):
            if slot not in self._homes:
                self._homes[slot] = self._next_cluster
                self._next_cluster += 1
                born.append(i)
            clusters[i] = self._homes[slot]
        return clusters, born
