"""The Kafka source's promises, on Apache Kafka and on the embedded broker alike."""

import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import msgspec
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka import TopicPartition as ClientPartition
from kafka.admin import NewTopic
from kafka.errors import NodeNotReadyError

from tests.crash.processes import wait_until
from tests.stream.scenario import NAME, Hook, line_of, new_store, plan_for, values_of
from tests.uncollected import uncollected
from weald.cli.service.embedded import API_VERSION, kafka_broker
from weald.storage.commit.log_marks import LogMark
from weald.storage.writing.store import SqlStore
from weald.stream.dead_letters.kafka_topic import KafkaDeadLetters
from weald.stream.engine.engine import Engine
from weald.stream.errors import LogReplaced, SourceUnavailable
from weald.stream.record.record import DeadLetter, Message, TopicPartition, checksum_of
from weald.stream.settings import KafkaSettings
from weald.stream.source import kafka_log
from weald.stream.source.kafka_source import KafkaSource
from weald.stream.source.librdkafka_source import LibrdkafkaSource, source_of
from weald.stream.source.recognition import Decision
from weald.stream.source.single_writer import SingleWriterAssignor

FAST = KafkaSettings(
    session_timeout_ms=6_000,
    heartbeat_interval_ms=500,
    auto_offset_reset="earliest",
    isolation_level="read_committed",
)


class Broker:
    """A topic on one of the brokers, with records in its partition 0."""

    client: Literal["kafka-python", "librdkafka"] = "kafka-python"

    def __init__(self, bootstrap: str, topic: str, api_version: str | None) -> None:
        self.settings = KafkaSettings(
            bootstrap_servers=bootstrap,
            topic=topic,
            client=self.client,
            api_version=api_version,
            session_timeout_ms=FAST.session_timeout_ms,
            heartbeat_interval_ms=FAST.heartbeat_interval_ms,
        )
        self.place = TopicPartition(topic, 0)

    def produce(self, first: int, last: int) -> None:
        version = {"api_version": API_VERSION} if self.settings.api_version else {}
        producer = KafkaProducer(bootstrap_servers=self.settings.bootstrap_servers, **version)
        for i in range(first, last):
            producer.send(self.place.topic, value=b"%d" % i, partition=0)
        producer.close()

    def source(self, group: str | None = None, **changes: object) -> KafkaSource:
        settings = msgspec.structs.replace(self.settings, group=group, **changes)
        return source_of(settings, group or uuid.uuid4().hex, 100)


