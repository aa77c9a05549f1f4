"""In a backlog a transaction is written while the loop goes on: in order, once, and never lost."""

import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.stream.scenario import (
    CADENCE,
    NAME,
    KilledError,
    assert_exactly_once,
    assert_replayed,
    engine_at_pace,
    killer,
    new_store,
    outcome,
    plan_for,
    records_file,
    shard_of,
)
from weald.storage.commit.commit import BatchCommit
from weald.storage.errors import InvariantBroken, StorageUnavailable
from weald.storage.writing.store import SqlStore
from weald.stream.dead_letters.replay import DeadLetterReplay
from weald.stream.engine.engine import Engine
from weald.stream.engine.yielding import Yielding
from weald.stream.errors import Rebalanced
from weald.stream.model.model import StreamConfig
from weald.stream.settings import MemorySettings

N = 1030
BATCH = 40
PACE = msgspec.structs.replace(CADENCE, pace="yielding", every_records=BATCH)
Before = Callable[[BatchCommit], None]
# The model of a new stream comes with an image, and so do the last records.
AMONG = 9


class Busy(Yielding):
    """Is behind as long as a batch is full, and has no time for a refinement."""

    def _affords(self, of_many: int) -> bool:  # noqa: ARG002 - for none
        return not self._behind


def _nothing(*_: object) -> None:
    """Happens."""


class Watched:
    """Which thread wrote which transaction, with something that happens before or after one."""

    def __init__(
        self, store: SqlStore, before: Before = _nothing, after: Before = _nothing
    ) -> None:
        self.threads: list[tuple[int, str]] = []
        self._commit = store.commit
        self._before, self._after = before, after
        store.commit = self._write  # type: ignore[method-assign]  # looked at

    def _write(self, batch: BatchCommit) -> None:
        self.threads.append((batch.epoch, threading.current_thread().name))
        self._before(batch)
        self._commit(batch)
        self._after(batch)

    @property
    def beside(self) -> list[int]:
        """Numbers of those that were written beside the loop."""
        return [epoch for epoch, name in self.threads if name.startswith("commit")]


def plan_of(folder: Path, **stream: object) -> StreamConfig:
    path = folder / "records.jsonl"
    settings: dict[str, object] = {"snapshot_records": 10**6, "batch_records": BATCH, **stream}
    plan = plan_for(path if path.exists() else records_file(folder, N), **settings)  # type: ignore[arg-type]  # of the stream
    return replace(plan, refinement=PACE)


def engine_of(
    plan: StreamConfig, store: SqlStore, before: Callable[[str, int], None] = _nothing
) -> Engine:
    return engine_at_pace(plan, store, Busy(), before)


def assert_whole(store: SqlStore, engine: Engine) -> None:
    assert_exactly_once(store, N)
    assert_replayed(store, shard_of(engine), PACE, lagging=True)


def is_under_way(engine: Engine, epoch: int) -> bool:
    """Whether the transaction of this number has begun beside the loop, and nobody was told."""
    writer = engine._ownership.writer
    return engine._delivery.goes_on and writer is not None and writer.epoch == epoch - 1


def once(epoch: int, error: Exception) -> Before:
    """Fails of it when the transaction of this number comes for the first time."""
    left = [error]

    def fail(commit: BatchCommit) -> None:
        if commit.epoch == epoch and left:
            raise left.pop()

    return fail


def test_the_next_batch_is_taken_in_meanwhile(tmp_path: Path) -> None:
    inserted, waited = threading.Event(), list[bool]()

    def until_the_next_is_in(commit: BatchCommit) -> None:
        if commit.epoch == AMONG:
            waited.append(inserted.wait(20.0))

    def step(name: str, _count: int) -> None:
        if name == "insert" and is_under_way(engine, AMONG):
            inserted.set()

    with new_store(tmp_path) as store:
        watched = Watched(store, until_the_next_is_in)
        engine = engine_of(plan_of(tmp_path), store, step)
        engine.run()
        assert waited == [True]
        assert len(watched.beside) > N // BATCH // 2
        assert AMONG in watched.beside
        epochs = [epoch for epoch, _ in watched.threads]
        assert all(later == earlier + 1 for earlier, later in pairwise(epochs))
        assert_whole(store, engine)


def test_what_it_comes_to_does_not_depend_on_it(tmp_path: Path) -> None:
    found = []
    for name, slow in (("beside", False), ("alone", True)):
        with new_store(tmp_path, name) as store:
            watched = Watched(store)
            engine = engine_of(plan_of(tmp_path), store)
            if slow:
                pipeline = engine._delivery
                deliver = pipeline.deliver
                pipeline.deliver = lambda *a, _to=deliver, **k: _to(*a, **k | {"beside": False})  # type: ignore[method-assign]  # in turn
            engine.run()
            assert bool(watched.beside) is not slow
            found.append(outcome(store))
    assert found[0] == found[1]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_one_whose_outcome_is_unknown_is_written_again(tmp_path: Path, moment: str) -> None:
    fail = once(AMONG, StorageUnavailable("nobody answers"))
    with new_store(tmp_path) as store:
        watched = Watched(store, **{moment: fail})
        engine = engine_of(plan_of(tmp_path), store)
        engine.run()
        # Again by the loop, which has nothing else to do.
        assert dict(watched.threads)[AMONG] == "MainThread"
        assert AMONG + 1 in watched.beside
        assert_whole(store, engine)


