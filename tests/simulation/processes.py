"""The processes of a run: writers and workers as the command line starts them, and who looks on.

Each is an object that is thrown away when it dies; the next one begins from SQL and a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from weald.mcmc.schedule.registry import ROLES
from weald.mcmc.settings import ModelSettings, RefinementSettings
from weald.monitoring.health import Health
from weald.storage.errors import Fenced, StorageError, StorageUnavailable, StreamNotFound
from weald.storage.queries.base import Letters
from weald.storage.redis.lease_queue import LeaseItem, LeaseQueue
from weald.storage.redis.statistics import RedisStatistics
from weald.storage.settings import RedisSettings, RetentionSettings
from weald.storage.writing.store import SqlStore
from weald.stream.engine.coordinator import RefinementCoordinator
from weald.stream.engine.engine import Engine
from weald.stream.engine.sinks import Sinks
from weald.stream.errors import LogReplaced, ReplayDiverged, SourceUnavailable
from weald.stream.model.model import StreamConfig
from weald.stream.recovery import snapshots
from weald.stream.settings import (
    FieldSettings,
    KafkaSettings,
    MemorySettings,
    SchemaSettings,
    StreamSettings,
)
from weald.stream.source.kafka_source import KafkaSource
from weald.stream.source.recognition import Decision
from weald.stream.telemetry.telemetry import Telemetry
from weald.stream.worker.row_pages import CHECKSUM_BYTES
from weald.stream.worker.settings import WorkersSettings
from weald.stream.worker.worker import Worker

from .cheap import SilentMetrics
from .scheduler import KilledError, Process

if TYPE_CHECKING:
    from .world import World

__all__ = ["NAME", "TOPIC", "Fleet"]

NAME, TOPIC = "stream", "events"
_SCHEMA = SchemaSettings(
    fields=(FieldSettings("x", kind="flag"), FieldSettings("y", kind="flag")), key="id"
)
_MODEL = ModelSettings(family="bernoulli", params={"a": 1.0, "b": 1.0}, warmup_records=3)
_WORKERS = WorkersSettings(
    leases=2, sweeps=1, lease_seconds=4.0, writer_share=1.0, behind_seconds=1e12
)
_RESTART_SECONDS = 1.0


class Fleet:
    """Writers and workers; whoever ends is started again, as a supervisor would.

    Parameters
    ----------
    world : World
    """

    def __init__(self, world: World) -> None:
        self._world = world
        scenario = world.scenario
        self.writers: list[Process] = []
        self.workers: list[Process] = []
        self._engines: dict[Process, Engine] = {}
        self._stopping = False
        self._deadly: list[tuple[str, float]] = []
        self._n_started = 0
        self.plan = StreamConfig(
            StreamSettings(
                name=NAME,
                poll_seconds=0.5,
                dead_letter_share=1.0,
                dead_letter_topic=False,
                diverged="stop",
                **scenario.stream,
            ),
            _SCHEMA,
            _MODEL,
            RefinementSettings(**scenario.refinement),
            RetentionSettings(**scenario.retention),
            MemorySettings(**scenario.memory),
        )

    # By whom a run is moved on.

    def start(self) -> None:
        """Start whoever is not there."""
        scenario = self._world.scenario
        while len(self.writers) < scenario.n_writers:
            self.writers.append(self._start("writer", self._write))
        while len(self.workers) < scenario.n_workers:
            self.workers.append(self._start("worker", self._work))

    def end(self) -> None:
        """Kill everybody."""
        self._stopping = True
        for process in [*self.writers, *self.workers]:
            self._world.scheduler.kill(process)
            self._engines.pop(process, None)
        self._stopping = False

    def start_alone(self) -> None:
        """Kill everybody and start one writer without any worker."""
        self.end()
        self._world.broker.group.reset()
        self.workers.clear()
        self.writers = [self._start("writer", self._write)]

    def stop(self) -> None:
        """Have every writer finish what it has in hand."""
        self._stopping = True
        for engine in self._engines.values():
            engine.stop()

    @property
    def ended(self) -> bool:
        """Whether every writer has stopped."""
        return not self._engines

    @property
    def leading(self) -> bool:
        """Whether some writer has a model, or there is nothing to make one of."""
        writers = [engine._ownership.writer for engine in self._engines.values()]
        return any(each is not None and each.shard is not None for each in writers) or (
            self._world.history.too_few and any(writers)
        )

    def heal(self) -> None:
        """Everybody runs, and nobody is about to die."""
        self._deadly.clear()
        for process in [*self.writers, *self.workers]:
            process.frozen_until = 0.0

    def writer(self, number: int) -> Process:
        """One of the writers."""
        return self.writers[number % len(self.writers)]

    def a_worker(self, number: int) -> Process:
        """One of the workers."""
        return self.workers[number % len(self.workers)]

    def crash(self, process: Process, seconds: float) -> None:
        """Kill a process; another takes its place after a while."""
        scheduler = self._world.scheduler
        if not process.alive:
            return
        self._engines.pop(process, None)
        kind, role = ("writer", self._write) if process in self.writers else ("worker", self._work)
        place = self.writers if kind == "writer" else self.workers
        place[place.index(process)] = self._start(kind, role, seconds)
        scheduler.kill(process)

    def crash_at(self, label: str, seconds: float) -> None:
        """Kill the next writer that comes to this step."""
        self._deadly.append((label, seconds))

    def passes(self, label: str) -> None:
        """A process passes a labelled step."""
        process = self._world.scheduler.process
        for each in self._deadly:
            if each[0] == label and process in self.writers and process is not None:
                self._deadly.remove(each)
                self.crash(process, each[1])
                return

    # What they do.

    def _start(self, kind: str, run: Callable[[Process], None], delay: float = 0.0) -> Process:
        self._n_started += 1
        process = Process(f"{kind}-{self._n_started}")
        self._world.scheduler.spawn(process, lambda: run(process), delay)
        return process

    def _write(self, process: Process) -> None:
        decided = False
        while not self._stopping:
            try:
                self._run_engine(process, decided=decided)
            except LogReplaced as error:
                if not self._world.history.replaced:
                    self._world.history.faults.append(f"{process.name}: {error}")
                # A person has read the message by the second time.
                self._world.scheduler.sleep(_RESTART_SECONDS)
                decided = True
            except (StorageUnavailable, SourceUnavailable) as error:
                if self._stopping:
                    return
                self._world.history.note(f"{process.name} stopped: {error}")
                self._world.scheduler.sleep(_RESTART_SECONDS)
            except KilledError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault
                self._world.history.faults.append(
                    f"{process.name}: {type(error).__name__}: {error}"
                )
                return
            finally:
                self._engines.pop(process, None)

    def _run_engine(self, process: Process, *, decided: bool) -> None:
        world, plan = self._world, self.plan
        kafka = KafkaSettings(topic=TOPIC, connect_timeout_seconds=3.0)
        source = KafkaSource(kafka, NAME, plan.stream.most_polled)
        telemetry = Telemetry(SilentMetrics(), Health())
        statistics = RedisStatistics(RedisSettings())
        with world.store() as store:
            engine = Engine(plan, source, store, Sinks(statistics), telemetry)
            if plan.refinement.mode == "workers":
                queue = _Queue(world, tuple(ROLES))
                engine.refine_by(RefinementCoordinator(_WORKERS, queue, store, telemetry))
            if decided:
                engine.go_on_with(Decision())
            self._engines[process] = engine
            if self._stopping:
                engine.stop()
            engine.run()

    def _work(self, process: Process) -> None:
        role = ("all", "subc")[int(process.name.rpartition("-")[2]) % 2]
        Worker(_Queue(self._world, (role,)), _WORKERS, process.name).run()

    # What operators do.

    def operate(self, what: Callable[[SqlStore], None]) -> None:
        """Do what a command does; a person tries again later when it fails."""
        with self._world.store() as store:
            try:
                what(store)
            except (StorageError, ReplayDiverged) as error:
                passing = isinstance(error, StorageUnavailable | Fenced | StreamNotFound)
                note = self._world.history
                (note.note if passing else note.faults.append)(f"operator: {error}")

    @staticmethod
    def replay_letters(store: SqlStore) -> None:
        """`weald dlq replay`."""
        store.request_replay(NAME, Letters())

    @staticmethod
    def make_snapshot(store: SqlStore) -> None:
        """`weald snapshot create`."""
        snapshots.create(store, NAME, "by hand", lambda _: None)


class _Queue(LeaseQueue):
    """The product's queue; what is put up is noted, so that what is adopted can be checked."""

    def __init__(self, world: World, roles: Sequence[str]) -> None:
        super().__init__(RedisSettings(), NAME, roles)
        self._noted = world.history.offers
        self._pages = world.history.pages

    def put_pages(self, pages: Mapping[int, bytes]) -> None:
        for number, page in pages.items():
            self._pages[number, page[:CHECKSUM_BYTES]] = page
        super().put_pages(pages)

    def offer(self, items: list[LeaseItem]) -> None:  # type: ignore[override]
        for item in items:
            self._noted.setdefault(item.key, item.payload)
        super().offer(items)
