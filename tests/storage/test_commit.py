"""One batch is one transaction: written once, in full, by the one who owns the stream."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from tests.storage.batches import (
    OWNER,
    SPEC,
    STREAM,
    TOPIC,
    advance,
    batch,
    dead_letter,
    full_batch,
    observations,
    snapshot,
)
from weald.storage.commit.commit import STORED_BYTES, LeaseRow
from weald.storage.commit.log_marks import LogMark, LogReplacement
from weald.storage.errors import Fenced, InvariantBroken, StreamConflict, StreamNotFound
from weald.storage.queries.base import BatchCommit, Letters, OffsetAdvance
from weald.storage.queries.reader import SqlReader
from weald.storage.sql.schema import metadata
from weald.storage.writing.store import SqlStore


def contents(store: SqlStore) -> dict[str, list[tuple[object, ...]]]:
    """Return every row of every table."""
    with store._engine.connect() as connection:
        return {
            table.name: sorted(map(tuple, connection.execute(sa.select(table))), key=repr)
            for table in metadata.sorted_tables
        }


def test_every_part_is_written(store: SqlStore, reader: SqlReader) -> None:
    store.commit(full_batch())
    status = reader.status(STREAM)
    assert (status.n_received, status.n_inserted, status.n_duplicate, status.n_dead) == (
        13,
        10,
        2,
        1,
    )
    assert (status.n_clusters, status.publication, status.snapshot_seq) == (2, 1, 10)
    assert reader.position(STREAM).next_seq == 11
    assert reader.offsets(STREAM) == {(TOPIC, 0): 11}


@pytest.mark.parametrize("n", [1, 83, 84, 2730, 2731, 2900])
def test_as_many_are_written_whatever_goes_into_a_statement(store: SqlStore, n: int) -> None:
    """On SQLite 2,730 go into one, or 83, or one."""
    store.commit(batch(1, 1, n))
    told, given = store.observations(STREAM, 0, n + 1), observations(1, n)
    assert told is not None
    assert (told.key, told.text) == (given.key, given.text)
    for name in ("seq", "offset", "cluster", "event_time", "values"):
        np.testing.assert_array_equal(getattr(told, name), getattr(given, name))


def test_a_batch_that_comes_twice_is_written_once(store: SqlStore) -> None:
    store.commit(full_batch())
    before = contents(store)
    store.commit(full_batch())
    assert contents(store) == before


def test_another_s_batch_of_the_same_number_is_no_answer(store: SqlStore) -> None:
    store.commit(batch(1, 1, 10))
    store.claim(STREAM, "member-2", 2)
    store.commit(batch(2, 11, 5, owner="member-2", generation=2))
    with pytest.raises(Fenced):
        store.commit(batch(2, 11, 5))


def test_a_lease_is_closed_once_and_under_its_own_token(store: SqlStore) -> None:
    offered = LeaseRow(1, 0, 1, "offered", 5, 1e9, begun_seq=10, begun_publication=0)
    adopted = replace(offered, outcome="adopted", closed_at=2e9, worker="a")
    store.commit(batch(1, 1, 10, leases=[offered]))
    before = contents(store)
    for foreign in (replace(adopted, token=2), replace(adopted, number=1)):
        with pytest.raises(Fenced, match="not open"):
            store.commit(batch(2, 11, 5, leases=[foreign]))
        assert contents(store) == before
    store.commit(batch(2, 11, 5, leases=[adopted]))
    with pytest.raises(Fenced, match="not open"):
        store.commit(batch(3, 16, 5, leases=[replace(adopted, worker="b")]))
    assert store.leases(STREAM)[0].worker == "a"


def test_the_newest_snapshots_are_kept_and_those_with_a_label(store: SqlStore) -> None:
    store.commit(batch(1, 1, 10))
    labelled = replace(snapshot(1, seq=10), label="by hand")
    store.save_snapshot(STREAM, labelled, 1)
    for epoch in range(2, 7):
        first = 10 * epoch - 9
        store.commit(batch(epoch, first, 10, snapshot=snapshot(epoch, seq=first + 9)))
    assert [each.number for each in store.snapshots(STREAM)] == [6, 5, 4, 1]


def test_a_batch_without_records_comes_twice(store: SqlStore) -> None:
    idle = replace(full_batch(), offsets=[], observations=None, dead_letters=[], reassigned=[])
    store.commit(idle)
    store.commit(idle)
    assert len(store.rounds(STREAM)) == 1


def test_an_older_generation_writes_nothing(store: SqlStore) -> None:
    store.commit(batch(1, 1, 5))
    store.claim(STREAM, "member-2", 2)
    before = contents(store)
    with pytest.raises(Fenced, match="member-2"):
        store.commit(batch(2, 6, 5))
    with pytest.raises(Fenced):
        store.commit(batch(2, 6, 5, owner="member-2", generation=1))
    assert contents(store) == before


def test_an_owner_keeps_writing_through_generations(store: SqlStore) -> None:
    """A standby that joins moves the group's generation; the owner stays the owner."""
    store.commit(batch(1, 1, 5, generation=3))
    assert store.position(STREAM).generation == 3
    with pytest.raises(Fenced):
        store.commit(batch(2, 6, 5, generation=2))


