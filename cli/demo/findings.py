"""What a demo found, read back from the database that it filled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weald.answers.records import cluster_record

if TYPE_CHECKING:
    from weald.answers.stored_stream import StoredStream
    from weald.storage.queries.base import ObservationBlock

    from .streams import BundledStream

__all__ = ["Findings", "find", "place_of"]

BLOCK = 10_000


@dataclass(frozen=True)
class Findings:
    """Everything that the table, the picture and the page tell.

    Parameters
    ----------
    clusters : list of dict
        As ``weald clusters`` gives them, each with its ``place``.
    group_places : dict of int to str
        Of each group of clusters.
    values : float64[n, d]
    assigned : int64[n]
        Cluster of each observation.
    keys : list of str
    publications : list of dict
        ``publication``, ``seq``, ``n_clusters``, and ``n_moved``: observations whose cluster it
        changed.
    n_received, n_dead : int
    """

    clusters: list[dict[str, Any]]
    group_places: dict[int, str]
    values: NDArray[np.float64]
    assigned: NDArray[np.int64]
    keys: list[str]
    publications: list[dict[str, Any]]
    n_received: int
    n_dead: int

    def first_in(self, cluster: int) -> tuple[str, int]:
        """Return the key of a cluster's oldest member, and the publication that first showed it."""
        at = int(np.flatnonzero(self.assigned == cluster)[0])
        covering = (row["publication"] for row in self.publications if row["seq"] > at)
        return self.keys[at], next(covering)


def find(state: StoredStream, stream: BundledStream) -> Findings:
    """Read the findings of a demo that has ended."""
    reader, name = state.reader, state.stream
    blocks = list(_blocks(state))
    assigned = np.concatenate([block.cluster for block in blocks])
    keys = [str(key) for block in blocks for key in block.key]
    places = _places(stream, keys, assigned.tolist())
    status, there = reader.status(name), reader.clusters(name)
    total = state.n_clustered
    clusters = [
        {**cluster_record(state, row, total), "place": places[row.cluster]} for row in there
    ]
    group = {row.cluster: row.group for row in there}
    grouped = [group.get(each) for each in assigned.tolist()]
    moved: Counter[int] = Counter()
    for event in reader.lineage(name):
        moved[event.publication] += event.n_moved
    return Findings(
        clusters=clusters,
        group_places=_places(stream, keys, grouped),
        values=np.concatenate([block.values for block in blocks]),
        assigned=assigned,
        keys=keys,
        publications=[
            {
                "publication": row.number,
                "seq": row.seq,
                "n_clusters": row.n_clusters,
                "n_moved": moved[row.number],
            }
            for row in reader.publications(name)
        ],
        n_received=status.n_received,
        n_dead=status.n_dead,
    )


def _blocks(state: StoredStream) -> Iterable[ObservationBlock]:
    after = 0
    while (block := state.reader.observations(state.stream, after, BLOCK)) is not None:
        yield block
        after = int(block.seq[-1])


def _places(
    stream: BundledStream, keys: Sequence[str], assigned: Sequence[int | None]
) -> dict[int, str]:
    known = {str(record["id"]): stream.places(record) for record in stream.records()}
    members: dict[int, list[tuple[str, ...]]] = {}
    for key, part in zip(keys, assigned, strict=True):
        if part is not None:
            members.setdefault(part, []).append(known[key])
    return {part: place_of(names) for part, names in members.items()}


def place_of(members: Sequence[tuple[str, ...]]) -> str:
    """Return the narrowest place that most members share, or the two commonest widest ones.

    Parameters
    ----------
    members : sequence of tuples of str
        Each member's places, the narrowest first.
    """
    for level in range(max(map(len, members))):
        place, n = Counter(names[min(level, len(names) - 1)] for names in members).most_common(1)[0]
        if n * 2 > len(members):
            return place
    widest = Counter(names[-1] for names in members).most_common()
    return ", ".join(name for name, _ in widest[:2]) + (", ..." if len(widest) > 2 else "")
