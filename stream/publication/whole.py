"""The publication of all shards of a stream, from what no draw divides.

The partition of least expected loss is searched over the items of all shards, as in fits in shards
(:mod:`weald.mcmc.sharded.shown`), and matched with the clusters that were shown before by the
observations that items have in them. So there is one space of ids: new clusters of a publication
have multiples of one more than there are shards, and the ids between are the shards' own, for
clusters that begin between two publications.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.estimate.consensus import consensus_partition, membership
from weald.mcmc.sharded.round_messages import Items, ShownItems, added
from weald.stream.tables.contingency import numbered, overlaps
from weald.treecore.prior.sequential import canonical_labels

from .certainty import MOST_UNSEEN, MOST_WORK, PERCENT, affordable
from .publication import LineageEvent, Moment, Published, publish

__all__ = ["ShownBefore", "WholePublication", "own_ids", "publication_of_items"]

Ids = NDArray[np.int64]
Matrix = NDArray[np.float64]

# A search has a table with an entry for each observation. Of more it sees shares so fine.
_FINEST = 10_000_000


def own_ids(shard: int, n_shards: int) -> tuple[int, int]:
    """First id of the clusters that begin in a shard, and by which they count up."""
    return shard + 1, n_shards + 1


class ShownBefore(NamedTuple):
    """What was shown of the whole before a publication.

    Attributes
    ----------
    publication, last_cluster:
        Number of the newest publication, and the last id that one has given; 0 for none.
    live:
        Clusters that it shows, and how many observations each had.
    """

    publication: int
    last_cluster: int
    live: Mapping[int, int]


@dataclass(frozen=True)
class WholePublication:
    """A publication of the whole.

    Attributes
    ----------
    number, n_observations : int
    shown : list of ShownItems
        What each shard is told, in order.
    events : list of LineageEvent
    clusters, sizes : ndarray of int64, shape (k,)
        That are shown from now on, rising, and the observations of each.
    probability, stability : ndarray of float64, shape (k,)
        Means over the observations of each.
    ended : dict of int to ndarray
        Clusters that are shown no more, and the statistics that each had: of one whose observations
        had all left, their number only.
    """

    number: int
    n_observations: int
    shown: list[ShownItems]
    events: list[LineageEvent]
    clusters: Ids
    sizes: Ids
    probability: Matrix
    stability: Matrix
    ended: dict[int, Matrix]

    @property
    def means(self) -> tuple[float, float]:
        """Probability and stability over all observations."""
        weight = self.sizes
        return (
            float(np.average(self.probability, weights=weight)),
            float(np.average(self.stability, weights=weight)),
        )


def publication_of_items(
    items: Sequence[Items], before: ShownBefore, now: float
) -> WholePublication | None:
    """Publish what the items of all shards, in order, support; None where there are none.

    Parameters
    ----------
    items : sequence of Items
    before : ShownBefore
    now : float
        Seconds since the epoch, written on events; it decides nothing.
    """
    size = np.concatenate([each.size for each in items])
    cluster = np.concatenate([each.cluster for each in items])
    block = np.concatenate([each.now for each in items])
    n = int(size.sum())
    if n == 0:
        return None
    draws = _compared(items, block, n)
    labels = _consensus(draws, canonical_labels(cluster), size)
    step = len(items) + 1
    previous = Published(before.publication, cluster, before.last_cluster + step, step=step)
    published, events, _ = publish(previous, labels, Moment(n, now), size)
    told = membership(draws, canonical_labels(labels), size)
    ids, place = numbered(published.clusters)
    sizes = _sums(place, size)
    ended, gone = _ended(before, items, ids)
    retired = [
        LineageEvent("retire", published.number, n, now, each, (), before.live[each], n_moved=0)
        for each in gone
    ]
    whole = _shared(published.number, cluster, block, published.clusters, size)
    return WholePublication(
        published.number,
        n,
        _parted(items, whole, published.clusters, told),
        [*events, *retired],
        ids,
        sizes,
        np.bincount(place, told[0] * size) / sizes,
        np.bincount(place, told[1] * size) / sizes,
        ended,
    )


def _compared(items: Sequence[Items], block: Ids, n: int) -> Ids:
    """Draws (t, i) that all shards have and that saw nearly all; else the blocks as they are."""
    rounds = reduce(np.intersect1d, [each.rounds for each in items])
    at = [np.searchsorted(each.rounds, rounds) for each in items]
    seen = np.sum([each.seen[place] for each, place in zip(items, at, strict=True)], axis=0)
    timely = np.flatnonzero(n - seen <= MOST_UNSEEN * n)
    names = np.concatenate(
        [each.names[place] for each, place in zip(items, at, strict=True)], axis=1
    )
    drawn = [canonical_labels(names[draw]) for draw in timely]
    blocks = canonical_labels(block)
    kept = affordable(drawn, int(blocks.max()) + 1, block.shape[0])
    return np.stack(kept or [blocks])


def _consensus(draws: Ids, shown: Ids, size: Ids) -> Ids:
    """Clusters (i) of least expected loss; losses look at shares of observations only."""
    n = int(size.sum())
    weight = size
    if n > _FINEST:
        weight = np.maximum(np.rint(size * (_FINEST / n)).astype(np.int64), 1)
    return consensus_partition(draws, "vi", [shown], weight=weight, starts=1, most_work=MOST_WORK)


def _sums(place: Ids, size: Ids) -> Ids:
    return np.bincount(place, size).astype(np.int64)


def _ended(
    before: ShownBefore, items: Sequence[Items], ids: Ids
) -> tuple[dict[int, Matrix], list[int]]:
    """Clusters that are shown no more, with what they had; those whose observations all left."""
    had = added([each.sums for each in items], items[0].sums.rows.shape[1])
    over = ~np.isin(had.names, ids)
    ended = dict(zip(had.names[over].tolist(), had.rows[over], strict=True))
    gone = np.setdiff1d(np.array(sorted(before.live), dtype=np.int64), had.names).tolist()
    return ended | {each: np.array([float(before.live[each])]) for each in gone}, gone


def _shared(number: int, cluster: Ids, block: Ids, after: Ids, size: Ids) -> ShownItems:
    """What all shards are told alike; of items nothing."""
    old, heirs = _most(cluster, after, size)
    on = np.isin(old, after)
    heirs[on] = old[on]
    nothing = np.empty(0, dtype=np.int64)
    return ShownItems(
        number, nothing, np.empty((2, 0), dtype=np.uint8), old, heirs, *_most(block, after, size)
    )


def _most(rows: Ids, columns: Ids, size: Ids) -> tuple[Ids, Ids]:
    """Distinct ``rows`` (k, rising), and the column that most of each has; of equals the least."""
    kinds, row = numbered(rows)
    names, column = numbered(columns)
    cells = overlaps(row, column, size)
    found = np.empty(kinds.shape[0], dtype=np.int64)
    order = np.lexsort((-cells.column, cells.n))
    found[cells.row[order]] = names[cells.column[order]]
    return kinds, found


def _parted(
    items: Sequence[Items], whole: ShownItems, after: Ids, told: tuple[Matrix, Matrix]
) -> list[ShownItems]:
    """What each shard is told, with what is said of its own items."""
    percent = np.rint(np.stack(told) * PERCENT).astype(np.uint8)
    ends = np.cumsum([each.size.shape[0] for each in items])[:-1]
    parts = zip(np.split(after, ends), np.split(percent, ends, axis=1), strict=True)
    return [whole._replace(clusters=own, percent=sure) for own, sure in parts]
