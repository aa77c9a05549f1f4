"""The published partition: stable cluster ids, and the events that lead from one to the next.

A sampler's labels are slots that come and go; people need names that last. Each publication
matches the blocks of a new reference partition to the clusters shown before, by the observations
that they share: greedily from the largest overlap, one to one, and only where the overlap is more
than half of the smaller side. Matched blocks keep the id, the others get one that was never used.

Every observation whose cluster changes is counted by exactly one event:

- ``birth``, ``split``: `cluster` is new; `parents` are all clusters its observations came from,
  largest share first. It is a split when more than half of it came from one parent, which lives on.
- ``merge``: `parents` are clusters that ended with more than half of them going into `cluster`.
- ``move``: observations changed from the one parent to `cluster` without either case.
- ``retire``: `cluster` ended; nothing is counted by it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.stream.tables.contingency import Overlaps, numbered, overlaps
from weald.treecore.prior.sequential import canonical_labels

__all__ = ["Beside", "LineageEvent", "Moment", "Published", "births", "match", "publish"]

Ids = NDArray[np.int64]
Kind = Literal["birth", "split", "merge", "move", "retire"]


class Moment(NamedTuple):
    """When something happened: after which observation, and at what time (epoch seconds)."""

    seq: int
    time: float


class Beside(NamedTuple):
    """Shown beside what the model holds, and not divided by it: clusters (k), and how many in each.

    They go where most goes of what the model holds of the cluster that they follow (k): their own,
    or where it holds nothing of it, another one.
    """

    clusters: Ids
    sizes: Ids
    followed: Ids


_NONE_BESIDE = Beside(*(np.empty(0, dtype=np.int64),) * 3)


@dataclass(frozen=True)
class LineageEvent:
    """One change of the shown partition.

    Parameters
    ----------
    kind : {"birth", "split", "merge", "move", "retire"}
    publication : int
        Number of the publication that made it; for a birth between two, of the earlier one.
    seq : int
        Last observation seen by then.
    time : float
        Seconds since the epoch.
    cluster : int
    parents : tuple of int
    size : int
        Observations of `cluster` after the event; of a retired one, before it.
    n_moved : int
        Observations whose cluster the event changed to `cluster`.
    """

    kind: Kind
    publication: int
    seq: int
    time: float
    cluster: int
    parents: tuple[int, ...]
    size: int
    n_moved: int


def births(publication: int, seqs: Ids, clusters: Ids, now: float) -> list[LineageEvent]:
    """Events of clusters that began with these observations, between two publications."""
    return [
        LineageEvent("birth", publication, seq, now, cluster, (), 1, n_moved=0)
        for seq, cluster in zip(seqs.tolist(), clusters.tolist(), strict=True)
    ]


@dataclass(frozen=True)
class Published:
    """The partition that is shown.

    Parameters
    ----------
    number : int
        Publications so far.
    clusters : ndarray of int64, shape (n,)
        Cluster id of each observation, in order of arrival.
    next_cluster : int
        The id that the next new cluster gets; ids count from 1 and are never used again.
    heirs : ndarray of int64, shape (k,)
        Where each cluster's observations are shown that stood beside the others.
    step : int
        By which ids count up: the ids between are given by others.
    """

    number: int
    clusters: Ids
    next_cluster: int
    heirs: Ids = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    step: int = 1

    @classmethod
    def empty(cls) -> "Published":
        """Nothing published yet."""
        return cls(0, np.empty(0, dtype=np.int64), 1)


def publish(
    previous: Published,
    labels: NDArray[np.integer],
    moment: Moment,
    sizes: Ids | None = None,
    beside: Beside = _NONE_BESIDE,
) -> tuple[Published, list[LineageEvent], Ids]:
    """Replace the published partition by the reference partition `labels`.

    Parameters
    ----------
    previous : Published
        Arrivals since the last publication included, with the clusters they were given.
    labels : ndarray of int, shape (n,)
        Block of each observation; any distinct numbers.
    moment : Moment
    sizes : ndarray of int64, shape (n,), optional
        Observations that each row stands for, one by default.
    beside : Beside, optional
        They follow clusters that have rows; events count them, too.

    Returns
    -------
    Published
    list of LineageEvent
        In a fixed order: births and splits, merges, moves, retirements.
    ndarray of int64
        Indices of the observations whose cluster changed.
    """
    if len(labels) != len(previous.clusters):
        raise ValueError(f"{len(labels)} labels for {len(previous.clusters)} observations")
    n = len(labels)
    blocks = canonical_labels(labels)
    ids, old = numbered(previous.clusters)
    flow = overlaps(old, blocks, sizes)
    if len(beside.clusters):
        sizes = np.ones(n, dtype=np.int64) if sizes is None else sizes
        sizes = np.concatenate([sizes, beside.sizes])
        followed = _largest(flow)[np.searchsorted(ids, beside.followed)]
        blocks = np.concatenate([blocks, followed])
        ids, old = numbered(np.concatenate([previous.clusters, beside.clusters]))
        flow = overlaps(old, blocks, sizes)
    heirs = match(flow)
    new_ids = np.where(heirs >= 0, ids[heirs] if len(ids) else heirs, 0)
    unmatched = np.flatnonzero(heirs < 0)
    new_ids[unmatched] = previous.next_cluster + previous.step * np.arange(len(unmatched))
    clusters, heirs_beside = np.split(new_ids[blocks], [n])
    next_cluster = previous.next_cluster + previous.step * len(unmatched)
    published = Published(previous.number + 1, clusters, next_cluster, heirs_beside, previous.step)
    events = _EventBuilder(flow, ids, new_ids, heirs, published.number, moment).events()
    return published, events, np.flatnonzero(clusters != previous.clusters)


def _largest(flow: Overlaps) -> Ids:
    """Column with which each row shares most; of equals the first."""
    largest = np.empty(len(flow.row_size), dtype=np.int64)
    order = np.lexsort((-flow.column, flow.n))
    largest[flow.row[order]] = flow.column[order]
    return largest


def match(flow: Overlaps) -> Ids:
    """Index of the old cluster (row) that each block (column) continues, or -1.

    Greedy from the largest overlap, one to one.
    Ties go to the older cluster, then to the block that appears first, so that the answer does
    not depend on how a sampler numbers its blocks.
    """
    heirs = np.full(len(flow.column_size), -1, dtype=np.int64)
    taken = np.zeros(len(flow.row_size), dtype=bool)
    for i in np.lexsort((flow.column, flow.row, -flow.n)):
        old, block, overlap = flow.row[i], flow.column[i], flow.n[i]
        smaller = min(flow.row_size[old], flow.column_size[block])
        if heirs[block] < 0 and not taken[old] and 2 * overlap > smaller:
            heirs[block] = old
            taken[old] = True
    return heirs


@dataclass(frozen=True)
class _EventBuilder:
    flow: Overlaps
    ids: Ids
    new_ids: Ids
    heirs: Ids
    number: int
    moment: Moment

    def events(self) -> list[LineageEvent]:
        """Tell what happened, each changed observation once."""
        flow = self.flow
        survives = np.zeros(len(self.ids), dtype=bool)
        survives[self.heirs[self.heirs >= 0]] = True
        changed = self.ids[flow.row] != self.new_ids[flow.column]
        into_new = changed & (self.heirs[flow.column] < 0)
        absorbed = ~survives[flow.row] & (2 * flow.n > flow.row_size[flow.row])
        merges = changed & ~into_new & absorbed
        moves = changed & ~into_new & ~absorbed
        return [
            *(self._beginning(block) for block in np.unique(flow.column[into_new])),
            *(self._gain("merge", block, merges) for block in np.unique(flow.column[merges])),
            *(self._flowed("move", [i]) for i in np.flatnonzero(moves).tolist()),
            *(self._end(old) for old in np.flatnonzero(~survives).tolist()),
        ]

    def _beginning(self, block: int) -> LineageEvent:
        parts = np.flatnonzero(self.flow.column == block)
        largest = int(self.flow.n[parts].max())
        kind: Kind = "split" if 2 * largest > self.flow.column_size[block] else "birth"
        return self._flowed(kind, parts)

    def _gain(self, kind: Kind, block: int, selected: NDArray[np.bool_]) -> LineageEvent:
        return self._flowed(kind, np.flatnonzero(selected & (self.flow.column == block)))

    def _flowed(self, kind: Kind, parts: Sequence[int] | Ids) -> LineageEvent:
        """One event for the flows `parts`, which all lead to one block."""
        flow = self.flow
        ordered = sorted(parts, key=lambda i: (-flow.n[i], flow.row[i]))
        block = flow.column[ordered[0]]
        return self._event(
            kind,
            int(self.new_ids[block]),
            parents=tuple(int(self.ids[flow.row[i]]) for i in ordered),
            size=int(flow.column_size[block]),
            n_moved=int(sum(flow.n[i] for i in ordered)),
        )

    def _end(self, old: int) -> LineageEvent:
        size = int(self.flow.row_size[old])
        return self._event("retire", int(self.ids[old]), parents=(), size=size, n_moved=0)

    def _event(
        self, kind: Kind, cluster: int, *, parents: tuple[int, ...], size: int, n_moved: int
    ) -> LineageEvent:
        seq, time = self.moment
        return LineageEvent(kind, self.number, seq, time, cluster, parents, size, n_moved)
