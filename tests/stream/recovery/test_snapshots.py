"""A person's own snapshots: made beside the writer, checked, compared, and gone back to."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tests.stream.scenario import (
    CADENCE,
    NAME,
    KilledError,
    Outcome,
    assert_exactly_once,
    killer,
    left,
    line_of,
    new_store,
    outcome,
    plan_for,
    run,
    values_of,
    write_lines,
)
from weald.storage.encoding.snapshot import decode, encode
from weald.storage.errors import SnapshotCorrupt, StreamConflict
from weald.storage.settings import RetentionSettings
from weald.storage.writing.store import SqlStore
from weald.stream.model.model import StreamConfig
from weald.stream.recovery import snapshots
from weald.stream.recovery.recovery import usable
from weald.stream.settings import MemorySettings

N = 450
BAD = ('{"id": "b", "x": 1}', "nonsense")


def silent(_: int) -> None:
    pass


def plan_over(folder: Path, snapshot_records: int = 20_000) -> StreamConfig:
    lines = [line_of(i, row) for i, row in enumerate(values_of(N))]
    lines[300:300] = BAD
    path = write_lines(folder / "records.jsonl", lines)
    return plan_for(path, snapshot_records=snapshot_records)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("undisturbed")
    store = new_store(folder)
    run(plan_over(folder), store)
    return outcome(store)


@pytest.fixture
def whole(tmp_path: Path) -> SqlStore:
    """A stream that was run to its end, with every snapshot that it made."""
    store = new_store(tmp_path, snapshots_kept=100)
    run(plan_over(tmp_path, snapshot_records=100), store)
    return store


def middle(store: SqlStore) -> int:
    """Number of a snapshot from the middle of the stream."""
    return next(each.number for each in store.snapshots(NAME) if 150 < each.seq < 300)


def test_every_snapshot_of_a_good_run_is_good(whole: SqlStore) -> None:
    infos = whole.snapshots(NAME)
    assert len(infos) >= 4
    for info in infos:
        snapshots.verify(whole, NAME, info.number)


def test_one_that_sql_does_not_agree_with_is_not(tmp_path: Path, whole: SqlStore) -> None:
    with sqlite3.connect(tmp_path / "weald.db") as database:
        database.execute("UPDATE observations SET cluster = cluster + 1 WHERE seq = 20")
    with pytest.raises(SnapshotCorrupt, match="observation 20"):
        snapshots.verify(whole, NAME, whole.snapshots(NAME)[0].number)


def test_dropped_results_are_read_again_and_come_out_the_same(
    tmp_path: Path, whole: SqlStore, undisturbed: Outcome
) -> None:
    number = middle(whole)
    seq = usable(whole, NAME, number).seq
    assert snapshots.revert_dropping(whole, NAME, number) == N - seq
    found = outcome(whole)
    assert found.clusters == usable(whole, NAME, number).clusters.tolist()
    assert [row[0] for row in found.publications] == list(range(1, len(found.publications) + 1))
    (row,) = whole.ledger(NAME)
    assert (row.n_inserted, row.n_dead, row.next_offset) == (seq, 0, seq)
    assert whole.dead_letter_counts(NAME) == {}
    assert whole.snapshots(NAME)[0].number == number
    run(plan_over(tmp_path), whole)
    assert outcome(whole) == undisturbed
    assert_exactly_once(whole, N)


def test_duplicates_that_are_read_again_are_counted_once(tmp_path: Path) -> None:
    lines = [line_of(i, row) for i, row in enumerate(values_of(N))]
    lines[300:300] = [*BAD, *lines[:40]]
    path = write_lines(tmp_path / "records.jsonl", [*lines[:100], *lines[20:70], *lines[100:]])
    plan = plan_for(path, snapshot_records=100, duplicate_keys="keep-first")
    store = new_store(tmp_path, snapshots_kept=100)
    run(plan, store)
    (before,) = store.ledger(NAME)
    number = middle(store)
    seq = usable(store, NAME, number).seq
    assert snapshots.revert_dropping(store, NAME, number) == N - seq
    (row,) = store.ledger(NAME)
    assert (row.n_received, row.n_inserted, row.n_duplicate) == (seq + 50, seq, 50)
    run(plan, store)
    (after,) = store.ledger(NAME)
    assert replace(after, updated_at=before.updated_at) == before


def test_a_running_writer_goes_on_from_where_it_was_put(
    tmp_path: Path, undisturbed: Outcome
) -> None:
    store, other = new_store(tmp_path), new_store(tmp_path)

    def revert(step: str, nth: int) -> None:
        if (step, nth) == ("commit", 6):
            snapshots.revert_dropping(other, NAME, other.snapshots(NAME)[-1].number)

    run(plan_over(tmp_path, snapshot_records=100), store, revert)
    assert outcome(store) == undisturbed
    assert_exactly_once(store, N)


def test_a_snapshot_without_offsets_is_not_gone_back_to(tmp_path: Path, whole: SqlStore) -> None:
    number = middle(whole)
    with sqlite3.connect(tmp_path / "weald.db") as database:
        (payload,) = database.execute(
            "SELECT payload FROM snapshots WHERE number = ?", (number,)
        ).fetchone()
        arrays = decode(payload)
        del arrays["offsets"]
        database.execute(
            "UPDATE snapshots SET payload = ? WHERE number = ?", (encode(arrays), number)
        )
    before = outcome(whole)
    with pytest.raises(StreamConflict, match="how far"):
        snapshots.revert_dropping(whole, NAME, number)
    assert outcome(whole) == before


def test_kept_results_stay_and_the_model_begins_from_the_snapshot(
    tmp_path: Path, whole: SqlStore
) -> None:
    before = outcome(whole)
    number = middle(whole)
    made = snapshots.revert_keeping(whole, NAME, number, CADENCE, silent)
    after = outcome(whole)
    assert (after.clusters, after.lineage) == (before.clusters, before.lineage)
    assert whole.snapshots(NAME)[0].number == made > number
    snapshots.verify(whole, NAME, made)
    old, new = usable(whole, NAME, number), usable(whole, NAME, made)
    # Refinement between the two is forgotten, insertion is not: the same blocks at the beginning.
    assert np.array_equal(old.chain.labels, new.chain.labels[: old.seq])
    rows = np.vstack([values_of(N), values_of(200, seed=4)])
    longer = [line_of(i, row) for i, row in enumerate(rows)]
    longer[300:300] = BAD
    run(plan_for(write_lines(tmp_path / "records.jsonl", longer)), whole)
    assert_exactly_once(whole, N + 200)


def test_a_group_that_has_ended_since_keeps_its_name(tmp_path: Path, whole: SqlStore) -> None:
    with sqlite3.connect(tmp_path / "weald.db") as database:
        ended = "UPDATE clusters SET cluster_group = 99 WHERE retired_publication IS NOT NULL"
        assert database.execute(ended).rowcount > 0
    made = snapshots.revert_keeping(whole, NAME, middle(whole), CADENCE, silent)
    assert usable(whole, NAME, made).groups.next_group == 100


def test_one_is_made_beside_the_writer_and_stays(tmp_path: Path, undisturbed: Outcome) -> None:
    store, other = new_store(tmp_path), new_store(tmp_path)
    made: list[int] = []

    def create(step: str, nth: int) -> None:
        if (step, nth) == ("commit", 5):
            made.append(snapshots.create(other, NAME, "by hand", silent))

    run(plan_over(tmp_path, snapshot_records=60), store, create)
    assert outcome(store) == undisturbed
    kept = {info.number: info for info in store.snapshots(NAME)}
    assert len(kept) == 4
    assert kept[made[0]].label == "by hand"
    snapshots.verify(store, NAME, made[0])


def test_two_are_compared_on_what_both_know(whole: SqlStore) -> None:
    newest, oldest = whole.snapshots(NAME)[0].number, whole.snapshots(NAME)[-1].number
    same = snapshots.compare(whole, NAME, newest, newest)
    assert (same.n_compared, same.n_moved, same.n_new, same.flows) == (N, 0, 0, [])
    assert same.variation_of_information == 0.0
    found = snapshots.compare(whole, NAME, oldest, newest)
    first = usable(whole, NAME, oldest)
    assert (found.n_compared, found.n_new) == (first.seq, N - first.seq)
    last = usable(whole, NAME, newest).clusters[: first.seq]
    assert found.n_moved == (first.clusters != last).sum()
    assert sum(flow.n_observations for flow in found.flows) == found.n_moved


def forgetful(folder: Path) -> tuple[StreamConfig, SqlStore]:
    """A stream with a window in which keys come again, run to its end, with all its snapshots."""
    lines = [line_of(i % 300, row) for i, row in enumerate(values_of(N))]
    path = write_lines(folder / "records.jsonl", lines)
    plan = plan_for(path, snapshot_records=70, duplicate_keys="update")
    plan = replace(plan, memory=MemorySettings(window_records=180))
    store = new_store(folder, snapshots_kept=100)
    run(plan, store)
    return plan, store


def test_what_was_forgotten_or_replaced_comes_back_with_the_snapshot(tmp_path: Path) -> None:
    plan, store = forgetful(tmp_path)
    before, gone, snapshot = outcome(store), left(store), middle(store)
    old = usable(store, NAME, snapshot)
    for info in store.snapshots(NAME):
        snapshots.verify(store, NAME, info.number)
    found = snapshots.compare(store, NAME, snapshot, store.snapshots(NAME)[0].number)
    kept = [seq for seq, at in enumerate(gone, start=1) if at is None]
    assert found.n_compared == len(set(kept) & set(old.atom_table.seq.tolist()))
    assert snapshots.revert_dropping(store, NAME, snapshot) == N - old.seq
    present = [seq for seq, at in enumerate(left(store), start=1) if at is None]
    assert present == sorted(old.atom_table.seq[old.atom_table.singles].tolist())
    run(plan, store)
    assert outcome(store) == before
    assert left(store) == gone


def windowed(folder: Path, n: int) -> StreamConfig:
    """A plan of a window, out of which two clusters move whole: after 250 records and after 400."""
    rows = values_of(N)
    rows[101:140] = 60.0 + np.random.default_rng(0).normal(size=(39, 2))
    rows[260] = -60.0
    lines = [line_of(i, row) for i, row in enumerate(rows[:n])]
    plan = plan_for(write_lines(folder / "records.jsonl", lines))
    return replace(plan, memory=MemorySettings(window_records=100))


def standing(store: SqlStore) -> tuple[Outcome, list[int | None]]:
    """What the store holds but groups, which no way back restores, and what has left."""
    found = outcome(store)
    return replace(found, rows=[(*row[:6], None, None) for row in found.rows]), left(store)


def test_what_left_out_of_turn_after_the_snapshot_comes_back(tmp_path: Path) -> None:
    """A publication out of turn lets go and ends clusters at the snapshot's own observation."""
    store, plan = new_store(tmp_path), windowed(tmp_path, 250)
    with pytest.raises(KilledError):
        run(plan, store, killer("refine", 3))
    assert store.position(NAME).next_seq == 251
    number = snapshots.create(store, NAME, "before the last publication", silent)
    before = standing(store)
    store = new_store(tmp_path)
    run(plan, store)
    once = outcome(store), left(store)
    assert ("retire", 1, 250) in [event[:3] for event in once[0].lineage]
    assert snapshots.revert_dropping(store, NAME, number) == 0
    assert standing(store) == before
    run(plan, store)
    assert (outcome(store), left(store)) == once


