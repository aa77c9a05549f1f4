"""What was committed is what the questions answer, on a connection that cannot write."""

import math
from dataclasses import astuple, replace

import numpy as np
import pytest

from tests.storage.batches import (
    STREAM,
    TOPIC,
    advance,
    batch,
    certainty,
    cluster_row,
    dead_letter,
    full_batch,
    lineage,
    observations,
    publication,
)
from weald.storage.commit.commit import Departure
from weald.storage.errors import AccessDenied, InvariantBroken
from weald.storage.queries.base import AsOf, Letters
from weald.storage.queries.reader import SqlReader
from weald.storage.sql.schema import streams
from weald.storage.writing.store import SqlStore


def test_status_of_a_stream_that_has_not_begun(reader: SqlReader) -> None:
    status = reader.status(STREAM)
    assert (status.epoch, status.n_received, status.n_clusters, status.publication) == (0, 0, 0, 0)
    assert status.committed_at is None
    assert status.log_joint is None
    assert status.snapshot_at is None


def test_clusters_come_largest_first_with_their_statistics(
    store: SqlStore, reader: SqlReader
) -> None:
    rows = [cluster_row(1, 2), cluster_row(2, 9), cluster_row(3, 5)]
    store.commit(batch(1, 1, 5, clusters=rows))
    assert [row.cluster for row in reader.clusters(STREAM)] == [2, 3, 1]
    assert [row.cluster for row in reader.clusters(STREAM, limit=1)] == [2]
    found = reader.cluster(STREAM, 3)
    assert found is not None
    assert found.statistics.tobytes() == rows[2].statistics.tobytes()
    assert found.statistics.flags.writeable
    assert reader.cluster(STREAM, 4) is None


def test_a_changed_cluster_replaces_the_row_before(store: SqlStore, reader: SqlReader) -> None:
    store.commit(batch(1, 1, 5, clusters=[cluster_row(1, 5), cluster_row(2, 1)]))
    store.commit(
        batch(2, 6, 5, clusters=[cluster_row(1, 9, version=2), cluster_row(2, 0, 2, retired=4)])
    )
    assert [(row.cluster, row.version) for row in reader.clusters(STREAM)] == [(1, 2)]
    every = reader.clusters(STREAM, include_retired=True)
    assert [(row.cluster, row.retired_publication) for row in every] == [(1, None), (2, 4)]
    assert reader.status(STREAM).n_clusters_retired == 1


def test_lineage_is_told_in_order_and_by_cluster(store: SqlStore, reader: SqlReader) -> None:
    events = [
        lineage("birth", 1, (), 0),
        lineage("split", 2, (1,), 1),
        lineage("merge", 4, (9, 3), 2),
        lineage("retire", 3, (), 2),
    ]
    store.commit(batch(1, 1, 5, lineage=events[:1]))
    assert reader.status(STREAM).n_moved == 0
    store.commit(batch(2, 6, 5, lineage=events[1:], publications=[publication(2, seq=10)]))
    assert reader.status(STREAM).n_moved == sum(each.n_moved for each in events[2:]) == 4
    assert reader.lineage(STREAM) == events
    assert reader.lineage(STREAM, limit=2) == events[2:]
    assert reader.lineage(STREAM, since=events[1].time) == events[1:]
    assert reader.lineage(STREAM, cluster=1) == events[:2]
    assert reader.lineage(STREAM, cluster=3) == events[2:]


def test_publications_keep_numbers_that_are_not_numbers(store: SqlStore, reader: SqlReader) -> None:
    first = replace(publication(1, 5), log_joint_before=math.nan)
    second = replace(publication(2, 10), log_joint_before=-math.inf)
    store.commit(batch(1, 1, 5, publications=[first]))
    store.commit(batch(2, 6, 5, publications=[second]))
    found = reader.publications(STREAM)
    assert math.isnan(found[0].log_joint_before)
    assert replace(found[0], log_joint_before=0.0) == replace(first, log_joint_before=0.0)
    assert found[1] == second
    assert reader.publications(STREAM, limit=1) == [second]


def test_members_are_the_newest_of_a_cluster(store: SqlStore, reader: SqlReader) -> None:
    store.commit(full_batch())
    assert [row.seq for row in reader.members(STREAM, 2)] == [5, 4]
    newest = reader.members(STREAM, 1, limit=2)
    assert [row.seq for row in newest] == [10, 9]
    assert (newest[0].topic, newest[0].partition, newest[0].offset) == (TOPIC, 0, 9)
    np.testing.assert_array_equal(newest[0].values, observations(10, 1).values[0])


def test_a_key_answers_with_its_newest_observations(store: SqlStore, reader: SqlReader) -> None:
    block = replace(observations(1, 4), key=["a", "b", "a", None])
    store.commit(batch(1, 1, 4, observations=block, offsets=[advance(block)]))
    assert [row.seq for row in reader.assignments(STREAM, ["a", "b", "missing"])] == [3, 2]
    assert [row.seq for row in reader.assignments(STREAM, ["a"], limit=5)] == [3, 1]


