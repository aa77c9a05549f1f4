"""Rounds of shards in SQL: who may write what, what stays, and how long."""

from dataclasses import replace

import numpy as np
import pytest

from tests.storage.batches import OWNER, SPEC
from weald.storage.commit.commit import (
    BatchCommit,
    Certainty,
    ClusterRow,
    LineageRow,
    PublicationRow,
    WholeShown,
)
from weald.storage.commit.shard_rows import ANSWERED, ASKED, ShardMessageRow, ShardRoundRow
from weald.storage.errors import Fenced, InvariantBroken
from weald.storage.queries.whole import WholeReader
from weald.storage.settings import RetentionSettings
from weald.storage.writing.store import SqlStore

WHOLE = replace(SPEC, name="wide", shards=2)
LEARNED = {"family": {"kappa": 0.1 + 0.2}, "prior": ["dp", {"alpha": 1 / 3}]}


def round_row(number: int, step: int, next_name: int = 2) -> ShardRoundRow:
    return ShardRoundRow(number, WHOLE.seed, step, LEARNED, next_name, 10.0 * number)


def said(number: int, step: int, shard: int, direction: str) -> ShardMessageRow:
    return ShardMessageRow(number, step, shard, direction, {"x": np.array([step, shard])})


@pytest.fixture
def shards(store: SqlStore) -> SqlStore:
    for shard in range(2):
        store.ensure_part(WHOLE, shard)
        store.claim(f"wide/{shard}", OWNER, 1)
    return store


def commit(store: SqlStore, shard: int, epoch: int, **what: object) -> None:
    store.commit(BatchCommit(f"wide/{shard}", OWNER, 1, epoch, **what))  # type: ignore[arg-type]  # of the commit


def test_what_was_said_stays_until_the_next_round_opens(shards: SqlStore) -> None:
    for shard in range(2):
        commit(shards, shard, 1, shard_messages=[said(1, 0, shard, ANSWERED)])
    assert shards.shard_round("wide") is None
    asked = [said(1, 1, shard, ASKED) for shard in range(2)]
    commit(shards, 0, 2, shard_round=round_row(1, 1), shard_messages=asked)
    assert shards.shard_round("wide") == round_row(1, 1)
    assert shards.shard_steps("wide", 1, ASKED) == [(1, 0), (1, 1)]
    (found,) = shards.shard_messages("wide", 1, ASKED, shard=1)
    assert found.payload["x"].tolist() == [1, 1]
    commit(shards, 0, 3, shard_round=round_row(1, 5, 8))
    assert shards.shard_round("wide") == round_row(1, 5, 8)
    for shard in range(2):
        commit(shards, shard, 4 if shard == 0 else 2, shard_messages=[said(2, 0, shard, ANSWERED)])
    assert shards.shard_steps("wide", 1, ANSWERED) == [(0, 0), (0, 1)]
    commit(shards, 0, 5, shard_round=round_row(2, 1, 8))
    assert shards.shard_steps("wide", 1, ANSWERED) == []
    assert shards.shard_steps("wide", 2, ANSWERED) == [(0, 0), (0, 1)]
    assert shards.shard_round("wide", 1) == replace(round_row(1, 5, 8), closed_at=20.0)


def test_a_fenced_owner_writes_nothing(shards: SqlStore) -> None:
    shards.claim("wide/0", "another", 2)
    with pytest.raises(Fenced):
        commit(shards, 0, 1, shard_round=round_row(1, 1), shard_messages=[said(1, 1, 0, ASKED)])
    assert shards.shard_round("wide") is None
    assert shards.shard_steps("wide", 1, ASKED) == []


def test_shard_0_asks_and_each_answers_for_itself(shards: SqlStore) -> None:
    for what in (
        {"shard_round": round_row(1, 1)},
        {"shard_messages": [said(1, 1, 1, ASKED)]},
        {"shard_messages": [said(1, 1, 0, ANSWERED)]},
    ):
        with pytest.raises(InvariantBroken, match="answers for itself"):
            commit(shards, 1, 1, **what)
    with pytest.raises(InvariantBroken):
        shards.commit(BatchCommit(SPEC.name, OWNER, 1, 1, shard_round=round_row(1, 1)))
    assert shards.shard_round("wide") is None


def test_a_shard_says_of_what_it_is_a_part(shards: SqlStore) -> None:
    assert shards.whole("wide/1") == WHOLE
    assert shards.whole(SPEC.name) is None


def shown(number: int, live: dict[int, int], ended: dict[int, int] | None = None) -> WholeShown:
    """A publication of the whole that shows clusters of these sizes, and ends others."""

    def row(cluster: int, size: int, retired: int | None) -> ClusterRow:
        return ClusterRow(cluster, size, 0.0, np.array([float(size)]), number, number, retired)

    rows = [row(each, size, None) for each, size in live.items()]
    gone = ended or {}
    rows += [row(each, size, number) for each, size in gone.items()]
    events = [
        LineageRow("birth", number, 9, 1.0, each, (), size, size) for each, size in live.items()
    ]
    events += [
        LineageRow("retire", number, 9, 1.0, each, (), size, 0) for each, size in gone.items()
    ]
    sure = np.full(len(live), 0.5)
    nothing = np.empty(0, np.int64)
    told = Certainty(nothing, np.empty((2, 0), np.uint8), np.array([*live]), sure, sure, (0.5, 0.5))
    n = sum(live.values())
    publication = PublicationRow(number, n, 1.0 * number, 0.0, 0.0, len(live), n)
    return WholeShown(rows, publication, events, told)


