"""Engines of one stream in shards: who says what the model is, and how several run in a process."""

# ruff: noqa: ARG002 - as the port has it

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.crash.processes import wait_until
from tests.stream.scenario import MODEL, NAME, line_of, new_store, plan_for, values_of
from weald.storage.commit.log_marks import LogMark
from weald.storage.errors import StreamConflict, StreamNotFound
from weald.storage.writing.store import SqlStore
from weald.stream.engine.engine import Engine
from weald.stream.engine.side_by_side import run_all
from weald.stream.model.model import StreamConfig
from weald.stream.record.record import Message, TopicPartition
from weald.stream.source.recognition import FoundLog
from weald.stream.source.source import Change, in_order


class Topic:
    """One shard's partition of a topic, which ends."""

    def __init__(self, partition: int, lines: Sequence[str]) -> None:
        self.place = TopicPartition("events", partition)
        self._messages = [
            Message(*self.place, offset, -1, None, line.encode())
            for offset, line in enumerate(lines)
        ]
        self._next = 0
        self._changes = [Change("assigned", (self.place,))]
        self._paused = False
        self.exhausted = False
        self.fails: Exception | None = None

    def poll(self, timeout_s: float) -> list[Message]:
        if self.fails is not None:
            raise self.fails
        found = [] if self._paused else self._messages[self._next : self._next + 20]
        self._next += len(found)
        self.exhausted = self._next == len(self._messages)
        return in_order(found)

    def take_changes(self) -> list[Change]:
        changes, self._changes = self._changes, []
        return changes

    def assignment(self) -> set[TopicPartition]:
        return {self.place}

    def look(self, marks: Mapping[TopicPartition, LogMark]) -> dict[TopicPartition, FoundLog]:
        return {}

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._next = offsets.get(self.place, 0)

    def generation(self) -> int:
        return 0

    def member_id(self) -> str:
        return f"member-{self.place.partition}"

    def lag(self) -> dict[TopicPartition, int]:
        return {}

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None: ...

    def close(self) -> None: ...


class Endless(Topic):
    """A partition to which nothing comes any more."""

    def poll(self, timeout_s: float) -> list[Message]:
        found = super().poll(timeout_s)
        self.exhausted = False
        return found


def plan_of(shard: int, shards: int = 2, **model: Any) -> StreamConfig:
    plan = plan_for(None)
    stream = msgspec.structs.replace(plan.stream, source="kafka", shards=shards, poll_seconds=0.01)
    settings = msgspec.structs.replace(MODEL, **model)
    return replace(plan, stream=stream, model=settings, shard=shard)


def lines(which: Iterable[int]) -> list[str]:
    rows = values_of(400)
    return [line_of(i, rows[i]) for i in which]


def n_inserted(store: SqlStore) -> int:
    try:
        return sum(store.status(part).n_inserted for part in store.parts(NAME).values())
    except StreamNotFound:
        return 0


def engine(store: SqlStore, shard: int, which: Iterable[int], **plan: Any) -> Engine:
    return Engine(plan_of(shard, **plan), Topic(shard, lines(which)), store)


def test_the_first_shard_to_warm_up_makes_the_model_of_all(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        engine(store, 1, range(1, 200, 2)).run()
        # Fewer than a warm-up asks for, and other values: they need no sample of their own.
        engine(store, 0, range(0, 40, 2)).run()
        whole = store.spec(NAME)
        assert whole.shards == 2
        parts = store.parts(NAME)
        assert parts == {0: f"{NAME}/0", 1: f"{NAME}/1"}
        first, second = (store.spec(parts[shard]) for shard in (0, 1))
        assert first.family_params == second.family_params == whole.family_params
        assert first.transformation == second.transformation == whole.transformation
        assert len({first.seed, second.seed, whole.seed}) == 3
        assert [store.status(part).n_inserted for part in parts.values()] == [20, 100]
        assert store.status(NAME).n_inserted == 120
        assert store.ledger(parts[0])[0].partition == 0


def test_a_shard_that_waits_for_its_warm_up_takes_what_another_came_to(tmp_path: Path) -> None:
    with new_store(tmp_path) as store, new_store(tmp_path) as other:
        waiting = Engine(plan_of(0), Endless(0, lines(range(0, 40, 2))), other)
        thread = threading.Thread(target=waiting.run)
        thread.start()
        engine(store, 1, range(1, 200, 2)).run()
        try:
            wait_until(lambda: n_inserted(store) == 120, "both shards are in SQL", 60.0)
        finally:
            waiting.stop()
            thread.join()
        assert store.status(f"{NAME}/0").n_inserted == 20


def test_a_shard_goes_on_where_it_was(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        engine(store, 0, range(100)).run()
    with new_store(tmp_path) as store:
        engine(store, 0, range(180)).run()
        assert store.status(f"{NAME}/0").n_inserted == 180


def test_another_number_of_shards_or_another_model_is_refused(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        engine(store, 0, range(100)).run()
        with pytest.raises(StreamConflict, match="shards 2, asked for 3"):
            engine(store, 0, range(100), shards=3).run()
        with pytest.raises(StreamConflict, match="seed"):
            engine(store, 1, range(100), seed=8).run()
        unsharded = replace(plan_of(0, shards=1), shard=None)
        with pytest.raises(StreamConflict, match="shards 2, asked for 1"):
            Engine(unsharded, Topic(0, lines(range(100))), store).run()


def test_one_engine_that_fails_ends_the_others(tmp_path: Path) -> None:
    with new_store(tmp_path) as store, new_store(tmp_path) as other:
        broken, sound = Endless(0, []), Endless(1, lines(range(100)))
        broken.fails = ValueError("the topic is on fire")
        engines = [
            Engine(plan_of(0), broken, store),
            Engine(plan_of(1), sound, other),
        ]
        with pytest.raises(ValueError, match="on fire"):
            run_all(engines)
        assert not any(thread.name.startswith(NAME) for thread in threading.enumerate())


def test_all_engines_stop_together(tmp_path: Path) -> None:
    with new_store(tmp_path) as store, new_store(tmp_path) as other:
        engines = [
            Engine(plan_of(shard), Endless(shard, lines(range(shard, 200, 2))), each)
            for shard, each in enumerate((store, other))
        ]
        running = threading.Thread(target=run_all, args=(engines,))
        running.start()
        wait_until(lambda: n_inserted(store) == 200, "all are in SQL", 60.0)
        engines[0].stop()
        running.join(10.0)
        assert not running.is_alive()
