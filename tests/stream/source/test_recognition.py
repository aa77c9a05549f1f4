"""Another log under the same name is never taken for the one that was read."""

from pathlib import Path

import pytest

from tests.stream.scenario import (
    NAME,
    assert_exactly_once,
    line_of,
    new_store,
    outcome,
    plan_for,
    records_file,
    run,
    values_of,
    write_lines,
)
from weald.storage.commit.log_marks import LogMark
from weald.storage.errors import StreamConflict
from weald.storage.writing.store import SqlStore
from weald.stream.engine.engine import Engine
from weald.stream.errors import LogReplaced, SourceError
from weald.stream.model.model import StreamConfig
from weald.stream.record.record import Message, TopicPartition, checksum_of
from weald.stream.recovery.snapshots import revert_dropping
from weald.stream.source.file_source import FileSource
from weald.stream.source.recognition import Decision, FoundLog, differences_of, replacements

PLACE = TopicPartition("events", 0)
READ = LogMark("id-1", 10, 41, "c0ffee")
SAME = FoundLog("id-1", 10, 60, "c0ffee")


@pytest.mark.parametrize(
    ("found", "seen"),
    [
        (SAME, None),
        (FoundLog("id-1", 30, 60, None), None),  # the record has expired
        (FoundLog(None, 10, 60, "c0ffee"), None),  # an older broker
        (FoundLog("id-1", 10, 42, "c0ffee"), None),
        (FoundLog("id-2", 10, 60, "c0ffee"), "has the id id-1, the one that is there id-2"),
        (FoundLog("id-1", 0, 60, "c0ffee"), "began at offset 10, this one at 0"),
        (FoundLog("id-1", 10, 41, None), "goes on at offset 42, the log ends at 41"),
        (FoundLog(None, 10, 60, "decaf"), "offset 41 had the checksum c0ffee .* has decaf"),
    ],
)
def test_by_what_another_log_is_told(found: FoundLog, seen: str | None) -> None:
    differences = differences_of({PLACE: 42}, {PLACE: READ}, {PLACE: found})
    if seen is None:
        assert differences == {}
    else:
        with pytest.raises(LogReplaced, match=rf"events\[0\]: .*{seen}"):
            replacements(differences, {PLACE: found}, [PLACE], None, 0.0)


def test_a_topic_is_made_anew_with_all_its_partitions() -> None:
    """An upgraded database knows the id from those partitions only that moved since."""
    quiet = TopicPartition("events", 1)
    marks = {PLACE: READ, quiet: LogMark()}
    found = {PLACE: FoundLog("id-2", 0, 60), quiet: FoundLog("id-2", 0, 60)}
    assert differences_of({PLACE: 42, quiet: 7}, marks, found).keys() == {PLACE, quiet}


def test_what_was_never_read_is_nobody_s_log() -> None:
    assert differences_of({}, {}, {PLACE: SAME}) == {}


def test_a_checksum_tells_keys_from_values() -> None:
    seen = {
        checksum_of(Message("t", 0, 0, 0, key, value))
        for key, value in [(b"a", b"b"), (b"ab", b""), (None, b"ab"), (b"", b"ab"), (b"ab", None)]
    }
    assert len(seen) == 5


@pytest.mark.parametrize(
    ("decision", "offset"),
    [
        (Decision(), 10),
        (Decision(50), 50),
        (Decision(50, {0: 55}), 55),
        (Decision(None, {0: 12}), 12),
    ],
)
def test_where_a_decision_leads(decision: Decision, offset: int) -> None:
    (made,) = replacements({PLACE: "why"}, {PLACE: SAME}, [PLACE], decision, 1.0)
    assert (made.next_offset, made.kept_as) == (offset, "events~1")


def test_a_decision_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(SourceError, match="ends at offset 60: nothing is skipped to 61"):
        Decision(61).offset_in(PLACE, SAME)
    with pytest.raises(SourceError, match="say where it goes on"):
        Decision(None, {1: 5}).offset_in(PLACE, SAME)


