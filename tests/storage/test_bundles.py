"""Compacted observations in SQL: who is where, now and then, against a plain record of it all."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from tests.storage.batches import STREAM, batch, cluster_row, observations, publication
from weald.storage.queries.base import (
    AsOf,
    Bundled,
    Departure,
    Handover,
    Reassignment,
    Unbundled,
)
from weald.storage.queries.reader import SqlReader
from weald.storage.writing.store import SqlStore

N = 40
CLUSTERS = 4


def ids(numbers: list[int]) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


class Record:
    """What the tables should say, kept one observation at a time."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.cluster = dict.fromkeys(range(1, N + 1), 1)
        self.bundle: dict[int, int] = {}
        self.then: list[dict[int, int]] = []
        self._next = 1

    def of(self, bundle: int) -> list[int]:
        return sorted(seq for seq, held in self.bundle.items() if held == bundle)

    def publish(self, number: int) -> Reassignment:
        """Move some single observations and some bundles."""
        singles = [
            seq for seq in self.cluster if seq not in self.bundle and self.rng.random() < 0.3
        ]
        bundles = [b for b in sorted(set(self.bundle.values())) if self.rng.random() < 0.5]
        to = self.rng.integers(1, CLUSTERS + 1, size=len(singles) + len(bundles)).tolist()
        moved = dict(zip(singles, to, strict=False))
        carried = dict(zip(bundles, to[len(singles) :], strict=True))
        # A bundle that would go where it is does not move.
        carried = {b: c for b, c in carried.items() if self.cluster[self.of(b)[0]] != c}
        self.cluster |= moved
        for bundle, cluster in carried.items():
            self.cluster |= dict.fromkeys(self.of(bundle), cluster)
        self.then.append(dict(self.cluster))
        return Reassignment(
            number,
            ids(list(moved)),
            ids(list(moved.values())),
            ids(list(carried)),
            ids(list(carried.values())),
        )

    def compact(self, number: int) -> Bundled | None:
        """Bundle observations of one cluster, single ones and whole bundles."""
        cluster = int(self.rng.integers(1, CLUSTERS + 1))
        here = [seq for seq, c in self.cluster.items() if c == cluster]
        singles = [s for s in here if s not in self.bundle and self.rng.random() < 0.6]
        bundles = sorted({self.bundle[s] for s in here if s in self.bundle})
        bundles = [b for b in bundles if self.rng.random() < 0.6]
        if len(singles) + len(bundles) < 2:
            return None
        bundles.sort(key=lambda b: (-len(self.of(b)), b))
        bundle = bundles[0] if bundles else self._next
        self._next += not bundles
        for other in bundles[1:]:
            self.bundle |= dict.fromkeys(self.of(other), bundle)
        self.bundle |= dict.fromkeys(singles, bundle)
        n = len(self.of(bundle))
        return Bundled(bundle, cluster, number, ids(singles), tuple(bundles[1:]), n, 0.25)

    def expand(self) -> Unbundled | None:
        if not self.bundle:
            return None
        bundle = int(self.rng.choice(sorted(set(self.bundle.values()))))
        for seq in self.of(bundle):
            del self.bundle[seq]
        return Unbundled(bundle)


def test_any_history(store: SqlStore, reader: SqlReader, rng: np.random.Generator) -> None:
    record = Record(rng)
    store.commit(batch(1, 1, N, clusters=[cluster_row(c, 1) for c in range(1, CLUSTERS + 1)]))
    for number in range(1, 16):
        changes: list[object] = [record.publish(number)]
        for _ in range(3):
            change = record.expand() if rng.random() < 0.3 else record.compact(number)
            changes += [] if change is None else [change]
        told = [publication(number, N)]
        quiet: dict[str, Any] = {"offsets": [], "observations": None}
        store.commit(batch(number + 1, 1, 1, publications=told, reassigned=changes, **quiet))
        keys = [f"key-{seq}" for seq in range(1, N + 1)]
        now = {row.seq: row.cluster for row in reader.assignments(STREAM, keys)}
        assert now == record.cluster
        for bundle in set(record.bundle.values()):
            assert reader.bundled(STREAM, bundle).tolist() == record.of(bundle)
        for past, expected in enumerate(record.then, start=1):
            asked = AsOf(publication=past)
            then = {row.seq: row.cluster for row in reader.assignments(STREAM, keys, as_of=asked)}
            assert then == expected, f"publication {past} as seen after {number}"
    block = reader.observations(STREAM, 0, N)
    assert block is not None
    assert dict(zip(block.seq.tolist(), block.cluster.tolist(), strict=True)) == record.cluster
    for cluster in range(1, CLUSTERS + 1):
        members = {row.seq for row in reader.members(STREAM, cluster, limit=N)}
        assert members == {seq for seq, c in record.cluster.items() if c == cluster}
    assert record.bundle, "the history has compacted nothing"


def test_moving_a_bundle_rewrites_no_observation(store: SqlStore, reader: SqlReader) -> None:
    made = Bundled(1, 1, 1, np.arange(1, N + 1), (), N, 0.5)
    store.commit(batch(1, 1, N, clusters=[cluster_row(1, N)], reassigned=[made]))
    moved = Reassignment(2, ids([]), ids([]), ids([1]), ids([7]))
    store.commit(batch(2, 1, 1, offsets=[], observations=None, reassigned=[moved]))
    (row,) = reader.assignments(STREAM, ["key-11"])
    assert row.cluster == 7
    with store._engine.connect() as connection:
        own = connection.exec_driver_sql("SELECT DISTINCT cluster FROM observations").scalars()
        assert list(own) == [1]


