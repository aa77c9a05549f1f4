"""Questions about a stream in shards: its own rows tell of clusters, its parts have the rest.

Which clusters there are, since when, and what became of them, are rows of the whole. Who is in them
only the parts know, so that members, sizes and sums are added here, as they are at this moment.
Shards number their observations each for itself: of the whole, numbers go round the shards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from weald.storage.commit.commit import ClusterRow, LineageRow, ObservationBlock

from .answers import MembershipCertainty, ObservationRow, StreamPosition
from .base import AsOf
from .reader import SqlReader
from .whole_numbers import WholeNumbers, merged

__all__ = ["WholeReader"]

_Told = TypeVar("_Told")


class WholeReader(SqlReader):
    """A reader that answers for a stream in shards as for one in one piece.

    Parameters
    ----------
    reader : SqlReader
        Whose connections it shares.
    whole : str
        Name of the stream; of others it tells what the reader tells.
    """

    def __init__(self, reader: SqlReader, whole: str) -> None:
        vars(self).update(vars(reader))
        self._reader, self._whole = reader, whole
        self._numbers = WholeNumbers(reader.spec(whole).shards)
        self._known: dict[int, str] = {}

    @property
    def _shards(self) -> dict[int, str]:
        """Shards that have begun: some may do so while somebody goes on asking."""
        if len(self._known) < self._numbers.n_shards:
            self._known = self._reader.parts(self._whole)
        return self._known

    def _of_parts(self, ask: Callable[[str], _Told]) -> list[_Told]:
        return [ask(part) for part in self._shards.values()]

    def _observed(self, ask: Callable[[str], list[ObservationRow]]) -> list[list[ObservationRow]]:
        """Observations that parts tell, with their numbers in the whole."""
        return [
            [self._numbers.of_row(shard, row) for row in ask(part)]
            for shard, part in self._shards.items()
        ]

    def position(self, stream: str) -> StreamPosition:
        """Return where the stream stands; its epoch counts the commits of all shards."""
        found = super().position(stream)
        if stream != self._whole:
            return found
        parts = {shard: self._reader.position(part) for shard, part in self._shards.items()}
        ends = [self._numbers.of(shard, each.next_seq - 1) for shard, each in parts.items()]
        return replace(
            found,
            epoch=found.epoch + sum(each.epoch for each in parts.values()),
            next_seq=max([0, *ends]) + 1,
            offsets=dict(chain(*(each.offsets.items() for each in parts.values()))),
        )

    def observations(self, stream: str, after_seq: int, limit: int) -> ObservationBlock | None:
        """Return the next observations after ``after_seq``, in the order of their numbers."""
        if stream != self._whole:
            return super().observations(stream, after_seq, limit)
        found = []
        # Numbers go round, so that of the next ones about as many are each shard's.
        each = math.ceil(limit / self._numbers.n_shards)
        for shard, part in self._shards.items():
            after = self._numbers.below(shard, after_seq)
            block = self._reader.observations(part, after, each)
            if block is not None:
                found.append(self._numbers.of_block(shard, block))
        return merged(found, limit)

    def observed(self, stream: str, seqs: Sequence[int]) -> list[ObservationRow]:
        """Return the observations with these numbers, oldest first."""
        if stream != self._whole:
            return super().observed(stream, seqs)
        asked, shards = self._numbers.by_shard(seqs), self._shards
        rows = [
            self._numbers.of_row(shard, row)
            for shard, own in asked.items()
            if shard in shards
            for row in self._reader.observed(shards[shard], own)
        ]
        return sorted(rows, key=lambda row: row.seq)

    def certainty(self, stream: str, seqs: Iterable[int]) -> dict[int, MembershipCertainty]:
        """Return how sure the newest publication is of these observations, by number."""
        if stream != self._whole:
            return super().certainty(stream, seqs)
        shards = self._shards
        return {
            self._numbers.of(shard, seq): sure
            for shard, own in self._numbers.by_shard(seqs).items()
            if shard in shards
            for seq, sure in self._reader.certainty(shards[shard], own).items()
        }

    def changes(self, stream: str, *, after: int = 0) -> NDArray[np.int64]:
        """Return publication, number, old and new cluster, int64[n, 4], of each change."""
        if stream != self._whole:
            return super().changes(stream, after=after)
        found = [np.empty((0, 4), dtype=np.int64)]
        for shard, part in self._shards.items():
            own = self._reader.changes(part, after=after)
            own[:, 1] = self._numbers.of(shard, own[:, 1])
            found.append(own)
        rows = np.concatenate(found)
        return rows[np.argsort(rows[:, 0], kind="stable")]

    def first_publication(self, stream: str, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the first publication that saw each observation, by shard."""
        if stream != self._whole:
            return super().first_publication(stream, seqs)
        found = np.empty(seqs.shape, dtype=np.int64)
        for shard, part in self._shards.items():
            here = self._numbers.shard_of(seqs) == shard
            own = self._numbers.within(seqs[here])
            found[here] = self._reader.first_publication(part, own)
        return found

    def clusters(
        self, stream: str, *, include_retired: bool = False, limit: int | None = None
    ) -> list[ClusterRow]:
        """Return the clusters, largest first; log marginals of those of the whole are NaN."""
        if stream != self._whole:
            return super().clusters(stream, include_retired=include_retired, limit=limit)
        told = {row.cluster: row for row in self._reader.clusters(stream, include_retired=True)}
        live: dict[int, ClusterRow] = {}
        for row in chain(*self._of_parts(self._reader.clusters)):
            live[row.cluster] = _added(live.get(row.cluster), row)
        rows = [_as_told(row, told.get(row.cluster)) for row in live.values()]
        if include_retired:
            ended = [row for row in told.values() if row.cluster not in live]
            rows += [row for row in ended if row.retired_publication is not None]
            rows += self._ended_between({*told, *live}).values()
        return sorted(rows, key=lambda row: (-row.n_observations, row.cluster))[:limit]

    def cluster(self, stream: str, cluster: int) -> ClusterRow | None:
        """Return one cluster, retired or not, or None if that id was never used."""
        if stream != self._whole:
            return super().cluster(stream, cluster)
        told = self._reader.cluster(stream, cluster)
        parts = self._of_parts(lambda part: self._reader.cluster(part, cluster))
        live: ClusterRow | None = None
        ended: ClusterRow | None = None
        for row in parts:
            if row is not None and row.retired_publication is None:
                live = _added(live, row)
            elif row is not None:
                ended = _added(ended, row)
        if live is None and told is None:
            return None if ended is None else _as_told(ended, None)
        return told if live is None else _as_told(live, told)

    def _ended_between(self, known: set[int]) -> dict[int, ClusterRow]:
        """Clusters that began and ended in shards between two publications, which tell of none."""
        found: dict[int, ClusterRow] = {}
        for part in self._shards.values():
            for row in self._reader.clusters(part, include_retired=True):
                if row.cluster not in known:
                    found[row.cluster] = _added(found.get(row.cluster), row)
        return {cluster: _as_told(row, None) for cluster, row in found.items()}

    def cluster_ids(self, stream: str) -> list[int]:
        """Return the ids of the clusters that are shown, largest first."""
        if stream != self._whole:
            return super().cluster_ids(stream)
        return [row.cluster for row in self.clusters(stream)]

    def members(self, stream: str, cluster: int, *, limit: int = 20) -> list[ObservationRow]:
        """Return the newest observations that the cluster has now."""
        if stream != self._whole:
            return super().members(stream, cluster, limit=limit)
        return _newest(
            self._observed(lambda part: self._reader.members(part, cluster, limit=limit)), limit
        )

    def member_values(self, stream: str, cluster: int) -> NDArray[np.float64] | None:
        """Return the values (n, d) of all observations that the cluster has now; None of none."""
        if stream != self._whole:
            return super().member_values(stream, cluster)
        told = self._of_parts(lambda part: self._reader.member_values(part, cluster))
        found = [values for values in told if values is not None]
        return np.concatenate(found) if found else None

    def newest(self, stream: str, *, limit: int) -> list[ObservationRow]:
        """Return the newest observations, newest first."""
        if stream != self._whole:
            return super().newest(stream, limit=limit)
        return _newest(self._observed(lambda part: self._reader.newest(part, limit=limit)), limit)

    def assignments(
        self, stream: str, keys: Iterable[str], *, as_of: AsOf | None = None, limit: int = 1
    ) -> list[ObservationRow]:
        """Return for each key its newest ``limit`` observations, with the cluster now or then."""
        if stream != self._whole:
            return super().assignments(stream, keys, as_of=as_of, limit=limit)
        asked = list(keys)
        found = self._observed(
            lambda part: self._reader.assignments(part, asked, as_of=as_of, limit=limit)
        )
        rows = []
        for key in asked:
            own = [[row for row in part if row.key == key] for part in found]
            rows += _newest(own, limit)
        return rows

    def lineage(
        self,
        stream: str,
        *,
        since: float | None = None,
        cluster: int | None = None,
        limit: int | None = None,
    ) -> list[LineageRow]:
        """Return lineage events in order, with the clusters that began in a shard between two."""
        if stream != self._whole:
            return super().lineage(stream, since=since, cluster=cluster, limit=limit)

        own, *parts = self._lineages(since=since, cluster=cluster, limit=limit)
        between = sorted(chain(*parts), key=lambda event: event.time)
        # What began between two publications names the earlier. Clocks of machines may differ.
        events = sorted(own + between, key=lambda event: event.publication)
        return events if limit is None else events[max(len(events) - limit, 0) :]

    def lineages(self, stream: str) -> list[list[LineageRow]]:
        """Return the events of the whole, and those of each shard: each list only grows.

        One that has not begun has none.
        """
        return super().lineages(stream) if stream != self._whole else self._lineages()

    def _lineages(
        self, *, since: float | None = None, cluster: int | None = None, limit: int | None = None
    ) -> list[list[LineageRow]]:
        def ask(name: str) -> list[LineageRow]:
            return self._reader.lineage(name, since=since, cluster=cluster, limit=limit)

        found: list[list[LineageRow]] = [[] for _ in range(self._numbers.n_shards)]
        for shard, part in self._shards.items():
            found[shard] = [
                replace(event, seq=self._numbers.of(shard, event.seq)) for event in ask(part)
            ]
        return [ask(self._whole), *found]

    def births(self, stream: str) -> dict[int, float]:
        """Return when each cluster was first told of, seconds since 1970."""
        if stream != self._whole:
            return super().births(stream)
        found = self._reader.births(stream)
        for cluster, time in chain(*(each.items() for each in self._of_parts(self._reader.births))):
            found[cluster] = min(found.get(cluster, time), time)
        return found

    def arrivals(self, stream: str, *, newest: int) -> dict[int, int]:
        """Return how many of about the ``newest`` observations each cluster has now."""
        if stream != self._whole:
            return super().arrivals(stream, newest=newest)
        each = math.ceil(newest / max(len(self._shards), 1))
        found: dict[int, int] = {}
        for told in self._of_parts(lambda part: self._reader.arrivals(part, newest=each)):
            for cluster, n in told.items():
                found[cluster] = found.get(cluster, 0) + n
        return found

    def keys_like(self, stream: str, start: str, *, limit: int) -> list[str]:
        """Return keys of records that begin with ``start``, in order."""
        if stream != self._whole:
            return super().keys_like(stream, start, limit=limit)
        found = self._of_parts(lambda part: self._reader.keys_like(part, start, limit=limit))
        return sorted(set(chain(*found)))[:limit]


def _added(known: ClusterRow | None, row: ClusterRow) -> ClusterRow:
    """What two shards have of a cluster, together."""
    if known is None:
        return replace(row, log_marginal=math.nan)
    return replace(
        known,
        n_observations=known.n_observations + row.n_observations,
        statistics=known.statistics + row.statistics,
        version=max(known.version, row.version),
        born_publication=min(known.born_publication, row.born_publication),
    )


def _as_told(row: ClusterRow, told: ClusterRow | None) -> ClusterRow:
    """The cluster, of which the newest publication of the whole may have told already."""
    if told is None:
        return replace(row, probability=None, stability=None)
    return replace(
        row,
        born_publication=told.born_publication,
        probability=told.probability,
        stability=told.stability,
        group=told.group,
        group_born=told.group_born,
    )


def _newest(found: Sequence[Sequence[ObservationRow]], limit: int) -> list[ObservationRow]:
    """The newest observations of several shards."""
    rows = sorted(chain(*found), key=lambda row: (row.received_at, row.seq), reverse=True)
    return rows[:limit]
