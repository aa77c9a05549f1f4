"""Coming back when something is wrong: a damaged snapshot, another version's, another partition."""

import logging
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.stream.scenario import (
    NAME,
    KilledError,
    Outcome,
    assert_exactly_once,
    killer,
    line_of,
    new_store,
    outcome,
    plan_for,
    records_file,
    run,
    write_lines,
)
from weald.storage.encoding.snapshot import decode, encode
from weald.storage.errors import SnapshotCorrupt
from weald.storage.settings import RetentionSettings
from weald.storage.writing.store import SqlStore
from weald.stream.errors import ReplayDiverged
from weald.stream.model.model import StreamConfig
from weald.stream.recovery import recovery

N = 450


def killed(plan: StreamConfig, folder: Path, commits: int) -> SqlStore:
    """A store that was left when a later commit was about to begin."""

    with pytest.raises(KilledError):
        run(plan, new_store(folder), killer("commit", commits + 1))
    return new_store(folder)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("undisturbed")
    store = new_store(folder)
    run(plan_for(records_file(folder, N)), store)
    return outcome(store)


def damage(folder: Path, number: int, change: str) -> None:
    """Spoil a stored snapshot: its bytes, its layout or its sums."""
    with sqlite3.connect(folder / "weald.db") as database:
        (payload,) = database.execute(
            "SELECT payload FROM snapshots WHERE number = ?", (number,)
        ).fetchone()
        if change == "bytes":
            payload = payload[:-40] + bytes(40)
        else:
            arrays = decode(payload)
            if change == "layout":
                del arrays["chain.free"]
            else:
                arrays["clusters.totals"] = arrays["clusters.totals"] * 1.01
            payload = encode(arrays)
        database.execute("UPDATE snapshots SET payload = ? WHERE number = ?", (payload, number))


@pytest.mark.parametrize("change", ["bytes", "layout", "sums"])
def test_a_snapshot_that_cannot_be_used_is_passed_over(
    tmp_path: Path, undisturbed: Outcome, caplog: pytest.LogCaptureFixture, change: str
) -> None:
    plan = plan_for(records_file(tmp_path, N), snapshot_records=100)
    store = killed(plan, tmp_path, 5)
    newest = store.snapshots(NAME)[0].number
    assert newest > 1
    damage(tmp_path, newest, change)
    with pytest.raises(SnapshotCorrupt):
        recovery.usable(store, NAME, newest)
    run(plan, store)
    assert f"snapshot {newest} of stream" in caplog.text
    assert "passed over" in caplog.text
    assert outcome(store) == undisturbed


def test_without_any_usable_snapshot_everything_is_replayed(
    tmp_path: Path, undisturbed: Outcome
) -> None:
    plan = plan_for(records_file(tmp_path, N), snapshot_records=100)
    store = killed(plan, tmp_path, 5)
    for info in store.snapshots(NAME):
        damage(tmp_path, info.number, "layout")
    run(plan, store)
    assert outcome(store) == undisturbed


def test_rows_that_sql_has_lost_stop_a_start(tmp_path: Path) -> None:
    plan = plan_for(records_file(tmp_path, N), snapshot_records=10_000)
    store = killed(plan, tmp_path, 5)
    with sqlite3.connect(tmp_path / "weald.db") as database:
        database.execute("DELETE FROM observations WHERE seq = (SELECT max(seq) FROM observations)")
    with pytest.raises(ReplayDiverged, match="not all that came after"):
        run(plan, store)


def test_a_start_that_finds_nothing_new_writes_nothing(tmp_path: Path) -> None:
    plan, store = plan_for(records_file(tmp_path, N)), new_store(tmp_path)
    run(plan, store)
    epoch, made = store.position(NAME).epoch, store.snapshots(NAME)
    run(plan, store)
    assert (store.position(NAME).epoch, store.snapshots(NAME)) == (epoch, made)


