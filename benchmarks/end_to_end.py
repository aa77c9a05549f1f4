"""Processor time of a record, by step: inside the model, through the engine, through a topic.

    python -m benchmarks.end_to_end                       model, file, and the embedded broker
    python -m benchmarks.end_to_end --servers             also Kafka and PostgreSQL, started for it
    python -m benchmarks.end_to_end --only kafka --servers --records 100000 --packed
    python -m benchmarks.end_to_end --only kafka --servers --client librdkafka
    python -m benchmarks.end_to_end --only file --pace counted
    python -m benchmarks.end_to_end --only file --records 300000 --sample 20000
    python -m benchmarks.end_to_end --only kafka --servers --rate 8000 --records 240000

Each line is one run over the same records, which all wait when it begins, after the kernels are
compiled and loaded. ``model`` is insertion, refinement and publication on arrays; ``file`` adds
decoding and SQLite; the topics add Kafka's protocol, with the producer's work outside of the clock;
``postgresql`` is a topic into PostgreSQL, with durable commits. The table says processor
microseconds a record until the last record was committed: of the engine's thread by step, then of
what it does beside (``loop``) and of other threads (``client``: of Kafka's client). What the run
went on for, to make up for refinement, is said behind it. Of the rate, which goes by the clock,
servers on the same machine have their part. More records than the embedded broker keeps have no
such line.

Behind each run from a topic are the floors of its steps (``benchmarks.step_floors``), measured on
the same records in the same process, and their sum.

With ``--rate`` the records of a topic come while it runs, so many a second, from a process of their
own, and the line says behind it how long they took from there to their commit: the median, and what
one in a hundred took longer than. The first five seconds, in which the stream begins, don't count.
"""

import argparse
import math
import multiprocessing
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks.step_floors import decode_floor, insert_floor, poll_floor, write_floor
from benchmarks.storage_commit import durable
from tests.servers.kafka import kafka_broker as apache_kafka
from tests.servers.postgresql import database, postgresql_server
from weald.cli.service.allocation import seek_cycles_rarely
from weald.mcmc.settings import ModelSettings, RefinementSettings
from weald.monitoring.health import Health
from weald.monitoring.metrics import Metrics
from weald.storage.commit.commit import BatchCommit
from weald.storage.settings import StorageSettings
from weald.storage.sql.migrate import upgrade
from weald.storage.writing.store import SqlStore
from weald.stream.engine.engine import Engine
from weald.stream.model.batch_outcome import BatchOutcome
from weald.stream.model.model import StreamConfig, new_shard, spec_from_sample
from weald.stream.record.formats import schema_for
from weald.stream.record.pending_batch import Held
from weald.stream.record.record import Message
from weald.stream.settings import (
    FieldSettings,
    KafkaSettings,
    MemorySettings,
    SchemaSettings,
    StreamSettings,
)
from weald.stream.source.file_source import FileSource
from weald.stream.source.kafka_source import KafkaSource
from weald.stream.source.librdkafka_source import source_of
from weald.stream.source.source import Source
from weald.stream.telemetry.telemetry import Telemetry

Values = NDArray[np.float64]
Pace = Literal["counted", "yielding"]

# librdkafka's own broker keeps 5 MB of each of four partitions, with what it notes of each record.
EMBEDDED_BYTES = 12_000_000

# A sleep takes longer than a record: what is due in less is sent together.
SHORTEST_SLEEP = 0.002

# Of a stream whose latency is measured: in these it begins.
BEGINNING_SECONDS = 5.0

STEPS = ("poll", "decode", "insert", "refine", "publish", "snapshot", "commit")


