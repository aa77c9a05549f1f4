"""The demo's producer: what a poll finds does not depend on how fast anybody is."""

from collections.abc import Iterator
from threading import Event

from kafka import KafkaConsumer, TopicPartition

from weald.cli.demo.replay import Replay
from weald.cli.service.embedded import API_VERSION, kafka_broker

TOPIC = "replayed"
N_RECORDS = 400


def found_by_polls(pauses: set[int]) -> list[int]:
    """How many records each poll finds, where the producer waits before some of them."""

    def records() -> Iterator[dict[str, object]]:
        for i in range(N_RECORDS):
            if i in pauses:
                # Time to send what is there, and for another number of bytes to tell the time.
                Event().wait(0.3)
            yield {"id": str(i), "told": "x" * 100}

    found: list[int] = []
    with kafka_broker(TOPIC) as broker, Replay(broker, TOPIC, records()):
        consumer = KafkaConsumer(bootstrap_servers=broker, api_version=API_VERSION)
        place = TopicPartition(TOPIC, 0)
        consumer.assign([place])
        consumer.seek(place, 0)
        while sum(found) < N_RECORDS:
            found += [len(records) for records in consumer.poll(200).values()]
        consumer.close()
    return found


def test_polls_find_as_much_however_slow_the_producer_is() -> None:
    """Else the first records, which say what a cluster is like, would be others at every run."""
    assert found_by_polls({1, 150}) == found_by_polls(set())
