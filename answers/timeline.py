"""Clusters over publications as lines that fork and join: births, splits, merges, moves, ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weald.storage.queries.base import LineageRow, PublicationRow

    from .stored_stream import StoredStream

__all__ = ["Line", "Link", "Timeline", "timeline_of", "timeline_of_stream"]

# The newest publications, and the clusters that were largest in them.
MOST_PUBLICATIONS, MOST_LINES = 40, 120
# How far lines go beyond the newest publication, in publications.
TAIL = 0.6


@dataclass(frozen=True)
class Line:
    """The life of one cluster.

    Attributes
    ----------
    cluster : int
    start, end : float
        Places, counted in publications: 0 is the one before the first that is shown. One that is
        alive ends where the timeline does.
    begun, ended : bool
        Whether these are its beginning and its end.
    sizes : sequence of (float, int)
        Observations at places where they are known, in order.
    heir : int, optional
        Of one that ended, the living cluster that most of it went to, over others perhaps.
    """

    cluster: int
    start: float
    end: float
    begun: bool
    ended: bool
    sizes: Sequence[tuple[float, int]]
    heir: int | None

    @property
    def largest(self) -> int:
        """Observations that it had at most."""
        return max(size for _, size in self.sizes)


@dataclass(frozen=True)
class Link:
    """Observations that went from one cluster to another.

    Attributes
    ----------
    kind : {"birth", "split", "merge", "move"}
    place : float
    source, target : int
    n : int
        How many went, from this source and from others of the same event.
    """

    kind: str
    place: float
    source: int
    target: int
    n: int


@dataclass(frozen=True)
class Timeline:
    """Lines, largest first, and the links between them.

    Attributes
    ----------
    publications : sequence of PublicationRow
        Those that are shown; the first is at place 1.
    end : float
        Place at which it ends.
    lines : sequence of Line
    links : sequence of Link
    n_left_out : int
        Smaller clusters that are not among the lines.
    reached : mapping of int to float
        By number of the publication, the newest time (epoch seconds) that the records until then
        told, where they tell any.
    """

    publications: Sequence[PublicationRow]
    end: float
    lines: Sequence[Line]
    links: Sequence[Link]
    n_left_out: int
    reached: Mapping[int, float] = field(default_factory=dict)

    @property
    def moments(self) -> dict[int, float]:
        """When publications were that are shown: in the data, where records tell a time."""
        clock = {each.number: each.time for each in self.publications}
        found = self.reached if self.is_by_data else clock
        return {number: found[number] for number in clock if isfinite(found.get(number, nan))}

    @property
    def is_by_data(self) -> bool:
        """Whether these are times that records told, and not of the clock."""
        return any(isfinite(self.reached.get(each.number, nan)) for each in self.publications)


def timeline_of_stream(stored: StoredStream) -> Timeline | None:
    """Return the timeline of a stream's newest publications; None before the first."""
    reader, stream = stored.reader, stored.stream
    publications = reader.publications(stream)
    if not publications:
        return None
    before = publications[:-MOST_PUBLICATIONS]
    events = reader.lineage(stream, since=before[-1].time if before else None)
    sizes = {each.cluster: each.n_observations for each in reader.clusters(stream)}
    return timeline_of(publications, events, sizes)


def timeline_of(
    publications: Sequence[PublicationRow],
    events: Sequence[LineageRow],
    sizes: Mapping[int, int],
) -> Timeline:
    """Return the timeline of the newest of these publications.

    Parameters
    ----------
    publications : sequence of PublicationRow
        At least one, oldest first.
    events : sequence of LineageRow
        In order; at least all since the publication before the first that is shown.
    sizes : mapping of int to int
        Observations of each living cluster.
    """
    shown = publications[-MOST_PUBLICATIONS:]
    places = _Places(publications, len(shown), events)
    told = [(places.of(event), event) for event in events]
    told = [(place, event) for place, event in told if place >= 0.0]
    lines = _lines(told, sizes, places.end)
    # What begins and ends between the same two publications is no line.
    ranked = sorted(lines, key=lambda line: (-line.largest, line.cluster))
    kept = ranked[:MOST_LINES]
    ids = {line.cluster for line in kept}
    links = [
        Link(event.kind, place, source, event.cluster, event.n_moved)
        for place, event in told
        for source in event.parents
        if {source, event.cluster} <= ids and source != event.cluster
    ]
    return Timeline(shown, places.end, kept, links, len(ranked) - len(kept))


class _Places:
    """Where events lie: at their publication, or between two by the number of observations."""

    def __init__(
        self,
        publications: Sequence[PublicationRow],
        n_shown: int,
        events: Sequence[LineageRow],
    ) -> None:
        self._zero = publications[-n_shown].number - 1
        self._seq = {each.number: each.seq for each in publications}
        self._last = publications[-1].number
        newest = max((event.seq for event in events), default=0)
        # Beyond the newest publication there is no next one to measure by.
        self._seq[self._last + 1] = max(newest, self._seq[self._last]) + 1
        self.end = self._last - self._zero + TAIL

    def of(self, event: LineageRow) -> float:
        place = float(event.publication - self._zero)
        if event.kind != "birth" or event.parents:
            return place
        low = self._seq.get(event.publication, 0)
        high = self._seq.get(event.publication + 1, low + 1)
        share = min(max((event.seq - low) / max(high - low, 1), 0.0), 1.0)
        return place + share * (TAIL if event.publication == self._last else 1.0)


def _lines(
    told: Sequence[tuple[float, LineageRow]], sizes: Mapping[int, int], end: float
) -> list[Line]:
    known: dict[int, list[tuple[float, int]]] = {}
    began: dict[int, float] = {}
    ended: dict[int, float] = {}
    flows: dict[int, list[tuple[float, int, int]]] = {}
    for place, event in told:
        known.setdefault(event.cluster, []).append((place, event.size))
        if event.kind in ("birth", "split"):
            began.setdefault(event.cluster, place)
        elif event.kind == "retire":
            ended[event.cluster] = place
        for source in event.parents:
            flows.setdefault(source, []).append((place, event.n_moved, event.cluster))
    for cluster, size in sizes.items():
        known.setdefault(cluster, []).append((end, size))
    alive = set(sizes)
    return [
        Line(
            cluster=cluster,
            start=began.get(cluster, 0.0),
            end=ended.get(cluster, end),
            begun=cluster in began,
            ended=cluster in ended,
            sizes=sorted(own),
            heir=None if cluster in alive else _heir(cluster, ended, flows, alive),
        )
        for cluster, own in known.items()
        if cluster in alive or cluster in ended
    ]


def _heir(
    cluster: int,
    ended: Mapping[int, float],
    flows: Mapping[int, Sequence[tuple[float, int, int]]],
    alive: set[int],
) -> int | None:
    """The living cluster that most of an ended one went to when it ended."""
    for _ in range(len(ended) + 1):
        last = [(n, -to) for place, n, to in flows.get(cluster, ()) if place == ended[cluster]]
        if not last:
            return None
        cluster = -max(last)[1]
        if cluster in alive:
            return cluster
        if cluster not in ended:
            return None
    return None