def test_a_claim_under_an_older_generation_is_refused(store: SqlStore) -> None:
    store.claim(STREAM, "member-2", 7)
    with pytest.raises(Fenced, match="generation 7"):
        store.claim(STREAM, OWNER, 6)


def test_a_takeover_fences_the_one_before_whatever_its_generation(store: SqlStore) -> None:
    store.claim(STREAM, OWNER, 7)
    store.commit(batch(1, 1, 5, generation=7))
    found = store.claim(STREAM, "member-2", 1, takeover=True)
    assert (found.epoch, found.next_seq, found.offsets) == (1, 6, {(TOPIC, 0): 5})
    with pytest.raises(Fenced):
        store.commit(batch(2, 6, 5, generation=8))
    store.commit(batch(2, 6, 5, owner="member-2", generation=1))


def test_a_batch_built_on_an_older_state_is_refused(store: SqlStore) -> None:
    store.commit(batch(1, 1, 5))
    store.commit(batch(2, 6, 5))
    with pytest.raises(Fenced, match="epoch 2"):
        store.commit(batch(1, 1, 5))
    with pytest.raises(Fenced):
        store.commit(batch(4, 11, 5))


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(batch(2, 7, 5), id="gap in the numbering"),
        pytest.param(batch(2, 5, 5), id="number used before"),
        pytest.param(
            batch(2, 6, 5, observations=observations(6, 5, first_offset=3)), id="offset used before"
        ),
        pytest.param(batch(2, 6, 5, offsets=[]), id="no account"),
        pytest.param(batch(2, 6, 5, offsets=[OffsetAdvance(TOPIC, 0, 10, 7, 5)]), id="sum is off"),
        pytest.param(batch(2, 6, 5, dead_letters=[dead_letter(11)]), id="letter without account"),
        pytest.param(
            batch(2, 6, 5, offsets=[OffsetAdvance(TOPIC, 0, 4, 5, 5)]), id="offset goes back"
        ),
        pytest.param(
            batch(2, 6, 5, offsets=[advance(observations(6, 5))] * 2), id="partition twice"
        ),
        pytest.param(
            batch(2, 6, 5, observations=replace(observations(6, 5), key=[None])), id="short column"
        ),
        pytest.param(
            batch(2, 6, 5, observations=replace(observations(6, 5), seq=np.arange(5) * 2 + 6)),
            id="numbers with holes",
        ),
    ],
)
def test_a_batch_that_contradicts_writes_nothing(store: SqlStore, broken: BatchCommit) -> None:
    store.commit(batch(1, 1, 5))
    before = contents(store)
    with pytest.raises(InvariantBroken):
        store.commit(broken)
    assert contents(store) == before
    store.commit(batch(2, 6, 5))


def test_accounts_add_up_over_commits_and_partitions(store: SqlStore, reader: SqlReader) -> None:
    first, second = observations(1, 5), observations(6, 4, partition=3, first_offset=100)
    third = observations(10, 2, first_offset=5)
    store.commit(batch(1, 1, 5, offsets=[advance(first, n_duplicate=1)]))
    store.commit(
        batch(
            2,
            6,
            4,
            observations=second,
            offsets=[advance(second, n_dead=1)],
            dead_letters=[replace(dead_letter(104), partition=3)],
        )
    )
    store.commit(batch(3, 10, 2, observations=third, offsets=[advance(third)]))
    rows = [
        (
            row.partition,
            row.next_offset,
            row.n_received,
            row.n_inserted,
            row.n_duplicate,
            row.n_dead,
        )
        for row in reader.ledger(STREAM)
    ]
    assert rows == [(0, 7, 8, 7, 1, 0), (3, 105, 5, 4, 0, 1)]


def test_partitions_may_share_a_batch(store: SqlStore) -> None:
    block = replace(
        observations(1, 4),
        partition=np.array([2, 0, 2, 0], dtype=np.int32),
        offset=np.array([7, 0, 8, 1]),
    )
    offsets = [OffsetAdvance(TOPIC, 2, 9, 2, 2), OffsetAdvance(TOPIC, 0, 2, 2, 2)]
    store.commit(batch(1, 1, 4, observations=block, offsets=offsets))
    found = store.observations(STREAM, 0, 10)
    assert found is not None
    assert found.partition.tolist() == [2, 0, 2, 0]
    assert found.offset.tolist() == [7, 0, 8, 1]


def test_a_stream_is_what_it_was_made_as(store: SqlStore) -> None:
    assert store.ensure_stream(SPEC) == SPEC
    assert store.spec(STREAM) == SPEC
    with pytest.raises(StreamConflict, match="seed"):
        store.ensure_stream(replace(SPEC, seed=7))
    with pytest.raises(StreamConflict, match="family_params"):
        store.ensure_stream(replace(SPEC, family_params={"kappa": 0.02}))


def test_streams_do_not_see_each_other(store: SqlStore) -> None:
    store.ensure_stream(replace(SPEC, name="other"))
    store.claim("other", OWNER, 1)
    store.commit(full_batch())
    store.commit(replace(full_batch(), stream="other"))
    assert store.streams() == ["other", STREAM]
    assert store.status("other").n_inserted == 10
    assert len(store.lineage(STREAM)) == 2


