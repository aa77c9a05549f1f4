"""Observations per second: inside the model, through the engine, and through a topic.

    python -m benchmarks.end_to_end                       model, file, and the embedded broker
    python -m benchmarks.end_to_end --bootstrap HOST:PORT also a real Kafka there
    python -m benchmarks.end_to_end --only model --records 100000 --features 10
    python -m benchmarks.end_to_end --only file --pace yielding

Each line is one run over the same records, after the kernels are compiled and loaded. ``model`` is
insertion, refinement and publication on arrays; ``file`` adds decoding and SQLite; the topics add
Kafka's protocol, with the producer's work outside of the clock. The rate is that until the last
record was committed; how much longer the run took, to make up for refinement, is said behind it.
"""

import argparse
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

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
from weald.stream.record.pending_batch import Held
from weald.stream.record.record import Message
from weald.stream.settings import FieldSettings, KafkaSettings, SchemaSettings, StreamSettings
from weald.stream.source.file_source import FileSource
from weald.stream.source.kafka_source import KafkaSource
from weald.stream.source.source import Source
from weald.stream.telemetry.telemetry import Telemetry

Values = NDArray[np.float64]
Pace = Literal["counted", "yielding"]


class Laps(Telemetry):
    """Adds up the seconds of each step."""

    def __init__(self) -> None:
        super().__init__(Metrics("benchmark"), Health())
        self.seconds: dict[str, float] = {}
        self.caught_up = 0.0

    def committed(
        self, commit: BatchCommit, held: Held, applied: BatchOutcome, *, timed: bool
    ) -> None:
        """Note when the last record was committed."""
        super().committed(commit, held, applied, timed=timed)
        if len(held):
            self.caught_up = time.perf_counter()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time one step."""
        began = time.perf_counter()
        with super().step(name):
            yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began

    def told(self) -> str:
        """The steps by their share, largest first."""
        ordered = sorted(self.seconds.items(), key=lambda item: -item[1])
        return ", ".join(f"{name} {seconds:.2f} s" for name, seconds in ordered if seconds > 0.01)


class Until:
    """A topic that ends after so many records."""

    def __init__(self, source: KafkaSource, n_records: int) -> None:
        self._source = source
        self._left = n_records

    @property
    def exhausted(self) -> bool:
        """Whether all of them were polled."""
        return self._left <= 0

    def poll(self, timeout_s: float) -> list[Message]:
        """Poll, and see what is left."""
        messages = self._source.poll(timeout_s)
        if self._source.assignment():
            self._left = sum(self._source.lag().values()) if messages else self._left
        return messages

    def __getattr__(self, name: str) -> Callable[..., object]:
        return getattr(self._source, name)  # type: ignore[no-any-return]  # everything else as it is


def sample(n: int, d: int, k: int) -> Values:
    """Draw from k Gaussian clusters far apart in d dimensions."""
    draw = np.random.default_rng(0)
    centres = draw.normal(size=(k, d)) * 8.0
    return centres[draw.integers(k, size=n)] + draw.normal(size=(n, d))


def encoded(values: Values) -> list[bytes]:
    """The observations as JSON records."""
    return [
        msgspec.json.encode({"id": f"k{i}", **{f"x{j}": x for j, x in enumerate(row)}})
        for i, row in enumerate(values.tolist())
    ]


def plan_for(d: int, stream: StreamSettings, seed: int = 0, pace: Pace = "counted") -> StreamConfig:
    """The default model over d numbers."""
    fields = tuple(FieldSettings(f"x{j}") for j in range(d))
    schema = SchemaSettings(fields=fields, key="id")
    return StreamConfig(stream, schema, ModelSettings(seed=seed), RefinementSettings(pace=pace))


def model_run(values: Values) -> tuple[float, str]:
    """Insertion, refinement and publication alone."""
    plan, laps = plan_for(values.shape[1], StreamSettings(name="benchmark")), Laps()
    shard = new_shard(spec_from_sample(plan, values[:200]), plan.refinement)
    began = time.perf_counter()
    for start in range(0, len(values), plan.stream.batch_records):
        shard.apply(values[start : start + plan.stream.batch_records], 0.0, laps.step)
    return time.perf_counter() - began, laps.told()


def engine_run(plan: StreamConfig, source: Source, folder: str, n: int) -> tuple[float, str]:
    """The whole engine into SQLite; the clock starts with the first records."""
    settings = StorageSettings(url=f"sqlite:///{folder}/weald.db")
    upgrade(settings)
    store, laps = SqlStore(settings), Laps()
    engine = Engine(plan, source, store, None, laps)
    began = time.perf_counter()
    engine.run()
    after = time.perf_counter() - laps.caught_up
    inserted = sum(row.n_inserted for row in store.ledger(plan.stream.name))
    assert inserted == n, f"{inserted} of {n} arrived"
    store.close()
    return laps.caught_up - began, f"{laps.told()}; {after:.2f} s after the last record"


def file_run(values: Values, records: Sequence[bytes], pace: Pace) -> tuple[float, str]:
    """From a JSONL file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.jsonl"
        path.write_bytes(b"\n".join(records))
        stream = StreamSettings(name="benchmark", source="file", path=str(path))
        plan = plan_for(values.shape[1], stream, pace=pace)
        return engine_run(plan, FileSource(plan.stream), folder, len(records))


