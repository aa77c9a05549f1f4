"""Topics that their producers compressed, by each codec that Kafka knows, on a real broker."""

from collections.abc import Callable

import pytest
from kafka import KafkaProducer

from tests.servers.server import wait_until
from weald.stream.errors import SourceError
from weald.stream.record.record import Message
from weald.stream.settings import KafkaSettings
from weald.stream.source.kafka_source import KafkaSource

CODECS = ("gzip", "lz4", "snappy", "zstd")
VALUES = [b'{"x": %d}' % i for i in range(500)]


def produced(bootstrap: str, topic: str, codec: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, compression_type=codec, linger_ms=50, batch_size=100_000
    )
    for value in VALUES:
        producer.send(topic, value)
    producer.close()


def read(source: KafkaSource, n: int) -> list[Message]:
    messages: list[Message] = []

    def enough() -> bool:
        messages.extend(source.poll(0.2))
        if any(change.kind == "assigned" for change in source.take_changes()):
            source.seek({})
            messages.clear()
        return len(messages) >= n

    wait_until(enough, f"{n} records are read")
    return messages


def test_every_codec_is_read(kafka_bootstrap: str, kafka_topic: Callable[..., str]) -> None:
    topic = kafka_topic()
    for codec in CODECS:
        produced(kafka_bootstrap, topic, codec)
    source = KafkaSource(KafkaSettings(bootstrap_servers=kafka_bootstrap, topic=topic), topic)
    try:
        found = read(source, len(CODECS) * len(VALUES))
    finally:
        source.close()
    assert [message.value for message in found] == VALUES * len(CODECS)
    assert [message.offset for message in found] == list(range(len(found)))


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_a_batch_that_grows_without_measure_stops_at_the_limit(
    kafka_bootstrap: str, kafka_topic: Callable[..., str], codec: str
) -> None:
    """A few kilobytes on the wire, thirty million in memory: never more than the limit of them."""
    topic = kafka_topic()
    producer = KafkaProducer(
        bootstrap_servers=kafka_bootstrap, compression_type=codec, max_request_size=40_000_000
    )
    producer.send(topic, b" " * 30_000_000)
    producer.close()
    for limit in (1_000_000, 40_000_000):
        settings = KafkaSettings(
            bootstrap_servers=kafka_bootstrap, topic=topic, group=str(limit), batch_max_bytes=limit
        )
        source = KafkaSource(settings, topic)
        try:
            if limit == 1_000_000:
                with pytest.raises(SourceError, match=r"kafka\.batch_max_bytes"):
                    read(source, 1)
            else:
                assert [len(message.value or b"") for message in read(source, 1)] == [30_000_000]
        finally:
            source.close()


def test_a_codec_that_is_not_installed_is_named(
    kafka_bootstrap: str, kafka_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka_topic()
    produced(kafka_bootstrap, topic, "zstd")
    monkeypatch.setattr("kafka.codec.has_zstd", lambda: False)
    source = KafkaSource(KafkaSettings(bootstrap_servers=kafka_bootstrap, topic=topic), topic)
    try:
        with pytest.raises(SourceError, match=r"weald\[compression\]"):
            read(source, 1)
    finally:
        source.close()
