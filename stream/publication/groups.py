"""Groups of the published clusters, which keep their names.

The tree that joins clusters by the valleys of density between them is cut at each publication. A
group goes on under its name while most observations of it, or of what it has become, are the same:
as clusters do. The valleys between two clusters are looked for again once a quarter of either has
come, gone or moved, so that a publication costs what changed.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.estimate.groups import group_tree_of_rows
from weald.mcmc.estimate.valleys import members_of
from weald.storage.commit.commit import ClusterRow
from weald.stream.tables.contingency import numbered, overlaps, places_in

from .publication import match

__all__ = ["MEMBERS", "Clustered", "PublishedGroups"]

Ids = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

# Members of a cluster that are looked at.
MEMBERS = 100
_CHANGED = 0.25
# What versions before called otherwise was looked for by another rule.
_SAVED_AS = "valleys-2"
# Draws whose groups are compared with those that are shown, and the most clusters that one may
# have to be: the valleys of all its pairs are looked for.
_DRAWS = 4
_MOST_CLUSTERS = 200


class Clustered(Protocol):
    """Atoms and the clusters that they are in, as an `AtomTable` has them."""

    @property
    def present(self) -> Ids:
        """Ids of the atoms that are there."""

    @property
    def cluster(self) -> Ids:
        """Cluster of each atom, by its id."""

    @property
    def size(self) -> Ids:
        """How many observations each stands for, by its id."""


class PublishedGroups:
    """Group of each published cluster, and the valleys from which they were told.

    Attributes
    ----------
    cluster : ndarray of int64, shape (k,)
        The clusters of the newest publication, rising.
    group : ndarray of int64, shape (k,)
        Group of each; names count from 1 and are never used again.
    born : ndarray of int64, shape (k,)
        The first publication that told of that group; 0 where it was not kept.
    """

    def __init__(self) -> None:
        self.cluster: Ids = np.empty(0, dtype=np.int64)
        self.group: Ids = np.empty(0, dtype=np.int64)
        self.born: Ids = np.empty(0, dtype=np.int64)
        self._size: Ids = np.empty(0, dtype=np.int64)
        # Observations that have come, gone or moved since a cluster's valleys were looked for.
        self._change = np.empty(0)
        self._valleys = np.empty((0, 0))
        self._next = 1

    def publish(
        self,
        publication: int,
        family: Any,
        atom_table: Clustered,
        rows_of: Callable[[Ids], NDArray[np.float64]],
        moved: Ids,
    ) -> None:
        """Tell the groups of the clusters that the table's atoms are in now.

        Parameters
        ----------
        publication : int
            Its number.
        family : NamedTuple
        atom_table : Clustered
        rows_of : callable
            Statistics (n, m) of atoms (n).
        moved : ndarray of int64
            Clusters that each observation that was moved left, and those that it went to.
        """
        atoms = atom_table.present
        ids, place = numbered(atom_table.cluster[atoms])
        if len(ids) == 0:
            self.cluster, self.group, self.born = ids, ids, ids
            self._size, self._change = ids, np.empty(0)
            self._valleys = np.empty((0, 0))
            return
        size = np.bincount(place, weights=atom_table.size[atoms]).astype(np.int64)
        known = self._carry_over(ids, size, moved)
        members, owner = members_of(place, np.arange(len(ids)), MEMBERS)
        rows = rows_of(atoms[members])
        tree, self._valleys = group_tree_of_rows(family, rows, owner, size, known)
        self.group, self.born = self._named(tree.cut(), size, publication)

    def agreement(
        self,
        family: Any,
        atom_table: Clustered,
        rows_of: Callable[[Ids], NDArray[np.float64]],
        draws: Sequence[NDArray[np.int32]],
    ) -> float | None:
        """Mean adjusted Rand index of the groups that are shown and those that draws make.

        As fits are judged. None where no draw can be asked.

        Parameters
        ----------
        family : NamedTuple
        atom_table : Clustered
            Its atoms are in the clusters of the newest publication.
        rows_of : callable
            Statistics (n, m) of atoms (n).
        draws : sequence of ndarray of int32
            Block of every atom by its id, -1 for one that a draw has not seen.
        """
        found = []
        for at in np.unique(np.linspace(0, len(draws) - 1, min(_DRAWS, len(draws))).astype(int)):
            atoms = atom_table.present
            atoms = atoms[atoms < len(draws[at])]
            atoms = atoms[draws[at][atoms] >= 0]
            blocks, place = numbered(draws[at][atoms])
            if not 0 < len(blocks) <= _MOST_CLUSTERS:
                continue
            size = np.bincount(place, weights=atom_table.size[atoms]).astype(np.int64)
            members, owner = members_of(place, np.arange(len(blocks)), MEMBERS)
            tree, _ = group_tree_of_rows(family, rows_of(atoms[members]), owner, size)
            clusters, own = numbered(atom_table.cluster[atoms])
            shown = self.group[np.searchsorted(self.cluster, clusters)][own]
            found.append(adjusted_rand_index(tree.cut()[place], shown))
        return float(np.mean(found)) if found else None

    @property
    def next_group(self) -> int:
        """What the next new group is called."""
        return self._next

    def adopt(self, shown: Sequence[ClusterRow], next_group: int = 1) -> None:
        """Go on from the groups of these clusters, which SQL shows, instead of its own.

        New ones are called ``next_group`` or later.
        """
        told = [row for row in shown if row.group is not None]
        rows = sorted(told, key=lambda row: row.cluster)
        self.cluster = np.array([row.cluster for row in rows], dtype=np.int64)
        self.group = np.array([row.group for row in rows], dtype=np.int64)
        self.born = np.array([row.group_born or 0 for row in rows], dtype=np.int64)
        self._size = np.array([row.n_observations for row in rows], dtype=np.int64)
        self._change = np.zeros(len(rows))
        self._valleys = np.full((len(rows), len(rows)), np.nan)
        self._next = max(self._next, next_group, int(self.group.max(initial=0)) + 1)

    def forget_valleys(self) -> None:
        """Look for all valleys anew at the next publication; the groups keep their names."""
        self._valleys = np.full_like(self._valleys, np.nan)

    def state(self) -> Arrays:
        """Arrays from which `restore` goes on."""
        return {
            "cluster": self.cluster,
            "group": self.group,
            "born": self.born,
            "size": self._size,
            "change": self._change,
            _SAVED_AS: self._valleys,
            "next": np.array([self._next]),
        }

    @classmethod
    def restore(cls, state: Arrays) -> "PublishedGroups":
        """Undo `state`; nothing where a stream was saved before there were groups."""
        groups = cls()
        if state:
            groups.cluster, groups.group = state["cluster"], state["group"]
            groups._size, groups._change = state["size"], state["change"]
            groups.born = state.get("born", np.zeros_like(groups.group))
            groups._next = int(state["next"][0])
            groups._valleys = state.get(_SAVED_AS, np.full((len(groups.cluster),) * 2, np.nan))
        return groups

    def _carry_over(self, ids: Ids, size: Ids, moved: Ids) -> NDArray[np.float64]:
        """Go on with these clusters; returns the valleys (k, k) that still hold, else NaN."""
        k = len(ids)
        before = places_in(self.cluster, ids)
        old = np.flatnonzero(before >= 0)
        at = before[old]
        change = size.astype(np.float64)
        group, born = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
        known = np.full((k, k), np.nan)
        known[np.ix_(old, old)] = self._valleys[np.ix_(at, at)]
        group[old], born[old] = self.group[at], self.born[at]
        here = moved[np.isin(moved, ids)]
        change[old] = self._change[at] + np.abs(size[old] - self._size[at])
        change += np.bincount(np.searchsorted(ids, here), minlength=k)
        again = change > _CHANGED * size
        known[again] = known[:, again] = np.nan
        change[again] = 0.0
        self.cluster, self.group, self.born = ids, group, born
        self._size, self._change = size, change
        return known

    def _named(self, labels: Ids, size: Ids, publication: int) -> tuple[Ids, Ids]:
        """Names of new groups (k, numbered from 0), and when they were born.

        By the clusters whose group was known; others are born now.
        """
        n_groups = int(labels.max()) + 1
        names = np.zeros(n_groups, dtype=np.int64)
        born = np.full(n_groups, publication)
        told = np.flatnonzero(self.group > 0)
        if told.size:
            old, row = numbered(self.group[told])
            first = np.zeros(len(old), dtype=np.int64)
            first[row] = self.born[told]
            new, column = numbered(labels[told])
            heirs = match(overlaps(row, column, size[told]))
            kept = heirs >= 0
            names[new[kept]], born[new[kept]] = old[heirs[kept]], first[heirs[kept]]
        fresh = np.flatnonzero(names == 0)
        names[fresh] = self._next + np.arange(fresh.size)
        self._next += fresh.size
        return names[labels], born[labels]