@pytest.fixture(params=["kafka-python", "librdkafka"])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who reads, where a test leaves it open."""
    given = KafkaSettings(client=request.param).client
    monkeypatch.setattr(Broker, "client", given)
    return given


@pytest.fixture(params=["apache", "embedded"])
def broker(request: pytest.FixtureRequest, client: str) -> Iterator[Broker]:
    assert Broker.client == client
    if request.param == "apache":
        topic = request.getfixturevalue("kafka_topic")(partitions=2)
        yield Broker(request.getfixturevalue("kafka_bootstrap"), topic, None)
    else:
        with kafka_broker() as bootstrap:
            yield Broker(bootstrap, "events", "2.3")


@pytest.fixture
def read_by_librdkafka(
    kafka_topic: Callable[..., str], kafka_bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> Broker:
    """Twenty records in the one partition of a topic."""
    monkeypatch.setattr(Broker, "client", "librdkafka")
    broker = Broker(kafka_bootstrap, kafka_topic(partitions=1), None)
    broker.produce(0, 20)
    return broker


def joined(source: KafkaSource) -> KafkaSource:
    with ExitStack() as failed:
        failed.callback(source.close)
        wait_until(lambda: source.poll(0.1) is not None and bool(source.assignment()), "it joined")
        assert [change.kind for change in source.take_changes()] == ["assigned"]
        failed.pop_all()
    return source


def polled(source: KafkaSource, n: int) -> list[Message]:
    messages: list[Message] = []

    def enough() -> bool:
        came = source.poll(0.2)
        messages.extend(came)
        came.clear()
        return len(messages) >= n

    wait_until(enough, f"{n} records came", 60.0)
    return messages


def offsets(messages: list[Message]) -> list[int]:
    return [message.offset for message in messages]


def test_records_come_raw_and_in_order_from_where_sql_says(broker: Broker) -> None:
    broker.produce(0, 250)
    with closing(joined(broker.source())) as source:
        assert not source.exhausted
        source.seek({})
        messages = polled(source, 250)
        assert offsets(messages) == list(range(250))
        assert [message.value for message in messages[:3]] == [b"0", b"1", b"2"]
        assert messages[0].timestamp_ms > 1_600_000_000_000
        source.seek({broker.place: 240})
        assert offsets(polled(source, 10)) == list(range(240, 250))
        assert source.lag()[broker.place] == 0
        assert source.generation() > 0


def test_no_record_waits_for_pythons_collector(broker: Broker) -> None:
    """A poll whose time runs out may stay in a cycle, and what its frames hold with it."""
    with closing(joined(broker.source())) as source, uncollected() as found:
        source.seek({})
        for first in range(0, 250, 50):
            broker.produce(first, first + 50)
            polled(source, 50)
            source.poll(0.0)
    kept = [each for each in found if isinstance(each, FrameType)]
    ours = [each for each in kept if each.f_globals["__name__"].startswith("weald.")]
    # Else it would not show what it is for.
    assert ours or broker.client == "librdkafka"
    for frame in ours:
        lists = {
            name: each for name, each in frame.f_locals.items() if isinstance(each, list | dict)
        }
        assert not any(lists.values()), (frame.f_code.co_name, lists)


def test_the_group_s_own_offsets_do_not_count(broker: Broker) -> None:
    broker.produce(0, 20)
    group = uuid.uuid4().hex
    with closing(joined(broker.source(group))) as source:
        source.seek({})
        polled(source, 20)
        source.commit({broker.place: 20})
        source.poll(0.5)
    with closing(joined(broker.source(group))) as source:
        source.seek({})
        assert offsets(polled(source, 20)) == list(range(20))


def test_a_new_stream_may_begin_at_the_end(broker: Broker) -> None:
    broker.produce(0, 20)
    with closing(joined(broker.source(auto_offset_reset="latest"))) as source:
        source.seek({})
        place = ClientPartition(*broker.place)

        def at_the_end() -> bool:
            source.poll(0.1)
            return bool(source._consumer.position(place, timeout_ms=0) == 20)

        wait_until(at_the_end, "it is at the end", 30.0)
        broker.produce(20, 23)
        assert offsets(polled(source, 3)) == [20, 21, 22]


def test_the_end_of_a_partition_is_told_before_records_that_came_later(
    read_by_librdkafka: Broker,
) -> None:
    broker = read_by_librdkafka
    with closing(joined(broker.source())) as source:
        assert isinstance(source, LibrdkafkaSource)
        source.seek({broker.place: 20})
        # It is told of the end at 20 by a poll, which waits until there are records behind it.
        wait_until(lambda: source.lag() == {broker.place: 0}, "it has been at the end")
        broker.produce(20, 23)
        wait_until(lambda: source.lag() == {broker.place: 3}, "it has seen what came")
        assert offsets(polled(source, 3)) == [20, 21, 22]
        assert source.lag() == {broker.place: 0}


def test_the_first_records_do_not_wait_for_librdkafka_to_look_around(
    read_by_librdkafka: Broker,
) -> None:
    """By itself it looks once a second where a topic's brokers are."""
    waited = []
    for third in range(3):
        with closing(joined(read_by_librdkafka.source())) as source:
            # Its clock, which nothing shows, is somewhere else in its second each time.
            time.sleep(1.0 + third / 3.0)
            source.seek({})
            began = time.monotonic()
            polled(source, 20)
            waited.append(time.monotonic() - began)
    assert sum(waited) < 0.75


@pytest.mark.usefixtures("client")
def test_a_poll_that_times_out_while_the_group_meets_about_new_partitions(
    kafka_bootstrap: str, kafka_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assign, seconds = SingleWriterAssignor.assign, 0.5

    def assign_slowly_once(assignor: SingleWriterAssignor, cluster: Any, members: Any) -> Any:
        monkeypatch.undo()
        time.sleep(2.0 * seconds)
        return assign(assignor, cluster, members)

    topic = kafka_topic(partitions=2)
    broker = Broker(kafka_bootstrap, topic, None)
    with closing(joined(broker.source(metadata_max_age_ms=500))) as source:
        administrator = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)
        administrator.create_partitions({topic: 5})
        administrator.close()
        monkeypatch.setattr(SingleWriterAssignor, "assign", assign_slowly_once)

        def all_assigned() -> bool:
            source.poll(seconds)
            return len(source.assignment()) == 5

        wait_until(all_assigned, "all partitions are assigned", 30.0)