def topic_run(
    values: Values, records: Sequence[bytes], pace: Pace, kafka: KafkaSettings
) -> tuple[float, str]:
    """From a topic that already holds the records; joining the group is not counted."""
    topic = f"benchmark-{uuid.uuid4().hex[:8]}"
    kafka = msgspec.structs.replace(
        kafka, topic=topic, session_timeout_ms=6_000, heartbeat_interval_ms=1_000
    )
    _produce(topic, records, kafka)
    plan = plan_for(values.shape[1], StreamSettings(name=topic), pace=pace)
    source = KafkaSource(kafka, topic, plan.stream.batch_records)
    while not source.assignment():
        source.poll(0.1)
    with tempfile.TemporaryDirectory() as folder:
        bounded: Source = Until(source, len(records))  # type: ignore[assignment]  # by __getattr__
        return engine_run(plan, bounded, folder, len(records))


def _produce(topic: str, records: Sequence[bytes], kafka: KafkaSettings) -> None:
    from kafka import KafkaProducer

    from weald.stream.source.kafka_options import client_options

    producer = KafkaProducer(**client_options(kafka, "benchmark"), linger_ms=20)
    partitions = sorted(producer.partitions_for(topic))
    for i, record in enumerate(records):
        producer.send(topic, value=record, partition=partitions[i % len(partitions)])
    producer.flush()
    producer.close()


def main() -> None:
    """Run what was asked for and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=4)
    parser.add_argument("--clusters", type=int, default=8)
    parser.add_argument("--bootstrap", help="address of a real Kafka")
    parser.add_argument("--pace", choices=("counted", "yielding"), default="counted")
    parser.add_argument("--only", choices=("model", "file", "embedded", "kafka"))
    options = parser.parse_args()
    values = sample(options.records, options.features, options.clusters)
    records = encoded(values)
    model_run(values[:1_100])  # compiles, or loads what was compiled
    runs: dict[str, Callable[[], tuple[float, str]]] = {
        "model": lambda: model_run(values),
        "file": lambda: file_run(values, records, options.pace),
        "embedded": lambda: _embedded_run(values, records, options.pace),
    }
    if options.bootstrap:
        kafka = KafkaSettings(bootstrap_servers=options.bootstrap)
        runs["kafka"] = lambda: topic_run(values, records, options.pace, kafka)
    for name, measure in runs.items():
        if options.only in {None, name}:
            seconds, laps = measure()
            rate = len(records) / seconds
            print(f"{name:>9}  {rate:>9,.0f} observations/s  {seconds:.2f} s  ({laps})")


def _embedded_run(values: Values, records: Sequence[bytes], pace: Pace) -> tuple[float, str]:
    from weald.cli.service.embedded import API_VERSION, kafka_broker

    with kafka_broker() as bootstrap:
        version = ".".join(str(part) for part in API_VERSION)
        kafka = KafkaSettings(bootstrap_servers=bootstrap, api_version=version)
        return topic_run(values, records, pace, kafka)


if __name__ == "__main__":
    main()
