"""The demo's producer: what is on the topic before anything reads it."""

from collections.abc import Iterator
from threading import Event

import pytest
from kafka import KafkaConsumer, TopicPartition

from weald.cli.demo import replay
from weald.cli.demo.replay import Replay
from weald.cli.service.embedded import API_VERSION, kafka_broker

TOPIC = "replayed"
N_RECORDS = 40


@pytest.fixture
def broker() -> Iterator[str]:
    with kafka_broker(TOPIC) as servers:
        yield servers


@pytest.mark.parametrize("most_ahead", [20, 40, 41])
def test_a_reader_finds_all_that_is_sent_ahead(
    broker: str, monkeypatch: pytest.MonkeyPatch, most_ahead: int
) -> None:
    """Else polls of a slow producer would find less, and the base measure be another one."""
    monkeypatch.setattr(replay, "MOST_AHEAD", most_ahead)
    n_ahead = min(most_ahead, N_RECORDS)
    entered, is_early = Event(), []

    def records() -> Iterator[dict[str, object]]:
        for i in range(N_RECORDS):
            if i == n_ahead - 1:
                # Who does not wait for this record comes before it.
                is_early.append(entered.wait(1.0))
            yield {"id": str(i)}

    with Replay(broker, TOPIC, records()):
        entered.set()
        consumer = KafkaConsumer(bootstrap_servers=broker, api_version=API_VERSION)
        place = TopicPartition(TOPIC, 0)
        assert consumer.end_offsets([place])[place] == n_ahead
        consumer.close()
    assert is_early == [False]
