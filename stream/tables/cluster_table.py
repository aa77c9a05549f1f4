"""The published clusters' sufficient statistics, kept row by row as observations come and move."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.storage.commit.commit import ClusterRow
from weald.treecore.family.totals import add_rows, empty_totals, log_marginals
from weald.treecore.statistics.rows import Rows

from .columns import GrowingArray

__all__ = ["ClusterTable"]

Ids = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

# Against the largest sum of a column: the order of summation may differ, and what left was taken
# off.
STATISTICS_TOLERANCE = 1e-9


class ClusterTable:
    """One statistics row per live cluster, and which rows changed since they were last taken.

    Parameters
    ----------
    family : NamedTuple
        A family of `weald.treecore.family`, as the newest publication has it.
    """

    def __init__(self, family: Any) -> None:
        self.family = family
        self._totals = GrowingArray(empty_totals(family, 0))
        self._slots: dict[int, int] = {}
        self._born: dict[int, int] = {}
        self._free: list[int] = []
        self._dirty: set[int] = set()
        self._retired: list[ClusterRow] = []
        # Observations that are shown in a cluster and that the model does not hold.
        self._beside: dict[int, int] = {}
        # Such as have been handed over, until their cluster is cleared.
        self._handed_over: dict[int, int] = {}
        # Observations that have been taken off a cluster's sums since these were summed anew.
        self._taken_off: dict[int, int] = {}
        # Of which the model holds nothing any more: their rows are as they were before.
        self._emptied: set[int] = set()

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def ids(self) -> Ids:
        """Clusters that are there (k), rising."""
        return np.array(sorted(self._slots), dtype=np.int64)

    def totals(self, clusters: Ids) -> Rows:
        """Statistics (k, m) of clusters that are there."""
        return self._totals.rows[[self._slots[cluster] for cluster in clusters.tolist()]]

    def add(self, clusters: Ids, rows: Rows, publication: int) -> None:
        """Add atoms to the clusters they arrived in.

        Parameters
        ----------
        clusters : ndarray of int64, shape (n,)
            A cluster that is not known yet is born.
        rows : ndarray of float64, shape (n, m)
            Statistics of each.
        publication : int
            Number of the publication that is shown.
        """
        ids, places = np.unique(clusters, return_inverse=True)
        slots = np.array([self._slot(cluster, publication) for cluster in ids.tolist()])
        add_rows(rows, slots.astype(np.int64)[places], self._totals.rows)
        self._dirty.update(ids.tolist())

    def take_off(self, clusters: Ids, rows: Rows, *, shown: bool) -> Ids:
        """Take atoms off the clusters that they leave.

        Parameters
        ----------
        clusters : ndarray of int64, shape (n,)
        rows : ndarray of float64, shape (n, m)
            Statistics of each.
        shown : bool
            Whether the atoms stay shown there. Otherwise a cluster of which nothing is held is to
            be retired next, and has the size that it had with them.

        Returns
        -------
        ndarray of int64, shape (e,)
            The clusters of which nothing is held now, rising. Their rows stay as they were with
            these atoms, until they are retired or handed over.
        """
        ids, places = np.unique(clusters, return_inverse=True)
        slots = np.array([self._slots[cluster] for cluster in ids.tolist()], dtype=np.int64)
        counts = np.bincount(places, weights=rows[:, 0])
        empty = counts >= self._totals.rows[slots, 0]
        off = ~empty[places]
        add_rows(-rows[off], slots[places[off]], self._totals.rows)
        for cluster, n in zip(ids[~empty].tolist(), counts[~empty].tolist(), strict=True):
            self._taken_off[cluster] = self._taken_off.get(cluster, 0) + int(n)
        self._dirty.update(ids.tolist())
        if shown:
            self._emptied.update(ids[empty].tolist())
        gone: Ids = ids[empty]
        return gone

    @property
    def emptied(self) -> Ids:
        """Clusters that are shown and of which the model holds nothing, rising."""
        return np.array(sorted(self._emptied), dtype=np.int64)

    @property
    def worn(self) -> set[int]:
        """Clusters of which as much has been taken off as is left: their sums have drifted."""
        rows, slots = self._totals.rows, self._slots
        return {each for each, n in self._taken_off.items() if n >= rows[slots[each], 0]}

    @property
    def beside(self) -> tuple[Ids, Ids]:
        """Clusters in which others are shown than the model holds, rising, and how many."""
        ids = sorted(self._beside)
        return np.array(ids, dtype=np.int64), np.array([self._beside[i] for i in ids], np.int64)

    def count_beside(self, clusters: Ids) -> None:
        """Count observations that the model does not hold, each shown in one of these (n)."""
        ids, counts = np.unique(clusters, return_counts=True)
        for cluster, n in zip(ids.tolist(), counts.tolist(), strict=True):
            self._beside[cluster] = self._beside.get(cluster, 0) + n
        self._dirty.update(ids.tolist())

    def forget_beside(self) -> None:
        """Count from now on only what the model holds."""
        self._dirty.update(self._beside)
        self._beside.clear()

    def hand_over(self, clusters: Ids, heirs: Ids) -> None:
        """Show what the model does not hold of each of these clusters (k) in its heir (k).

        Those that end with it are to be cleared next.
        """
        counts = [self._beside.pop(cluster) for cluster in clusters.tolist()]
        self._handed_over = dict(zip(clusters.tolist(), counts, strict=True))
        for heir, n in zip(heirs.tolist(), counts, strict=True):
            self._beside[heir] = self._beside.get(heir, 0) + n
        self._dirty.update(clusters.tolist(), heirs.tolist())

    def clear(self, changed: Iterable[int], live: Ids, publication: int) -> list[tuple[int, int]]:
        """Forget the sums of clusters that changed, to be added anew, so that nothing drifts.

        Parameters
        ----------
        changed : iterable of int
            Clusters that lost or gained observations.
        live : ndarray of int64
            Those of them that have any; the others are retired.
        publication : int
            Number of the publication that changed them.

        Returns
        -------
        list of (int, int)
            The clusters that are retired, with the observations that each had.
        """
        live_ids = set(live.tolist())
        retired = []
        for cluster in sorted(changed):
            if cluster not in live_ids:
                retired.append((cluster, self._retire(cluster, publication)))
            else:
                slot = self._slot(cluster, publication)  # may replace the rows by longer ones
                self._totals.rows[slot] = 0.0
                self._taken_off.pop(cluster, None)
                self._emptied.discard(cluster)
        self._handed_over = {}
        return retired

    def renew(
        self, clusters: Ids, rows: Rows, shown: Iterable[ClusterRow], *, beside: bool
    ) -> None:
        """Put other clusters in place of all; none of the former counts as retired.

        Parameters
        ----------
        clusters : ndarray of int64, shape (n,)
        rows : ndarray of float64, shape (n, m)
            Statistics of each atom.
        shown : iterable of ClusterRow
            The clusters as they are shown.
        beside : bool
            Whether they are shown with observations that the model does not hold.
        """
        known = {row.cluster: row for row in shown}
        self._totals = GrowingArray(empty_totals(self.family, 0))
        self._slots, self._free, self._retired = {}, [], []
        self._beside, self._taken_off, self._emptied = {}, {}, set()
        self.add(clusters, rows, 0)
        self._born = {
            each: known[each].born_publication if each in known else 0 for each in self._slots
        }
        if beside:
            self._emptied = known.keys() - self._slots.keys()
            for cluster in self.emptied.tolist():
                slot = self._slot(cluster, known[cluster].born_publication)
                self._totals.rows[slot] = known[cluster].statistics
            totals = self._totals.rows
            held = {each: self._size(each, totals[self._slots[each]]) for each in known}
            sizes = {each: row.n_observations - held[each] for each, row in known.items()}
            self._beside = {each: n for each, n in sizes.items() if n}
        self.touch_all()

    def measure_under(self, family: Any) -> None:
        """Tell log marginals under the family with another base measure: every row changes."""
        if family is not self.family:
            self.family = family
            self.touch_all()

    def see_under(self, family: Any, clusters: Ids, rows: Rows) -> None:
        """Sum the statistics (n, m) of all atoms anew, which are of another family now.

        The clusters (n) that they are in stay those that are there, and all of them change.
        """
        self.family = family
        self._totals, self._free = GrowingArray(empty_totals(family, 0)), []
        born, self._slots, self._born, self._taken_off = self._born, {}, {}, {}
        self.add(clusters, rows, 0)
        self._born = {cluster: born[cluster] for cluster in self._slots}

    def touch_all(self) -> None:
        """Count every row as changed."""
        self._dirty = set(self._slots)

    def faults(self, clusters: Ids, rows: Rows) -> list[str]:
        """Say what does not agree with the atoms; nothing when all is well."""
        ids, places = np.unique(clusters, return_inverse=True)
        if ids.tolist() != sorted(self._slots.keys() - self._emptied):
            return ["the statistics are not those of the clusters that are shown"]
        kept = self._totals.rows[[self._slots[cluster] for cluster in ids.tolist()]]
        fresh = empty_totals(self.family, len(ids))
        add_rows(rows, places.astype(np.int64), fresh)
        scale = STATISTICS_TOLERANCE * (1.0 + np.abs(fresh).max(axis=0))
        if (kept[:, 0] != fresh[:, 0]).any() or (np.abs(kept - fresh) > scale).any():
            return ["a cluster's statistics are not the sums of its observations"]
        return []

    def take_changes(self, version: int) -> list[ClusterRow]:
        """Return the rows that changed since the last call, in order of their ids.

        Parameters
        ----------
        version : int
            Number of the commit that will carry them: it grows from one to the next.
        """
        dirty = sorted(self._dirty)
        totals = self._totals.rows[[self._slots[cluster] for cluster in dirty]]
        marginals = log_marginals(self.family, totals).tolist()
        rows = [
            _row(cluster, total, marginal, version, self._born[cluster], self._size(cluster, total))
            for cluster, total, marginal in zip(dirty, totals, marginals, strict=True)
        ]
        # One that has ended and is back is told of as it is.
        retired = [each for each in self._retired if each.cluster not in self._slots]
        ended = [replace(each, version=version) for each in retired]
        self._dirty.clear()
        self._retired.clear()
        return rows + ended

    def state(self) -> Arrays:
        """Arrays from which `restore` makes the table again."""
        ids = sorted(self._slots)
        return {
            "ids": np.array(ids, dtype=np.int64),
            "born": np.array([self._born[cluster] for cluster in ids], dtype=np.int64),
            "totals": self._totals.rows[[self._slots[cluster] for cluster in ids]],
            "beside": np.array([self._beside.get(cluster, 0) for cluster in ids], dtype=np.int64),
            "taken_off": np.array([self._taken_off.get(each, 0) for each in ids], dtype=np.int64),
            "emptied": self.emptied,
        }

    @classmethod
    def restore(cls, family: Any, state: Arrays) -> "ClusterTable":
        """Undo `state`."""
        table = cls(family)
        table._totals = GrowingArray(state["totals"])
        table._slots = {cluster: i for i, cluster in enumerate(state["ids"].tolist())}
        table._born = dict(zip(state["ids"].tolist(), state["born"].tolist(), strict=True))
        if "beside" in state:  # an earlier Weald had none
            counts = zip(state["ids"].tolist(), state["beside"].tolist(), strict=True)
            table._beside = {cluster: n for cluster, n in counts if n}
        if "emptied" in state:  # an earlier Weald let nothing leave in between
            counts = zip(state["ids"].tolist(), state["taken_off"].tolist(), strict=True)
            table._taken_off = {cluster: n for cluster, n in counts if n}
            table._emptied = set(state["emptied"].tolist())
        return table

    def _size(self, cluster: int, total: NDArray[np.float64]) -> int:
        """Observations that are shown in a cluster."""
        held = 0 if cluster in self._emptied else round(float(total[0]))
        return held + self._beside.get(cluster, 0)

    def _slot(self, cluster: int, publication: int) -> int:
        known = self._slots.get(cluster)
        if known is not None:
            return known
        if not self._free:
            self._free.append(len(self._totals))
            self._totals.extend(empty_totals(self.family, 1))
        slot = self._free.pop()
        self._totals.rows[slot] = 0.0
        self._slots[cluster] = slot
        self._born[cluster] = publication
        return slot

    def _retire(self, cluster: int, publication: int) -> int:
        slot = self._slots.pop(cluster)
        born = self._born.pop(cluster)
        total = self._totals.rows[slot].copy()
        marginal = float(log_marginals(self.family, total[np.newaxis])[0])
        size = self._size(cluster, total) + self._handed_over.get(cluster, 0)
        self._free.append(slot)
        self._dirty.discard(cluster)
        self._beside.pop(cluster, None)
        self._taken_off.pop(cluster, None)
        self._emptied.discard(cluster)
        row = _row(cluster, total, marginal, 0, born, size)
        self._retired.append(replace(row, retired_publication=publication))
        return row.n_observations


def _row(
    cluster: int,
    total: NDArray[np.float64],
    log_marginal: float,
    version: int,
    born: int,
    size: int,
) -> ClusterRow:
    return ClusterRow(
        cluster=cluster,
        n_observations=size,
        log_marginal=log_marginal,
        statistics=total,
        version=version,
        born_publication=born,
    )
