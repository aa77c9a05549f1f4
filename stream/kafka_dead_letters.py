"""The topic of the dead letters, ``<topic>.dlq``: a copy for other programs to act on.

SQL holds them exactly once. Here they arrive at least once: a crash between the two sends a
letter again, with the same topic, partition and offset in its headers.
"""

from collections.abc import Sequence

from kafka import KafkaProducer
from kafka.errors import KafkaError

from ..storage.commit import DeadLetterLike
from .dead_letter import headers_of
from .errors import SourceError, SourceUnavailable
from .kafka_options import client_options
from .settings import KafkaSettings

__all__ = ["KafkaDeadLetters"]

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
            options = client_options(self._settings, f"weald-{self._stream}-dlq")
            self._producer = KafkaProducer(**options, acks="all", linger_ms=5, max_block_ms=10_000)
        return self._producer
