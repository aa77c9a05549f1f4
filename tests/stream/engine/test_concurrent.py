"""Refinement of many atoms beside the records: it is replayed, dropped, and never waited for."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate, cycle, pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest
from numpy.typing import NDArray

from tests.clock import Clock
from tests.stream.scenario import (
    CADENCE,
    NAME,
    Hook,
    KilledError,
    assert_exactly_once,
    assert_models_replayed,
    assert_replayed,
    engine_at_pace,
    killer,
    new_store,
    plan_for,
    records_file,
    shard_of,
    values_of,
)
from tests.uncollected import uncollected
from weald.mcmc.chain.concurrent_refinement import ConcurrentRefinement
from weald.mcmc.chain.position import Position
from weald.mcmc.state.atom_state import State
from weald.storage.commit.commit import BatchCommit
from weald.storage.writing.store import SqlStore
from weald.stream.engine import concurrent, writer
from weald.stream.engine.concurrent import BackgroundThread, Concurrent, Work
from weald.stream.engine.engine import Engine
from weald.stream.engine.yielding import LEAST_SHARE, Rest, Yielding
from weald.stream.model import mixture_shard
from weald.stream.model.batch_outcome import BatchOutcome
from weald.stream.model.mixture_shard import MixtureShard
from weald.stream.model.model import StreamConfig
from weald.stream.record.pending_batch import Held
from weald.stream.record.record import Batch, Message, TopicPartition
from weald.stream.recovery.recovery import (
    first_difference,
    is_crossed,
    replay,
    restored,
    usable,
)
from weald.stream.recovery.snapshots import create
from weald.stream.settings import MemorySettings
from weald.stream.source.file_source import FileSource
from weald.stream.telemetry.steps import Step
from weald.treecore.guide.guide import Guide

N = 1530
FEW = 100
KEPT = MemorySettings()
Before = Callable[[str, int], None]


class Later:
    """Comes to its end when it is asked for it so often, whatever the machine has to do."""

    asked: Iterator[int] = cycle([3])

    def __init__(self, work: Work, name: str = "refinement") -> None:
        self._work = work
        self._left = next(self.asked) if name == "refinement" else 2

    @property
    def ended(self) -> bool:
        self._left -= 1
        if self._left == 0:
            self._work.run()
        return self._left <= 0

    def stop(self) -> None:
        """Nothing runs that could be stopped."""


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixture_shard, "FEW_ATOMS", FEW)


@pytest.fixture(autouse=True)
def _restless(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made does not depend on how long the machine takes."""
    monkeypatch.setattr(Rest, "seconds", 0.0)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> type[Later]:
    monkeypatch.setattr(Later, "asked", cycle([3]))
    monkeypatch.setattr(concurrent, "BackgroundThread", Later)
    monkeypatch.setattr(writer, "BackgroundThread", Later)
    return Later


def plan_of(folder: Path, memory: MemorySettings = KEPT, **stream: object) -> StreamConfig:
    path = folder / "records.jsonl"
    settings: dict[str, object] = {"snapshot_records": 300, "batch_records": 40, **stream}
    plan = plan_for(path if path.exists() else records_file(folder, N), **settings)  # type: ignore[arg-type]  # of the stream
    cadence = msgspec.structs.replace(CADENCE, pace="yielding")
    return replace(plan, refinement=cadence, memory=memory)


class Eager(Yielding):
    """Has time for all of them, however long the machine takes."""

    def _affords(self, of_many: int) -> bool:  # noqa: ARG002 - for all
        return True


def nothing(_name: str, _count: int) -> None:
    """Happens before a step."""


def engine_of(plan: StreamConfig, store: SqlStore, before: Before = nothing) -> Engine:
    return engine_at_pace(plan, store, Eager(), before)


def stopped_on_the_way(plan: StreamConfig, store: SqlStore) -> Engine:
    """An engine that somebody has stopped before the last record."""

    def stop(name: str, count: int) -> None:
        if (name, count) == ("commit", 25):
            engine.stop()

    engine = engine_of(plan, store, stop)
    engine.run()
    return engine


