"""Exactly once from a real Kafka topic into SQL, whatever happens to the processes."""

import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from tests.crash.processes import Runner, runners, wait_until
from tests.crash.runner import Orders
from tests.servers.server import Server
from tests.stream.scenario import NAME, assert_exactly_once, line_of, new_store, values_of
from weald.storage.errors import StreamNotFound
from weald.storage.writing.store import SqlStore
from weald.stream.settings import KafkaSettings, StreamSettings

STREAM = StreamSettings(name=NAME, batch_records=50, poll_seconds=0.1, snapshot_records=300)
BAD = (b"nonsense", b'{"id": "z", "x": 1}', b"", None)

pytestmark = pytest.mark.slow

Client = Literal["kafka-python", "librdkafka"]
by_either = pytest.mark.parametrize("client", ["kafka-python", "librdkafka"])


class World:
    """A topic, a database, and the processes between them."""

    def __init__(
        self,
        folder: Path,
        bootstrap: str,
        topic: str,
        start: Callable[..., Runner],
        client: Client = "kafka-python",
    ) -> None:
        self.bootstrap = bootstrap
        self.client: Client = client
        self.topic = topic
        self.store: SqlStore = new_store(folder)
        self._database = f"sqlite:///{folder / 'weald.db'}"
        self._start = start
        self._runners: list[Runner] = []

    def start(
        self, name: str, step: str = "", count: int = 0, stream: StreamSettings = STREAM
    ) -> Runner:
        kafka = KafkaSettings(
            bootstrap_servers=self.bootstrap,
            topic=self.topic,
            client=self.client,
            group=self.topic,
            session_timeout_ms=4_000,
            heartbeat_interval_ms=500,
            metadata_max_age_ms=2_000,
        )
        runner = self._start(Orders(self._database, stream, kafka, step, count), name)
        self._runners.append(runner)
        return runner

    def produce(
        self,
        values: Sequence[bytes | None],
        partition: int | None = None,
        keys: Sequence[int] | None = None,
    ) -> None:
        producer = KafkaProducer(bootstrap_servers=self.bootstrap)
        for i, value in enumerate(values):
            key = b"tombstones need one" if value is None else None
            if keys is not None:
                key = b"%d" % keys[i]
            producer.send(self.topic, value=value, key=key, partition=partition)
        producer.close()

    def end(self, partition: int) -> int:
        place = TopicPartition(self.topic, partition)
        consumer = KafkaConsumer(bootstrap_servers=self.bootstrap)
        end: int = consumer.end_offsets([place])[place]
        consumer.close()
        return end

    def offsets(self, partition: int) -> list[int]:
        """Offsets of the records that the topic still has."""
        place = TopicPartition(self.topic, partition)
        consumer = KafkaConsumer(bootstrap_servers=self.bootstrap)
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        end, found = consumer.end_offsets([place])[place], []
        while consumer.position(place) < end:
            found += [each.offset for each in consumer.poll(timeout_ms=200).get(place, [])]
        consumer.close()
        return found

    def inserted(self) -> int:
        try:
            return sum(row.n_inserted for row in self.store.ledger(NAME))
        except StreamNotFound:
            return 0

    def wait_for(self, n: int) -> None:
        try:
            wait_until(lambda: self.inserted() >= n, f"{n} observations are in SQL")
        except AssertionError as failure:
            for runner in self._runners:
                failure.add_note(runner.last_words())
            raise

    def generation(self) -> int:
        return self.store.position(NAME).generation


@pytest.fixture
def client() -> Client:
    """Who reads the topic."""
    return "kafka-python"


@pytest.fixture
def world(
    tmp_path: Path, kafka_bootstrap: str, kafka_topic: Callable[..., str], client: Client
) -> Iterator[World]:
    with runners(tmp_path) as start:
        yield World(tmp_path, kafka_bootstrap, kafka_topic(partitions=3), start, client)


def records(first: int, last: int) -> list[bytes]:
    rows = values_of(last)
    return [line_of(i, rows[i]).encode() for i in range(first, last)]