class Laps(Telemetry):
    """Adds up the processor time of each step, until the last record was committed."""

    def __init__(self) -> None:
        super().__init__(Metrics("benchmark"), Health())
        self._running: dict[str, float] = {}
        self.begin()

    def begin(self) -> None:
        """Start the clocks."""
        self._running.clear()
        self._since = self._read()
        self.caught_up = np.zeros(3)
        # Processor time of transactions that were written beside the loop.
        self._beside = 0.0
        self._took: list[Values] = []
        self.seconds: dict[str, float] = {}

    @staticmethod
    def _read() -> Values:
        return np.array([time.perf_counter(), time.process_time(), time.thread_time()])

    def stop(self) -> None:
        """Note how things are, as if the last record had just been committed."""
        self.caught_up, self.seconds = self._read() - self._since, dict(self._running)
        self.caught_up[2] += self._beside

    def committed(
        self,
        commit: BatchCommit,
        held: Held,
        applied: BatchOutcome,
        *,
        timed: bool,
        at: float,
    ) -> None:
        """Note when the last record was committed."""
        super().committed(commit, held, applied, timed=timed, at=at)
        if len(held):
            self.stop()
            if self.caught_up[0] > BEGINNING_SECONDS:
                self._took.append(at - held.broker_times())

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time one step."""
        began = time.thread_time()
        with super().step(name):
            yield
        self._add(name, time.thread_time() - began)

    def written(self, seconds: float) -> None:
        """Count the processor time of a transaction, on whichever thread it was."""
        if threading.current_thread() is not threading.main_thread():
            self._beside += seconds
            self._add("commit", seconds)

    def _add(self, name: str, seconds: float) -> None:
        self._running[name] = self._running.get(name, 0.0) + seconds

    @staticmethod
    def told_floors(seconds: Mapping[str, float], n: int) -> str:
        """Processor microseconds a record at the least, where they were measured."""
        row = "".join(f"{1e6 * seconds.get(name, 0.0) / n:>9.1f}" for name in STEPS)
        return f"{'':>9} {1e6 * sum(seconds.values()) / n:>8.1f}{row}"

    def latency(self) -> str:
        """How long records took from the topic to their commit, in milliseconds."""
        took = 1000 * np.concatenate([np.empty(0), *self._took])
        if not len(took):
            return "no record came after the beginning"
        half, most, worst = np.quantile(took, (0.5, 0.99, 1.0))
        return f"median {half:.0f} ms, 99 % within {most:.0f} ms, all within {worst:.0f} ms"

    def told(self, n: int) -> str:
        """Rate, and processor microseconds a record by step."""
        clock, process, thread = self.caught_up
        after = (self._read() - self._since)[1] - process
        shares = [self.seconds.get(name, 0.0) for name in STEPS]
        shares += [thread - sum(shares), process - thread]
        row = "".join(f"{1e6 * share / n:>9.1f}" for share in shares)
        return f"{n / clock:>9,.0f} {1e6 * process / n:>8.1f}{row} {1e6 * after / n:>9.1f}"


class TimedStore(SqlStore):
    """Tells the processor time of each transaction."""

    def __init__(self, settings: StorageSettings, laps: Laps) -> None:
        super().__init__(settings)
        self._laps = laps

    def commit(self, batch: BatchCommit) -> None:
        """Commit, and tell how long it took."""
        began = time.thread_time()
        super().commit(batch)
        self._laps.written(time.thread_time() - began)


class Until:
    """A topic that ends after so many records."""

    def __init__(self, source: KafkaSource, n_records: int) -> None:
        self._source = source
        self._n_records = n_records
        self._reached: dict[int, int] = {}

    @property
    def exhausted(self) -> bool:
        """Whether all of them were polled."""
        return sum(self._reached.values()) >= self._n_records

    def poll(self, timeout_s: float) -> list[Message]:
        """Poll, and see how far it was: the topic is new, and sorted by partition and offset."""
        messages = self._source.poll(timeout_s)
        self._reached |= {each.partition: each.offset + 1 for each in messages}
        return messages

    def __getattr__(self, name: str) -> Callable[..., object]:
        return getattr(self._source, name)  # type: ignore[no-any-return]  # everything else as it is


def sample(n: int, d: int, k: int) -> Values:
    """Draw from k Gaussian clusters far apart in d dimensions."""
    draw = np.random.default_rng(0)
    centres = draw.normal(size=(k, d)) * 8.0
    return centres[draw.integers(k, size=n)] + draw.normal(size=(n, d))


def encoded(values: Values, *, packed: bool) -> list[bytes]:
    """The observations as records: JSON with a key, or nothing but the numbers."""
    if packed:
        return [row.tobytes() for row in values.astype("<f8")]
    return [
        msgspec.json.encode({"id": f"k{i}", **{f"x{j}": x for j, x in enumerate(row)}})
        for i, row in enumerate(values.tolist())
    ]


class Way(NamedTuple):
    """What is no matter of the stream's own settings: when it refines, and what it holds."""

    pace: Pace
    memory: MemorySettings = MemorySettings()