def test_an_unknown_stream_is_named(store: SqlStore) -> None:
    with pytest.raises(StreamNotFound, match="nowhere"):
        store.status("nowhere")
    with pytest.raises(StreamNotFound, match="nowhere"):
        store.claim("nowhere", OWNER, 1)
    with pytest.raises(StreamNotFound, match="nowhere"):
        store.commit(batch(1, 1, 5, stream="nowhere"))


def test_a_dead_letter_is_decided_anew_under_its_own_offset(store: SqlStore) -> None:
    block = observations(1, 5)
    letters = [dead_letter(5), dead_letter(6), dead_letter(7)]
    store.commit(batch(1, 1, 5, offsets=[advance(block, n_dead=3)], dead_letters=letters))
    assert store.request_replay(STREAM, Letters(numbers=[1, 2])) == (2, 0)
    asked = store.replay_requests(STREAM, limit=10)
    assert [letter.offset for letter in asked] == [5, 6]
    assert store.purge_dead_letters(STREAM, Letters()) == 1
    again = batch(
        2,
        6,
        1,
        observations=observations(6, 1, first_offset=5),
        offsets=[OffsetAdvance(TOPIC, 0, 8, 0, 1, n_dead=-1)],
        taken_back=asked,
        dead_letters=[dead_letter(6, "unfit")],
    )
    for _ in range(2):
        store.commit(again)
    (row,) = store.ledger(STREAM)
    assert (row.n_received, row.n_inserted, row.n_dead, row.next_offset) == (8, 6, 2, 8)
    (left,) = store.dead_letters(STREAM)
    assert (left.offset, left.reason, left.replay_at) == (6, "unfit", None)
    assert store.replay_requests(STREAM, limit=10) == []
    with pytest.raises(InvariantBroken, match="no dead letter at offset 5"):
        store.commit(replace(again, epoch=3, observations=observations(7, 1, first_offset=5)))


def test_letters_are_selected_by_every_condition(store: SqlStore) -> None:
    block = observations(1, 5)
    letters = [
        dead_letter(5, "empty"),
        dead_letter(6, "unfit"),
        replace(dead_letter(7, "unfit"), value=b"x" * STORED_BYTES),
        replace(dead_letter(2, "unfit"), partition=3),
    ]
    offsets = [advance(block, n_dead=3), OffsetAdvance(TOPIC, 3, 3, 1, 0, n_dead=1)]
    store.commit(batch(1, 1, 5, offsets=offsets, dead_letters=letters))

    def found(**conditions: Any) -> list[int]:
        return [letter.number for letter in store.dead_letters(STREAM, Letters(**conditions))]

    assert found(reason="unfit") == [4, 3, 2]
    assert found(reason="unfit", partition=0) == [3, 2]
    assert found(received_before=2e9 + 6) == [4, 1]
    assert found(numbers=[1, 2, 99]) == [2, 1]
    assert store.request_replay(STREAM, Letters(reason="unfit", partition=0)) == (1, 1)
    assert found(requested=True) == [2]


def test_marks_of_a_log_are_kept_until_others_are_told(store: SqlStore) -> None:
    def marked(epoch: int, first_seq: int, mark: LogMark) -> None:
        block = observations(first_seq, 5)
        store.commit(batch(epoch, first_seq, 5, offsets=[replace(advance(block), mark=mark)]))

    def stored() -> LogMark:
        return store.position(STREAM).marks[TOPIC, 0]

    marked(1, 1, LogMark("an-id", 3, 4, "c0ffee"))
    assert stored() == LogMark("an-id", 3, 4, "c0ffee")
    marked(2, 6, LogMark(last_offset=9, checksum="decaf"))
    assert stored() == LogMark("an-id", 3, 9, "decaf")


def test_a_log_that_took_another_s_place_has_an_account_of_its_own(store: SqlStore) -> None:
    store.commit(batch(1, 1, 5))
    other = LogReplacement(TOPIC, 0, f"{TOPIC}~1", 2, "another id", 5e9, LogMark("new", 1))
    replaced = BatchCommit(STREAM, OWNER, 1, 2, replaced=[other])
    store.commit(replaced)
    store.commit(replaced)  # its answer was lost
    assert store.offsets(STREAM) == {(TOPIC, 0): 2, (f"{TOPIC}~1", 0): 5}
    assert store.position(STREAM).marks[TOPIC, 0] == LogMark("new", 1)
    assert store.log_decisions(STREAM) == [replace(other, mark=LogMark())]
    # Offsets that the earlier log had come again.
    block = observations(6, 5, first_offset=2)
    store.commit(batch(3, 6, 5, offsets=[advance(block)], observations=block))
    assert [row.n_inserted for row in store.ledger(STREAM)] == [5, 5]
    unknown = replace(other, partition=7)
    with pytest.raises(InvariantBroken, match=r"nothing was read of earthquakes\[7\]"):
        store.commit(BatchCommit(STREAM, OWNER, 1, 4, replaced=[unknown]))
