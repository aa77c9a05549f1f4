"""The composition root of a running stream: settings become objects, wired together."""

from __future__ import annotations

import errno
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain, count
from typing import TYPE_CHECKING, TypeVar

import msgspec

from weald.cli.errors import NotReadyError
from weald.cli.terminal.opened import sqlite_file
from weald.cli.terminal.output import note
from weald.mcmc.schedule.registry import ALL, ROLES
from weald.mcmc.schedule.stream_kernels import require_role
from weald.monitoring.exporter import Exporter
from weald.monitoring.health import Health, JointHealth, Probed
from weald.monitoring.metrics import Metrics
from weald.monitoring.settings import MonitoringSettings
from weald.storage.errors import StorageUnavailable
from weald.storage.redis.lease_queue import LeaseQueue
from weald.storage.redis.statistics import RedisStatistics
from weald.storage.settings import redacted
from weald.storage.sql import migrate
from weald.storage.writing.store import SqlReader, SqlStore
from weald.stream.dead_letters.kafka_topic import KafkaDeadLetters
from weald.stream.engine.coordinator import RefinementCoordinator
from weald.stream.engine.engine import Engine
from weald.stream.engine.side_by_side import run_all
from weald.stream.engine.sinks import Sinks
from weald.stream.model.model import StreamConfig, prior_of
from weald.stream.record.decode import NUMBER_BYTES
from weald.stream.record.formats import schema_for
from weald.stream.record.record import Reason
from weald.stream.source.file_source import FileSource
from weald.stream.source.librdkafka_source import source_of
from weald.stream.source.retry import Backoff
from weald.stream.source.single_writer import Seat
from weald.stream.telemetry.outages import Outages
from weald.stream.telemetry.telemetry import Telemetry

from . import embedded
from .machine_memory import SHARE, machine_memory

if TYPE_CHECKING:
    from weald.cli.config.settings import Settings
    from weald.stream.source.recognition import Decision
    from weald.stream.source.source import Source

__all__ = [
    "Service",
    "embedded_servers",
    "open_sources",
    "plans_of",
    "prepare_database",
    "service",
    "waiting_for_sql",
]


T = TypeVar("T")

_log = logging.getLogger(__name__)

# Services on one machine, each with a port of its own.
PORTS_TRIED = 20
# What a PostgreSQL that is there says to somebody whom it will not let in.
_REFUSED = ("authentication failed", "does not exist", "pg_hba.conf", "certificate")


@dataclass(frozen=True)
class Service:
    """A stream that is ready to run.

    Parameters
    ----------
    engines : tuple of Engine
        One, or for each shard of the stream one.
    metrics_url : str or None
        Where its numbers are; None when nothing is served.
    """

    engines: tuple[Engine, ...]
    metrics_url: str | None

    def go_on_with(self, decision: Decision) -> None:
        """Accept a log that is another one than was read, as a person has decided."""
        for engine in self.engines:
            engine.go_on_with(decision)

    def run(self) -> None:
        """Run until the source ends or `stop` is called."""
        run_all(self.engines)

    def stop(self) -> None:
        """Finish the batch in hand, then return from `run`; safe in a signal handler."""
        for engine in self.engines:
            engine.stop()


@contextmanager
def embedded_servers(settings: Settings) -> Iterator[Settings]:
    """Start the embedded Redis, and broker if the source is a topic; yield settings to match."""
    with ExitStack() as running:
        url = running.enter_context(embedded.redis_server())
        redis = msgspec.structs.replace(settings.redis, url=url, enabled=True)
        kafka = settings.kafka
        if settings.stream.source == "kafka":
            topic = _unread_topic(settings)
            address = running.enter_context(embedded.kafka_broker(topic))
            api_version = ".".join(str(part) for part in embedded.API_VERSION)
            kafka = msgspec.structs.replace(
                kafka, bootstrap_servers=address, api_version=api_version, topic=topic
            )
        yield msgspec.structs.replace(settings, redis=redis, kafka=kafka)


def _unread_topic(settings: Settings) -> str:
    """Return the topic's name, numbered if an earlier embedded broker had one of that name.

    That broker is forgotten and this one counts from 0 again; under the same name its records
    would be taken for those that SQL holds already.
    """
    file = sqlite_file(settings.storage.url)
    if (file is not None and not file.exists()) or migrate.current(settings.storage) is None:
        return settings.kafka.topic
    with SqlReader(settings.storage) as reader:
        if settings.stream.name not in reader.streams():
            return settings.kafka.topic
        read = {topic for topic, _ in reader.offsets(settings.stream.name)}
    base = settings.kafka.topic
    names = chain([base], (f"{base}-{number}" for number in count(2)))
    return next(name for name in names if name not in read)


def prepare_database(settings: Settings) -> None:
    """Create the tables of a database that has none; one with older tables is left to a person.

    Raises
    ------
    SchemaMismatch
        If the tables are older or newer than this program.
    """
    storage = settings.storage
    file = sqlite_file(storage.url)
    if (file is not None and not file.exists()) or migrate.current(storage) is None:
        migrate.upgrade(storage)
        note(f"created the tables in {redacted(storage.url)}")
    else:
        migrate.check(storage)


