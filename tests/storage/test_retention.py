"""What the retention lets go, and what never goes: on both databases."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests.storage.batches import (
    STREAM,
    batch,
    certainty,
    cluster_row,
    full_batch,
    publication,
    snapshot,
)
from weald.storage.commit.commit import CERTAINTY_CHUNK, AdoptionRow
from weald.storage.queries.base import Letters
from weald.storage.settings import RetentionSettings
from weald.storage.writing import retention
from weald.storage.writing.store import SqlStore

ALL = RetentionSettings()


def test_nothing_goes_within_the_bounds(store: SqlStore) -> None:
    store.commit(full_batch())
    assert store.prune(STREAM, ALL) == {}


def test_nothing_goes_that_a_replay_would_need(store: SqlStore) -> None:
    store.commit(full_batch())
    store.delete_snapshots(STREAM, [info.number for info in store.snapshots(STREAM)])
    tight = RetentionSettings(observations=1, publications=1, rounds=0, dead_letters=0)
    assert store.prune(STREAM, tight) == {}
    assert store.status(STREAM).n_inserted == 10


def test_old_records_go_by_age(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.commit(full_batch())
    # The batch says that it was received in 2065.
    monkeypatch.setattr(retention, "time", SimpleNamespace(time=lambda: 4e9))
    snapshot = store.snapshots(STREAM)[0]
    gone = store.prune(STREAM, RetentionSettings(days=1.0))
    assert gone["observations"] == snapshot.seq
    assert gone["dead_letters"] == 1
    assert store.prune(STREAM, RetentionSettings(days=1.0)) == {}
    ledger = store.ledger(STREAM)
    assert sum(row.n_inserted for row in ledger) == 10
    assert sum(row.n_dead for row in ledger) == 1


def test_the_newest_are_kept_by_number(store: SqlStore) -> None:
    store.commit(full_batch())
    seq = store.snapshots(STREAM)[0].seq
    gone = store.prune(STREAM, RetentionSettings(observations=10 - seq + 2))
    assert gone == {"observations": seq - 2}
    block = store.observations(STREAM, 0, 100)
    assert block is not None
    assert block.seq.tolist() == list(range(seq - 1, 11))


def test_certainties_go_with_the_last_of_their_observations(store: SqlStore) -> None:
    store.commit(full_batch())
    last = {"certainties": [certainty(1, 10, {1: 0.5})], "snapshot": snapshot(2, seq=4106)}
    store.commit(batch(2, 11, CERTAINTY_CHUNK, **last))
    store.delete_snapshots(STREAM, [1])
    while gone := store.prune(STREAM, RetentionSettings(observations=11)):
        assert "certainties" not in gone
    assert store.certainty(STREAM, [9]).keys() == {9}
    assert store.prune(STREAM, RetentionSettings(observations=10)) == {
        "observations": 1,
        "certainties": 1,
    }
    assert store.certainty(STREAM, [9]) == {}
    assert store.certainty(STREAM, [4103])[4103].probability == 0.06


def test_a_letter_that_waits_to_be_decided_anew_stays(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.commit(full_batch())
    monkeypatch.setattr(retention, "time", SimpleNamespace(time=lambda: 4e9))
    assert store.request_replay(STREAM, Letters()) == (1, 0)
    assert "dead_letters" not in store.prune(STREAM, RetentionSettings(days=1.0))


def test_the_newest_id_is_never_given_again(store: SqlStore) -> None:
    """What ended with a publication that is forgotten goes, but ids go on after the newest."""
    store.commit(full_batch())
    ended = [cluster_row(1, 0, 2, retired=2), cluster_row(2, 0, 2, retired=2)]
    store.commit(batch(2, 11, 10, publications=[publication(2, seq=20)], clusters=ended))
    last = {"publications": [publication(3, seq=30)], "snapshot": snapshot(2, seq=30)}
    store.commit(batch(3, 21, 10, **last))
    store.delete_snapshots(STREAM, [1])
    assert store.prune(STREAM, RetentionSettings(publications=1))["clusters"] == 1
    left = store.clusters(STREAM, include_retired=True)
    assert [row.cluster for row in left] == [2]


def test_rounds_of_the_writers_own_stay_as_long_as_a_replay_from_the_beginning_can_be(
    store: SqlStore,
) -> None:
    came_back = {"lengths": np.array([1])}
    rounds = [AdoptionRow(1, 2, 0, 3, 0, {}), AdoptionRow(2, 4, 0, 10, 0, came_back)]
    store.commit(batch(1, 1, 10, adoptions=rounds, snapshot=snapshot(1, seq=10)))
    # One of the newest image's own moment may have been taken back after it.
    later = [AdoptionRow(3, 12, 0, 20, 0, {}), AdoptionRow(4, 20, 0, 20, 0, came_back)]
    store.commit(batch(2, 11, 10, adoptions=later, snapshot=snapshot(2, seq=20)))
    store.delete_snapshots(STREAM, [1])
    store.commit(batch(3, 21, 10, snapshot=snapshot(3, seq=20)))

    def kept() -> list[tuple[int, bool]]:
        return [(row.round_number, row.is_own) for row in store.adoptions(STREAM, 0)]

    assert kept() == [(1, True), (3, True), (4, False)]
    assert store.last_round(STREAM) == 4
    # Whatever is kept as long as all observations are goes with the first of them.
    assert "adoptions" not in store.prune(STREAM, ALL)
    gone = store.prune(STREAM, RetentionSettings(observations=15))
    assert gone == {"observations": 15, "adoptions": 1}
    assert kept() == [(3, True), (4, False)]