def test_a_decision_of_some_partitions_says_what_lacks() -> None:
    """All at once, as a command that can be completed."""
    places = [TopicPartition("t", number) for number in range(3)]
    found = dict.fromkeys(places, SAME)
    with pytest.raises(SourceError, match=r"t\[0\], t\[2\] are other logs, too") as caught:
        replacements(dict.fromkeys(places, "why"), found, places, Decision(None, {1: 15}), 1.0)
    assert (
        caught.value.next_step == "weald run --skip-to 0:OFFSET --skip-to 1:15 --skip-to 2:OFFSET"
    )


def test_earlier_logs_of_one_topic_have_names_of_their_own() -> None:
    known = [PLACE, TopicPartition("events~1", 0)]
    (made,) = replacements({PLACE: "why"}, {PLACE: SAME}, known, Decision(), 1.0)
    assert made.kept_as == "events~2"


# A file, from its rows to the tables.


def replaced_file(folder: Path, n: int) -> None:
    """Other rows under the same name."""
    rows = values_of(n, seed=4)
    write_lines(folder / "records.jsonl", [line_of(1_000 + i, row) for i, row in enumerate(rows)])


def run_with(plan: StreamConfig, store: SqlStore, decision: Decision) -> None:
    engine = Engine(plan, FileSource(plan.stream), store)
    engine.go_on_with(decision)
    engine.run()


def keys(store: SqlStore) -> set[str | None]:
    return set(outcome(store).keys)


def test_a_file_that_was_replaced_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    run(plan_for(records_file(tmp_path, 150)), store)
    before = store.ledger(NAME)
    replaced_file(tmp_path, 230)
    with pytest.raises(LogReplaced, match=r"records.jsonl\[0\]: the record at offset 149 had"):
        run(plan_for(tmp_path / "records.jsonl"), store)
    assert store.ledger(NAME) == before
    assert_exactly_once(store, 150)


def test_a_file_that_was_cut_is_refused(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    run(plan_for(records_file(tmp_path, 150)), store)
    with pytest.raises(LogReplaced, match="SQL goes on at offset 150, the log ends at 140"):
        run(plan_for(records_file(tmp_path, 140)), store)


def test_rows_that_were_appended_are_read(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    for n in (150, 150, 230):
        run(plan_for(records_file(tmp_path, n, 230)), store)
    assert_exactly_once(store, 230)


def test_from_the_beginning_again_keeps_both_and_is_on_record(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    run(plan_for(records_file(tmp_path, 150)), store)
    replaced_file(tmp_path, 230)
    plan = plan_for(tmp_path / "records.jsonl")
    run_with(plan, store, Decision())
    accounts = {row.topic: (row.next_offset, row.n_inserted) for row in store.ledger(NAME)}
    assert accounts == {"records.jsonl": (230, 230), "records.jsonl~1": (150, 150)}
    assert len(keys(store)) == 380
    (decision,) = store.log_decisions(NAME)
    assert (decision.topic, decision.kept_as, decision.next_offset) == (
        "records.jsonl",
        "records.jsonl~1",
        0,
    )
    assert "checksum" in decision.difference
    # It is the stream's log from now on, whether or not the decision is repeated.
    run(plan, store)
    run_with(plan, store, Decision())
    assert len(keys(store)) == 380
    assert len(store.log_decisions(NAME)) == 1


def test_a_skip_goes_on_there(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    run(plan_for(records_file(tmp_path, 150)), store)
    replaced_file(tmp_path, 230)
    run_with(plan_for(tmp_path / "records.jsonl"), store, Decision(200))
    new = {f"k{1_000 + i}" for i in range(200, 230)}
    assert keys(store) == new | {f"k{i}" for i in range(150)}


def test_there_is_no_way_back_to_a_log_that_is_gone(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    run(plan_for(records_file(tmp_path, 150)), store)
    earlier = store.snapshots(NAME)[0].number
    replaced_file(tmp_path, 230)
    run_with(plan_for(tmp_path / "records.jsonl"), store, Decision())
    decided = next(each.number for each in reversed(store.snapshots(NAME)) if each.number > earlier)
    with pytest.raises(StreamConflict, match=r"kept as records.jsonl~1"):
        revert_dropping(store, NAME, earlier)
    assert revert_dropping(store, NAME, decided) == 230
    run(plan_for(tmp_path / "records.jsonl"), store)
    assert len(keys(store)) == 380
