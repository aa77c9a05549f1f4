"""The engine with workers over a real Redis: rounds, replay, and everything that may go wrong."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import redis

from tests.stream.scenario import (
    CADENCE,
    NAME,
    Hook,
    KilledError,
    assert_exactly_once,
    killer,
    line_of,
    new_store,
    outcome,
    plan_for,
    records_file,
    values_of,
    write_lines,
)
from weald.mcmc.schedule.registry import ROLES
from weald.mcmc.settings import FeatureSettings, ModelSettings
from weald.storage.commit.commit import LeaseRow
from weald.storage.errors import StorageUnavailable
from weald.storage.redis.lease_queue import LeaseQueue, WorkerRow
from weald.storage.settings import RedisSettings
from weald.storage.writing.store import SqlStore
from weald.stream.engine.coordinator import RefinementCoordinator
from weald.stream.engine.engine import Engine
from weald.stream.record.record import Message
from weald.stream.recovery import snapshots
from weald.stream.recovery.recovery import usable
from weald.stream.settings import MemorySettings, StreamSettings
from weald.stream.source.file_source import FileSource
from weald.stream.warm_up.stored_family import family_of
from weald.stream.worker.settings import WorkersSettings
from weald.stream.worker.worker import Done, Worker
from weald.treecore.errors import ParameterError
from weald.treecore.family.interface.base import statistics_width

N = 650
SETTINGS = WorkersSettings(
    leases=2, sweeps=1, lease_seconds=30.0, writer_share=1.0, behind_seconds=1e12
)


class Plane:
    """An engine whose polls each give two workers one turn, in a fixed order."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        self._settings = RedisSettings(url=redis_url)
        self.waiting = SETTINGS
        self.redis = redis.Redis.from_url(redis_url)
        self.redis.flushall()
        self.path = records_file(folder, N)
        self.store: SqlStore = new_store(folder)
        self.queue = LeaseQueue(self._settings, NAME)
        self.workers = [self.worker(i) for i in range(2)]
        self.done: list[Done] = []

    def worker(self, number: int, role: str = "all") -> Worker:
        queue = LeaseQueue(self._settings, NAME, (role,))
        return Worker(queue, self.waiting, f"worker-{number}")

    def work(self) -> None:
        for worker in self.workers:
            done = worker.turn(0.001)
            if done is not None:
                self.done.append(done)

    def run(
        self,
        on_poll: Callable[[int], None] = lambda _: None,
        before: Callable[[str, int], None] = lambda _name, _count: None,
        memory: MemorySettings | None = None,
        source_of: Callable[[StreamSettings], FileSource] = FileSource,
        quiet_seconds: float = 0.0,
        features: FeatureSettings | None = None,
        model: ModelSettings | None = None,
    ) -> Engine:
        def hook(name: str, count: int) -> None:
            before(name, count)
            if name == "poll":
                on_poll(count)
            if name in ("poll", "await"):
                self.work()

        plan = plan_for(self.path, batch_records=40, snapshot_records=300, diverged="stop")
        mode = msgspec.structs.replace(plan.refinement, mode="workers", quiet_seconds=quiet_seconds)
        plan = replace(plan, refinement=mode, memory=memory or MemorySettings())
        plan = replace(plan, features=features or FeatureSettings(), model=model or plan.model)
        telemetry = Hook(hook)
        source = source_of(plan.stream)
        engine = Engine(plan, source, self.store, telemetry=telemetry)
        if isinstance(source, Pausing | Endless):
            source.engine = engine
        queue = LeaseQueue(self._settings, NAME, tuple(ROLES))
        engine.refine_by(RefinementCoordinator(self.waiting, queue, self.store, telemetry))
        engine.run()
        return engine

    def outcomes(self) -> dict[str, int]:
        return self.store.lease_counts(NAME)


class Pausing(FileSource):
    """A file that ends only when so many rounds have come back in the silence."""

    engine: Engine

    @property
    def exhausted(self) -> bool:
        return super().exhausted and len(self.engine._quiet._reached) >= 8