@by_either
def test_killed_mid_stream_and_started_again(world: World) -> None:
    world.produce(records(0, 500))
    world.produce(BAD, partition=1)
    world.produce(records(500, 1_000))
    assert world.start("first", "commit", 4).ended() == -signal.SIGKILL
    assert 0 < world.inserted() < 1_000
    assert world.start("second", "redis", 5).ended() == -signal.SIGKILL
    assert world.inserted() < 1_000
    last = world.start("last")
    world.wait_for(1_000)
    last.stop()
    assert_exactly_once(world.store, 1_000)
    assert world.store.dead_letter_counts(NAME) == {
        "not_json": 1,
        "missing_field": 1,
        "empty": 1,
        "tombstone": 1,
    }
    assert world.store.snapshots(NAME)[0].seq == 1_000
    _dead_letters_reached_their_topic(world)


def test_batches_of_several_polls_are_counted_once(world: World) -> None:
    n = 12_000
    world.produce(records(0, n))
    # The first batch is one poll; the next takes all that the client has of the topic.
    stream = msgspec.structs.replace(STREAM, batch_records=None, latency_ms=60_000)
    assert world.start("first", "commit", 2, stream).ended() == -signal.SIGKILL
    assert 0 < world.inserted() <= stream.most_polled
    assert world.start("second", "redis", 2, stream).ended() == -signal.SIGKILL
    assert 2 * stream.most_polled < world.inserted() <= n
    last = world.start("last", stream=stream)
    wait_until(lambda: last.says("partitions assigned"), "the last has taken over")
    world.wait_for(n)
    last.stop()
    assert_exactly_once(world.store, n)


def _dead_letters_reached_their_topic(world: World) -> None:
    place = TopicPartition(f"{world.topic}.dlq", 0)
    consumer = KafkaConsumer(bootstrap_servers=world.bootstrap)
    consumer.assign([place])
    consumer.seek_to_beginning(place)
    found: dict[tuple[bytes, bytes], tuple[bytes, bytes]] = {}

    def all_found() -> bool:
        for record in consumer.poll(timeout_ms=200).get(place, []):
            headers = dict(record.headers)
            origin = (headers["weald.partition"], headers["weald.offset"])
            found[origin] = (headers["weald.reason"], record.value)
        return len(found) >= len(BAD)

    wait_until(all_found, "the dead letters are in their topic", 30.0)
    consumer.close()
    assert sorted(found.values()) == [
        (b"empty", b""),
        (b"missing_field", BAD[1]),
        (b"not_json", b"nonsense"),
        (b"tombstone", b""),
    ]
    assert {partition for partition, _ in found} == {b"1"}


@by_either
def test_a_standby_takes_over_from_a_killed_writer(world: World) -> None:
    world.produce(records(0, 300))
    writer = world.start("writer")
    world.wait_for(300)
    # Of a group, some may read by one client and some by the other.
    world.client = "kafka-python"
    standby = world.start("standby")
    wait_until(lambda: standby.says("Cooperative rebalance complete"), "the standby has joined")
    world.produce(records(300, 500))
    world.wait_for(500)
    assert not standby.says("partitions assigned")
    writer.kill()
    world.produce(records(500, 800))
    world.wait_for(800)
    assert standby.says("partitions assigned")
    standby.stop()
    assert_exactly_once(world.store, 800)


def test_an_orderly_stop_hands_over_at_once(world: World) -> None:
    world.produce(records(0, 300))
    writer = world.start("writer")
    world.wait_for(300)
    standby = world.start("standby")
    wait_until(lambda: standby.says("Cooperative rebalance complete"), "the standby has joined")
    before = world.generation()
    writer.stop()
    assert world.store.snapshots(NAME)[0].seq == 300
    world.produce(records(300, 600))
    world.wait_for(600)
    assert world.generation() > before
    standby.stop()
    assert_exactly_once(world.store, 600)


@by_either
def test_a_writer_that_was_frozen_is_fenced(world: World) -> None:
    world.produce(records(0, 300))
    frozen = world.start("frozen")
    world.wait_for(300)
    standby = world.start("standby")
    wait_until(lambda: standby.says("Cooperative rebalance complete"), "the standby has joined")
    frozen.process.send_signal(signal.SIGSTOP)
    world.produce(records(300, 500))
    world.wait_for(500)
    assert standby.says("partitions assigned")
    frozen.process.send_signal(signal.SIGCONT)
    wait_until(lambda: frozen.says("state is dropped"), "the frozen one knows", 60.0)
    world.produce(records(500, 700))
    world.wait_for(700)
    assert_exactly_once(world.store, 700)
    standby.stop()
    world.produce(records(700, 800))
    world.wait_for(800)
    frozen.stop()
    assert_exactly_once(world.store, 800)


