"""What is told of a broker that lets nobody in."""

import logging

import pytest

from weald.stream.source.kafka_options import overhearing

LOST = "<KafkaConnection node_id=bootstrap-0>: Connection lost: %s"


@pytest.mark.parametrize(
    ("reasons", "told"),
    [
        (["socket disconnected", "Authentication failed"], "Authentication failed"),
        (["Authentication failed", "socket disconnected"], "Authentication failed"),
        # The last attempt was cut off by the client's own deadline.
        (["socket disconnected", "SASL Authentication timed out"], "socket disconnected"),
        (["SASL Authentication timed out"], "SASL Authentication timed out"),
    ],
)
def test_the_most_telling_reason_is_told(reasons: list[str], told: str) -> None:
    with overhearing() as overheard:
        for reason in reasons:
            logging.getLogger("kafka.net").error(LOST, reason)
    assert str(overheard) == f" ({told})"