def test_shard_0_publishes_what_the_whole_shows(shards: SqlStore) -> None:
    commit(shards, 0, 1, whole=shown(1, {3: 20, 5: 10}))
    commit(shards, 0, 2, whole=shown(2, {3: 25, 6: 10}, {5: 10}))
    assert [row.number for row in shards.publications("wide")] == [1, 2]
    rows = {row.cluster: row for row in shards.clusters("wide", include_retired=True)}
    assert {each: row.n_observations for each, row in rows.items()} == {3: 25, 6: 10, 5: 10}
    assert rows[5].retired_publication == 2
    assert rows[3].probability == rows[6].stability == 0.5
    told = [(event.publication, event.kind, event.cluster) for event in shards.lineage("wide")]
    assert told == [
        *((1, "birth", 3), (1, "birth", 5), (2, "birth", 3), (2, "birth", 6), (2, "retire", 5)),
    ]
    # New ids are multiples of one more than there are shards.
    assert shards.last_cluster("wide", multiple_of=3) == 6
    assert shards.last_cluster("wide", multiple_of=7) == 0
    assert shards.publications("wide/0") == []
    # Once, however often it comes.
    commit(shards, 0, 2, whole=shown(2, {3: 25, 6: 10}, {5: 10}))
    assert len(shards.lineage("wide")) == 5


def test_sums_come_once_all_shards_show_them(shards: SqlStore) -> None:
    commit(shards, 0, 1, whole=shown(1, {3: 20, 5: 10}))
    row = ClusterRow(3, 21, -7.0, np.array([21.0, 4.0]), 3, 1)
    commit(shards, 0, 2, whole=WholeShown([row]))
    rows = {each.cluster: each for each in shards.clusters("wide")}
    assert (rows[3].n_observations, rows[3].statistics.tolist()) == (21, [21.0, 4.0])
    assert (rows[3].log_marginal, rows[3].version, rows[3].probability) == (-7.0, 3, 0.5)
    assert rows[5].n_observations == 10
    assert len(shards.publications("wide")) == 1
    assert len(shards.lineage("wide")) == 2


def test_nobody_else_publishes(shards: SqlStore) -> None:
    with pytest.raises(InvariantBroken, match="another shard than the first"):
        commit(shards, 1, 1, whole=shown(1, {3: 20}))
    with pytest.raises(InvariantBroken, match="another shard than the first"):
        shards.commit(BatchCommit(SPEC.name, OWNER, 1, 1, whole=shown(1, {3: 20})))
    shards.claim("wide/0", "another", 2)
    with pytest.raises(Fenced):
        commit(shards, 0, 1, whole=shown(1, {3: 20}))
    assert not [*shards.publications("wide"), *shards.clusters("wide"), *shards.lineage("wide")]


def test_what_earlier_publications_of_the_whole_told_is_forgotten(shards: SqlStore) -> None:
    commit(shards, 0, 1, whole=shown(1, {3: 20, 1: 5, 6: 10}))
    commit(shards, 0, 2, whole=shown(2, {3: 25}, {1: 10, 6: 10}))
    for number in range(3, 6):
        commit(shards, 0, number, whole=shown(number, {3: 25}))
    policy = RetentionSettings(publications=2)
    assert shards.prune("wide/1", policy) == {}
    assert shards.prune("wide/0", policy)["publications of all shards"] == 3 + 1 + 7
    assert [row.number for row in shards.publications("wide")] == [4, 5]
    assert {event.publication for event in shards.lineage("wide")} == {4, 5}
    # The newest id that a publication has given is not given again.
    left = {row.cluster for row in shards.clusters("wide", include_retired=True)}
    assert left == {3, 6}
    assert shards.prune("wide/0", policy) == {}


def test_clusters_of_the_whole_are_what_its_shards_have(shards: SqlStore) -> None:
    commit(shards, 0, 1, whole=shown(1, {3: 20, 5: 10}))
    for shard, size in ((0, 21), (1, 4)):
        own = [
            ClusterRow(3, size, -1.0, np.array([float(size), 2.0]), 1, 0),
            ClusterRow(shard + 1, 7, -1.0, np.array([7.0, 1.0]), 1, 1),
        ]
        commit(shards, shard, 2 - shard, clusters=own)
    reader = WholeReader(shards, "wide")
    rows = {row.cluster: row for row in reader.clusters("wide")}
    assert list(rows) == [3, 1, 2]
    assert (rows[3].n_observations, rows[3].statistics.tolist()) == (25, [25.0, 4.0])
    assert (rows[3].born_publication, rows[3].probability) == (1, 0.5)
    assert np.isnan(rows[3].log_marginal)
    # Began in a shard since.
    assert (rows[1].born_publication, rows[1].probability) == (1, None)
    one = reader.cluster("wide", 3)
    assert one is not None
    assert (one.n_observations, one.born_publication) == (25, 1)
    assert reader.cluster("wide", 99) is None
    assert [row.cluster for row in reader.clusters("wide", limit=1)] == [3]
    assert reader.cluster_ids("wide") == [3, 1, 2]
    # Of a shard it tells what any reader does.
    assert [row.n_observations for row in reader.clusters("wide/1")] == [7, 4]


def test_what_began_and_ended_within_shards_still_answers(shards: SqlStore) -> None:
    commit(shards, 0, 1, whole=shown(1, {3: 20}))
    for shard, size in ((0, 4), (1, 2)):
        row = ClusterRow(5, size, -1.0, np.array([float(size), 2.0]), 1, 0, retired_publication=1)
        commit(shards, shard, 2 - shard, clusters=[row])
    reader = WholeReader(shards, "wide")
    one = reader.cluster("wide", 5)
    assert one is not None
    assert (one.n_observations, one.born_publication, one.retired_publication) == (6, 0, 1)
    assert one.probability is None
    ended = reader.clusters("wide", include_retired=True)
    assert [row.n_observations for row in ended if row.cluster == 5] == [6]
    assert reader.clusters("wide") == []
