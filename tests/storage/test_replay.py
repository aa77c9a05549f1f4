"""Coming back after a restart: the same observations in the same order, from a whole snapshot."""

import logging
from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa

from tests.storage.batches import (
    STREAM,
    advance,
    batch,
    observations,
    publication,
    reassigned,
    same_block,
    snapshot,
)
from weald.storage.sql.schema import snapshot_pieces, snapshots
from weald.storage.writing import writer
from weald.storage.writing.store import SqlStore


def test_observations_come_back_bit_for_bit(store: SqlStore) -> None:
    block = observations(1, 300)
    block.values[0] = [np.nextafter(0.0, 1.0), -0.0, 1 / 3]
    store.commit(batch(1, 1, 300, observations=block))
    found = store.observations(STREAM, 0, 1000)
    assert found is not None
    assert same_block(found, block)
    assert found.values.tobytes() == block.values.tobytes()


def test_what_replaces_what_comes_back(store: SqlStore) -> None:
    """The number of the newest observation of a key, and what each has replaced."""
    keys = ["a", "b", None, "a", "c", "b", "a"]
    block = replace(
        observations(1, 7), key=keys, replaces=np.array([0, 0, 0, 1, 0, 2, 4], dtype=np.int64)
    )
    store.commit(batch(1, 1, 7, observations=block))
    assert store.newest_of_keys(STREAM, {"a", "b", "never"}) == {"a": 7, "b": 6}
    found, none = store.observations(STREAM, 0, 1000), store.observations(STREAM, 4, 1)
    assert found is not None
    assert none is not None
    assert found.replaces is not None
    assert found.replaces.tolist() == [0, 0, 0, 1, 0, 2, 4]
    assert none.replaces is None


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_replay_does_not_depend_on_how_it_is_cut(store: SqlStore, limit: int) -> None:
    """Nor on how the commits were: 3 commits, read in pieces of ``limit``, from the middle."""
    for epoch in range(3):
        store.commit(batch(epoch + 1, 1 + 10 * epoch, 10))
    after, seen = 4, []
    while (block := store.observations(STREAM, after, limit)) is not None:
        assert len(block) <= limit
        after = int(block.seq[-1])
        seen += block.seq.tolist()
    assert seen == list(range(5, 31))


def test_a_replayed_block_has_one_topic(store: SqlStore) -> None:
    other = observations(6, 5, topic="elsewhere", first_offset=0)
    store.commit(batch(1, 1, 5))
    store.commit(batch(2, 6, 5, observations=other, offsets=[advance(other)]))
    first = store.observations(STREAM, 0, 100)
    assert first is not None
    assert first.seq.tolist() == [1, 2, 3, 4, 5]
    second = store.observations(STREAM, 5, 100)
    assert second is not None
    assert same_block(second, other)


def test_replay_shows_the_cluster_of_now(store: SqlStore) -> None:
    moves = [reassigned(1, {2: 9})]
    store.commit(batch(1, 1, 3, publications=[publication(1, 3)], reassigned=moves))
    found = store.observations(STREAM, 0, 10)
    assert found is not None
    assert found.cluster.tolist() == [1, 9, 1]


def test_the_newest_snapshots_are_kept(store: SqlStore) -> None:
    assert store.newest_snapshot(STREAM) is None
    for number in range(1, 6):
        seq = 2 * number
        store.commit(batch(number, seq - 1, 2, snapshot=snapshot(number, seq)))
    assert [info.number for info in store.snapshots(STREAM)] == [5, 4, 3]
    assert store.snapshot_bytes(STREAM) == store.snapshots(STREAM)[0].n_bytes > 0
    newest = store.newest_snapshot(STREAM)
    assert newest is not None
    assert (newest.number, newest.seq, newest.created_at) == (5, 10, snapshot(5, 10).created_at)
    for name, array in snapshot(5, 10).payload.items():
        np.testing.assert_array_equal(newest.payload[name], array, strict=True)


def test_a_damaged_snapshot_falls_back_to_the_one_before(
    store: SqlStore, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (1, 2):
        store.commit(batch(number, number, 1, snapshot=snapshot(number, number)))
    damage(store, 2)
    with caplog.at_level(logging.WARNING, "weald.storage"):
        found = store.newest_snapshot(STREAM)
    assert found is not None
    assert found.number == 1
    assert "snapshot 2" in caplog.text
    damage(store, 1)
    assert store.newest_snapshot(STREAM) is None


def test_snapshots_can_be_forgotten(store: SqlStore) -> None:
    for number in (1, 2):
        store.commit(batch(number, number, 1, snapshot=snapshot(number, number)))
    store.delete_snapshots(STREAM, [2])
    assert [info.number for info in store.snapshots(STREAM)] == [1]


def test_snapshots_of_one_stream_leave_the_others_alone(store: SqlStore) -> None:
    store.ensure_stream(replace(store.spec(STREAM), name="other"))
    store.claim("other", "member-1", 1)
    store.commit(batch(1, 1, 1, stream="other", snapshot=snapshot(1, 1)))
    for number in range(1, 6):
        store.commit(batch(number, number, 1, snapshot=snapshot(number, number)))
    assert [info.number for info in store.snapshots("other")] == [1]


def test_a_snapshot_that_no_row_could_hold_is_kept_in_pieces(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PIECE_BYTES", 100)
    for number in range(1, 6):
        store.commit(batch(number, number, 1, snapshot=snapshot(number, number)))
    infos = store.snapshots(STREAM)
    assert [info.number for info in infos] == [5, 4, 3]
    assert pieces_of(store) == [(info.number, -(-info.n_bytes // 100) - 1) for info in infos[::-1]]
    found = store.newest_snapshot(STREAM)
    assert found is not None
    for name, array in snapshot(5, 5).payload.items():
        assert found.payload[name].tobytes() == array.tobytes()
    same = store.snapshot(STREAM, 4)
    assert same is not None
    assert same.payload.keys() == found.payload.keys()
    # Without one of its pieces it is no snapshot.
    with store._writing() as connection:
        lost = (snapshot_pieces.c.number == 5, snapshot_pieces.c.piece == 1)
        connection.execute(sa.delete(snapshot_pieces).where(*lost))
    found = store.newest_snapshot(STREAM)
    assert found is not None
    assert found.number == 4
    store.delete_snapshots(STREAM, [3, 4, 5])
    assert pieces_of(store) == []


def pieces_of(store: SqlStore) -> list[tuple[int, int]]:
    """Of each snapshot that has pieces its number, and how many."""
    number = snapshot_pieces.c.number
    statement = sa.select(number, sa.func.count()).group_by(number).order_by(number)
    with store._writing() as connection:
        return [(row[0], row[1]) for row in connection.execute(statement)]


def damage(store: SqlStore, number: int) -> None:
    """Flip one bit in the middle of a stored snapshot."""
    where = snapshots.c.number == number
    with store._writing() as connection:
        stored = connection.execute(sa.select(snapshots.c.payload).where(where)).scalar_one()
        payload = bytearray(stored)
        payload[len(payload) // 2] ^= 1
        connection.execute(sa.update(snapshots).where(where).values(payload=bytes(payload)))
