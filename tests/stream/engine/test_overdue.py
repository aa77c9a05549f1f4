"""A topic that brings little: what came is shown in time, and a replay gives the same."""

from collections import deque
from dataclasses import replace
from pathlib import Path

import msgspec

from tests.clock import Clock
from tests.stream.scenario import (
    CADENCE,
    NAME,
    Hook,
    assert_replayed,
    new_store,
    plan_for,
    records_file,
    shard_of,
)
from weald.stream.engine.engine import Engine
from weald.stream.engine.overdue import Overdue
from weald.stream.record.record import Message
from weald.stream.source.file_source import FileSource

FEW = 7
N = 330


def test_it_is_due_when_something_has_waited_since_it_came() -> None:
    clock = Clock()
    overdue = Overdue(60.0, clock)
    clock.now = 100.0
    overdue.look(3, unpublished=False)
    assert not overdue.due
    overdue.look(3, unpublished=True)
    clock.now = 159.0
    overdue.look(3, unpublished=True)
    assert not overdue.due
    clock.now = 160.0
    assert overdue.due


def test_a_publication_lets_what_came_after_it_wait_anew() -> None:
    clock = Clock()
    overdue = Overdue(60.0, clock)
    overdue.look(3, unpublished=True)
    clock.now = 59.0
    overdue.look(4, unpublished=True)
    clock.now = 118.0
    assert not overdue.due
    clock.now = 119.0
    assert overdue.due


def test_never_where_nobody_asked_for_it() -> None:
    clock = Clock()
    overdue = Overdue(0.0, clock)
    overdue.look(1, unpublished=True)
    clock.now = 1e6
    assert not overdue.due


class Trickling(FileSource):
    """A file that gives a few rows at a time, or as many as it has where `full`."""

    full = False
    waiting: deque[Message]

    @property
    def exhausted(self) -> bool:
        return super().exhausted and not self.waiting

    def poll(self, timeout_s: float) -> list[Message]:
        self.waiting.extend(super().poll(timeout_s))
        n = len(self.waiting) if self.full else FEW
        return [self.waiting.popleft() for _ in range(min(n, len(self.waiting)))]


def run(tmp_path: Path, *, full: bool = False) -> tuple[Engine, list[int]]:
    """The engine after the file, and after which observations it published."""
    plan = plan_for(records_file(tmp_path, N))
    cadence = msgspec.structs.replace(CADENCE, publish_every_seconds=1e-9)
    plan = replace(plan, refinement=cadence)
    store = new_store(tmp_path)
    source = Trickling(plan.stream)
    source.waiting, source.full = deque(), full
    engine = Engine(plan, source, store, None, Hook(lambda _name, _count: None))
    engine.run()
    return engine, [row.seq for row in store.publications(NAME)]


def test_what_waits_is_shown_and_replayed(tmp_path: Path) -> None:
    engine, told = run(tmp_path)
    every = CADENCE.publish_every_records
    assert len([seq for seq in told if seq % every]) > 2 * N // every
    assert_replayed(new_store(tmp_path), shard_of(engine))


def test_a_backlog_is_published_by_count_alone(tmp_path: Path) -> None:
    # Full batches say that more is waiting, and that is read first.
    _, told = run(tmp_path, full=True)
    last = told.pop()
    assert last % CADENCE.publish_every_records
    assert told
    assert not any(seq % CADENCE.publish_every_records for seq in told)