def waiting_for_sql(url: str, operation: Callable[[], T]) -> T:
    """Run `operation`, again and again while a database server does not answer.

    Raises
    ------
    StorageUnavailable
        When a file can't be opened, or the server refuses this role or has no such database: that
        is for a person to mend.
    """
    backoff, outages = Backoff(), Outages()
    while True:
        try:
            result = operation()
        except StorageUnavailable as error:
            if sqlite_file(url) is not None or any(word in str(error) for word in _REFUSED):
                raise
            outages.away("sql", str(error))
            time.sleep(backoff.delay())
        else:
            outages.back("sql")
            return result


def open_sources(settings: Settings) -> list[Source]:
    """Open what ``stream.source`` names, for each shard of the stream once."""
    stream = settings.stream
    if stream.source != "kafka":
        record_bytes = NUMBER_BYTES * schema_for(stream, settings.schema).dimension
        return [FileSource(stream, settings.schema.max_bytes, record_bytes)]
    process = uuid.uuid4().hex[:12]
    with ExitStack() as opened:
        sources: list[Source] = []
        for shard in range(stream.shards):
            seat = Seat(shard, stream.shards, process)
            source = source_of(settings.kafka, stream.name, stream.most_polled, seat)
            opened.callback(source.close)
            sources.append(source)
        opened.pop_all()  # they are the caller's
    return sources


@contextmanager
def service(
    settings: Settings, sources: Sequence[Source], *, next_port: bool = False
) -> Iterator[Service]:
    """Wire engines to their database, to Redis, to the dead-letter topic and to their observers.

    Parameters
    ----------
    settings : Settings
    sources : sequence of Source
        One for each shard of the stream, as `open_sources` makes them.
    next_port : bool
        Where another process has the metrics port, take the next one that is free.
    """
    plans = plans_of(settings)
    names = [plan.name for plan in plans]
    with ExitStack() as open_things:
        reasons = [str(reason) for reason in Reason]
        first = Metrics(names[0], reasons=reasons, version=version("weald"))
        metrics = [first, *(first.beside(name) for name in names[1:])]
        healths = {name: Health(settings.monitoring.stalled_after_seconds) for name in names}
        for health in healths.values():
            health.satisfied("schema", "at this program's revision")
            # Who stands by may never ask it anything else.
            health.satisfied("sql", "told the schema's revision")
        url = None
        if settings.monitoring.enabled:
            tries = PORTS_TRIED if next_port else 1
            probed = healths[names[0]] if len(names) == 1 else JointHealth(healths)
            exporter = _exporter(settings.monitoring, first, probed, tries)
            url = f"{open_things.enter_context(exporter).url}/metrics"
        engines = [
            _engine(settings, plan, source, Telemetry(told, healths[plan.name]), open_things)
            for plan, source, told in zip(plans, sources, metrics, strict=True)
        ]
        yield Service(tuple(engines), url)


def plans_of(settings: Settings) -> list[StreamConfig]:
    """Return what the stream is to be, of one in shards for each of them.

    Raises
    ------
    ParameterError
        When settings contradict each other.
    SchemaError
        When the schema is none.
    """
    shards = settings.stream.shards
    return [_plan(settings, shard) for shard in ([None] if shards == 1 else range(shards))]


def _plan(settings: Settings, shard: int | None) -> StreamConfig:
    return StreamConfig(
        settings.stream,
        settings.schema,
        settings.model,
        settings.refinement,
        settings.retention,
        settings.memory,
        settings.features,
        shard,
        None if (memory := machine_memory()) is None else int(SHARE * memory),
    )


def _engine(
    settings: Settings,
    plan: StreamConfig,
    source: Source,
    telemetry: Telemetry,
    open_things: ExitStack,
) -> Engine:
    storage, stream = settings.storage, settings.stream
    store = waiting_for_sql(storage.url, lambda: SqlStore(storage))
    open_things.callback(store.close)
    sinks = Sinks()
    if settings.redis.enabled:
        sinks.statistics = open_things.enter_context(RedisStatistics(settings.redis))
    if stream.source == "kafka" and stream.dead_letter_topic:
        sinks.dead_letters = KafkaDeadLetters(settings.kafka, stream.name)
        open_things.callback(sinks.dead_letters.close)
    schema = schema_for(stream, settings.schema)
    engine = Engine(plan, source, store, sinks, telemetry, schema)
    if settings.refinement.mode == "workers":
        _let_workers_refine(settings, engine, store, telemetry, open_things)
    return engine


def _let_workers_refine(
    settings: Settings,
    engine: Engine,
    store: SqlStore,
    telemetry: Telemetry,
    open_things: ExitStack,
) -> None:
    require_role(ALL, settings.workers.kernels, prior_of(settings.model))
    if not settings.redis.enabled:
        raise NotReadyError(
            "refinement.mode is workers, whose leases go through Redis, which is switched off",
            next_step="--set redis.enabled=true",
        )
    queue = open_things.enter_context(
        LeaseQueue(settings.redis, settings.stream.name, tuple(ROLES))
    )
    engine.refine_by(RefinementCoordinator(settings.workers, queue, store, telemetry))


def _exporter(
    settings: MonitoringSettings, metrics: Metrics, health: Probed, tries: int
) -> Exporter:
    first = settings.port
    for port in range(first, first + tries):
        try:
            tried = msgspec.structs.replace(settings, port=port)
            exporter = Exporter(tried, metrics.registry, health)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and port + 1 < first + tries:
                continue
            raise NotReadyError(
                f"monitoring: {error.strerror}",
                next_step="--set monitoring.port=0 takes a free one",
            ) from error
        if port != first:
            _log.warning("port %d is another process's: metrics are on port %d", first, port)
        return exporter
    raise AssertionError("no port was tried")