def test_a_meeting_that_ends_between_two_polls_is_not_held_again(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """As on a machine that is so busy that polls hardly ever wait."""
    broker.produce(0, 20)
    caplog.set_level("INFO", "kafka.coordinator")
    with closing(broker.source()) as source:

        def has_joined() -> bool:
            time.sleep(0.3)
            source.poll(0.001)
            return bool(source.assignment())

        wait_until(has_joined, "it joined", 60.0)
        met = [each for each in caplog.messages if each.startswith("Successfully joined group")]
        assert len(met) == 1
        source.seek({})
        assert offsets(polled(source, 20)) == list(range(20))


def test_paused_partitions_yield_nothing_and_lose_nothing(broker: Broker) -> None:
    broker.produce(0, 50)
    with closing(joined(broker.source())) as source:
        source.seek({broker.place: 10})
        source.pause()
        assert [source.poll(0.2) for _ in range(5)] == [[]] * 5
        source.resume()
        assert offsets(polled(source, 40)) == list(range(10, 50))


def test_an_assignment_during_a_pause_is_paused_too(broker: Broker) -> None:
    broker.produce(0, 10)
    with closing(broker.source()) as source:
        source.pause()
        wait_until(lambda: not source.poll(0.1) and bool(source.assignment()), "it has joined")
        source.seek({})
        assert [source.poll(0.2) for _ in range(5)] == [[]] * 5
        source.resume()
        assert offsets(polled(source, 10)) == list(range(10))


def test_dead_letters_are_produced_with_their_origin(broker: Broker) -> None:
    letters = KafkaDeadLetters(broker.settings, "stream")
    letter = DeadLetter("events", 3, 14, b"key", b"raw", "not_json", "what it was", 1_700_000_000.5)
    letters.send([])
    letters.send([letter])
    letters.close()
    place = TopicPartition(f"{broker.place.topic}.dlq", 0)
    version = {"api_version": API_VERSION} if broker.settings.api_version else {}
    with closing(
        KafkaConsumer(bootstrap_servers=broker.settings.bootstrap_servers, **version)
    ) as consumer:
        known = consumer.partitions_for_topic(place.topic) or {0}
        consumer.assign([ClientPartition(place.topic, partition) for partition in known])
        consumer.seek_to_beginning()
        found: list[Any] = []

        def arrived() -> bool:
            found.extend(r for batch in consumer.poll(timeout_ms=200).values() for r in batch)
            return bool(found)

        wait_until(arrived, "the dead letter is in its topic", 30.0)
    assert (found[0].key, found[0].value) == (b"key", b"raw")
    assert dict(found[0].headers) == {
        "weald.topic": b"events",
        "weald.partition": b"3",
        "weald.offset": b"14",
        "weald.reason": b"not_json",
        "weald.detail": b"what it was",
    }


@pytest.mark.usefixtures("client")
def test_aborted_transactions_are_not_seen(
    kafka_topic: Callable[..., str], kafka_bootstrap: str
) -> None:
    topic = kafka_topic(partitions=1)
    producer = KafkaProducer(bootstrap_servers=kafka_bootstrap, transactional_id=topic)
    producer.init_transactions()
    for value, keep in ((b"a", True), (b"b", False), (b"c", True)):
        producer.begin_transaction()
        producer.send(topic, value=value).get(timeout=30)
        if keep:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    producer.close()
    with closing(joined(Broker(kafka_bootstrap, topic, None).source())) as source:
        source.seek({})
        assert [message.value for message in polled(source, 2)] == [b"a", b"c"]


@pytest.mark.usefixtures("client")
def test_records_that_expired_are_counted_and_skipped(
    kafka_topic: Callable[..., str], kafka_bootstrap: str, caplog: pytest.LogCaptureFixture
) -> None:
    broker = Broker(kafka_bootstrap, kafka_topic(partitions=1), None)
    broker.produce(0, 50)
    with closing(KafkaAdminClient(bootstrap_servers=kafka_bootstrap)) as administrator:
        administrator.delete_records({ClientPartition(*broker.place): 30})
    with closing(joined(broker.source())) as source:
        source.seek({broker.place: 12})
        assert offsets(polled(source, 20)) == list(range(30, 50))
    assert "18 records" in caplog.text
    assert "offsets 12 to 29 are skipped" in caplog.text


def test_a_look_at_a_log_reads_one_record_again(broker: Broker) -> None:
    broker.produce(0, 20)
    with closing(joined(broker.source())) as source:
        source.seek({})
        messages = polled(source, 20)
        log = source.look({broker.place: LogMark(last_offset=12)})[broker.place]
        assert (log.start, log.end, log.checksum) == (0, 20, checksum_of(messages[12]))
        assert (log.topic_id is None) == (broker.settings.api_version is not None)
        assert source.look({broker.place: LogMark(last_offset=20)})[broker.place].checksum is None
        # The consumer itself has not moved.
        broker.produce(20, 23)
        assert offsets(polled(source, 3)) == [20, 21, 22]


def test_a_look_past_a_record_that_is_gone(
    kafka_topic: Callable[..., str], kafka_bootstrap: str
) -> None:
    """An aborted one leaves a gap up to the end, an expired one lies before the start."""
    topic = kafka_topic(partitions=1)
    producer = KafkaProducer(bootstrap_servers=kafka_bootstrap, transactional_id=topic)
    producer.init_transactions()
    for keep in (True, False):
        producer.begin_transaction()
        producer.send(topic, value=b"x").get(timeout=30)
        (producer.commit_transaction if keep else producer.abort_transaction)()
    producer.close()
    broker = Broker(kafka_bootstrap, topic, None)
    with closing(joined(broker.source())) as source:
        aborted = source.look({broker.place: LogMark(last_offset=2)})[broker.place]
        assert (aborted.end, aborted.checksum) == (4, None)
        with closing(KafkaAdminClient(bootstrap_servers=kafka_bootstrap)) as administrator:
            administrator.delete_records({ClientPartition(*broker.place): 3})
        expired = source.look({broker.place: LogMark(last_offset=0)})[broker.place]
        assert (expired.start, expired.checksum) == (3, None)


def test_a_log_that_changes_while_it_is_looked_at_is_looked_at_again(
    kafka_topic: Callable[..., str], kafka_bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Broker(kafka_bootstrap, kafka_topic(partitions=1), None)
    broker.produce(0, 20)
    read = kafka_log._read

    def expired(*arguments: Any) -> dict[Any, str]:
        monkeypatch.setattr(kafka_log, "_read", read)
        with closing(KafkaAdminClient(bootstrap_servers=kafka_bootstrap)) as administrator:
            administrator.delete_records({ClientPartition(*broker.place): 15})
        return read(*arguments)

    with closing(joined(broker.source())) as source:
        monkeypatch.setattr(kafka_log, "_read", expired)
        with pytest.raises(SourceUnavailable, match="changed while it was looked at"):
            source.look({broker.place: LogMark(last_offset=12)})
        log = source.look({broker.place: LogMark(last_offset=12)})[broker.place]
        assert (log.start, log.end, log.checksum) == (15, 20, None)


@pytest.mark.usefixtures("client")
def test_a_record_that_is_not_there_has_the_engine_look_again(
    kafka_topic: Callable[..., str], kafka_bootstrap: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Expired while it was read: without that the client would go on elsewhere, unnoticed."""
    broker = Broker(kafka_bootstrap, kafka_topic(partitions=1), None)
    broker.produce(0, 50)
    with closing(joined(broker.source())) as source:
        source.look({})
        with closing(KafkaAdminClient(bootstrap_servers=kafka_bootstrap)) as administrator:
            administrator.delete_records({ClientPartition(*broker.place): 30})
        source._go_to({ClientPartition(*broker.place): 12})

        def noticed() -> bool:
            assert source.poll(0.1) == []
            return bool(source.take_changes())

        wait_until(noticed, "it tells the engine", 30.0)
        source.seek({broker.place: 12})
        assert offsets(polled(source, 20)) == list(range(30, 50))
    assert "offsets 12 to 29 are skipped" in caplog.text


def made_anew(bootstrap: str, topic: str, n: int) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as administrator:
        administrator.delete_topics([topic])
        wait_until(lambda: topic not in administrator.list_topics(), "the topic is gone", 60.0)
        administrator.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    Broker(bootstrap, topic, None).produce(0, n)


def stops(source: KafkaSource, error: type[Exception]) -> bool:
    """Whether a poll ends so; until then none may hand over a record."""
    try:
        assert source.poll(0.1) == []
    except error:
        return True
    return False


@pytest.mark.usefixtures("client")
def test_a_topic_that_is_made_anew_while_it_is_read_is_noticed(
    kafka_topic: Callable[..., str], kafka_bootstrap: str
) -> None:
    broker = Broker(kafka_bootstrap, kafka_topic(partitions=1), None)
    broker.produce(0, 20)
    with closing(joined(broker.source())) as source:
        source.look({})
        source.seek({})
        polled(source, 20)
        made_anew(kafka_bootstrap, broker.place.topic, 40)

        wait_until(lambda: stops(source, LogReplaced), "it stops", 60.0)


@pytest.mark.usefixtures("client")
def test_a_topic_that_was_made_anew_is_not_taken_for_the_old_one(
    kafka_topic: Callable[..., str], kafka_bootstrap: str, tmp_path: Path
) -> None:
    """The first 150 of 230 would be passed over without a word."""
    topic = kafka_topic(partitions=1)
    settings = Broker(kafka_bootstrap, topic, None).settings
    rows = values_of(230)

    def produce(n: int, shift: int) -> None:
        producer = KafkaProducer(bootstrap_servers=kafka_bootstrap)
        for i in range(n):
            producer.send(topic, line_of(shift + i, rows[i]).encode())
        producer.close()

    def run(n: int, decision: Decision | None = None) -> None:
        plan = plan_for(None, source="kafka", poll_seconds=0.1)
        source = source_of(settings, NAME, plan.stream.most_polled)

        def enough(step: str, _count: int) -> None:
            if step == "poll" and counted(store) >= n:
                engine.stop()

        engine = Engine(plan, source, store, telemetry=Hook(enough))
        if decision is not None:
            engine.go_on_with(decision)
        engine.run()

    def counted(store: SqlStore) -> int:
        return store.status(NAME).n_inserted if store.streams() else 0

    store = new_store(tmp_path)
    produce(150, 0)
    run(150)
    before = store.ledger(NAME)
    made_anew(kafka_bootstrap, topic, 0)
    produce(230, 1_000)
    with pytest.raises(LogReplaced, match=r"the topic that was read has the id \S+, the one"):
        run(1_000)
    assert store.ledger(NAME) == before
    run(380, Decision())
    accounts = {row.topic: (row.next_offset, row.n_inserted) for row in store.ledger(NAME)}
    assert accounts == {topic: (230, 230), f"{topic}~1": (150, 150)}
    assert len(store.log_decisions(NAME)) == 1
    run(380)


ABSENT = """
from weald.stream.errors import SourceUnavailable
from weald.stream.source import kafka_log
from weald.stream.source.kafka_source import KafkaSource
from weald.stream.settings import KafkaSettings

try:
    KafkaSource(KafkaSettings(bootstrap_servers="127.0.0.1:9"), "stream")
except SourceUnavailable as error:
    print(error)
"""


def test_an_absent_broker_is_named() -> None:
    # In a process of its own: the client leaves its sockets to the garbage collector.
    done = subprocess.run(
        [sys.executable, "-c", ABSENT], capture_output=True, text=True, check=True
    )
    assert "topic 'events' at 127.0.0.1:9 does not answer" in done.stdout


def test_timeouts_that_cannot_work_are_refused() -> None:
    with pytest.raises(ValueError, match="3 times"):
        KafkaSettings(session_timeout_ms=1_000, heartbeat_interval_ms=900)
    with pytest.raises(ValueError, match="at most"):
        KafkaSettings(max_poll_interval_ms=1_000)


def test_a_password_is_not_shown() -> None:
    secret = uuid.uuid4().hex
    shown = repr(
        KafkaSettings(
            security_protocol="SASL_SSL",
            sasl_mechanism="PLAIN",
            sasl_username="me",
            sasl_password=secret,
        )
    )
    assert secret not in shown
    assert "sasl_password='***'" in shown


@pytest.mark.usefixtures("client")
def test_records_are_read_again_when_nobody_tells_the_topics_id(
    kafka_topic: Callable[..., str], kafka_bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Broker(kafka_bootstrap, kafka_topic(partitions=1), None)
    broker.produce(0, 20)
    with closing(joined(broker.source())) as source:
        source.look({})
        source.seek({})
        refused = []
        network = source._consumer._net
        ask, as_ever = source._consumer._cluster.refresh_metadata, network.run

        def refuse(what: Callable[..., Any], *arguments: Any) -> Any:
            # Not the client's own loop: refused at once, it asks again for ever.
            if what == ask:
                refused.append(True)
                raise NodeNotReadyError("metadata")
            return as_ever(what, *arguments)

        with monkeypatch.context() as patched:
            patched.setattr(network, "run", refuse)
            wait_until(lambda: stops(source, SourceUnavailable), "it stops", 30.0)
        assert refused
        assert offsets(polled(source, 20)) == list(range(20))
