"""A fresh look at a topic's logs, by a client of its own that belongs to no group.

The group's consumer may have learned of the topic hours ago, and would have to be moved back and
forth to read a single record.
"""

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

from kafka import KafkaConsumer
from kafka import TopicPartition as ClientPartition
from kafka.errors import KafkaTimeoutError, LogTruncationError, OffsetOutOfRangeError

from weald.storage.commit.log_marks import LogMark
from weald.stream.errors import SourceUnavailable
from weald.stream.record.record import Message, TopicPartition, checksum_of
from weald.stream.settings import KafkaSettings

from .kafka_options import client_options
from .recognition import FoundLog

__all__ = ["look_at", "message_of"]

UNKNOWN_TIME = -1
_POLL_MS = 200


def message_of(record: Any) -> Message:
    """Return kafka-python's record as ours."""
    time_ms = UNKNOWN_TIME if record.timestamp is None else record.timestamp
    return Message(record.topic, record.partition, record.offset, time_ms, record.key, record.value)


def look_at(
    settings: KafkaSettings,
    client: str,
    places: Iterable[TopicPartition],
    marks: Mapping[TopicPartition, LogMark],
) -> dict[TopicPartition, FoundLog]:
    """Return what there is of each partition, with the record at its mark's last offset.

    Raises
    ------
    KafkaError
        When the broker does not answer.
    SourceUnavailable
        When the log changed while it was looked at: what was seen of it is of two logs.
    """
    asked = [ClientPartition(*place) for place in sorted(places)]
    if not asked:
        return {}
    consumer = KafkaConsumer(
        **client_options(settings, client),
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="none",
        isolation_level=settings.isolation_level,
        fetch_max_bytes=settings.fetch_max_bytes,
        max_partition_fetch_bytes=settings.max_partition_fetch_bytes,
        max_poll_records=len(asked),
        allow_auto_create_topics=False,
    )
    with closing(consumer):
        cluster = consumer._cluster  # noqa: SLF001 - nothing public tells a topic's id, or waits less
        # It would wait a tenth of a second between what it heard at its start and what it asks for.
        cluster.config["retry_backoff_ms"] = 0
        consumer.partitions_for_topic(settings.topic)
        topic_id = cluster.topic_id(settings.topic)
        starts = consumer.beginning_offsets(asked)
        ends = consumer.end_offsets(asked)
        last = {
            each: marks[place].last_offset
            for each in asked
            if (place := TopicPartition(*each)) in marks
        }
        there = {
            each: offset
            for each, offset in last.items()
            if offset is not None and starts[each] <= offset < ends[each]
        }
        try:
            read = _read(consumer, there, settings.connect_timeout_seconds)
        except (OffsetOutOfRangeError, LogTruncationError) as error:
            raise SourceUnavailable(
                f"topic {settings.topic!r} changed while it was looked at: {error!r}"
            ) from error
    return {
        TopicPartition(*each): FoundLog(
            None if topic_id is None else str(topic_id), starts[each], ends[each], read.get(each)
        )
        for each in asked
    }


def _read(consumer: Any, offsets: Mapping[Any, int], seconds: float) -> dict[Any, str]:
    """Return checksums of the records at these offsets, of those that are still there."""
    if not offsets:
        return {}
    consumer.assign(list(offsets))
    for place, offset in offsets.items():
        consumer.seek(place, offset)
    waiting, found = set(offsets), {}
    end = time.monotonic() + seconds
    while waiting:
        if time.monotonic() > end:
            raise KafkaTimeoutError(f"no record came of {sorted(waiting)} in {seconds:.0f} s")
        for place, records in consumer.poll(timeout_ms=_POLL_MS).items():
            if records[0].offset == offsets[place]:
                found[place] = checksum_of(message_of(records[0]))
            waiting.discard(place)
            consumer.pause(place)
        # A record that was compacted away leaves a gap, which may reach to the log's end.
        waiting = {each for each in waiting if consumer.position(each) <= offsets[each]}
    return found