def test_dead_letters_keep_their_bytes_and_say_why(store: SqlStore, reader: SqlReader) -> None:
    letters = [
        dead_letter(5, "not-json", "unexpected \0 at \ud800"),
        replace(dead_letter(6, "missing-field", "no 'x'"), key=None, value=b""),
    ]
    block = observations(1, 5)
    store.commit(batch(1, 1, 5, offsets=[advance(block, n_dead=2)], dead_letters=letters))
    found = reader.dead_letters(STREAM)
    assert [row.number for row in found] == [2, 1]
    assert replace(found[0], number=0) == letters[1]
    assert replace(found[1], detail="", number=0) == replace(letters[0], detail="")
    assert found[1].detail == r"unexpected \0 at \ud800"
    assert [row.offset for row in reader.dead_letters(STREAM, Letters(reason="not-json"))] == [5]
    assert [row.offset for row in reader.dead_letters(STREAM, limit=1)] == [6]
    assert reader.dead_letter_counts(STREAM) == {"missing-field": 1, "not-json": 1}


def test_rounds_come_back(store: SqlStore, reader: SqlReader) -> None:
    made = full_batch()
    store.commit(made)
    assert list(map(astuple, reader.rounds(STREAM))) == list(map(astuple, made.rounds))
    assert reader.rounds(STREAM, limit=0) == []


def test_a_reader_cannot_write(reader: SqlReader) -> None:
    def write() -> None:
        with reader._transaction() as connection:
            connection.execute(streams.delete())

    with pytest.raises(AccessDenied):
        write()
    assert reader.streams() == [STREAM]


def test_strange_text_survives(store: SqlStore, reader: SqlReader) -> None:
    keys: list[str | None] = ["", "é\N{PILE OF POO}", "a'b\"c%s:x", "line\nbreak\ttab\\"]
    block = replace(observations(1, 4), key=keys)
    store.commit(batch(1, 1, 4, observations=block, offsets=[advance(block)]))
    found = reader.assignments(STREAM, [key for key in keys if key is not None])
    assert [row.key for row in found] == keys


@pytest.mark.parametrize("key", ["\ud800", "a\0b"])
def test_a_key_that_a_database_cannot_hold_stops_the_commit(store: SqlStore, key: str) -> None:
    """The decoder sets such records aside; SQLite and PostgreSQL differ in which they refuse."""
    block = replace(observations(1, 1), key=[key])
    with pytest.raises(InvariantBroken, match="key"):
        store.commit(batch(1, 1, 1, observations=block, offsets=[advance(block)]))
    store.commit(batch(1, 1, 5))


def test_certainty_comes_with_clusters_members_and_assignments(
    store: SqlStore, reader: SqlReader
) -> None:
    store.commit(full_batch())
    by_id = {row.cluster: (row.probability, row.stability) for row in reader.clusters(STREAM)}
    assert by_id == {1: (0.75, 0.375), 2: (1.0, 0.5)}
    groups = {row.cluster: (row.group, row.group_born) for row in reader.clusters(STREAM)}
    assert groups == {1: (11, None), 2: (12, 1)}
    newest = reader.members(STREAM, 2)[0]
    assert (newest.seq, newest.probability, newest.stability) == (5, 0.04, 0.96)
    (row,) = reader.assignments(STREAM, ["key-7"])
    assert (row.probability, row.stability) == (0.06, 0.94)
    (then,) = reader.assignments(STREAM, ["key-7"], as_of=AsOf(publication=1))
    assert then.probability is None
    assert reader.publications(STREAM)[0].prior_params == {"alpha": 1.5}


def test_certainty_is_replaced_and_does_not_reach_beyond_its_publication(
    store: SqlStore, reader: SqlReader
) -> None:
    store.commit(full_batch())
    told = [certainty(0, 12, {1: 0.5})]
    rows = [cluster_row(1, 10, version=2)]
    store.commit(batch(2, 11, 5, clusters=rows, certainties=told))
    (known, unknown) = reader.assignments(STREAM, ["key-12", "key-13"])
    assert (known.probability, unknown.probability) == (0.11, None)
    assert {row.cluster: row.probability for row in reader.clusters(STREAM)} == {1: 0.5, 2: 1.0}


def test_nothing_is_certain_of_what_has_left(store: SqlStore, reader: SqlReader) -> None:
    store.commit(full_batch())
    store.commit(batch(2, 11, 1, departures=[Departure(11, np.array([7]))]))
    assert sorted(reader.certainty(STREAM, range(6, 9))) == [6, 8]
    (row,) = reader.assignments(STREAM, ["key-7"])
    assert (row.left_seq, row.probability, row.stability) == (11, None, None)
    assert [row.probability for row in reader.observed(STREAM, [7, 8])] == [None, 0.07]


def test_trends_are_counted(store: SqlStore, reader: SqlReader) -> None:
    store.commit(full_batch())
    assert reader.births(STREAM) == {1: 3e9, 2: 3e9 + 100}
    assert reader.arrivals(STREAM, newest=6) == {1: 5, 2: 1}
    assert reader.cluster_ids(STREAM) == [1, 2]
    assert reader.member_seqs(STREAM, 2) == [4, 5]
    own = reader.member_values(STREAM, 2)
    assert own is not None
    np.testing.assert_array_equal(own, [row.values for row in reader.observed(STREAM, [4, 5])])
    assert reader.member_values(STREAM, 99) is None
    assert reader.keys_like(STREAM, "key-1", limit=5) == ["key-1", "key-10"]
    assert [row.seq for row in reader.newest(STREAM, limit=2)] == [10, 9]
    assert reader.newest(STREAM, limit=2)[1].text == "text 9"
    assert {seq: sure.probability for seq, sure in reader.certainty(STREAM, [2, 99]).items()} == {
        2: 0.01
    }
