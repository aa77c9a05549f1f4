"""Which published cluster an observation joins between two publications.

It joins the cluster that most members of its block have, or a new one when the block is new. The
answer for a block is settled when the interval begins, and when a refinement has moved some of its
members: arrivals can only confirm a majority, so it does not matter where the stream is cut, or
whether it was restarted in between.
"""

import numpy as np
from numpy.typing import NDArray

from weald.stream.tables.atom_table import AtomTable
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

    Attributes
    ----------
    homes : dict of int to int
        Cluster that arrivals in each block join.
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
        # Members of each block by their cluster.
        self._members: dict[int, dict[int, int]] = {slot: {} for slot in blocks.tolist()}
        columns = blocks[cells.row].tolist(), ids[cells.column].tolist(), cells.n.tolist()
        for slot, cluster, n in zip(*columns, strict=True):
            self._members[slot][cluster] = n
        self.homes = {slot: _home(members) for slot, members in self._members.items()}
        self._next_cluster = next_cluster

    @classmethod
    def settled(cls, slots: Ids, atom_table: AtomTable, next_cluster: int) -> "Arrivals":
        """Where the blocks' arrivals go, by the block slot of every atom by its id (n)."""
        present = atom_table.present
        return cls(
            slots[present], atom_table.cluster[present], next_cluster, atom_table.size[present]
        )

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
            if slot not in self.homes:
                self.homes[slot] = self._next_cluster
                self._members[slot] = {self._next_cluster: 0}
                self._next_cluster += 1
                born.append(i)
            home = self.homes[slot]
            self._members[slot][home] += 1
            clusters[i] = home
        return clusters, born

    def moved(self, moves: tuple[Ids, Ids], clusters: Ids, sizes: Ids) -> None:
        """Follow atoms from block to block: their majorities count from now on.

        Parameters
        ----------
        moves : tuple of ndarray of int64, shape (n,)
            Block slots of these atoms before and after.
        clusters, sizes : ndarray of int64, shape (n,)
            Published cluster of each, and the observations that it stands for.
        """
        before, after = moves
        rows = zip(before.tolist(), after.tolist(), clusters.tolist(), sizes.tolist(), strict=True)
        for old, new, cluster, size in rows:
            left = self._members[old]
            left[cluster] -= size
            if left[cluster] == 0:
                del left[cluster]
            joined = self._members.setdefault(new, {})
            joined[cluster] = joined.get(cluster, 0) + size
        for slot in {*before.tolist(), *after.tolist()}:
            if self._members[slot]:
                self.homes[slot] = _home(self._members[slot])
            else:
                del self._members[slot]
                self.homes.pop(slot, None)


def _home(members: dict[int, int]) -> int:
    """The largest cluster, and of equally large ones the oldest."""
    return max(members, key=lambda cluster: (members[cluster], -cluster))
