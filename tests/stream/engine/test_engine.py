"""The engine over a file and SQLite: accounts, determinism, and every way to be interrupted."""

import dataclasses
import logging
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tests.stream.scenario import (
    NAME,
    SCHEMA,
    Hook,
    KilledError,
    Outcome,
    assert_a_kill_changes_nothing,
    assert_exactly_once,
    killer,
    line_of,
    new_store,
    outcome,
    plan_for,
    records_file,
    run,
    values_of,
    write_lines,
)
from weald.storage.commit.commit import BatchCommit
from weald.storage.errors import StorageUnavailable, StreamConflict
from weald.storage.queries.base import Letters
from weald.storage.writing.store import SqlStore
from weald.stream.engine.engine import Engine
from weald.stream.errors import ReplayDiverged, TooManyDeadLetters
from weald.stream.record.decode import LARGEST
from weald.stream.record.record import Message, TopicPartition
from weald.stream.source.file_source import FileSource
from weald.stream.source.source import Change, owned_by
from weald.stream.telemetry.telemetry import Telemetry

N = 650
STEPS = ("poll", "decode", "insert", "refine", "publish", "snapshot", "dead_letters", "commit")
AFTER = ("redis", "courtesy")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("undisturbed")
    store = new_store(folder)
    run(plan_for(records_file(folder, N)), store)
    assert_exactly_once(store, N)
    return outcome(store)


def test_every_record_is_accounted_for(tmp_path: Path, undisturbed: Outcome) -> None:
    assert [(number, seq) for number, seq, *_ in undisturbed.publications] == [
        (1, 200),
        (2, 400),
        (3, 600),
        (4, 650),
    ]
    # Five clusters far apart are found, whatever small ones a draw may leave beside them.
    large = [row for row in undisturbed.rows if row[5] is None and row[1] > 20]
    assert len(large) == 5
    lines = [line_of(i, row) for i, row in enumerate(values_of(100))]
    lines[30:30] = ['{"x": 1}', "nonsense", '{"id": "a", "x": 1, "y": null}']
    store = new_store(tmp_path)
    run(plan_for(write_lines(tmp_path / "mixed.jsonl", lines)), store)
    (row,) = store.ledger("stream")
    assert (row.n_received, row.n_inserted, row.n_dead) == (103, 100, 3)
    assert store.dead_letter_counts("stream") == {
        "missing_field": 1,
        "not_json": 1,
        "missing_value": 1,
    }
    assert_exactly_once(store, 100)


@pytest.mark.parametrize("batch_records", [7, 500])
def test_the_cut_into_batches_does_not_matter(
    tmp_path: Path, undisturbed: Outcome, batch_records: int
) -> None:
    store = new_store(tmp_path)
    run(plan_for(records_file(tmp_path, N), batch_records=batch_records), store)
    assert outcome(store) == undisturbed


@pytest.mark.parametrize(
    ("step", "count"),
    [*((step, 3) for step in STEPS if step != "snapshot"), ("snapshot", 1), ("snapshot", 2)]
    + [(step, 4) for step in AFTER],
)
def test_killed_at_any_step_and_started_again(
    tmp_path: Path, undisturbed: Outcome, step: str, count: int
) -> None:
    plan = plan_for(records_file(tmp_path, N), snapshot_records=150)
    assert_a_kill_changes_nothing(tmp_path, plan, undisturbed, (step, count))


def test_killed_again_and_again(tmp_path: Path, undisturbed: Outcome) -> None:
    plan = plan_for(records_file(tmp_path, N), snapshot_records=10_000)
    for count in range(1, 5):
        with pytest.raises(KilledError):
            run(plan, new_store(tmp_path), killer("commit", count))
    store = new_store(tmp_path)
    run(plan, store)
    assert outcome(store) == undisturbed