def assert_made(store: SqlStore, n_least: int = 2) -> None:
    """Rounds beside the records were taken over, each followed by a publication."""
    made = [row for row in store.adoptions(NAME, 0) if row.is_own]
    assert len(made) >= n_least
    told = {row.number: row.seq for row in store.publications(NAME)}
    assert all(told[row.publication + 1] >= row.seq for row in made)
    assert any(row.begun_seq < row.seq for row in made)
    assert store.last_round(NAME) == made[-1].round_number


def test_on_a_thread(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    with new_store(tmp_path, snapshots_kept=50) as store:
        engine = engine_of(plan, store)
        engine.run()
        assert_exactly_once(store, N)
        assert any(row.is_own for row in store.adoptions(NAME, 0))
        assert_replayed(store, shard_of(engine))


@pytest.mark.parametrize(
    "memory",
    [
        KEPT,
        MemorySettings(leaf_budget=450),
        MemorySettings(window_records=700),
        MemorySettings(half_life_records=2000.0),
    ],
    ids=["all", "sample", "window", "half-life"],
)
def test_a_replay_makes_them_again(
    tmp_path: Path, later: type[Later], memory: MemorySettings
) -> None:
    later.asked = cycle([3, 1, 7, 2])
    plan = plan_of(tmp_path, memory)
    with new_store(tmp_path, snapshots_kept=50) as store:
        engine = engine_of(plan, store)
        engine.run()
        assert_made(store)
        live = shard_of(engine)
        assert_models_replayed(store, live)
        if memory == KEPT:
            assert_exactly_once(store, N)


@pytest.mark.parametrize("step", ["adopt", "refine", "publish", "commit", "snapshot"])
def test_killed_at_any_step(tmp_path: Path, later: type[Later], step: str) -> None:
    later.asked = cycle([3, 1, 2])
    plan = plan_of(tmp_path)
    for count in (9, 4, 2) if step in {"refine", "commit"} else (2, 1, 1):
        with new_store(tmp_path) as store, pytest.raises(KilledError):
            engine_of(plan, store, killer(step, count)).run()
    with new_store(tmp_path) as store:
        engine = engine_of(plan, store)
        engine.run()
        assert_made(store, 1)
        assert_exactly_once(store, N)
        assert_replayed(store, shard_of(engine), lagging=True)


def test_one_that_goes_on_when_it_is_stopped_is_dropped(tmp_path: Path, later: type[Later]) -> None:
    later.asked = cycle([10**6])
    plan = plan_of(tmp_path)
    with new_store(tmp_path) as store:
        engine = stopped_on_the_way(plan, store)
        live = shard_of(engine)
        assert live.owed
        assert live.concurrent is None
        assert live.round_out == 0
        assert store.adoptions(NAME, 0) == []
        newest = store.snapshots(NAME)[0]
        assert newest.seq == live.seq < N
        assert_replayed(store, live, lagging=True)
    with new_store(tmp_path) as store:
        later.asked = cycle([2])
        engine = engine_of(plan, store)
        engine.run()
        assert_made(store, 1)
        assert_replayed(store, shard_of(engine), lagging=True)


def test_while_one_goes_on_no_image_is_made(
    tmp_path: Path, later: type[Later], monkeypatch: pytest.MonkeyPatch
) -> None:
    later.asked = cycle([6])
    going_on: list[bool] = []
    state = MixtureShard.state

    def noted(shard: MixtureShard) -> dict[str, NDArray[Any]]:
        going_on.append(shard.concurrent is not None)
        return state(shard)

    monkeypatch.setattr(MixtureShard, "state", noted)
    plan = plan_of(tmp_path, snapshot_records=1)
    with new_store(tmp_path) as store:
        engine_of(plan, store).run()
        assert_made(store)
    assert len(going_on) >= 3
    # The last one is made after the source has ended.
    assert not any(going_on)


def test_an_image_of_many_is_packed_beside_the_records(
    tmp_path: Path, later: type[Later], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes with a later commit, and is of the one after which it was made."""
    later.asked = cycle([6])
    written: list[BatchCommit] = []
    commit = SqlStore.commit

    def noted(store: SqlStore, batch: BatchCommit) -> None:
        commit(store, batch)
        written.append(batch)

    monkeypatch.setattr(SqlStore, "commit", noted)
    plan = plan_of(tmp_path, snapshot_records=50)
    with new_store(tmp_path) as store:
        engine = engine_of(plan, store)
        engine.run()
        assert_made(store)
        packed = [
            (each.epoch, each.snapshot)
            for each in written
            if each.snapshot is not None and each.snapshot.encoded is not None
        ]
        assert packed
        n_came = accumulate(
            0 if (rows := each.observations) is None else len(rows) for each in written
        )
        seqs = dict(zip((each.epoch for each in written), n_came, strict=True))
        for epoch, image in packed:
            assert image.epoch is not None
            assert image.epoch < epoch
            assert image.seq == seqs[image.epoch]
        # What a refinement arrived at does not wait for an image.
        assert not any(each.adoptions and each.snapshot for each in written)
        # The last one is made at once, with the last commit, and so leads to what there is.
        assert written[-1].snapshot is not None
        assert written[-1].snapshot.encoded is None
        epochs = {
            each.snapshot.number: each.snapshot.epoch or each.epoch
            for each in written
            if each.snapshot is not None
        }
        for info in store.snapshots(NAME):
            assert info.epoch == epochs[info.number]
            again = usable(store, NAME, info.number)
            replay(store, NAME, again, N, lambda _: None)
            assert first_difference(store, NAME, again) is None
        assert_replayed(store, shard_of(engine), lagging=True)


@pytest.mark.usefixtures("later")
def test_an_image_of_many_is_written_beside_the_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What happens to the model meanwhile is not in it: what no replay crosses asks for another."""
    inserted, written = dict[int, threading.Event](), list[tuple[BatchCommit, str, bool]]()
    commit = SqlStore.commit

    def is_packed(batch: BatchCommit) -> bool:
        return batch.snapshot is not None and batch.snapshot.encoded is not None

    def waiting(store: SqlStore, batch: BatchCommit) -> None:
        name = threading.current_thread().name
        beside = is_packed(batch) and name.startswith("commit")
        in_time = not beside or inserted.setdefault(batch.epoch, threading.Event()).wait(20.0)
        written.append((batch, name, in_time))
        commit(store, batch)

    def step(name: str, _count: int) -> None:
        under_way = engine._delivery._beside
        if name == "insert" and under_way is not None and is_packed(under_way[0].commit):
            into = inserted.setdefault(under_way[0].commit.epoch, threading.Event())
            if not into.is_set():
                shard_of(engine).uncrossable = True
            into.set()

    monkeypatch.setattr(SqlStore, "commit", waiting)
    with new_store(tmp_path) as store:
        engine = engine_of(plan_of(tmp_path, snapshot_records=50), store, step)
        engine.run()
        beside = [at for at, (_, name, _) in enumerate(written) if name.startswith("commit")]
        assert any(is_packed(written[at][0]) for at in beside)
        assert all(in_time for *_, in_time in written)
        for at in beside:
            if is_packed(written[at][0]):
                following = written[at + 1][0].snapshot
                assert following is not None
                assert following.encoded is None
        assert_exactly_once(store, N)
        assert_replayed(store, shard_of(engine), lagging=True)


@pytest.mark.usefixtures("later")
def test_a_rest_follows_the_wait_for_an_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed, open_now = list[bool](), [0]
    after, n_bytes = Rest.after, SqlStore.snapshot_bytes

    @contextmanager
    def counted(rest: Rest) -> Iterator[None]:
        open_now[0] += 1
        with after(rest):
            yield
        open_now[0] -= 1

    def told(store: SqlStore, stream: str) -> int:
        followed.append(open_now[0] > 0)
        return n_bytes(store, stream)

    monkeypatch.setattr(Rest, "after", counted)
    monkeypatch.setattr(SqlStore, "snapshot_bytes", told)
    with new_store(tmp_path) as store:
        engine_of(plan_of(tmp_path, snapshot_records=50), store).run()
    assert len(followed) > 2
    assert all(followed)


LONG = {"adopt", "show", "begin", "snapshot"}


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What took long in each round of the loop, in a list that grows."""
    found = [list[str]()]
    turn, begin, show = Engine._round, Concurrent.begin, writer.Writer.go_on

    def turned(engine: Engine) -> bool:
        found.append([])
        return turn(engine)

    def begun(running: Concurrent, shard: MixtureShard) -> None:
        found[-1].append("begin")
        begin(running, shard)

    def shown(of: writer.Writer, now: float, step: Step) -> BatchOutcome:
        found[-1].append("show")
        return show(of, now, step)

    monkeypatch.setattr(writer.Writer, "go_on", shown)
    monkeypatch.setattr(Engine, "_round", turned)
    monkeypatch.setattr(Concurrent, "begin", begun)
    return found


def seen_in(rounds: list[list[str]]) -> Before:
    def seen(name: str, _count: int) -> None:
        if name in LONG:
            rounds[-1].append(name)

    return seen


@pytest.mark.usefixtures("later")
def test_records_go_on_between_two_things_that_take_long(
    tmp_path: Path, rounds: list[list[str]]
) -> None:
    with new_store(tmp_path, snapshots_kept=50) as store:
        engine_of(plan_of(tmp_path), store, seen_in(rounds)).run()
        assert_made(store)
    # Once all has come there are no records any more.
    assert {what for each in rounds[:-1] for what in each} == LONG
    assert max(len(each) for each in rounds[:-1]) == 1


def rest_for(n: int, rounds: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what takes long be followed by so many rounds for records alone."""
    ended = [0]

    @contextmanager
    def after(_rest: Rest) -> Iterator[None]:
        yield
        if rounds[-1]:
            ended[0] = len(rounds)

    monkeypatch.setattr(Rest, "after", after)
    monkeypatch.setattr(Rest, "seconds", property(lambda _: float(len(rounds) <= ended[0] + n)))


def shown_later(store: SqlStore) -> list[int]:
    """Publications of what was taken over some observations before."""
    told = {row.number: row.seq for row in store.publications(NAME)}
    made = [row for row in store.adoptions(NAME, 0) if row.is_own]
    return [row.publication + 1 for row in made if told[row.publication + 1] > row.seq]


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_one_that_ends_in_between_shows_it_at_its_next_start(
    tmp_path: Path, rounds: list[list[str]], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    rest_for(2, rounds, monkeypatch)
    ended = list[int]()

    def end(name: str, count: int) -> None:
        seen_in(rounds)(name, count)
        if name == "commit" and not ended and shard_of(engine).unshown and rounds[-1] != ["adopt"]:
            ended.append(shard_of(engine).publication)
            if how == "killed":
                raise KilledError
            engine.stop()

    plan = plan_of(tmp_path)
    with new_store(tmp_path) as store:
        engine = engine_of(plan, store, end)
        if how == "killed":
            with pytest.raises(KilledError):
                engine.run()
        else:
            engine.run()
            assert_replayed(store, shard_of(engine), lagging=True)
        assert ended
        assert store.publications(NAME)[-1].number == ended[0]
    with new_store(tmp_path) as store:
        engine = engine_of(plan, store)
        engine.run()
        assert ended[0] + 1 in shown_later(store)
        assert_exactly_once(store, N)
        assert_replayed(store, shard_of(engine), lagging=True)


@pytest.mark.usefixtures("later")
def test_after_one_that_takes_long_there_is_a_rest(
    tmp_path: Path, rounds: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three rounds of the loop, however long these take."""
    rest_for(3, rounds, monkeypatch)
    with new_store(tmp_path, snapshots_kept=50) as store:
        engine = engine_of(plan_of(tmp_path), store, seen_in(rounds))
        engine.run()
        assert_made(store)
        assert_replayed(store, shard_of(engine), lagging=True)
        assert shown_later(store)
    at = [number for number, each in enumerate(rounds[:-1]) if each]
    assert len(at) > 5
    assert min(later - earlier for earlier, later in pairwise(at)) > 3


def test_an_image_that_a_person_makes_meanwhile_is_followed_by_another(
    tmp_path: Path, later: type[Later]
) -> None:
    later.asked = cycle([4])
    made: list[int] = []

    def before(name: str, _count: int) -> None:
        if name != "insert":
            return
        live = shard_of(engine)
        if made and store.adoptions(NAME, 0):
            raise KilledError
        if live.concurrent is not None and live.seq > live.begun.seq and not made:
            made.append(create(store, NAME, "mine", lambda _: None))

    plan = plan_of(tmp_path, snapshot_records=10**6)
    with new_store(tmp_path) as store:
        engine = engine_of(plan, store, before)
        with pytest.raises(KilledError):
            engine.run()
        (row,) = store.adoptions(NAME, 0)
        newest, mine, *_ = store.snapshots(NAME)
        assert (mine.number, newest.seq) == (made[0], row.seq)
        assert row.begun_seq < mine.seq < row.seq
        assert is_crossed(store, NAME, usable(store, NAME, mine.number))
        # Without it, a start goes back to the one before the person's.
        settings = plan.refinement, KEPT
        store.delete_snapshots(NAME, [newest.number])
        again, info = restored(store, store.spec(NAME), settings)
        assert info is not None
        assert info.number not in {mine.number, newest.number}
        replay(store, NAME, again, row.seq, lambda _: None)
        assert first_difference(store, NAME, again) is None


class Resting(FileSource):
    """Has nothing to say for a while when all has been said."""

    rests = 40

    @property
    def exhausted(self) -> bool:
        return super().exhausted and self.rests <= 0

    def poll(self, timeout_s: float) -> list[Message]:
        if not super().exhausted:
            return super().poll(timeout_s)
        self.rests -= 1
        return []


@pytest.mark.usefixtures("later")
def test_an_image_that_is_packed_is_written_while_nothing_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[tuple[int, BatchCommit]] = []
    commit, plan = SqlStore.commit, plan_of(tmp_path, snapshot_records=50)
    # Nothing comes out of turn, either.
    cadence = msgspec.structs.replace(
        CADENCE, pace="counted", quiet_seconds=0.0, publish_every_seconds=0.0
    )
    plan = replace(plan, refinement=cadence)
    source = Resting(plan.stream)

    def noted(store: SqlStore, batch: BatchCommit) -> None:
        commit(store, batch)
        written.append((source.rests, batch))

    class Slow(Later):
        @property
        def ended(self) -> bool:
            return source.rests < Resting.rests - 5 and super().ended

    monkeypatch.setattr(SqlStore, "commit", noted)
    monkeypatch.setattr(writer, "BackgroundThread", Slow)
    with new_store(tmp_path) as store:
        Engine(plan, source, store, None, Hook(nothing)).run()
    rests = [
        rests
        for rests, each in written
        if each.snapshot is not None and each.snapshot.encoded is not None
    ]
    assert rests
    assert 0 < min(rests) <= max(rests) < Resting.rests - 5


class Silent(FileSource):
    """Has nothing to say at first."""

    silent = 0

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        super().seek(offsets)
        self.silent = 5

    def poll(self, timeout_s: float) -> list[Message]:
        self.silent -= 1
        return [] if self.silent >= 0 else super().poll(timeout_s)


def test_what_the_settings_are_is_in_an_image_before_one_begins(
    tmp_path: Path, later: type[Later], monkeypatch: pytest.MonkeyPatch
) -> None:
    later.asked = cycle([10**6])
    plan = plan_of(tmp_path)
    with new_store(tmp_path) as store:
        stopped_on_the_way(plan, store)
        newest = store.snapshots(NAME)[0]
    later.asked = cycle([2])
    images: list[int] = []

    def running(refinement: ConcurrentRefinement, _name: str) -> Later:
        images.append(store.snapshots(NAME)[0].number)
        return Later(refinement)

    monkeypatch.setattr(concurrent, "BackgroundThread", running)
    other = msgspec.structs.replace(plan.refinement, every_records=50)
    with new_store(tmp_path) as store:
        source = Silent(plan.stream)
        engine = Engine(replace(plan, refinement=other), source, store, None, Hook(nothing))
        engine.run()
        # What it owed was begun before any record came.
        assert images[0] == newest.number + 1


def run_out() -> None:
    """There is no time left."""
    raise TimeoutError


class Keeping(FileSource):
    """Leaves its caller in a cycle at every poll, as kafka-python does where time runs out."""

    def poll(self, timeout_s: float) -> list[Message]:
        found = super().poll(timeout_s)
        try:
            run_out()
        except TimeoutError as error:
            kept: list[object] = [error]
            kept.append(kept)
        return found


def test_neither_records_nor_refinements_wait_for_pythons_collector(
    tmp_path: Path, later: type[Later], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It seldom looks: of each of them there would be many, and a refinement is a whole model."""
    later.asked = cycle([3, 1, 2])
    plan = plan_of(tmp_path)
    with new_store(tmp_path) as store, uncollected() as found:
        engine = Engine(plan, Keeping(plan.stream), store, None, Hook(nothing))
        engine._yielding = Eager()
        # Batches are of several polls, as those of a backlog.
        monkeypatch.setattr(engine._size, "takes_more", lambda n, polled: polled > 0 and n < 80)
        engine.run()
        assert_made(store)
    kinds = {type(each) for each in found}
    # The cycles are there, with frames of the engine in them.
    assert TimeoutError in kinds
    assert any(isinstance(each, FrameType) and "_turn" in each.f_code.co_name for each in found)
    held = {Message, Held, Batch, BatchCommit, ConcurrentRefinement, Position, Guide, State}
    assert not kinds & held


def test_what_it_has_drawn_is_what_is_published(tmp_path: Path, later: type[Later]) -> None:
    later.asked = cycle([1])
    plan = plan_of(tmp_path)
    with new_store(tmp_path) as store:
        engine = engine_of(plan, store)
        engine.run()
        live = shard_of(engine)
    values = values_of(300, seed=5)
    live.apply(values[:20], 0.0)
    taken = live.seq
    live.begin_concurrent(live.rounds.taken + 1).run()
    live.apply(values[20:50], 0.0)
    live.adopt_concurrent()
    assert live.unshown
    live.go_on(0.0)
    assert not live.unshown
    # As many as a refinement has at the least; none of those that came meanwhile was in them.
    assert live._draws._after[-4:] == [N, *[taken] * 3]
    assert [len(draw) for draw in live._draws._draws[-3:]] == [taken] * 3


def test_what_a_refinement_fails_of_ends_the_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_self: ConcurrentRefinement) -> None:
        raise FloatingPointError("no number")

    monkeypatch.setattr(ConcurrentRefinement, "run", fail)
    plan = plan_of(tmp_path)
    with new_store(tmp_path) as store, pytest.raises(FloatingPointError, match="no number"):
        engine_of(plan, store).run()


def test_a_counted_pace_and_bundles_know_none(tmp_path: Path, later: type[Later]) -> None:
    later.asked = cycle([1])
    bundles = plan_of(tmp_path, MemorySettings(leaf_budget=400, policy="bundles"))
    counted = replace(plan_of(tmp_path), refinement=CADENCE)
    for at, plan in enumerate((bundles, counted)):
        with new_store(tmp_path, f"store-{at}") as store:
            engine_of(plan, store).run()
            assert store.adoptions(NAME, 0) == []


def test_in_a_backlog_they_have_their_share_of_the_time_that_the_loop_stands_still() -> None:
    clock = Clock()
    pace = Yielding(clock)
    pace.arrange(goes_on=False)
    pace.look(behind=True)
    stood = 0.0
    for turn in range(10_000):
        clock.now += 0.05
        # Its turn comes, and it is never made there.
        assert pace.postpones(turn, of_many=20_000, concurrent=True)
        if pace.makes_up(1, of_many=20_000):
            clock.now += 0.5
            stood += 0.5
            pace.refined(0.5, of_many=20_000)
        pace.look(behind=True)
    assert stood == pytest.approx(LEAST_SHARE / 2 * clock.now, abs=1.0)


def test_while_one_goes_on_windows_wait_and_no_other_begins() -> None:
    pace = Yielding(Clock())
    pace.look(behind=False)
    pace.arrange(goes_on=True)
    assert pace.postpones(100, of_many=0, concurrent=True)
    assert not pace.makes_up(2, of_many=10_000)
    pace.arrange(goes_on=False)
    assert not pace.postpones(100, of_many=0, concurrent=True)
    assert pace.makes_up(2, of_many=10_000)


def test_the_thread_of_one_that_is_stopped_ends() -> None:
    class Endless:
        stopping = False

        def run(self) -> None:
            while not self.stopping:
                pass

        def stop(self) -> None:
            self.stopping = True

    running = BackgroundThread(Endless(), "endless")
    assert not running.ended
    running.stop()
    assert running.ended
    assert not Concurrent().goes_on