@by_either
def test_added_partitions_are_read_from_their_start(world: World) -> None:
    world.produce(records(0, 200))
    writer = world.start("writer")
    world.wait_for(200)
    administrator = KafkaAdminClient(bootstrap_servers=world.bootstrap)
    administrator.create_partitions({world.topic: 5})
    administrator.close()
    for partition in range(5):
        world.produce(records(200 + 20 * partition, 220 + 20 * partition), partition)
    world.wait_for(300)
    writer.stop()
    assert_exactly_once(world.store, 300)
    assert len(world.store.ledger(NAME)) == 5


@by_either
def test_gaps_of_aborted_transactions_and_of_expired_records(world: World) -> None:
    lines = records(0, 400)
    producer = KafkaProducer(bootstrap_servers=world.bootstrap, transactional_id=world.topic)
    producer.init_transactions()
    for number, first in enumerate(range(0, 300, 20)):
        producer.begin_transaction()
        for line in lines[first : first + 20]:
            producer.send(world.topic, value=line, partition=0)
        producer.commit_transaction()
        if number % 3 == 0:
            producer.begin_transaction()
            producer.send(world.topic, value=b"never to be seen", partition=0).get(timeout=30)
            producer.abort_transaction()
    producer.close()
    assert world.start("mortal", "commit.written", 3).ended() == -signal.SIGKILL
    writer = world.start("writer")
    world.wait_for(300)
    writer.stop()
    assert_exactly_once(world.store, 300)
    assert world.store.dead_letter_counts(NAME) == {}
    # Sixty records expire before anybody has read them: they are told of, and skipped.
    world.produce([b"expires"] * 60, partition=0)
    end = world.end(0)
    administrator = KafkaAdminClient(bootstrap_servers=world.bootstrap)
    administrator.delete_records({TopicPartition(world.topic, 0): end})
    administrator.close()
    world.produce(lines[300:], partition=0)
    last = world.start("last")
    world.wait_for(400)
    last.stop()
    assert last.says("expired before they were read")
    assert_exactly_once(world.store, 400)


def test_a_compacted_topic_is_read_across_its_gaps(world: World) -> None:
    configuration = {
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "100",
    }
    world.topic += "-compacted"
    administrator = KafkaAdminClient(bootstrap_servers=world.bootstrap)
    administrator.create_topics(
        {world.topic: {"num_partitions": 1, "replication_factor": 1, "configs": configuration}}
    )
    lines = records(0, 600)
    for first in (0, 300):
        world.produce(lines[first : first + 300], keys=range(300))
    assert world.start("mortal", "commit", 2).ended() == -signal.SIGKILL
    in_sql, next_offset = world.inserted(), world.store.offsets(NAME)[world.topic, 0]
    assert 0 < next_offset < 300
    # Not before: what is read first must be there.
    to_compact = {"cleanup.policy": "compact"}
    administrator.alter_configs([ConfigResource(ConfigResourceType.TOPIC, world.topic, to_compact)])
    administrator.close()

    def compacted() -> bool:
        # The newest segment stays as it is; one more record makes it an older one.
        world.produce(lines[599:], keys=[300])
        return next_offset not in world.offsets(0)

    wait_until(compacted, "the record that comes next is gone", 60.0)
    writer = world.start("writer")
    wait_until(lambda: world.store.offsets(NAME)[world.topic, 0] == world.end(0), "all is read")
    writer.stop()
    left = [offset for offset in world.offsets(0) if offset >= next_offset]
    (row,) = world.store.ledger(NAME)
    assert row.n_received == row.n_inserted
    assert in_sql + len(left) <= row.n_received < 600


@by_either
def test_a_broker_that_restarts_is_waited_for(
    tmp_path: Path, own_kafka: Server, seed: int, client: Client
) -> None:
    topic = f"restart-{client}-{seed}"
    administrator = KafkaAdminClient(bootstrap_servers=own_kafka.address)
    administrator.create_topics({topic: {"num_partitions": 2, "replication_factor": 1}})
    administrator.close()
    with runners(tmp_path) as start:
        world = World(tmp_path, own_kafka.address, topic, start, client)
        world.produce(records(0, 200))
        writer = world.start("writer")
        world.wait_for(200)
        own_kafka.kill()
        wait_until(lambda: writer.says("Connection lost"), "the writer has noticed", 60.0)
        own_kafka.start()
        world.produce(records(200, 400))
        world.wait_for(400)
        writer.stop()
    assert_exactly_once(world.store, 400)