@pytest.fixture
def plane(tmp_path: Path, redis_url: str) -> Iterator[Plane]:
    made = Plane(tmp_path, redis_url)
    yield made
    made.store.close()


def test_rounds_are_adopted_while_records_flow(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll, waits = FileSource.poll, []

    def noted(source: FileSource, timeout_s: float) -> list[Message]:
        waits.append(timeout_s)
        return poll(source, timeout_s)

    monkeypatch.setattr(FileSource, "poll", noted)
    # However old a round is.
    monkeypatch.setattr("weald.stream.engine.coordinator._LOOK_AGAIN", 0.0)
    plane.run()
    # While a round is out nobody waits for records as long as without.
    assert min(waits) < waits[0] == 0.05
    assert_exactly_once(plane.store, N)
    assert plane.outcomes()["adopted"] >= 6
    rounds = plane.store.rounds(NAME)
    assert {row.kernel for row in rounds} >= {"gibbs"}
    adopted = {row.round_number for row in plane.store.leases(NAME, outcome="adopted")}
    moves = [done.n_moves for done in plane.done if done.round_number in adopted]
    assert sum(row.proposed for row in rounds) == sum(moves)
    large = [row for row in plane.store.clusters(NAME) if row.n_observations > 20]
    assert len(large) == 5


def test_the_round_that_is_out_when_a_source_ends_is_taken_back(plane: Plane) -> None:
    plane.run()
    assert set(plane.outcomes()) == {"adopted"}
    assert not plane.redis.exists(f"weald:{{{NAME}}}:lease_bytes")


def test_each_role_has_its_leases_and_its_account(plane: Plane) -> None:
    plane.workers = [plane.worker(0, "sdds"), plane.worker(1, "subc")]
    plane.run()
    assert set(plane.outcomes()) == {"adopted"}
    rows = plane.store.leases(NAME)
    # Whose a lease was says whose it was meant for, as both are there throughout.
    assert {(row.role, row.worker) for row in rows} == {("sdds", "worker-0"), ("subc", "worker-1")}
    told = {row.role: row for row in plane.store.roles(NAME)}
    for role, account in told.items():
        own = [row for row in rows if row.role == role]
        assert account.leases == len(own) > 3
        assert account.proposed == sum(row.proposed or 0 for row in own) > 0
        assert account.accepted == sum(row.accepted or 0 for row in own) > 0
        seconds = sum(row.processor_seconds or 0.0 for row in own)
        jump = sum(row.squared_jump or 0.0 for row in own)
        assert account.processor_seconds == pytest.approx(seconds)
        assert account.squared_jump_per_second == pytest.approx(jump / seconds)
    assert {"sdds", "subc", "gibbs"} == {row.kernel for row in plane.store.rounds(NAME)}
    assert_exactly_once(plane.store, N)


def test_leases_of_a_role_that_nobody_has_any_more_go_to_others(plane: Plane) -> None:
    plane.waiting = msgspec.structs.replace(SETTINGS, lease_seconds=0.1)
    plane.workers = [plane.worker(0, "sdds"), plane.worker(1, "subc")]

    def die(_: int) -> None:
        if len(plane.done) == 4:
            plane.workers[1:] = []

    # In a silence without an end rounds go on until eight have come back.
    plane.run(on_poll=die, source_of=Pausing, quiet_seconds=0.01)
    assert set(plane.outcomes()) == {"adopted"}
    helped = [row for row in plane.store.leases(NAME) if row.worker == "worker-0"]
    assert {row.role for row in helped} == {"sdds", "subc"}


def test_what_workers_find_in_a_silence_is_shown_and_replayed(plane: Plane) -> None:
    plane.run(source_of=Pausing, quiet_seconds=0.01)
    told = plane.store.publications(NAME)
    assert [row.seq for row in told[-8:]] == [N] * 8
    before = outcome(plane.store)
    plane.store.delete_snapshots(NAME, [each.number for each in plane.store.snapshots(NAME)])
    # Loading raises ReplayDiverged if rounds and publications do not fall into their places.
    plane.run()
    assert outcome(plane.store) == before


class Endless(FileSource):
    """A file to which records might still be appended."""

    engine: Engine
    exhausted = False


def test_a_silence_without_workers_is_waited_through(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane.workers = []
    waits: list[float] = []

    def noted(source: Endless, timeout_s: float) -> list[Message]:
        waits.append(timeout_s)
        if len(waits) == 60:
            source.engine.stop()
        return FileSource.poll(source, timeout_s)

    monkeypatch.setattr(Endless, "poll", noted)
    plane.run(source_of=Endless, quiet_seconds=1e-9)
    # Nobody refines: going round without a wait would cost a processor and bring nothing.
    assert min(waits[-20:]) == 0.05


@pytest.mark.parametrize(
    ("step", "count"), [("adopt", 2), ("commit", 9), ("lend", 3), ("redis", 8), ("publish", 2)]
)
def test_a_killed_writer_replays_what_workers_did(plane: Plane, step: str, count: int) -> None:
    with pytest.raises(KilledError):
        plane.run(before=killer(step, count))
    # Loading raises ReplayDiverged if replay does not come to the clusters that SQL holds.
    plane.run()
    assert_exactly_once(plane.store, N)
    assert plane.outcomes().get("adopted", 0) >= 2
    assert len(plane.store.leases(NAME, outcome="offered")) <= 2


def test_workers_refine_what_the_family_sees(plane: Plane) -> None:
    """Their atoms are transformed, the rows that a replay reads are not."""
    asked = FeatureSettings(standardise=True, components=1)

    with pytest.raises(KilledError):
        plane.run(before=killer("commit", 9), features=asked)
    plane.run(features=asked)
    assert_exactly_once(plane.store, N)
    assert plane.outcomes()["adopted"] > 4
    assert {row.statistics.size for row in plane.store.clusters(NAME)} == {4}


def test_workers_refine_families_without_a_conjugate_prior(plane: Plane) -> None:
    """Amounts and counts of five kinds; a killed writer replays what came back."""
    rows = values_of(N)
    rows[:, 0], rows[:, 1] = np.exp(rows[:, 0] / 5.0), 20.0 * np.maximum(rows[:, 1], 0.0).round()
    write_lines(plane.path, [line_of(i, row) for i, row in enumerate(rows)])
    families = ("gamma", "negative-binomial")
    parts = [{"family": name, "columns": [at]} for at, name in enumerate(families)]
    model = ModelSettings(family="mixed", params={"parts": parts}, warmup_records=60)

    with pytest.raises(KilledError):
        plane.run(before=killer("commit", 9), model=model)
    plane.run(model=model)
    assert_exactly_once(plane.store, N)
    assert plane.outcomes()["adopted"] > 4
    family = family_of(plane.store.spec(NAME))
    sizes = {row.statistics.size for row in plane.store.clusters(NAME)}
    assert sizes == {statistics_width(family)}


def test_again_from_the_beginning(plane: Plane) -> None:
    """Without any snapshot every round is done again, and all comes out as it was."""
    plane.run()
    before = outcome(plane.store)
    plane.store.delete_snapshots(NAME, [each.number for each in plane.store.snapshots(NAME)])
    plane.run()
    assert outcome(plane.store) == before


def test_a_snapshot_made_beside_the_writer_knows_of_the_round_that_is_out(
    plane: Plane, tmp_path: Path
) -> None:
    other = new_store(tmp_path)
    made: list[int] = []

    def create(step: str, nth: int) -> None:
        # That round was begun some records ago.
        if (step, nth) == ("adopt", 5):
            made.append(snapshots.create(other, NAME, "by hand", lambda _: None))

    plane.run(before=create)
    before = outcome(plane.store)
    later = [each.number for each in plane.store.snapshots(NAME) if each.number not in made]
    plane.store.delete_snapshots(NAME, later)
    # Loading raises ReplayDiverged where that round and those after it are not done again.
    plane.run()
    assert outcome(plane.store) == before


def test_a_snapshot_is_not_made_without_rounds_that_were_forgotten_meanwhile(
    plane: Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer forgets rounds that no snapshot of its own needs, while one is made beside it."""
    settings = plane.store._settings
    plane.store._settings = msgspec.structs.replace(settings, snapshots_kept=1)
    plane.run()
    standing, n_asked = snapshots._standing, list[int]()

    def later(store: SqlStore, stream: str) -> Any:
        if not n_asked:
            more = [line_of(N + i, row) for i, row in enumerate(values_of(250, seed=4))]
            with plane.path.open("a") as file:
                file.writelines(f"{line}\n" for line in more)
            plane.run()
        n_asked.append(1)
        return standing(store, stream)

    monkeypatch.setattr(snapshots, "_standing", later)
    made = snapshots.create(new_store(tmp_path), NAME, "by hand", lambda _: None)
    (own,) = (each.number for each in plane.store.snapshots(NAME) if each.number != made)
    beside, written = (usable(plane.store, NAME, each).state() for each in (made, own))
    assert beside.keys() == written.keys()
    for name, array in written.items():
        assert beside[name].tobytes() == array.tobytes(), name
    assert len(n_asked) == 2


def test_rounds_from_before_a_way_back_are_not_replayed_after_it(plane: Plane) -> None:
    plane.run()
    oldest = plane.store.snapshots(NAME)[-1].number
    cadence = msgspec.structs.replace(CADENCE, mode="workers")
    made = snapshots.revert_keeping(plane.store, NAME, oldest, cadence, lambda _: None)
    n_before = plane.outcomes()["adopted"]
    more = [line_of(N + i, row) for i, row in enumerate(values_of(250, seed=4))]
    with plane.path.open("a") as file:
        file.writelines(f"{line}\n" for line in more)
    plane.run()
    assert plane.outcomes()["adopted"] >= n_before + 4
    before = outcome(plane.store)
    later = [each.number for each in plane.store.snapshots(NAME) if each.number > made]
    plane.store.delete_snapshots(NAME, later)
    # Loading raises ReplayDiverged where rounds from before stand in the way of later ones.
    plane.run()
    assert outcome(plane.store) == before
    assert_exactly_once(plane.store, N + 250)


def test_a_way_back_that_drops_also_drops_the_rounds_of_its_own_place(
    plane: Plane, tmp_path: Path
) -> None:
    """In a silence a snapshot and the rounds after it have the same place in the stream."""
    other = new_store(tmp_path)
    rounds, made = iter(range(100)), []

    def create(step: str, _: int) -> None:
        # The second time: that round was begun in the silence, too.
        if step == "adopt" and other.position(NAME).next_seq == N + 1 and next(rounds) == 1:
            made.append(snapshots.create(other, NAME, None, lambda _: None))

    plane.run(before=create, source_of=Pausing, quiet_seconds=0.01)
    (number,) = made
    taken = usable(plane.store, NAME, number).rounds.taken
    later = plane.store.adoptions(NAME, taken)
    assert (later[0].begun_seq, later[0].seq) == (N, N)
    snapshots.revert_dropping(plane.store, NAME, number)
    assert plane.store.adoptions(NAME, taken) == []
    plane.run()
    assert_exactly_once(plane.store, N)


@pytest.mark.parametrize("memory", [{"window_records": 220}, {"half_life_records": 60.0}])
def test_a_stream_that_forgets_while_leases_are_out(plane: Plane, memory: dict[str, Any]) -> None:
    settings = msgspec.convert(memory, MemorySettings)
    plane.run(memory=settings)
    assert_exactly_once_but_gone(plane.store)
    before = outcome(plane.store)
    assert plane.outcomes()["adopted"] >= 6
    plane.store.delete_snapshots(NAME, [each.number for each in plane.store.snapshots(NAME)])
    # Loading raises ReplayDiverged if the rounds and what left do not fall into their places.
    plane.run(memory=settings)
    assert outcome(plane.store) == before


def assert_exactly_once_but_gone(store: SqlStore) -> None:
    """Every record is there once; clusters count those that the model still holds."""
    keys = outcome(store).keys
    assert sorted(str(key) for key in keys) == sorted(f"k{i}" for i in range(N))
    held = sum(row.n_observations for row in store.clusters(NAME))
    assert 0 < held < N


def test_bundles_need_inline_refinement(plane: Plane) -> None:
    with pytest.raises(ParameterError, match=r"bundles\" needs refinement\.mode"):
        plane.run(memory=MemorySettings(leaf_budget=2_000, policy="bundles"))


def test_redis_is_flushed_at_every_turn_but_a_few(plane: Plane) -> None:
    def flush(count: int) -> None:
        if count % 2:
            plane.redis.flushall()

    # What is out at the end is gone, and waited for as long as half a lease.
    plane.waiting = msgspec.structs.replace(SETTINGS, lease_seconds=4.0)
    plane.run(on_poll=flush)
    assert_exactly_once(plane.store, N)


def test_repeated_and_foreign_returns_are_dropped(plane: Plane) -> None:
    kept: list[dict[bytes, bytes]] = []

    def meddle(_: int) -> None:
        key = f"weald:{{{NAME}}}:returns"
        entries: Any = plane.redis.xrange(key)
        kept.extend(fields for _, fields in entries)
        for fields in reversed(kept):
            plane.redis.xadd(key, fields)  # type: ignore[arg-type]  # bytes are fine
        plane.redis.xadd(key, {"key": "1:0:99", "worker": "nobody", "payload": b"x"})
        plane.redis.xadd(key, {"key": "9999:0:99", "worker": "nobody"})

    plane.run(on_poll=meddle)
    assert_exactly_once(plane.store, N)
    rows = plane.store.leases(NAME, outcome="adopted")
    assert len({(row.round_number, row.number) for row in rows}) == len(rows)


def test_a_lease_that_ends_its_workers_is_parked(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise ValueError("a lease that cannot be worked on")

    monkeypatch.setattr("weald.stream.worker.worker.work", fail)
    impatient = msgspec.structs.replace(SETTINGS, lease_seconds=1e-3, deliveries=2)
    plane.workers = [Worker(plane.queue, impatient, "worker-0")]
    plane.run()
    assert_exactly_once(plane.store, N)
    assert plane.outcomes().get("parked", 0) >= 2
    assert "adopted" not in plane.outcomes()


def test_without_workers_records_flow_all_the_same(plane: Plane) -> None:
    plane.workers = []
    plane.run()
    assert_exactly_once(plane.store, N)
    assert plane.outcomes() == {}


def test_what_came_back_is_kept_when_redis_goes_away_before_the_next_round(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers, away = LeaseQueue.workers, [False]

    def adopting(step: str, nth: int) -> None:
        away[0] = (step, nth) == ("adopt", 3)

    def unless_away(queue: LeaseQueue) -> list[WorkerRow]:
        if away[0]:
            raise StorageUnavailable("Redis went away")
        return workers(queue)

    monkeypatch.setattr(LeaseQueue, "workers", unless_away)
    plane.run(before=adopting)
    assert set(plane.outcomes()) == {"adopted"}
    before = outcome(plane.store)
    plane.store.delete_snapshots(NAME, [each.number for each in plane.store.snapshots(NAME)])
    # Loading raises ReplayDiverged where SQL lacks a round that the model has.
    plane.run()
    assert outcome(plane.store) == before


def test_sql_is_waited_for_when_the_leases_of_an_earlier_writer_are_closed(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases, asked = SqlStore.leases, []

    def at_first_away(store: SqlStore, *args: Any, **keywords: Any) -> list[LeaseRow]:
        asked.append(args)
        if len(asked) == 1:
            raise StorageUnavailable("PostgreSQL went away")
        return leases(store, *args, **keywords)

    monkeypatch.setattr(SqlStore, "leases", at_first_away)
    plane.run()
    assert_exactly_once(plane.store, N)
    assert plane.outcomes()["adopted"] >= 6