def test_a_bundle_may_come_again_in_one_commit(store: SqlStore, reader: SqlReader) -> None:
    """Made, enlarged, and taken in by another: in that order."""
    changes = [
        Bundled(1, 1, 0, ids([1, 2]), (), 2, 0.1),
        Bundled(2, 1, 0, ids([3, 4, 5]), (), 3, 0.1),
        Bundled(1, 1, 0, ids([6]), (), 3, 0.2),
        Bundled(2, 1, 0, ids([7]), (1,), 7, 0.3),
    ]
    store.commit(batch(1, 1, N, reassigned=changes))
    assert reader.bundled(STREAM, 1).tolist() == []
    assert reader.bundled(STREAM, 2).tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_more_bundles_take_no_more_statements(store: SqlStore) -> None:
    told: list[str] = []

    @sa.event.listens_for(store._engine, "before_cursor_execute")
    def count(*details: Any) -> None:
        told.append(details[2])

    def statements(epoch: int, changes: list[object]) -> int:
        told.clear()
        quiet: dict[str, Any] = {"offsets": [], "observations": None}
        store.commit(batch(epoch, 1, 1, reassigned=changes, **quiet))
        return len(told)

    def made(first: int, n: int) -> list[object]:
        return [Bundled(b, 1, 0, ids([b]), (), 1, 0.1) for b in range(first, first + n)]

    def moved(publication: int, n: int) -> list[object]:
        return [
            Reassignment(publication, ids([]), ids([]), ids(list(range(1, n + 1))), ids([2] * n))
        ]

    def taken_in(first: int, n: int) -> list[object]:
        return [Bundled(30 + i, 2, 2, ids([]), (first + i,), 2, 0.1) for i in range(n)]

    store.commit(batch(1, 1, N))
    assert statements(2, made(1, 1)) == statements(3, made(2, 38))
    assert statements(4, moved(1, 1)) == statements(5, moved(2, 30))
    assert statements(6, taken_in(1, 1)) == statements(7, taken_in(2, 9))


def test_values_behind_a_bundle(store: SqlStore, reader: SqlReader) -> None:
    store.commit(batch(1, 1, N))
    values, times = reader.values_of(STREAM, ids([3, 8, 41]))
    block = reader.observations(STREAM, 0, N)
    assert block is not None
    assert values.tolist() == block.values[[2, 7]].tolist()
    assert times.tolist() == block.event_time[[2, 7]].tolist()
    assert reader.values_of(STREAM, ids([]))[0].shape[0] == 0


@pytest.mark.parametrize("seq", [[2], [1, 5, 9]])
def test_what_has_left(store: SqlStore, reader: SqlReader, seq: list[int]) -> None:
    store.commit(batch(1, 1, 10, departures=[Departure(10, ids(seq))]))
    rows = reader.assignments(STREAM, [f"key-{i}" for i in range(1, 11)])
    assert {row.seq for row in rows if row.left_seq == 10} == set(seq)
    assert all(row.cluster == 1 for row in rows)
    assert {row.seq for row in reader.members(STREAM, 1)} == set(range(1, 11)) - set(seq)


def test_what_has_left_goes_on_with_its_cluster(store: SqlStore, reader: SqlReader) -> None:
    """Each once, and those alone that had left by then: an heir hands over in the same moment."""
    passed = np.arange(1, N + 1) % 2 == 0
    block = replace(observations(1, N), cluster=ids([1 + i % 3 for i in range(N)]), passed=passed)
    store.commit(batch(1, 1, N, observations=block, departures=[Departure(N, ids([1, 2, 3]))]))
    keys = [f"key-{seq}" for seq in range(1, N + 1)]
    first = {row.seq: row.cluster for row in reader.assignments(STREAM, keys)}
    left = {row.seq: row.left_seq for row in reader.assignments(STREAM, keys)}
    assert left == {seq: N if seq <= 3 else (None if seq % 2 else seq) for seq in range(1, N + 1)}
    quiet: dict[str, Any] = {"offsets": [], "observations": None}
    late = Departure(N, ids([5]))
    told = [publication(1, N - 1), publication(2, N)]
    heirs = {1: 2, 2: 3, 3: 1}
    change = Handover(1, N - 1, ids(list(heirs)), ids(list(heirs.values())))
    back = Handover(2, N, ids([3]), ids([7]))
    store.commit(
        batch(2, 1, 1, publications=told, reassigned=[change, back], departures=[late], **quiet)
    )
    then = {
        seq: heirs[cluster] if (left[seq] or N) < N else cluster for seq, cluster in first.items()
    }
    now = {
        seq: 7 if cluster == 3 and (left[seq] is not None or seq == 5) else cluster
        for seq, cluster in then.items()
    }
    found = {row.seq: row.cluster for row in reader.assignments(STREAM, keys)}
    assert found == now
    for number, expected in ((1, then), (2, now)):
        asked = AsOf(publication=number)
        rows = reader.assignments(STREAM, keys, as_of=asked)
        covered = N - 1 if number == 1 else N
        assert {row.seq: row.cluster for row in rows} == {
            seq: cluster for seq, cluster in expected.items() if seq <= covered
        }
    assert len(set(now.values())) == 4
