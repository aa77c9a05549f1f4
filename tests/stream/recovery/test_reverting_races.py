"""People who make snapshots and go back to them at the same time, or while a writer starts.

Each of these interleavings lost something, or stopped a writer, before it was here.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.stream.scenario import (
    CADENCE,
    NAME,
    Outcome,
    assert_exactly_once,
    new_store,
    outcome,
    plan_for,
    records_file,
    run,
)
from weald.storage.errors import SnapshotCorrupt, StreamConflict
from weald.storage.queries.answers import SnapshotInfo
from weald.storage.writing.store import SqlStore
from weald.stream.dead_letters import replay as second_chances
from weald.stream.engine import writer
from weald.stream.engine.engine import Engine
from weald.stream.model.model import StreamConfig
from weald.stream.record.record import Message
from weald.stream.recovery import snapshots
from weald.stream.recovery.recovery import usable
from weald.stream.source.file_source import FileSource

N = 450


def silent(_: int) -> None:
    pass


def plan_over(folder: Path, n: int = N) -> StreamConfig:
    path = records_file(folder, n, N)
    return plan_for(path, snapshot_records=100, diverged="stop")


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
    run(plan_over(tmp_path), store)
    return store


def two_of(store: SqlStore) -> tuple[SnapshotInfo, SnapshotInfo]:
    """An early snapshot and a later one, with others before, between and after them."""
    found = store.snapshots(NAME)[::-1]
    return found[1], found[3]


def once_before(
    monkeypatch: pytest.MonkeyPatch, place: Any, name: str, act: Callable[[], object]
) -> None:
    """Have something happen just before the first call of a function."""
    function, due = getattr(place, name), [True]

    def later(*args: Any, **keywords: Any) -> Any:
        if due.pop() if due else False:
            act()
        return function(*args, **keywords)

    monkeypatch.setattr(place, name, later)


def once_after(
    monkeypatch: pytest.MonkeyPatch, place: Any, name: str, act: Callable[[], object]
) -> None:
    """Have something happen just after the first call of a function."""
    function, due = getattr(place, name), [True]

    def earlier(*args: Any, **keywords: Any) -> Any:
        result = function(*args, **keywords)
        if due.pop() if due else False:
            act()
        return result

    monkeypatch.setattr(place, name, earlier)


def way_back(folder: Path, to: SnapshotInfo) -> Callable[[], int]:
    """What somebody else does who goes back to a snapshot and drops later results."""
    other = new_store(folder)
    return lambda: snapshots.revert_dropping(other, NAME, to.number)


def test_of_two_ways_back_the_later_snapshot_is_refused(
    tmp_path: Path, whole: SqlStore, undisturbed: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    early, late = two_of(whole)
    once_before(monkeypatch, whole, "rewind", way_back(tmp_path, early))
    with pytest.raises(StreamConflict, match="went while it was read"):
        snapshots.revert_dropping(whole, NAME, late.number)
    assert whole.position(NAME).next_seq == early.seq + 1
    run(plan_over(tmp_path), whole)
    assert outcome(whole) == undisturbed
    assert_exactly_once(whole, N)


def test_a_snapshot_that_is_pruned_while_it_is_read_is_refused(
    whole: SqlStore, undisturbed: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    early, _ = two_of(whole)
    gone = [each.number for each in whole.snapshots(NAME) if each.number <= early.number]
    once_before(monkeypatch, whole, "rewind", lambda: whole.delete_snapshots(NAME, gone))
    with pytest.raises(StreamConflict, match="went while it was read"):
        snapshots.revert_dropping(whole, NAME, early.number)
    assert outcome(whole) == undisturbed


def test_a_way_back_to_one_made_beside_the_writer_drops_later_ones_of_lower_numbers(
    whole: SqlStore,
) -> None:
    early, late = two_of(whole)
    image = whole.snapshot(NAME, early.number)
    assert image is not None
    made = whole.save_snapshot(NAME, image, early.epoch)
    assert made > late.number
    snapshots.revert_dropping(whole, NAME, made)
    assert all(each.seq <= early.seq for each in whole.snapshots(NAME))


def test_a_snapshot_of_before_a_way_back_is_not_kept(
    tmp_path: Path, whole: SqlStore, undisturbed: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    early, _ = two_of(whole)
    once_before(monkeypatch, whole, "save_snapshot", way_back(tmp_path, early))
    with pytest.raises(StreamConflict, match="was put back"):
        snapshots.create(whole, NAME, "by hand", silent)
    assert whole.snapshots(NAME)[0].number == early.number
    run(plan_over(tmp_path), whole)
    assert outcome(whole) == undisturbed


@pytest.mark.parametrize("moment", ["restored", "replay"])
def test_a_way_back_while_a_snapshot_is_made_is_told_as_such(
    tmp_path: Path, whole: SqlStore, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    early, _ = two_of(whole)
    once_after(monkeypatch, snapshots, moment, way_back(tmp_path, early))
    with pytest.raises(StreamConflict, match="was put back"):
        snapshots.create(whole, NAME, None, silent)


def test_a_snapshot_of_before_kept_results_is_not_kept(
    tmp_path: Path, whole: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    early, _ = two_of(whole)
    other, made = new_store(tmp_path, snapshots_kept=100), []

    def keep() -> None:
        made.append(snapshots.revert_keeping(other, NAME, early.number, CADENCE, silent))

    once_before(monkeypatch, whole, "save_snapshot", keep)
    with pytest.raises(StreamConflict, match="was put back"):
        snapshots.create(whole, NAME, "by hand", silent)
    assert [whole.snapshots(NAME)[0].number] == made


def test_a_snapshot_from_which_rows_are_forgotten_is_not_kept(whole: SqlStore) -> None:
    early, _ = two_of(whole)
    image = whole.snapshot(NAME, early.number)
    assert image is not None
    # What the writer does with the commits that come while an image of that moment is made.
    gone = [each.number for each in whole.snapshots(NAME) if each.seq <= early.seq]
    whole.delete_snapshots(NAME, gone)
    with pytest.raises(StreamConflict, match="moved on too far"):
        whole.save_snapshot(NAME, image, early.epoch)


def test_a_snapshot_may_be_made_while_the_writer_makes_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = new_store(tmp_path), new_store(tmp_path)
    run(plan_over(tmp_path, 130), store)
    there = store.position(NAME).next_seq - 1
    once_after(monkeypatch, snapshots, "_standing", lambda: run(plan_over(tmp_path, 250), store))
    made = snapshots.create(other, NAME, "by hand", silent)
    assert usable(other, NAME, made).seq == there
    snapshots.verify(other, NAME, made)


def test_kept_results_are_those_of_the_stream_that_is_there(
    tmp_path: Path, whole: SqlStore, undisturbed: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    early, late = two_of(whole)
    once_after(monkeypatch, snapshots, "usable", way_back(tmp_path, early))
    with pytest.raises(SnapshotCorrupt, match="there is no snapshot"):
        snapshots.revert_keeping(whole, NAME, late.number, CADENCE, silent)
    run(plan_over(tmp_path), whole)
    assert outcome(whole) == undisturbed


@pytest.mark.parametrize("diverged", ["stop", "adopt"])
def test_a_start_that_is_put_back_during_its_replay_begins_again(
    tmp_path: Path,
    whole: SqlStore,
    undisturbed: Outcome,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    diverged: str,
) -> None:
    early, late = two_of(whole)
    later = [each.number for each in whole.snapshots(NAME) if each.number > late.number]
    whole.delete_snapshots(NAME, later)
    once_before(monkeypatch, writer, "replay", way_back(tmp_path, early))
    plan = plan_for(tmp_path / "records.jsonl", snapshot_records=100, diverged=diverged)
    run(plan, whole)
    assert outcome(whole) == undisturbed
    assert "stays as SQL has it" not in caplog.text


class Silent(FileSource):
    """A file after whose last record somebody goes back, while others may still come."""

    engine: Engine
    silences = 0
    exhausted = False

    def poll(self, timeout_s: float) -> list[Message]:
        messages = super().poll(timeout_s)
        if not messages:
            self.silences += 1
            self.in_a_silence(self.silences)
        return messages

    def in_a_silence(self, nth: int) -> None:
        if nth == 40:
            self.engine.stop()


def test_a_writer_that_is_put_back_in_a_silence_reads_again(
    tmp_path: Path, undisturbed: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(second_chances, "SECONDS", 0.0)
    store, other, taken = new_store(tmp_path), new_store(tmp_path), []

    class PutBack(Silent):
        def in_a_silence(self, nth: int) -> None:
            super().in_a_silence(nth)
            if nth == 10:
                number = other.snapshots(NAME)[-1].number
                taken.append(snapshots.revert_dropping(other, NAME, number))

    plan = plan_over(tmp_path)
    source = PutBack(plan.stream)
    source.engine = Engine(plan, source, store)
    source.engine.run()
    assert taken[0] > 0
    assert store.position(NAME).next_seq == N + 1
    # The file has an end after all: what is left is published.
    run(plan, store)
    assert outcome(store) == undisturbed
    assert_exactly_once(store, N)