def test_a_cluster_that_began_and_ended_after_the_snapshot_leaves_nothing(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    run(windowed(tmp_path, 250), store)
    number = snapshots.create(store, NAME, "by hand", silent)
    before = standing(store)
    store = new_store(tmp_path)
    run(windowed(tmp_path, N), store)
    # Both between the snapshot's publication and the next one.
    assert {("birth", 2, 261), ("retire", 2, 400)} <= {
        event[:3] for event in outcome(store).lineage
    }
    assert snapshots.revert_dropping(store, NAME, number) == N - 250
    assert standing(store) == before


def test_kept_results_do_not_bring_back_what_has_left(tmp_path: Path) -> None:
    _, store = forgetful(tmp_path)
    before, gone = outcome(store), left(store)
    made = snapshots.revert_keeping(store, NAME, middle(store), CADENCE, silent)
    snapshots.verify(store, NAME, made)
    shard = usable(store, NAME, made)
    present = [seq for seq, at in enumerate(gone, start=1) if at is None]
    assert sorted(shard.atom_table.seq[shard.atom_table.singles].tolist()) == present
    after = outcome(store)
    assert (after.clusters, after.lineage) == (before.clusters, before.lineage)
    assert [row[:2] for row in after.rows] == [row[:2] for row in before.rows]
    assert left(store) == gone


def test_kept_results_need_the_rows_of_all_that_the_snapshot_holds(tmp_path: Path) -> None:
    """Nothing tells in which cluster an observation is shown whose row has been pruned."""
    plan = replace(plan_over(tmp_path, 100), retention=RetentionSettings(observations=150))
    store = new_store(tmp_path)
    run(plan, store)
    block = store.observations(NAME, 0, 1)
    assert block is not None
    assert block.seq[0] > 1
    before, position = outcome(store), store.position(NAME)
    for info in store.snapshots(NAME):
        with pytest.raises(StreamConflict, match=r"no row any more.*drop the later"):
            snapshots.revert_keeping(store, NAME, info.number, CADENCE, silent)
    assert (outcome(store), store.position(NAME)) == (before, position)
    # Neither a start nor a way back without the later results asks for these rows.
    run(plan, store)
    assert outcome(store) == before
    snapshots.revert_dropping(store, NAME, store.snapshots(NAME)[-1].number)
    run(plan, store)
    assert store.position(NAME).next_seq == N + 1


def test_kept_results_do_without_rows_of_what_had_left_before(tmp_path: Path) -> None:
    plan = replace(windowed(tmp_path, N), retention=RetentionSettings(observations=200))
    plan = replace(plan, stream=msgspec.structs.replace(plan.stream, snapshot_records=100))
    store = new_store(tmp_path, snapshots_kept=1)
    run(plan, store)
    block = store.observations(NAME, 0, 1)
    assert block is not None
    assert block.seq[0] > 1
    before, gone = outcome(store), left(store)
    number = store.snapshots(NAME)[0].number
    assert snapshots.revert_keeping(store, NAME, number, CADENCE, silent) > number
    after = outcome(store)
    assert (after.clusters, after.lineage) == (before.clusters, before.lineage)
    # But for the last bits of the statistics.
    assert [(*row[:2], *row[4:6]) for row in after.rows] == [
        (*row[:2], *row[4:6]) for row in before.rows
    ]
    assert left(store) == gone


def test_a_kill_while_a_label_is_kept_changes_nothing(tmp_path: Path, undisturbed: Outcome) -> None:
    plan = plan_over(tmp_path, snapshot_records=60)
    with pytest.raises(KilledError):
        run(plan, new_store(tmp_path), killer("commit", 5))
    store = new_store(tmp_path)
    snapshots.create(store, NAME, "while it was down", silent)
    run(plan, store)
    assert outcome(store) == undisturbed
