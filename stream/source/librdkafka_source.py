"""A topic that librdkafka reads: a fifth of the processor time that kafka-python's consumer needs.

The group is kafka-python's, as ever: librdkafka's Python client takes no assignor of one's own, and
one writer of a stream rests on one. So this member joins, speaks and commits as any other, with
its own fetching paused; what the group assigns to it, a consumer without a group fetches. Members
of both kinds share a group.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from kafka.errors import OffsetOutOfRangeError

from weald.stream.errors import SourceError
from weald.stream.optional import optional_library
from weald.stream.record.record import Message, TopicPartition
from weald.stream.settings import KafkaSettings

from .kafka_log import UNKNOWN_TIME
from .kafka_options import librdkafka_options
from .kafka_source import HELD_MS, KafkaSource
from .single_writer import UNDIVIDED, Seat

__all__ = ["LibrdkafkaSource", "source_of"]

# As of kafka-python's own: what is repeated at every attempt is not told each time.
_log = logging.getLogger("kafka.librdkafka")

# After the memory for what waits was full: the default, a second, is longer than a batch takes.
_FULL_MS = 10
# It looks once a second for topics of which it knows no brokers yet, and at once where it is asked.
_MOST_ASKED_SECONDS = 1.0


class LibrdkafkaSource(KafkaSource):
    """As `KafkaSource`, whose arguments it takes, by librdkafka.

    No ceiling holds for what one compressed batch may grow to (``batch_max_bytes``).

    Raises
    ------
    LibraryMissing
        Without the extra ``weald[confluent]``.
    """

    def __init__(
        self, settings: KafkaSettings, stream: str, batch_records: int, seat: Seat
    ) -> None:
        self._library = optional_library(
            "confluent_kafka", 'kafka.client = "librdkafka"', "confluent"
        )
        super().__init__(settings, stream, batch_records, seat)
        self._most = batch_records
        # The next offset of each partition that is being read.
        self._next: dict[int, int] = {}
        try:
            self._fetching = self._library.Consumer(self._options(), logger=_log)
        except self._library.KafkaException as error:
            super().close()
            raise SourceError(f"[kafka] cannot be used by librdkafka: {error}") from error

    def _options(self) -> dict[str, Any]:
        settings = self._settings
        return {
            **librdkafka_options(settings, self._client),
            "group.id": self._group,  # it asks for one, and never joins it
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": settings.isolation_level,
            "fetch.wait.max.ms": HELD_MS,
            "fetch.max.bytes": settings.fetch_max_bytes,
            "max.partition.fetch.bytes": settings.max_partition_fetch_bytes,
            "queued.max.messages.kbytes": max(settings.fetch_max_bytes // 1024, 1),
            "fetch.queue.backoff.ms": _FULL_MS,
        }

    def _fetched(self, timeout_s: float) -> list[Message]:
        assigned = self._consumer.assignment()
        self._consumer.pause(*assigned)
        if self._next and not assigned:
            self._fetching.unassign()
            self._next = {}
        if self._paused or not self._next:
            # Until the group has met, it is waited for by whoever takes part in it.
            self._consumer.poll(timeout_ms=round(timeout_s * 1000))
            return []
        self._consumer.poll(timeout_ms=0)
        records = self._fetching.consume(self._most, 0.0)
        if not records:
            # It would wait for as many as it is asked for.
            records = self._fetching.consume(1, timeout_s)
            records += self._fetching.consume(self._most - 1, 0.0)
        return self._messages(records)

    def _messages(self, records: Sequence[Any]) -> list[Message]:
        messages = []
        for record in records:
            if record.error() is not None:
                self._hear(record)
                continue
            place, offset = record.partition(), record.offset()
            at_ms = _time_of(record.timestamp())
            message = Message(record.topic(), place, offset, at_ms, record.key(), record.value())
            messages.append(message)
            self._next[place] = offset + 1
        return messages

    def _hear(self, told: Any) -> None:
        """Act on what came in place of a record."""
        error, codes = told.error(), self._library.KafkaError
        if error.code() == codes._PARTITION_EOF:  # noqa: SLF001 - its name
            # Behind what a transaction leaves at the end, which is no record.
            self._next[told.partition()] = told.offset()
        elif error.code() in {codes._AUTO_OFFSET_RESET, codes.OFFSET_OUT_OF_RANGE}:  # noqa: SLF001 - its name
            raise OffsetOutOfRangeError(error.str())
        elif error.fatal() or not error.retriable():
            place = f"topic {self._settings.topic!r} at {self._settings.bootstrap_servers}"
            raise SourceError(f"{place} cannot be read: {error.str()}")
        else:
            _log.debug("it is tried again: %s", error)

    def _go_to(self, offsets: Mapping[Any, int]) -> None:
        super()._go_to(offsets)
        known = self._next | {each.partition: offset for each, offset in offsets.items()}
        assigned = {each.partition for each in self._consumer.assignment()}
        new, self._next = not self._next, {each: known[each] for each in assigned & known.keys()}
        self._fetching.assign(self._places())
        if new and self._next:
            self._look_for_brokers()

    def _look_for_brokers(self) -> None:
        try:
            self._fetching.list_topics(self._settings.topic, timeout=_MOST_ASKED_SECONDS)
        except self._library.KafkaException as error:
            _log.debug("no broker has told where the topic is: %s", error)

    def _places(self) -> list[Any]:
        topic, place = self._settings.topic, self._library.TopicPartition
        return [place(topic, partition, offset) for partition, offset in self._next.items()]

    def resume(self) -> None:
        """Fetch again; kafka-python's consumer never does."""
        self._paused = False

    def lag(self) -> dict[TopicPartition, int]:
        """High-water mark less position, for partitions that have been fetched."""
        lag: dict[TopicPartition, int] = {}
        for each in self._places():
            marks = self._fetching.get_watermark_offsets(each, cached=True)
            if marks is not None and marks[1] >= 0:
                lag[TopicPartition(each.topic, each.partition)] = max(marks[1] - each.offset, 0)
        return lag

    def close(self) -> None:
        """Leave the group, so that a standby takes over at once."""
        self._fetching.close()
        super().close()


def _time_of(timestamp: tuple[int, int]) -> int:
    kind, milliseconds = timestamp
    return milliseconds if kind else UNKNOWN_TIME


def source_of(
    settings: KafkaSettings, stream: str, batch_records: int, seat: Seat = UNDIVIDED
) -> KafkaSource:
    """Return the source of a topic by the client that the settings name; see `KafkaSource`."""
    source = LibrdkafkaSource if settings.client == "librdkafka" else KafkaSource
    return source(settings, stream, batch_records, seat)
