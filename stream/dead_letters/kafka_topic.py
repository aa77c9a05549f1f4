"""The topic of the dead letters, ``<topic>.dlq``: a copy for other programs to act on.

SQL holds them exactly once. Here they arrive at least once: a crash between the two sends a
letter again, with the same topic, partition and offset in its headers.
"""

import logging
from collections.abc import Sequence

from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import KafkaError

from weald.storage.commit.commit import DeadLetterLike
from weald.stream.errors import SourceError, SourceUnavailable
from weald.stream.settings import KafkaSettings
from weald.stream.source.kafka_options import client_options

from .dead_letter import headers_of

__all__ = ["KafkaDeadLetters"]

_log = logging.getLogger(__name__)

SUFFIX = ".dlq"
SECONDS = 30.0


class KafkaDeadLetters:
    """Produces dead letters; connects when the first one comes.

    Parameters
    ----------
    settings : KafkaSettings
    stream : str
        Part of the client's name in the broker's logs.
    """

    def __init__(self, settings: KafkaSettings, stream: str) -> None:
        self._settings = settings
        self._stream = stream
        self._topic = settings.topic + SUFFIX
        self._producer: KafkaProducer | None = None

    def send(self, letters: Sequence[DeadLetterLike]) -> None:
        """Produce the letters and wait for the broker's word on each."""
        if not letters:
            return
        try:
            producer = self._connected()
            pending = [
                producer.send(
                    self._topic,
                    key=letter.key,
                    value=letter.value,
                    headers=headers_of(letter),
                    timestamp_ms=int(letter.received_at * 1000),
                )
                for letter in letters
            ]
            producer.flush(timeout=SECONDS)
            for each in pending:
                each.get(timeout=SECONDS)
        except KafkaError as error:
            message = (
                f"dead letters cannot be sent to {self._topic!r}: {error!r}. Create that topic, "
                "or set stream.dead_letter_topic = false"
            )
            if getattr(error, "retriable", False):
                raise SourceUnavailable(message) from error
            raise SourceError(message) from error

    def close(self) -> None:
        """Disconnect."""
        if self._producer is not None:
            self._producer.close(timeout=SECONDS)

    def _connected(self) -> KafkaProducer:
        if self._producer is None:
            self._create_topic()
            options = client_options(self._settings, f"weald-{self._stream}-dlq")
            self._producer = KafkaProducer(**options, acks="all", linger_ms=5, max_block_ms=10_000)
        return self._producer

    def _create_topic(self) -> None:
        """Make the topic where the broker does not by itself and the principal may.

        Whether it was there, or this was not allowed, shows when the letters are sent.
        """
        if self._settings.api_version is not None:
            return  # the embedded broker has no controller to ask, and makes topics by itself
        options = client_options(self._settings, f"weald-{self._stream}-dlq-admin")
        del options["metrics_enabled"]
        try:
            administrator = KafkaAdminClient(**options)
            try:
                administrator.create_topics(
                    {self._topic: {"num_partitions": 1, "replication_factor": -1}}
                )
            finally:
                administrator.close()
        except KafkaError as error:
            _log.info("the topic %r was not created: %s", self._topic, error)