def plan_for(d: int, stream: StreamSettings, way: Way) -> StreamConfig:
    """The default model over d numbers."""
    fields = tuple(FieldSettings(f"x{j}") for j in range(d))
    schema = SchemaSettings(fields=fields, key=None if stream.format == "packed" else "id")
    refinement = RefinementSettings(pace=way.pace)
    return StreamConfig(stream, schema, ModelSettings(), refinement, memory=way.memory)


def model_run(values: Values, memory: MemorySettings) -> Laps:
    """Insertion, refinement and publication alone, every refinement in its turn."""
    laps = Laps()
    plan = plan_for(values.shape[1], StreamSettings(name="benchmark"), Way("counted", memory))
    shard = new_shard(spec_from_sample(plan, values[:200]), plan.refinement, plan.memory)
    laps.begin()
    for start in range(0, len(values), plan.stream.most_polled):
        shard.apply(values[start : start + plan.stream.most_polled], 0.0, laps.step)
    laps.stop()
    return laps


def engine_run(plan: StreamConfig, source: Source, url: str, n: int) -> Laps:
    """The whole engine into SQL; the clock starts with the first records."""
    settings = StorageSettings(url=url)
    upgrade(settings)
    laps = Laps()
    store = TimedStore(settings, laps)
    engine = Engine(plan, source, store, None, laps, schema_for(plan.stream, plan.schema))
    laps.begin()
    engine.run()
    inserted = sum(row.n_inserted for row in store.ledger(plan.stream.name))
    assert inserted == n, f"{inserted} of {n} arrived"
    store.close()
    return laps


