"""What each step from a topic to its rows costs at the least: the same records, nothing around it.

Floors for ``benchmarks.end_to_end``, in processor seconds of the calling thread: the client's
consumer whose records are dropped, msgspec into one matrix, a chain that is given the numbers and
never refined, and rows with two indices written by the fastest means that the database's driver
has. A server's own work is not in them.
"""

import time
from collections.abc import Sequence

import msgspec
import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from weald.mcmc.chain.chain import MixtureChain
from weald.stream.model.model import StreamConfig, new_shard, spec_from_sample
from weald.stream.settings import KafkaSettings
from weald.stream.source.kafka_options import client_options, librdkafka_options
from weald.stream.warm_up.stored_transformation import transformation_of

__all__ = ["decode_floor", "insert_floor", "poll_floor", "write_floor"]

Values = NDArray[np.float64]

# Of a chain and of a transaction.
_BATCH = 8_000
_TABLE = "CREATE TABLE floor (seq BIGINT PRIMARY KEY, place BIGINT UNIQUE, key {blob}, x {blob})"


def poll_floor(kafka: KafkaSettings, n: int) -> float:
    """Read a topic of n records to its end, and drop them."""
    floor = _poll_librdkafka if kafka.client == "librdkafka" else _poll_kafka_python
    return floor(kafka, n)


def _poll_librdkafka(kafka: KafkaSettings, n: int) -> float:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({**librdkafka_options(kafka, "floor"), "group.id": "floor"})
    numbers = consumer.list_topics(kafka.topic).topics[kafka.topic].partitions
    consumer.assign([TopicPartition(kafka.topic, each, OFFSET_BEGINNING) for each in numbers])
    began, read = time.thread_time(), 0
    while read < n:
        read += len([each.value() for each in consumer.consume(2_000, 0.1)])
    seconds = time.thread_time() - began
    consumer.close()
    return seconds


def _poll_kafka_python(kafka: KafkaSettings, n: int) -> float:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(**client_options(kafka, "floor"), max_poll_records=2_000)
    numbers = consumer.partitions_for_topic(kafka.topic)
    partitions = [TopicPartition(kafka.topic, number) for number in numbers]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    began, read = time.thread_time(), 0
    while read < n:
        read += sum(map(len, consumer.poll(timeout_ms=1_000).values()))
    seconds = time.thread_time() - began
    consumer.close()
    return seconds


def decode_floor(records: Sequence[bytes], d: int, *, packed: bool) -> float:
    """Make one matrix of records."""
    row = msgspec.defstruct("Row", [("id", str), *((f"x{j}", float) for j in range(d))])
    decoder = msgspec.json.Decoder(row)
    began = time.thread_time()
    if packed:
        values = np.frombuffer(b"".join(records), dtype="<f8").reshape(-1, d)
    else:
        rows = [msgspec.structs.astuple(decoder.decode(record))[1:] for record in records]
        values = np.array(rows)
    seconds = time.thread_time() - began
    assert values.shape == (len(records), d)
    return seconds


def insert_floor(plan: StreamConfig, values: Values) -> float:
    """Give a chain all observations, of which it refines none."""
    spec = spec_from_sample(plan, values[:200])
    chain, seen_by = new_shard(spec, plan.refinement, plan.memory).chain, transformation_of(spec)
    seen, seconds = values if seen_by is None else seen_by.seen(values), 0.0
    assert isinstance(chain, MixtureChain)
    for start in range(0, len(seen), _BATCH):
        began = time.thread_time()
        chain.insert(seen[start : start + _BATCH])
        seconds += time.thread_time() - began
    return seconds


def write_floor(url: str, values: Values) -> float:
    """Write rows of a number, a place, a key and the values, with an index of the first two."""
    engine = sa.create_engine(url)
    write = _write_sqlite if engine.dialect.name == "sqlite" else _write_postgresql
    with engine.begin() as connection:
        blob = "BLOB" if engine.dialect.name == "sqlite" else "BYTEA"
        connection.execute(sa.text(_TABLE.format(blob=blob)))
    raw = engine.raw_connection()
    if engine.dialect.name == "sqlite":
        raw.cursor().execute("PRAGMA journal_mode = WAL")
        raw.cursor().execute("PRAGMA synchronous = NORMAL")
    began = time.thread_time()
    for start in range(0, len(values), _BATCH):
        write(raw, start, values[start : start + _BATCH])
        raw.commit()
    seconds = time.thread_time() - began
    raw.cursor().execute("DROP TABLE floor")
    raw.commit()
    raw.close()
    engine.dispose()
    return seconds


def _write_sqlite(raw: sa.PoolProxiedConnection, start: int, values: Values) -> None:
    rows = ((i, i, b"k", row.tobytes()) for i, row in enumerate(values, start))
    raw.cursor().executemany("INSERT INTO floor VALUES (?, ?, ?, ?)", rows)


def _write_postgresql(raw: sa.PoolProxiedConnection, start: int, values: Values) -> None:
    """COPY in binary: of each row the number of its columns, and each column after its length."""
    width = values.shape[1] * 8
    columns = [("seq", ">i8", 8), ("place", ">i8", 8), ("key", "S8", 8), ("x", f"V{width}", width)]
    fields = [("n", ">i2")]
    for name, kind, _ in columns:
        fields += [(f"n_{name}", ">i4"), (name, kind)]
    rows = np.zeros(len(values), dtype=fields)
    rows["n"] = len(columns)
    for name, _, length in columns:
        rows[f"n_{name}"] = length
    rows["seq"] = rows["place"] = np.arange(start, start + len(values))
    rows["x"] = np.ascontiguousarray(values, dtype="<f8").view(f"V{width}")[:, 0]
    with raw.cursor().copy("COPY floor FROM STDIN (FORMAT BINARY)") as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8) + rows.tobytes() + b"\xff\xff")
