"""Streams to kill writers on: records in a file or a topic, and a place for the results."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from zlib import crc32

import msgspec
import numpy as np
from numpy.typing import NDArray

from tests.crash.forked import Run, aside
from tests.crash.ledgers import Expected, Shed
from tests.servers.postgresql import administer
from tests.servers.server import Server
from weald.mcmc.settings import ModelSettings, RefinementSettings
from weald.storage.settings import RetentionSettings, StorageSettings
from weald.storage.sql.migrate import upgrade
from weald.stream.model.model import StreamConfig
from weald.stream.settings import (
    FieldSettings,
    KafkaSettings,
    MemorySettings,
    SchemaSettings,
    StreamSettings,
)

__all__ = ["KINDS", "Place", "Records", "SourceKind", "embedded_broker", "opened", "records"]

SourceKind = Literal["file", "embedded", "kafka"]

N_PARTITIONS = 4
SCHEMA = SchemaSettings(fields=(FieldSettings("x"), FieldSettings("y")), key="id", time="t")
MODEL = ModelSettings(seed=7, warmup_records=60)
CADENCE = RefinementSettings(
    every_records=100,
    publish_every_records=200,
    rounds=1,
    quiet_seconds=0.0,
    publish_every_seconds=0.0,
)
# One record in so many cannot be decoded.
BAD_EVERY = 50
# Where keys come again, they do after so many records.
N_KEYS = 480
# Of everything: a service that is told nothing takes what the machine has room for.
WHOLE = MemorySettings(leaf_budget=100_000)
WINDOW = MemorySettings(window_records=250)
SAMPLE = MemorySettings(leaf_budget=400)
# These, of a kind of their own, are the first that leave a sample, and their cluster is empty.
FIRST_OUT = slice(2, 4)
RETENTION = RetentionSettings(observations=200, publications=2)
# What a stream may be: everything kept; a window, and records that replace others; a window, and a
# retention that deletes rows all the while (of a source with one partition, whose order is known);
# everything, with records first; a sample, with records first.
KINDS = ("whole", "updates", "shedding", "yielding", "sampled")


@dataclass(frozen=True)
class Records:
    """What is sent, and the good ones of it: keys, values, times."""

    lines: tuple[bytes, ...]
    keys: list[str]
    values: NDArray[np.float64]
    times: NDArray[np.float64]

    @property
    def n_dead(self) -> int:
        """Records that end as dead letters."""
        return len(self.lines) - len(self.keys)


@dataclass(frozen=True)
class Place:
    """Where a scene's streams live.

    Parameters
    ----------
    folder : Path
        Of files, logs and SQLite databases.
    postgresql : Server or None
        None for SQLite.
    bootstrap : str
        Address of the broker, for sources that have one.
    """

    folder: Path
    source: SourceKind
    postgresql: Server | None = None
    bootstrap: str = ""


def records(n: int, n_keys: int | None = None) -> Records:
    """Points of five clusters in the plane as JSON, with bad records among them."""
    draw = np.random.default_rng(3)
    centres = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0], [20.0, 20.0], [10.0, 10.0]])
    rows = centres[draw.integers(5, size=n)] + draw.normal(size=(n, 2))
    rows[FIRST_OUT] += 100.0
    lines, keys = [], []
    good = [i for i in range(n) if i % BAD_EVERY != BAD_EVERY - 1]
    for i, (x, y) in enumerate(rows.tolist()):
        if i % BAD_EVERY == BAD_EVERY - 1:
            lines.append(b'{"id": "bad", "x": "far"}')
        else:
            keys.append(f"k{i % (n_keys or n)}")
            record = {"id": keys[-1], "x": x, "y": y, "t": 1e9 + i}
            lines.append(json.dumps(record).encode())
    return Records(tuple(lines), keys, rows[good], 1e9 + np.array(good, dtype=np.float64))


def opened(place: Place, n_records: int, name: str, kind: str = "whole") -> tuple[Run, Expected]:
    """Send records to a new file or topic, and make a new database for what comes of them."""
    sent = records(n_records, N_KEYS if kind == "updates" else None)
    stream = StreamSettings(
        name=name,
        source="file" if place.source == "file" else "kafka",
        path=str(place.folder / f"{name}.jsonl") if place.source == "file" else None,
        batch_records=32,
        poll_seconds=0.05,
        snapshot_records=150,
        takeover_seconds=0.0,
        duplicate_keys="update" if kind == "updates" else "allow",
    )
    memory = {"updates": WINDOW, "shedding": WINDOW, "sampled": SAMPLE}.get(kind, WHOLE)
    records_first = kind in {"yielding", "sampled"}
    cadence = msgspec.structs.replace(CADENCE, pace="yielding" if records_first else "counted")
    sheds = kind == "shedding" and place.source == "file"
    retention = RETENTION if sheds else RetentionSettings()
    plan = StreamConfig(stream, SCHEMA, MODEL, cadence, retention, memory)
    kafka = None if place.source == "file" else _kafka(place, name)
    database = _database(place, name)
    ends = _send(sent, stream.path, kafka)
    run = Run(plan, database, place.folder / f"{name}.log", kafka, ends)
    shed = Shed(sent.keys, sent.values, sent.times, retention.observations, retention.publications)
    expected = Expected(
        Counter(sent.keys), sent.n_dead, ends, cadence, memory=memory, shed=shed if sheds else None
    )
    return run, expected


def _database(place: Place, name: str) -> str:
    if place.postgresql is None:
        url = f"sqlite:///{place.folder / name}.db"
    else:
        administer(place.postgresql, f'CREATE DATABASE "{name}"')
        url = f"postgresql+psycopg://postgres@{place.postgresql.address}/{name}"
    upgrade(StorageSettings(url=url))
    return url


def _kafka(place: Place, name: str) -> KafkaSettings:
    if place.source == "embedded":
        return KafkaSettings(
            bootstrap_servers=place.bootstrap,
            topic=name,
            api_version="2.3",
            session_timeout_ms=6_000,
            heartbeat_interval_ms=1_000,
        )
    return KafkaSettings(
        bootstrap_servers=place.bootstrap,
        topic=name,
        client="librdkafka" if crc32(name.encode()) % 2 else "kafka-python",
        # A killed member holds its partitions for as long as this.
        session_timeout_ms=1_500,
        heartbeat_interval_ms=300,
    )


def _send(sent: Records, path: str | None, kafka: KafkaSettings | None) -> dict[int, int]:
    """Write the records and return each partition's end."""
    if kafka is None:
        Path(str(path)).write_bytes(b"".join(line + b"\n" for line in sent.lines))
        return {0: len(sent.lines)}
    aside(lambda: _produce(sent, kafka))
    return {each: len(sent.lines[each::N_PARTITIONS]) for each in range(N_PARTITIONS)}


def _produce(sent: Records, kafka: KafkaSettings) -> None:
    from kafka import KafkaAdminClient, KafkaProducer

    version = {"api_version": (2, 3)} if kafka.api_version else {}
    if not version:
        administrator = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
        administrator.create_topics(
            {kafka.topic: {"num_partitions": N_PARTITIONS, "replication_factor": 1}}
        )
        administrator.close()
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, **version)
    for i, line in enumerate(sent.lines):
        producer.send(kafka.topic, value=line, partition=i % N_PARTITIONS)
    producer.close()


@contextmanager
def embedded_broker() -> Iterator[str]:
    """Run librdkafka's broker in a process of its own, and yield its address."""
    broker = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.streams"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        text=True,
    )
    assert broker.stdin is not None
    assert broker.stdout is not None
    try:
        yield broker.stdout.readline().strip()
    finally:
        broker.stdin.close()
        broker.stdout.close()
        broker.wait()


def main() -> None:
    """Serve the broker until standard input ends."""
    from weald.cli.service.embedded import kafka_broker

    with kafka_broker() as address:
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
