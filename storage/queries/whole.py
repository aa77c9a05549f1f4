"""Questions about a stream in shards: its own rows tell of clusters, its parts have the rest.

Which clusters there are, since when, and what became of them, are rows of the whole. Who is in them
only the parts know, so that members, sizes and sums are added here, as they are at this moment.
Observations have a number within their shard, and the partition that they came in says which it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from weald.storage.commit.commit import ClusterRow, LineageRow

from .answers import ObservationRow
from .base import AsOf
from .reader import SqlReader

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
    parts : mapping of int to str
        Its shards that have begun.
    """

    def __init__(self, reader: SqlReader, whole: str, parts: Mapping[int, str]) -> None:
        vars(self).update(vars(reader))
        self._reader, self._whole, self._parts = reader, whole, list(parts.values())

    def holders(self, stream: str) -> list[str]:
        """Return the streams that have the observations of this one."""
        return self._parts if stream == self._whole else [stream]

    def _of_parts(self, ask: Callable[[str], _Told]) -> list[_Told]:
        return [ask(part) for part in self._parts]

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
        return sorted(rows, key=lambda row: (-row.n_observations, row.cluster))[:limit]

    def cluster(self, stream: str, cluster: int) -> ClusterRow | None:
        """Return one cluster, retired or not, or None if that id was never used."""
        if stream != self._whole:
            return super().cluster(stream, cluster)
        told = self._reader.cluster(stream, cluster)
        parts = self._of_parts(lambda part: self._reader.cluster(part, cluster))
        live: ClusterRow | None = None
        for row in parts:
            if row is not None and row.retired_publication is None:
                live = _added(live, row)
        return told if live is None else _as_told(live, told)

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
            self._of_parts(lambda part: self._reader.members(part, cluster, limit=limit)), limit
        )

    def newest(self, stream: str, *, limit: int) -> list[ObservationRow]:
        """Return the newest observations, newest first."""
        if stream != self._whole:
            return super().newest(stream, limit=limit)
        return _newest(self._of_parts(lambda part: self._reader.newest(part, limit=limit)), limit)

    def assignments(
        self, stream: str, keys: Iterable[str], *, as_of: AsOf | None = None, limit: int = 1
    ) -> list[ObservationRow]:
        """Return for each key its newest ``limit`` observations, with the cluster now or then."""
        if stream != self._whole:
            return super().assignments(stream, keys, as_of=as_of, limit=limit)
        asked = list(keys)
        found = self._of_parts(
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

        def ask(name: str) -> list[LineageRow]:
            return self._reader.lineage(name, since=since, cluster=cluster, limit=limit)

        between = sorted(chain(*self._of_parts(ask)), key=lambda event: event.time)
        # What began between two publications names the earlier. Clocks of machines may differ.
        events = sorted(ask(stream) + between, key=lambda event: event.publication)
        return events if limit is None else events[max(len(events) - limit, 0) :]

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
        each = math.ceil(newest / max(len(self._parts), 1))
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
