"""Records first: what a backlog puts off is in SQL, is made up for, and is replayed."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import pytest

from tests.clock import Clock
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
    run,
    shard_of,
)
from weald.mcmc.schedule.kernel_report import Refinement
from weald.storage.writing.store import SqlStore
from weald.stream.engine.engine import Engine
from weald.stream.engine.yielding import LEAST_SHARE, Rest, Yielding
from weald.stream.model import mixture_shard
from weald.stream.model.model import StreamConfig
from weald.stream.recovery.snapshots import revert_dropping
from weald.stream.source.file_source import FileSource

N = 1030
EVERY = CADENCE.every_records


def gaining(nats: float) -> Refinement:
    return Refinement(-100.0, -100.0 + nats, 3, (), 0.0)


def test_a_rest_is_as_long_as_what_it_follows() -> None:
    clock = Clock(100.0)
    rest = Rest(clock)
    assert rest.seconds == 0.0
    with rest.after():
        clock.now += 3.0
    assert rest.seconds == 3.0
    clock.now += 2.0
    assert rest.seconds == 1.0
    clock.now += 5.0
    assert rest.seconds == 0.0


def test_nothing_is_put_off_where_records_keep_up() -> None:
    clock = Clock()
    pace = Yielding(clock)
    for turn in range(5):
        clock.now += 1.0
        pace.look(behind=False)
        assert not pace.postpones(turn, of_many=0, concurrent=False)
        pace.refined(10.0, of_many=0)


def test_a_backlog_leaves_refinement_its_share() -> None:
    clock = Clock()
    pace = Yielding(clock)
    pace.look(behind=True)
    taken, seconds = [0.0, 0.0], (0.03, 5.0)
    for turn in range(10_000):
        clock.now += 0.05
        for large, of_many in enumerate((0, 10_000)):
            if not pace.postpones(turn, of_many=of_many, concurrent=False):
                clock.now += seconds[large]
                taken[large] += seconds[large]
                pace.refined(seconds[large], of_many=of_many)
        pace.look(behind=True)
    half = LEAST_SHARE / 2 * clock.now
    # Of the rare and long ones the first cannot be known to be long.
    assert taken == [pytest.approx(half, abs=0.3), pytest.approx(half, abs=5.0)]


def test_the_first_in_a_backlog_waits_as_for_a_quarter_of_a_second() -> None:
    clock = Clock()
    pace = Yielding(clock)
    pace.look(behind=True)
    clock.now += 4.9
    assert pace.postpones(200, of_many=0, concurrent=False)
    assert pace.postpones(200, of_many=6_000, concurrent=False)
    clock.now += 0.2
    assert not pace.postpones(400, of_many=0, concurrent=False)
    assert not pace.postpones(400, of_many=6_000, concurrent=False)


@pytest.mark.parametrize("published_for", [0.0, 0.5])
def test_a_long_refinement_waits_until_a_backlog_has_saved_its_time(published_for: float) -> None:
    clock = Clock()
    pace = Yielding(clock)
    pace.refined(2.0 - published_for, of_many=10_000)
    pace.stood_still(published_for, of_many=10_000)
    pace.look(behind=True)
    clock.now += 39.0
    assert pace.postpones(1, of_many=10_000, concurrent=False)
    assert not pace.postpones(1, of_many=0, concurrent=False)
    clock.now += 2.0
    assert not pace.postpones(2, of_many=10_000, concurrent=False)
    # Of twice as many one takes twice as long.
    assert pace.postpones(2, of_many=20_000, concurrent=False)
    clock.now += 40.0
    assert not pace.postpones(3, of_many=20_000, concurrent=False)


def test_what_is_owed_is_made_up_for_when_records_keep_up_until_nothing_is_gained() -> None:
    pace = Yielding(Clock())
    pace.look(behind=True)
    assert pace.postpones(100, of_many=0, concurrent=False)
    assert not pace.makes_up(1)
    pace.look(behind=False)
    assert not pace.makes_up(0)
    for _ in range(20):
        assert pace.makes_up(1)
        pace.made_up(gaining(5.0))
    for nats in (1.0, -1.0) * 3:
        pace.made_up(gaining(nats))
    assert not pace.makes_up(1)
    # Another backlog, another debt.
    pace.look(behind=True)
    assert pace.postpones(200, of_many=0, concurrent=False)
    pace.look(behind=False)
    assert pace.makes_up(1)


class Ticking(Yielding):
    """Whenever it is asked a tenth of a second has passed, and a refinement takes half as long."""

    def __init__(self) -> None:
        self.clock = Clock()
        super().__init__(self.clock)

    def look(self, *, behind: bool) -> None:
        self.clock.now += 0.1
        super().look(behind=behind)

    def refined(self, seconds: float, *, of_many: int) -> None:  # noqa: ARG002 - whatever it took
        super().refined(0.05, of_many=of_many)


class Never(Yielding):
    """Puts all off."""

    def postpones(self, seq: int, *, of_many: int, concurrent: bool) -> bool:  # noqa: ARG002 - whatever it is
        return True

    def makes_up(self, owed: int, *, of_many: int = 0) -> bool:  # noqa: ARG002 - whatever it is
        return super().makes_up(owed)


def yielding_engine(
    tmp_path: Path,
    store: SqlStore,
    before: Callable[[str, int], None] = lambda _name, _count: None,
) -> Engine:
    """An engine over a file, which is behind until the file ends."""
    return engine_at_pace(yielding_plan(tmp_path), store, Ticking(), before)


def yielding_plan(tmp_path: Path) -> StreamConfig:
    path = tmp_path / "records.jsonl"
    plan = plan_for(path if path.exists() else records_file(tmp_path, N), snapshot_records=400)
    return replace(plan, refinement=msgspec.structs.replace(CADENCE, pace="yielding"))


def test_a_backlog_is_published_by_count_and_then_refined(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    engine = yielding_engine(tmp_path, store)
    engine.run()
    assert_exactly_once(store, N)
    put_off = store.postponed(NAME, 0)
    assert put_off
    assert all(seq % EVERY == 0 for seq in put_off)
    assert not {row.seq for row in store.rounds(NAME)} & set(put_off)
    told = [row.seq for row in store.publications(NAME)]
    cadence = CADENCE.publish_every_records
    assert told[: N // cadence] == list(range(cadence, N + 1, cadence))
    # The last at the file's end, as ever, and those that were owed.
    assert told[N // cadence :] == [N] * len(told[N // cadence :])
    live = shard_of(engine)
    assert len(told) - N // cadence + live.owed == len(put_off)
    assert_replayed(store, live)


def backlogged(folder: Path, kills: Sequence[Callable[[str, int], None]]) -> tuple[list[int], int]:
    """Of a backlog that puts all off: when it published in its turn, and what it owes."""
    folder.mkdir()
    plan = plan_for(records_file(folder, N), batch_records=70, snapshot_records=150)
    plan = replace(plan, refinement=msgspec.structs.replace(CADENCE, pace="yielding"))
    every = CADENCE.publish_every_records
    with new_store(folder) as store:
        for kill in kills:
            with pytest.raises(KilledError):
                engine_at_pace(plan, store, Never(), kill).run()
        engine = engine_at_pace(plan, store, Never())
        engine.run()
        assert_exactly_once(store, N)
        assert_replayed(store, shard_of(engine))
        turns = [row.seq for row in store.publications(NAME) if row.seq % every == 0]
    return turns, shard_of(engine).owed


def test_of_many_a_backlog_is_published_when_it_has_doubled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mixture_shard, "FEW_ATOMS", 100)
    whole = backlogged(tmp_path / "whole", [])
    assert whole[0] == [200, 400, 800]
    # A turn that was put off is owed once, as where it is published: at 200, 400, 600, 800, 1000.
    assert backlogged(tmp_path / "killed", [killer("commit", 9)]) == whole


def snapshots_of(folder: Path, pace: Literal["counted", "yielding"]) -> list[int]:
    """Numbers of the observations after which one was made, of an engine that is behind."""
    seqs: list[int] = []

    def before(name: str, _count: int) -> None:
        if name == "snapshot":
            seqs.append(shard_of(engine).seq)

    folder.mkdir()
    plan = yielding_plan(folder)
    stream = msgspec.structs.replace(plan.stream, snapshot_records=1, batch_records=20)
    refinement = msgspec.structs.replace(plan.refinement, pace=pace)
    plan = replace(plan, stream=stream, refinement=refinement)
    with new_store(folder) as store:
        engine = engine_at_pace(plan, store, Never(), before)
        engine.run()
    # What was left behind at the end is no part of the backlog.
    return seqs[:-2]


def test_snapshots_are_rarer_in_a_backlog(tmp_path: Path) -> None:
    counted = snapshots_of(tmp_path / "counted", "counted")
    assert 4 / 3 <= min(np.array(counted[1:]) / counted[:-1]) < 1.5
    yielding = snapshots_of(tmp_path / "yielding", "yielding")
    assert min(np.array(yielding[1:]) / yielding[:-1]) >= 4.0


def test_what_no_draw_has_seen_is_told_no_certainty(tmp_path: Path) -> None:
    unsure: list[int] = []

    def before(name: str, _count: int) -> None:
        if name == "redis" and len(store.publications(NAME)) == 1 and not unsure:
            rows = store.observed(NAME, list(range(1, 3 * EVERY // 2)))
            unsure.extend(row.seq for row in rows if row.probability is not None)
            assert all(row.probability is None for row in store.clusters(NAME))
            unsure.append(0)

    store = new_store(tmp_path)
    engine = yielding_engine(tmp_path, store, before)
    engine._yielding = Never()
    engine.run()
    assert unsure == [0]


@pytest.mark.parametrize("step", ["refine", "publish", "commit", "redis"])
def test_killed_in_a_backlog_it_goes_on_from_what_sql_remembers(tmp_path: Path, step: str) -> None:
    for count in (3, 5, 2):
        with new_store(tmp_path) as store, pytest.raises(KilledError):
            yielding_engine(tmp_path, store, killer(step, count)).run()
    store = new_store(tmp_path)
    engine = yielding_engine(tmp_path, store)
    engine.run()
    assert_exactly_once(store, N)
    assert store.postponed(NAME, 0)
    assert_replayed(store, shard_of(engine))


def test_a_way_back_forgets_what_was_put_off_after_it(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    yielding_engine(tmp_path, store).run()
    first = store.snapshots(NAME)[-1]
    assert store.postponed(NAME, first.seq)
    revert_dropping(store, NAME, first.number)
    assert store.postponed(NAME, first.seq) == []


@pytest.mark.parametrize(
    ("source", "pace", "yields"),
    [
        ("kafka", "auto", True),
        ("file", "auto", False),
        ("stdin", "auto", False),
        ("kafka", "counted", False),
        ("file", "yielding", True),
    ],
)
def test_by_default_a_topic_comes_first_and_a_file_is_counted(
    tmp_path: Path,
    source: Literal["kafka", "file", "stdin"],
    pace: Literal["auto", "counted", "yielding"],
    yields: bool,
) -> None:
    plan = plan_for(records_file(tmp_path, 10))
    asked = replace(
        plan,
        stream=msgspec.structs.replace(plan.stream, source=source),
        refinement=msgspec.structs.replace(CADENCE, pace=pace),
    )
    with new_store(tmp_path) as store, closing(FileSource(plan.stream)) as records:
        engine = Engine(asked, records, store)
    assert (engine._yielding is not None) == yields


def test_counted_is_the_same_however_much_waits(tmp_path: Path) -> None:
    plan = plan_for(records_file(tmp_path, N))
    found = []
    for name, size in (("all", N), ("few", 7)):
        stream = msgspec.structs.replace(plan.stream, batch_records=size)
        with new_store(tmp_path, name) as store:
            run(replace(plan, stream=stream), store)
            assert store.postponed(NAME, 0) == []
            found.append(outcome(store))
    assert found[0] == found[1]
