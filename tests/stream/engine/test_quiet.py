"""A topic that has gone quiet: refinement goes on, is shown, ends, and can be replayed."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

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
from weald.stream.engine.quiet import Quiet
from weald.stream.record.record import Message, TopicPartition
from weald.stream.source.file_source import FileSource

FEW = 12


def test_it_is_due_after_so_long_and_until_the_log_joint_rises_no_more() -> None:
    clock = Clock()
    quiet = Quiet(5.0, clock)
    clock.now = 4.9
    assert not quiet.due
    clock.now = 5.0
    for step in range(20):
        assert quiet.due
        quiet.refined(-100.0 + 10.0 * step)
    for step in range(FEW):
        quiet.refined(100.0 + step % 2)
    assert not quiet.due
    quiet.heard()
    assert not quiet.due
    clock.now = 10.0
    assert quiet.due


def test_never_where_nobody_asked_for_it() -> None:
    clock = Clock()
    quiet = Quiet(0.0, clock)
    clock.now = 1e6
    assert not quiet.due


class Pausing(FileSource):
    """A file that ends only when the stream has been quiet for long enough."""

    engine: Engine

    @property
    def exhausted(self) -> bool:
        ended = super().exhausted
        return ended and len(self.engine._quiet._reached) >= FEW


class Waiting(FileSource):
    """A file to which records might still be appended; notes how long it is waited for."""

    engine: Engine
    exhausted = False
    waits: list[float]

    def poll(self, timeout_s: float) -> list[Message]:
        self.waits.append(timeout_s)
        if len(self.waits) == 40:
            self.engine.stop()
        return super().poll(timeout_s)


class Standby(Waiting):
    """Gives its partition to another process."""

    def assignment(self) -> set[TopicPartition]:
        return set()


@pytest.mark.parametrize("kind", [Waiting, Standby])
def test_who_has_nothing_to_refine_waits_for_records(tmp_path: Path, kind: type[Waiting]) -> None:
    # Fewer records than the warm-up needs, so that there is no model.
    plan = plan_for(records_file(tmp_path, 10))
    cadence = msgspec.structs.replace(CADENCE, quiet_seconds=1e-9)
    source = kind(plan.stream)
    source.waits = []
    with new_store(tmp_path) as store:
        source.engine = Engine(replace(plan, refinement=cadence), source, store)
        source.engine.run()
    assert source.waits == [plan.stream.poll_seconds] * 40


@pytest.mark.parametrize("n", [330, 400])
def test_what_refinement_finds_in_the_silence_is_shown_and_replayed(tmp_path: Path, n: int) -> None:
    plan = plan_for(records_file(tmp_path, n))
    cadence = msgspec.structs.replace(CADENCE, quiet_seconds=0.01)
    plan = replace(plan, refinement=cadence)
    store = new_store(tmp_path)
    source = Pausing(plan.stream)
    engine = Engine(plan, source, store, None, Hook(lambda _name, _count: None))
    source.engine = engine
    engine.run()
    told = store.publications(NAME)
    assert [row.seq for row in told[-FEW:]] == [n] * FEW
    live = shard_of(engine)
    assert (live.seq, live.publication) == (n, told[-1].number)
    assert_replayed(store, live, cadence)
