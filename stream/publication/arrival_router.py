"""Which published cluster an observation joins between two publications.

Its block is a draw: what is shown is the cluster of the block that was most probable for it. The
cluster of a block is the one that most of its members are shown in; an observation that opens a
block begins a cluster as well, and shows what is new at once. All of this follows from blocks and
clusters as they are, so it does not matter where the stream is cut, or whether it was restarted in
between.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from weald.stream.tables.atom_table import AtomTable
from weald.stream.tables.contingency import numbered, overlaps

__all__ = ["Arrivals"]

Ids = NDArray[np.int64]


def _nowhere(_arrival: int) -> int | None:
    return None


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
    step : int
        By which ids count up.

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
        step: int = 1,
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
        self._next_cluster, self._step = next_cluster, step
        self._pinned: set[int] = set()

    @classmethod
    def settled(
        cls, slots: Ids, atom_table: AtomTable, next_cluster: int, step: int = 1
    ) -> "Arrivals":
        """Where the blocks' arrivals go, by the block slot of every atom by its id (n)."""
        present = atom_table.present
        clusters, sizes = atom_table.cluster[present], atom_table.size[present]
        return cls(slots[present], clusters, next_cluster, sizes, step)

    def pin(self, homes: Mapping[int, int]) -> None:
        """Have arrivals in these blocks join these clusters, whatever most of a block is in."""
        self.homes |= homes
        self._pinned |= set(homes)

    def place(
        self, slots: Ids, likeliest: Ids, elsewhere: Callable[[int], int | None] = _nowhere
    ) -> tuple[Ids, list[int]]:
        """Assign arrivals, in order.

        Parameters
        ----------
        slots : ndarray of int64, shape (n,)
            Block slot that each was drawn into.
        likeliest : ndarray of int64, shape (n,)
            Slot of the block that was most probable for each, -1 for a new one.
        elsewhere : callable, optional
            Cluster, if any, in which one that opens a block is shown, by its index: one that is
            known although none of these observations are in it.

        Returns
        -------
        ndarray of int64, shape (n,)
        list of int
            Indices of the arrivals with which a cluster was born.
        """
        clusters = np.empty(len(slots), dtype=np.int64)
        born: list[int] = []
        for i, (slot, best) in enumerate(zip(slots.tolist(), likeliest.tolist(), strict=True)):
            if slot not in self.homes:
                known = elsewhere(i)
                if known is None:
                    known = self._next_cluster
                    self._next_cluster += self._step
                    born.append(i)
                self.homes[slot] = cluster = known
            else:
                cluster = self.homes.get(best, self.homes[slot])
            members = self._members.setdefault(slot, {})
            members[cluster] = members.get(cluster, 0) + 1
            if cluster != self.homes[slot] and slot not in self._pinned:
                self.homes[slot] = _home(members)
            clusters[i] = cluster
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
        self._gone(before, clusters, sizes)
        rows = zip(after.tolist(), clusters.tolist(), sizes.tolist(), strict=True)
        for slot, cluster, size in rows:
            joined = self._members.setdefault(slot, {})
            joined[cluster] = joined.get(cluster, 0) + size
        self._settle({*before.tolist(), *after.tolist()})

    def left(self, slots: Ids, clusters: Ids, sizes: Ids) -> None:
        """Count atoms (n) in these block slots, clusters and sizes no more."""
        self._gone(slots, clusters, sizes)
        self._settle(set(slots.tolist()))

    def _gone(self, slots: Ids, clusters: Ids, sizes: Ids) -> None:
        rows = zip(slots.tolist(), clusters.tolist(), sizes.tolist(), strict=True)
        for slot, cluster, size in rows:
            members = self._members[slot]
            members[cluster] -= size
            if members[cluster] == 0:
                del members[cluster]

    def _settle(self, slots: set[int]) -> None:
        """Look where arrivals in these blocks go now."""
        for slot in slots:
            if not self._members[slot]:
                del self._members[slot]
                self.homes.pop(slot, None)
                self._pinned.discard(slot)
            elif slot not in self._pinned:
                self.homes[slot] = _home(self._members[slot])


def _home(members: dict[int, int]) -> int:
    """The largest cluster, and of equally large ones the oldest."""
    return max(members, key=lambda cluster: (members[cluster], -cluster))
