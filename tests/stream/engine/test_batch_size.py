"""A backlog is taken in batches that take the time that was set, whatever a record costs."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.clock import Clock
from tests.stream.scenario import Hook, new_store, outcome, plan_for, records_file
from weald.stream.engine.batch_size import BatchSize
from weald.stream.engine.engine import Engine
from weald.stream.settings import StreamSettings
from weald.stream.source.file_source import FileSource

POLLED = StreamSettings().most_polled


def taken(size: BatchSize, clock: Clock, cost: float, waiting: int) -> int:
    """Records of one batch out of so many that wait, each of which costs so many seconds."""
    last = min(POLLED, waiting)
    n = last
    size.begin()
    while size.takes_more(n, last):
        last = min(POLLED, waiting - n)
        n += last
    clock.now += cost * n
    size.end(n)
    return n


def test_batches_of_a_backlog_take_the_time_that_was_set() -> None:
    clock = Clock()
    size = BatchSize(StreamSettings(latency_ms=400), clock)
    assert taken(size, clock, 1e-5, 10**6) == POLLED
    assert taken(size, clock, 1e-5, 10**6) == 40_000
    # Records that cost ten times as much: a few batches later these take the time again.
    sizes = [taken(size, clock, 1e-4, 10**6) for _ in range(12)]
    assert sizes[0] == 40_000
    assert sizes[-1] == 4_000


def test_what_one_poll_brings_is_a_batch_where_nothing_else_waits() -> None:
    clock = Clock()
    size = BatchSize(StreamSettings(), clock)
    taken(size, clock, 2**-16, 10**6)
    assert taken(size, clock, 2**-16, POLLED - 1) == POLLED - 1
    assert taken(size, clock, 2**-16, POLLED + 7) == POLLED + 7
    # A handful costs more for each: that says nothing of a backlog.
    taken(size, clock, 1.0, 3)
    assert taken(size, clock, 2**-16, 10**6) == 32_000


def test_a_client_that_has_somewhat_less_at_hand_does_not_end_a_batch() -> None:
    clock = Clock()
    size = BatchSize(StreamSettings(), clock)
    taken(size, clock, 2**-16, 10**6)
    size.begin()
    assert size.takes_more(POLLED - 32, POLLED - 32)
    assert not size.takes_more(POLLED // 2 - 1, POLLED // 2 - 1)


def test_a_size_that_was_set_stays() -> None:
    clock = Clock()
    stream = StreamSettings(batch_records=POLLED)
    size = BatchSize(stream, clock)
    assert [taken(size, clock, 1e-6, 10**6) for _ in range(3)] == [POLLED] * 3


def test_a_stream_in_larger_batches_is_the_same_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 900
    monkeypatch.setattr(StreamSettings, "most_polled", 40)
    plan = plan_for(records_file(tmp_path, n))
    slow = msgspec.structs.replace(plan.stream, batch_records=None, latency_ms=1)
    fast = msgspec.structs.replace(slow, latency_ms=60_000)
    found = []
    for name, stream in {"slow": slow, "fast": fast}.items():
        commits: list[int] = []

        def note(step: str, nth: int, to: list[int] = commits) -> None:
            if step == "commit":
                to.append(nth)

        with new_store(tmp_path, name) as store:
            Engine(replace(plan, stream=stream), FileSource(stream), store, None, Hook(note)).run()
            found.append((outcome(store), len(commits)))
    assert found[0][0] == found[1][0]
    assert found[0][1] > 20 > found[1][1]