def test_a_newer_owner_has_the_loop_drop_both_batches(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        left = [AMONG]

        def claim(commit: BatchCommit) -> None:
            if commit.epoch in left:
                left.clear()
                store.claim(NAME, "another", 0, takeover=True)

        watched = Watched(store, claim)
        engine = engine_of(plan_of(tmp_path), store)
        engine.run()
        assert [epoch for epoch, _ in watched.threads].count(AMONG) == 2
        assert AMONG in watched.beside
        assert_whole(store, engine)


def test_a_stream_that_is_let_go_is_claimed_anew_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what it brings would be read from the topic a second time."""
    happened, loaded = list[str](), SqlStore.claim
    left = [Rebalanced("the partitions were lost")]

    def claim(store: SqlStore, *claimed: Any, **more: Any) -> Any:
        happened.append("claimed")
        return loaded(store, *claimed, **more)

    def slow(commit: BatchCommit) -> None:
        if commit.epoch == AMONG and not happened.count("written"):
            threading.Event().wait(0.2)

    def written(commit: BatchCommit) -> None:
        if commit.epoch == AMONG:
            happened.append("written")

    def lose(name: str, _count: int) -> None:
        if name == "insert" and is_under_way(engine, AMONG) and left:
            raise left.pop()

    monkeypatch.setattr(SqlStore, "claim", claim)
    with new_store(tmp_path) as store:
        Watched(store, slow, written)
        engine = engine_of(plan_of(tmp_path), store, lose)
        engine.run()
        assert not left
        assert happened == ["claimed", "written", "claimed"]
        assert_whole(store, engine)


def test_dead_letters_are_decided_anew_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The look at whose the stream is knows of each commit."""

    def due(_: DeadLetterReplay) -> bool:
        if (beside := engine._delivery._beside) is not None:
            beside[1].result(20.0)
        return True

    monkeypatch.setattr(DeadLetterReplay, "due", property(due))
    with new_store(tmp_path) as store:
        watched = Watched(store)
        engine = engine_of(plan_of(tmp_path), store)
        engine.run()
        assert len(watched.beside) > N // BATCH // 2
        assert_whole(store, engine)
    assert "dropped" not in caplog.text


def test_what_no_retry_mends_ends_the_stream(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        Watched(store, once(AMONG, InvariantBroken("wrong")))
        with pytest.raises(InvariantBroken, match="wrong"):
            engine_of(plan_of(tmp_path), store).run()
        assert store.position(NAME).epoch == AMONG - 1
    with new_store(tmp_path) as store:
        engine = engine_of(plan_of(tmp_path), store)
        engine.run()
        assert_whole(store, engine)


@pytest.mark.parametrize("step", ["poll", "decode", "insert", "commit", "redis", "courtesy"])
def test_killed_at_any_step(tmp_path: Path, step: str) -> None:
    """What was being written then is in SQL or is not: the run after goes on from there."""
    for count in (AMONG, 5, 3):
        with new_store(tmp_path) as store, pytest.raises(KilledError):
            engine_of(plan_of(tmp_path), store, killer(step, count)).run()
    with new_store(tmp_path) as store:
        engine = engine_of(plan_of(tmp_path), store)
        engine.run()
        assert_whole(store, engine)


def test_a_loop_that_ends_waits_for_it(tmp_path: Path) -> None:
    """Whoever claims the stream next must not be overtaken by what was written before."""
    killed, entered = threading.Event(), threading.Event()

    def slow(commit: BatchCommit) -> None:
        if commit.epoch == AMONG:
            entered.set()
            assert killed.wait(20.0)
            threading.Event().wait(0.1)

    def kill(name: str, _count: int) -> None:
        if name == "decode" and is_under_way(engine, AMONG):
            assert entered.wait(20.0)
            killed.set()
            raise KilledError

    with new_store(tmp_path) as store:
        Watched(store, slow)
        engine = engine_of(plan_of(tmp_path), store, kill)
        with pytest.raises(KilledError):
            engine.run()
        assert store.position(NAME).epoch == AMONG


def test_one_that_is_stopped_has_everything_in_sql(tmp_path: Path) -> None:
    entered = threading.Event()

    def stop(name: str, _count: int) -> None:
        if name == "insert" and entered.is_set():
            engine.stop()

    with new_store(tmp_path) as store:
        watched = Watched(store, lambda commit: entered.set() if commit.epoch == AMONG else None)
        engine = engine_of(plan_of(tmp_path), store, stop)
        engine.run()
        assert AMONG in watched.beside
        live = shard_of(engine)
        assert live.seq < N
        assert store.position(NAME).next_seq == live.seq + 1
        assert store.snapshots(NAME)[0].seq == live.seq
        assert_replayed(store, live, PACE, lagging=True)


@pytest.mark.parametrize(
    ("stream", "memory"),
    [
        ({"duplicate_keys": "keep-first"}, MemorySettings()),
        ({"duplicate_keys": "update"}, MemorySettings()),
        ({}, MemorySettings(leaf_budget=300, policy="bundles")),
    ],
    ids=["keep-first", "update", "bundles"],
)
def test_none_where_the_next_batch_asks_sql_for_what_this_one_brings(
    tmp_path: Path, stream: dict[str, object], memory: MemorySettings
) -> None:
    plan = replace(plan_of(tmp_path, **stream), memory=memory)
    with new_store(tmp_path) as store:
        watched = Watched(store)
        engine_of(plan, store).run()
        assert watched.threads
        assert not watched.beside
        assert_exactly_once(store, N)