def file_run(values: Values, records: Sequence[bytes], stream: StreamSettings, way: Way) -> Laps:
    """From a JSONL file into SQLite."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.jsonl"
        path.write_bytes(b"\n".join(records))
        stream = msgspec.structs.replace(stream, source="file", path=str(path))
        plan = plan_for(values.shape[1], stream, way)
        return engine_run(plan, FileSource(plan.stream), sqlite_in(folder), len(records))


def topic_run(
    values: Values,
    records: Sequence[bytes],
    stream: StreamSettings,
    way: Way,
    places: tuple[KafkaSettings, str],
    rate: float | None = None,
) -> Laps:
    """From a topic that already holds the records, or gets so many a second.

    Joining the group is not counted.
    """
    kafka, url = places
    topic = f"benchmark-{uuid.uuid4().hex[:8]}"
    kafka = msgspec.structs.replace(
        kafka, topic=topic, session_timeout_ms=6_000, heartbeat_interval_ms=1_000
    )
    produce(topic, records if rate is None else (), kafka)
    plan = plan_for(values.shape[1], msgspec.structs.replace(stream, name=topic), way)
    source = source_of(kafka, topic, plan.stream.most_polled)
    while not source.assignment():
        source.poll(0.1)
    bounded: Source = Until(source, len(records))  # type: ignore[assignment]  # by __getattr__
    if rate is None:
        return engine_run(plan, bounded, url, len(records))
    beside = multiprocessing.get_context("spawn").Process(
        target=produce, args=(topic, records, kafka, rate)
    )
    beside.start()
    laps = engine_run(plan, bounded, url, len(records))
    beside.join()
    return laps


def floors(
    values: Values,
    records: Sequence[bytes],
    stream: StreamSettings,
    places: tuple[KafkaSettings, str],
) -> dict[str, float]:
    """Processor seconds that each step takes at the least."""
    kafka, url = places
    kafka = msgspec.structs.replace(kafka, topic=f"floor-{uuid.uuid4().hex[:8]}")
    produce(kafka.topic, records, kafka)
    packed = stream.format == "packed"
    return {
        "poll": poll_floor(kafka, len(records)),
        "decode": decode_floor(records, values.shape[1], packed=packed),
        "insert": insert_floor(plan_for(values.shape[1], stream, Way("counted")), values),
        "commit": write_floor(url, values),
    }


def sqlite_in(folder: str) -> str:
    """Address of a database in a folder."""
    return f"sqlite:///{folder}/{uuid.uuid4().hex}.db"


def produce(
    topic: str, records: Iterable[bytes], kafka: KafkaSettings, rate: float = math.inf
) -> None:
    """Send records, so many a second, to all partitions in turn."""
    from kafka import KafkaProducer

    from weald.stream.source.kafka_options import client_options

    producer = KafkaProducer(**client_options(kafka, "benchmark"), linger_ms=20)
    partitions = sorted(producer.partitions_for(topic))
    began = time.monotonic()
    for i, record in enumerate(records):
        if (wait := began + i / rate - time.monotonic()) > SHORTEST_SLEEP:
            time.sleep(wait)
        producer.send(topic, value=record, partition=partitions[i % len(partitions)])
    producer.flush()
    producer.close()


def main() -> None:
    """Run what was asked for and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=4)
    parser.add_argument("--clusters", type=int, default=8)
    parser.add_argument("--packed", action="store_true", help="not JSON but the numbers themselves")
    parser.add_argument("--batch", type=int, help="stream.batch_records")
    parser.add_argument("--servers", action="store_true", help="also Kafka and PostgreSQL")
    parser.add_argument("--pace", choices=("counted", "yielding"), default="yielding")
    parser.add_argument("--sample", type=int, help="hold a sample of so many")
    parser.add_argument("--rate", type=float, help="records of a topic that come a second")
    parser.add_argument("--client", choices=("kafka-python", "librdkafka"), default="kafka-python")
    parser.add_argument("--only", choices=("model", "file", "embedded", "kafka", "postgresql"))
    options = parser.parse_args()
    values = sample(options.records, options.features, options.clusters)
    records = encoded(values, packed=options.packed)
    stream = StreamSettings(name="benchmark", format="packed" if options.packed else "auto")
    if options.batch:
        stream = msgspec.structs.replace(stream, batch_records=options.batch)
    memory = MemorySettings()
    if options.sample:
        memory = MemorySettings(leaf_budget=options.sample, policy="sample")
    way = Way(options.pace, memory)
    first = values[:1_100]
    file_run(first, encoded(first, packed=False), StreamSettings(), Way("counted"))
    seek_cycles_rarely()
    names = "".join(f"{name:>9}" for name in (*STEPS, "loop", "client"))
    print(f"{'':>10} {'a second':>9} {'us each':>8}{names} {'after':>9}")
    with ExitStack() as running:
        folder = running.enter_context(tempfile.TemporaryDirectory())
        runs: dict[str, Callable[[], Laps]] = {"model": lambda: model_run(values, memory)}
        if not options.packed:
            runs["file"] = lambda: file_run(values, records, stream, way)
        if sum(map(len, records)) < EMBEDDED_BYTES:
            runs["embedded"] = lambda: _embedded_run(
                values, records, stream, way, (KafkaSettings(client=options.client), folder)
            )
        urls: dict[str, str] = {}
        if options.servers:
            (Path(folder) / "kafka").mkdir()
            broker = running.enter_context(apache_kafka(Path(folder) / "kafka"))
            kafka = KafkaSettings(bootstrap_servers=broker.address, client=options.client)
            server = durable(running.enter_context(postgresql_server()))
            urls |= {
                "kafka": sqlite_in(folder),
                "postgresql": running.enter_context(database(server, "benchmark")),
            }
            for name, url in urls.items():
                runs[name] = lambda url=url: topic_run(  # type: ignore[misc]  # a default for each
                    values, records, stream, way, (kafka, url), options.rate
                )
        for name, measure in runs.items():
            if options.only in {None, name}:
                laps = measure()
                late = "" if options.rate is None else f"  {laps.latency()}"
                print(f"{name:>10} {laps.told(len(records))}{late}", flush=True)
                if name in urls and options.rate is None:
                    least = floors(values, records, stream, (kafka, urls[name]))
                    print(f"{'floors':>10} {Laps.told_floors(least, len(records))}", flush=True)


def _embedded_run(
    values: Values,
    records: Sequence[bytes],
    stream: StreamSettings,
    way: Way,
    places: tuple[KafkaSettings, str],
) -> Laps:
    from weald.cli.service.embedded import API_VERSION, kafka_broker

    kafka, folder = places
    with kafka_broker() as bootstrap:
        version = ".".join(str(part) for part in API_VERSION)
        there = msgspec.structs.replace(kafka, bootstrap_servers=bootstrap, api_version=version)
        return topic_run(values, records, stream, way, (there, sqlite_in(folder)))


if __name__ == "__main__":
    main()