def test_a_replay_that_diverges_adopts_what_sql_shows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plan = plan_for(records_file(tmp_path, N), snapshot_records=10_000)
    store = killed(plan, tmp_path, 5)
    # As if another version had drawn otherwise: two clusters have had each other's names.
    ids = [row.cluster for row in store.clusters(NAME, limit=2)]
    with sqlite3.connect(tmp_path / "weald.db") as database:
        database.execute(
            "UPDATE observations SET cluster = ? - cluster WHERE cluster IN (?, ?)",
            (sum(ids), *ids),
        )
        database.execute("UPDATE clusters SET cluster_group = cluster_group + 10")
    groups = {row.group or 0: row.group_born for row in store.clusters(NAME)}
    shown = outcome(store).clusters
    run(plan, store)
    assert "stays as SQL has it" in caplog.text
    assert_exactly_once(store, N)
    assert np.mean(np.array(outcome(store).clusters[: len(shown)]) == shown) > 0.9
    assert store.snapshots(NAME)[0].seq == N
    sums = {row.cluster: row.statistics[0] for row in store.clusters(NAME)}
    assert sums == {row.cluster: row.n_observations for row in store.clusters(NAME)}
    later = {row.group or 0: row.group_born for row in store.clusters(NAME)}
    assert groups.items() & later.items()
    assert all(group > max(groups) for group in later.keys() - groups.keys())
    caplog.clear()
    caplog.set_level(logging.WARNING)
    run(plan, store)
    assert caplog.text == ""


def test_groups_are_as_old_as_the_publication_that_first_told_of_them(tmp_path: Path) -> None:
    """Started again before every publication; one kind of records comes late."""
    kind = np.where(np.arange(1200) < 700, np.arange(1200) % 4, np.arange(1200) % 5)
    centres = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0], [20.0, 20.0], [60.0, 60.0]])
    values = centres[kind] + np.random.default_rng(5).normal(size=(1200, 2))
    lines = [line_of(i, row) for i, row in enumerate(values)]
    store, first = new_store(tmp_path), dict[int, int]()
    for n in range(200, 1201, 200):
        plan = plan_for(write_lines(tmp_path / "records.jsonl", lines[:n]), snapshot_records=300)
        run(plan, store)
        number = store.publications(NAME)[-1].number
        assert number == n // 200
        for row in store.clusters(NAME):
            if row.group is not None:
                assert row.group_born == first.setdefault(row.group, number)
    assert max(first.values()) >= 4
    once = new_store(tmp_path, "once")
    run(plan_for(tmp_path / "records.jsonl", snapshot_records=300), once)
    assert outcome(once) == outcome(store)


def test_replay_holds_a_bounded_number_of_rows(
    tmp_path: Path, undisturbed: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "REPLAY_RECORDS", 50)
    monkeypatch.setattr(recovery, "COMPARED_RECORDS", 70)
    plan = plan_for(records_file(tmp_path, N), snapshot_records=10_000)
    store = killed(plan, tmp_path, 6)
    asked: list[int] = []
    whole_block, whole_run = store.observations, store.shown

    def observations(stream: str, after_seq: int, limit: int) -> object:
        asked.append(limit)
        return whole_block(stream, after_seq, limit)

    def shown(stream: str, publication: int, after_seq: int, limit: int) -> object:
        asked.append(limit)
        return whole_run(stream, publication, after_seq, limit)

    monkeypatch.setattr(store, "observations", observations)
    monkeypatch.setattr(store, "shown", shown)
    run(plan, store)
    assert len(asked) > 10
    assert max(asked) <= 70
    monkeypatch.undo()
    assert outcome(store) == undisturbed


def test_what_the_retention_lets_go_is_never_missed(tmp_path: Path, undisturbed: Outcome) -> None:
    path = records_file(tmp_path, N)
    plain = plan_for(path, snapshot_records=60)
    tight = RetentionSettings(observations=1, publications=1, rounds=1, dead_letters=1)
    plan = replace(plain, retention=tight)
    for commits in (3, 2, 2):
        killed(plan, tmp_path, commits)
    store = new_store(tmp_path)
    run(plan, store)
    first = store.observations(NAME, 0, 1)
    assert first is not None
    oldest = store.snapshots(NAME)[-1].seq
    assert 1 < int(first.seq[0]) <= oldest + 1
    assert sum(row.n_inserted for row in store.ledger(NAME)) == N
    after = int(first.seq[0]) - 1
    block = store.observations(NAME, after, N)
    assert block is not None
    assert block.cluster.tolist() == undisturbed.clusters[after:]
    assert len(store.publications(NAME)) < len(undisturbed.publications)