def test_stopped_in_the_middle_it_finishes_the_batch(tmp_path: Path, undisturbed: Outcome) -> None:
    plan = plan_for(records_file(tmp_path, N))
    store = new_store(tmp_path)

    def stop(name: str, nth: int) -> None:
        if (name, nth) == ("decode", 4):
            engines[0].stop()

    from tests.stream.scenario import Hook
    from weald.stream.engine.engine import Engine
    from weald.stream.source.file_source import FileSource

    engines = [Engine(plan, FileSource(plan.stream), store, None, Hook(stop))]
    engines[0].run()
    assert sum(row.n_received for row in store.ledger("stream")) == 4 * 64
    assert store.snapshots("stream")[0].seq == 4 * 64
    run(plan, store)
    assert outcome(store) == undisturbed


def test_a_finished_file_is_left_alone_and_a_longer_one_goes_on(tmp_path: Path) -> None:
    path = records_file(tmp_path, 150, 260)
    store = new_store(tmp_path)
    run(plan_for(path), store)
    epoch = store.position("stream").epoch
    run(plan_for(path), store)
    assert store.position("stream").epoch == epoch
    records_file(tmp_path, 260)
    run(plan_for(path), store)
    assert_exactly_once(store, 260)
    assert [row.seq for row in store.publications("stream")] == [150, 200, 260]


def test_a_publication_out_of_turn_is_replayed(tmp_path: Path) -> None:
    path = records_file(tmp_path, 150, 300)
    store = new_store(tmp_path)
    plan = plan_for(path, snapshot_records=10_000)
    run(plan, store)
    records_file(tmp_path, 260, 300)
    run(plan, store)
    whole = outcome(store)
    store.delete_snapshots("stream", [info.number for info in store.snapshots("stream")])
    records_file(tmp_path, 300)
    run(plan, store)
    assert outcome(store).publications[:3] == whole.publications
    assert_exactly_once(store, 300)


def test_killed_between_a_snapshot_and_the_last_publication(
    tmp_path: Path, undisturbed: Outcome
) -> None:
    plan = plan_for(records_file(tmp_path, N), snapshot_records=1)
    with pytest.raises(KilledError):
        # Eleven batches, then the publication out of turn.
        run(plan, new_store(tmp_path), killer("redis", 12))
    store = new_store(tmp_path)
    run(plan, store)
    assert outcome(store) == undisturbed


def test_another_cadence_begins_with_a_snapshot(tmp_path: Path) -> None:
    path = records_file(tmp_path, 300)
    plan = plan_for(path, snapshot_records=10_000)
    with pytest.raises(KilledError):
        run(plan, new_store(tmp_path), killer("commit", 4))
    slower = msgspec.structs.replace(plan.refinement, every_records=150, publish_every_records=150)
    changed = type(plan)(plan.stream, plan.schema, plan.model, slower)
    with pytest.raises(KilledError):
        run(changed, new_store(tmp_path), killer("redis", 1))
    store = new_store(tmp_path)
    run(changed, store)
    assert_exactly_once(store, 300)


def test_damage_in_sql_is_seen_by_the_replay(tmp_path: Path) -> None:
    plan = plan_for(records_file(tmp_path, 200), snapshot_records=10_000)
    with pytest.raises(KilledError):
        run(plan, new_store(tmp_path), killer("commit", 3))
    with sqlite3.connect(tmp_path / "weald.db") as database:
        database.execute("UPDATE observations SET cluster = cluster + 1 WHERE seq = 120")
    strict = plan_for(tmp_path / "records.jsonl", diverged="stop")
    with pytest.raises(ReplayDiverged, match="snapshot"):
        run(strict, new_store(tmp_path))


def test_mostly_bad_records_stop_the_stream(tmp_path: Path) -> None:
    lines = [line_of(i, row) for i, row in enumerate(values_of(150))]
    path = write_lines(tmp_path / "bad.jsonl", lines + ['{"id": "z", "x": "1"}'] * 400)
    store = new_store(tmp_path)
    with pytest.raises(TooManyDeadLetters, match="wrong_type"):
        run(plan_for(path, dead_letter_share=0.3), store)
    (row,) = store.ledger("stream")
    assert row.n_inserted == 150
    assert row.n_dead < 100


def test_only_bad_records_say_so(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "bad.jsonl", ["nonsense"] * 20)
    with pytest.raises(TooManyDeadLetters, match="20 of the last 20"):
        run(plan_for(path), new_store(tmp_path))


def test_a_newer_owner_makes_it_drop_its_state(tmp_path: Path, undisturbed: Outcome) -> None:
    plan = plan_for(records_file(tmp_path, N))
    store, rival = new_store(tmp_path), new_store(tmp_path)

    def steal(name: str, nth: int) -> None:
        if (name, nth) == ("commit", 4):
            rival.claim("stream", "rival", 0, takeover=True)

    run(plan, store, steal)
    assert_exactly_once(store, N)
    assert outcome(store) == undisturbed


def test_a_locked_database_is_waited_for(
    tmp_path: Path, undisturbed: Outcome, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    store = new_store(tmp_path)
    lock = sqlite3.connect(tmp_path / "weald.db", isolation_level=None, check_same_thread=False)
    releases: list[threading.Timer] = []

    def interfere(name: str, nth: int) -> None:
        if (name, nth) == ("commit", 4):
            lock.execute("BEGIN IMMEDIATE")
            releases.append(threading.Timer(1.0, lock.rollback))
            releases[0].start()

    run(plan_for(records_file(tmp_path, N)), store, interfere)
    releases[0].join()
    lock.close()
    assert outcome(store) == undisturbed
    told = [each.getMessage() for each in caplog.records if "outages" in each.name]
    assert len(told) == 2
    assert told[0].startswith("sql is away (asked again until it answers): SQLite: ")
    assert told[1].startswith("sql answers again after ")


def told_of(telemetry: Telemetry, metric: str, **labels: str) -> float | None:
    named = {"stream": NAME, **labels}
    return telemetry.metrics.registry.get_sample_value(metric, named)


def test_while_sql_is_away_the_stream_is_paused_and_lags(
    tmp_path: Path, undisturbed: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each try as well: one may take as long as the database waits for a lock."""
    store, telemetry = new_store(tmp_path), Hook(lambda *_: None)
    plan = plan_for(records_file(tmp_path, N))
    commit = store.commit
    seen: list[tuple[float | None, float | None, float | None, int]] = []
    source = FileSource(plan.stream)
    place = {"topic": next(iter(source.assignment())).topic, "partition": "0"}

    def stubborn(batch: BatchCommit) -> object:
        if batch.offsets and batch.epoch > 5 and len(seen) < 3:
            seen.append(
                (
                    told_of(telemetry, "weald_phase", phase="paused"),
                    told_of(telemetry, "weald_paused_partitions"),
                    told_of(telemetry, "weald_partition_lag_records", **place),
                    sum(advance.n_received for advance in batch.offsets),
                )
            )
            raise StorageUnavailable("gone for a while")
        return commit(batch)

    monkeypatch.setattr(store, "commit", stubborn)
    Engine(plan, source, store, telemetry=telemetry).run()
    before, *during = seen
    assert before[:2] == (0.0, 0.0)
    for phase, paused, lag, n in during:
        assert (phase, paused) == (1.0, 1.0)
        assert lag is not None
        assert lag >= n > 0
    assert told_of(telemetry, "weald_phase", phase="paused") == 0.0
    assert told_of(telemetry, "weald_partition_lag_records", **place) == 0.0
    assert outcome(store) == undisturbed


class OfGroup(FileSource):
    """A file that is read as if by a member of a consumer group."""

    group = "ours"

    def member_id(self) -> str:
        return owned_by(super().member_id(), self.group)


def claimed_by(store: SqlStore, owner: str) -> Callable[[str, int], None]:
    def interfere(name: str, nth: int) -> None:
        if (name, nth) == ("commit", 4):
            store.claim(NAME, owner, 0, takeover=True)

    return interfere


def test_two_groups_do_not_fence_each_other_for_ever(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    plan = plan_for(records_file(tmp_path, N))
    other = claimed_by(store, owned_by("m", "theirs"))
    engine = Engine(plan, OfGroup(plan.stream), store, telemetry=Hook(other))
    with pytest.raises(StreamConflict, match=r"by the consumer group 'theirs' now; .* 'ours'"):
        engine.run()
    assert store.position(NAME).owner == "m of group theirs"


@pytest.mark.parametrize("owner", ["snapshot revert", owned_by("m", "ours")])
def test_a_fence_of_the_same_group_or_of_a_person_is_no_conflict(
    tmp_path: Path, undisturbed: Outcome, owner: str
) -> None:
    store = new_store(tmp_path)
    plan = plan_for(records_file(tmp_path, N))

    def interfere(name: str, nth: int) -> None:
        claimed_by(store, owner)(name, nth)
        if (name, nth) == ("commit", 4):
            source._changes.append(Change("assigned", tuple(source.assignment())))

    source = OfGroup(plan.stream)
    Engine(plan, source, store, telemetry=Hook(interfere)).run()
    assert outcome(store) == undisturbed


class Counted(OfGroup):
    """Likewise, under a generation and an identity that a test sets."""

    counted, name = 7, "first"
    engine: Engine
    polls = 0

    def generation(self) -> int:
        return self.counted

    def member_id(self) -> str:
        return owned_by(self.name, self.group)

    def poll(self, timeout_s: float) -> list[Message]:
        self.polls += 1
        if self.polls == 200:
            self.engine.stop()
        return super().poll(timeout_s)


class WithNothing(Counted):
    """Joins the group when it is polled for the third time, and is given no partitions."""

    ready: list[bool]

    def assignment(self) -> set[TopicPartition]:
        return set()

    def take_changes(self) -> list[Change]:
        return []

    def poll(self, timeout_s: float) -> list[Message]:
        self.counted = 7 if self.polls > 2 else -1
        self.ready.append(self.engine._telemetry.health.ready().ok)
        super().poll(timeout_s)
        return []


def test_who_has_joined_and_writes_nothing_is_a_standby(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    plan = plan_for(records_file(tmp_path, N))
    source, telemetry = WithNothing(plan.stream), Hook(lambda *_: None)
    for asked_before in ("schema", "sql"):
        telemetry.health.satisfied(asked_before)
    source.ready = []
    source.engine = Engine(plan, source, store, telemetry=telemetry)
    source.engine.run()
    assert source.ready == [False] * 4 + [True] * 196


class TakenAway(Counted):
    """Its group gives the partitions to another member when a test says so."""

    taken = standing_by = False

    def assignment(self) -> set[TopicPartition]:
        return set() if self.taken else super().assignment()

    def poll(self, timeout_s: float) -> list[Message]:
        if self.taken and not self.standing_by:
            told = told_of(self.engine._telemetry, "weald_phase", phase="standby")
            self.standing_by = told == 1.0
        messages = super().poll(timeout_s)
        return [] if self.taken else messages


def test_who_loses_the_partitions_in_an_outage_is_a_standby(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, telemetry = new_store(tmp_path), Hook(lambda *_: None)
    plan = plan_for(records_file(tmp_path, N))
    commit, source = store.commit, TakenAway(plan.stream)

    def failing(batch: BatchCommit) -> object:
        if batch.epoch == 5:
            source._changes.append(Change("lost", tuple(source.assignment())))
            source.taken = True
            raise StorageUnavailable("gone for a while")
        return commit(batch)

    monkeypatch.setattr(store, "commit", failing)
    source.engine = Engine(plan, source, store, telemetry=telemetry)
    source.polls = 100
    source.engine.run()
    assert told_of(telemetry, "weald_rebalances_total", kind="lost") == 1.0
    assert told_of(telemetry, "weald_assigned_partitions") == 0.0
    assert source.standing_by


def test_a_group_that_counts_from_the_start_is_believed_after_a_while(
    tmp_path: Path, undisturbed: Outcome
) -> None:
    store = new_store(tmp_path)
    plan = plan_for(records_file(tmp_path, N))

    def run_under(generation: int, before: Callable[[str, int], None]) -> None:
        source = Counted(plan.stream)
        source.counted = generation
        source.engine = Engine(plan, source, store, telemetry=Hook(before))
        source.engine.run()

    with pytest.raises(KilledError):
        run_under(7, killer("commit", 4))
    run_under(1, lambda *_: None)
    assert outcome(store) == undisturbed
    assert store.position(NAME).generation == 1


def test_a_member_that_was_lost_and_taken_in_again_begins_a_new_tenure(
    tmp_path: Path, undisturbed: Outcome
) -> None:
    """Both may be heard of at once, and in between another may have written."""
    store = new_store(tmp_path)
    plan = plan_for(records_file(tmp_path, N))

    def interfere(name: str, nth: int) -> None:
        if (name, nth) == ("commit", 4):
            source.name = "second"
            places = tuple(source.assignment())
            source._changes += [Change("lost", places), Change("assigned", places)]

    source = Counted(plan.stream)
    source.engine = Engine(plan, source, store, telemetry=Hook(interfere))
    source.engine.run()
    assert outcome(store) == undisturbed
    assert store.position(NAME).owner == owned_by("second", "ours")


def test_new_settings_hold_from_a_start_on(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    run(plan_for(records_file(tmp_path, 200, N)), store)
    later = plan_for(records_file(tmp_path, N))
    cadence = msgspec.structs.replace(later.refinement, publish_every_records=50, every_records=50)
    run(dataclasses.replace(later, refinement=cadence), store)
    shown = [row.seq for row in store.publications(NAME) if row.seq > 200]
    assert shown[:3] == [250, 300, 350]


LIMITED = msgspec.structs.replace(SCHEMA, max_bytes=200)


def with_long_and_bad_records(folder: Path) -> Path:
    """A hundred good records of which three are long, and two that are none."""
    lines = [line_of(i, row) for i, row in enumerate(values_of(100))]
    for i in (20, 21, 90):
        lines[i] = lines[i] + " " * 300
    lines[40:40] = ["nonsense", '{"x": 1}']
    return write_lines(folder / "long.jsonl", lines)


def test_dead_letters_are_decided_anew_when_asked_for(tmp_path: Path) -> None:
    plan = plan_for(with_long_and_bad_records(tmp_path))
    store = new_store(tmp_path)
    limited = dataclasses.replace(plan, schema=LIMITED)
    run(limited, store)
    assert store.dead_letter_counts(NAME) == {"missing_field": 1, "not_json": 1, "too_large": 3}
    assert store.request_replay(NAME, Letters()) == (5, 0)
    for step in ("commit", "redis"):
        with pytest.raises(KilledError):
            run(plan, new_store(tmp_path), killer(step, 1))
    run(plan, store)
    assert store.dead_letter_counts(NAME) == {"missing_field": 1, "not_json": 1}
    assert_exactly_once(store, 100)
    (row,) = store.ledger(NAME)
    assert (row.n_received, row.n_inserted, row.n_dead) == (102, 100, 2)
    assert store.replay_requests(NAME, limit=9) == []
    store.delete_snapshots(NAME, [info.number for info in store.snapshots(NAME)])
    before = outcome(store)
    run(plan, store)
    assert outcome(store) == before


def test_letters_that_stay_dead_do_not_stop_the_stream(tmp_path: Path) -> None:
    lines = [line_of(i, row) for i, row in enumerate(values_of(300))]
    path = write_lines(tmp_path / "bad.jsonl", lines + ["nonsense"] * 200)
    store = new_store(tmp_path)
    plan = plan_for(path, batch_records=30, dead_letter_share=0.9)
    run(plan, store)
    store.request_replay(NAME, Letters())
    run(plan_for(path, batch_records=30, dead_letter_share=0.01), store)
    assert store.dead_letter_counts(NAME) == {"not_json": 200}
    assert store.replay_requests(NAME, limit=1) == []


def test_numbers_at_the_edge_of_what_is_accepted(tmp_path: Path) -> None:
    """Squares and determinants of them once left float64, and a compiled kernel its arrays."""
    edge = (0.9 * LARGEST, -0.9 * LARGEST, 1e-300, 1e-60, 0.0)
    values = values_of(300)
    values[::7] = edge[0]
    values[3::11, 1] = np.resize(edge, len(values[3::11]))
    lines = [line_of(i, row) for i, row in enumerate(values)]
    store = new_store(tmp_path)
    run(plan_for(write_lines(tmp_path / "edge.jsonl", lines)), store)
    assert_exactly_once(store, 300)
    assert np.isfinite([row.log_joint for row in store.publications(NAME)]).all()
