"""A Kafka topic as a source: one consumer group, manual offsets, raw bytes.

No deserialiser is given to the client: one that raises makes kafka-python 3.0 spin for ever.
Rebalance callbacks run on the client's own thread, which also sends the heartbeats, so they only
write down what happened; the engine's thread acts on it.
"""

import logging
import time
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka import TopicPartition as ClientPartition
from kafka.errors import (
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    UnsupportedCodecError,
)
from kafka.structs import OffsetAndMetadata

from weald.storage.commit.log_marks import LogMark
from weald.stream.errors import LogReplaced, SourceError, SourceUnavailable
from weald.stream.record.record import Message, TopicPartition
from weald.stream.settings import KafkaSettings

from .inflation import OversizedBatchError, limit_batches
from .kafka_log import look_at, message_of
from .kafka_options import client_options, overhearing
from .recognition import FoundLog
from .single_writer import UNDIVIDED, Seat, SingleWriterAssignor
from .source import Change, in_order, owned_by

__all__ = ["HELD_MS", "KafkaSource"]

_log = logging.getLogger(__name__)

# No topic is deleted, made anew, written and read in less.
_SAME_TOPIC_SECONDS = 0.05

# How long a broker may hold a question for records until there are some. What else it is asked by
# the same connection waits as long: for those of a partition that has more, where another is read.
HELD_MS = 100


class _RebalanceRecorder(ConsumerRebalanceListener):  # type: ignore[misc]  # untyped base
    def __init__(self, assignor: SingleWriterAssignor) -> None:
        self.changes: deque[Change] = deque()
        self._assignor = assignor

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self.changes.append(Change("assigned", _ours(assigned)))

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self.changes.append(Change("revoked", _ours(revoked)))

    def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        self._assignor.forget()
        self.changes.append(Change("lost", _ours(lost)))


class KafkaSource:
    """The partitions of a topic, or of one shard, while this member is the group's writer of them.

    Parameters
    ----------
    settings : KafkaSettings
    stream : str
        Names the group, ``weald-<stream>``, unless the settings do.
    batch_records : int
        Most records of one `poll`.
    seat : Seat, optional
        For which shard of the stream it stands; by default the stream is one.

    Raises
    ------
    SourceUnavailable
        When no broker answers.
    SourceError
        When the settings are wrong, or the topic has fewer partitions than the stream has shards.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        stream: str,
        batch_records: int = 2_000,
        seat: Seat = UNDIVIDED,
    ) -> None:
        assignor = SingleWriterAssignor(seat)
        self._settings = settings
        self._recorder = _RebalanceRecorder(assignor)
        self._paused = False
        self._client = f"weald-{stream}"
        self._group = settings.group or self._client
        self._topic_ids: set[str | None] = set()
        self._asked_for_topic = -_SAME_TOPIC_SECONDS
        self._process = seat.process or uuid.uuid4().hex[:12]
        limit_batches(settings.batch_max_bytes)
        with overhearing() as overheard, _translated(settings, overheard):
            self._consumer = KafkaConsumer(
                **client_options(settings, self._client),
                group_id=self._group,
                partition_assignment_strategy=(assignor,),
                enable_auto_commit=False,
                auto_offset_reset="none",  # where to go on is for `seek` to say
                isolation_level=settings.isolation_level,
                session_timeout_ms=settings.session_timeout_ms,
                heartbeat_interval_ms=settings.heartbeat_interval_ms,
                max_poll_interval_ms=settings.max_poll_interval_ms,
                metadata_max_age_ms=settings.metadata_max_age_ms,
                max_poll_records=batch_records,
                fetch_max_wait_ms=HELD_MS,
                fetch_max_bytes=settings.fetch_max_bytes,
                max_partition_fetch_bytes=settings.max_partition_fetch_bytes,
                allow_auto_create_topics=False,
            )
            # A member that assigns because partitions were added forgets, by assigning, why it
            # joined. If its poll times out before the group has met, kafka-python 3.0.12 never asks
            # for the outcome: it reads nothing more, and spins.
            assignor.meeting = self._consumer._coordinator.request_rejoin  # noqa: SLF001 - nothing public does it
            _keep_outcome(self._consumer._coordinator)  # noqa: SLF001 - as above
            # Joining before the topic's partitions are known means an empty first assignment and a
            # second rebalance right behind it.
            partitions = self._consumer.partitions_for_topic(settings.topic) or ()
            _require_enough(settings.topic, len(partitions), seat.shards)
            self._consumer.subscribe([settings.topic], listener=self._recorder)

    @property
    def exhausted(self) -> bool:
        """Never: a topic has no end."""
        return False

    def poll(self, timeout_s: float) -> list[Message]:
        """Return raw records, sorted by partition and offset."""
        with _translated(self._settings):
            try:
                messages = self._fetched(timeout_s)
            except NoOffsetForPartitionError:  # before the first `seek`
                return []
            except (OffsetOutOfRangeError, LogTruncationError) as error:
                # Expired, truncated or made anew: the engine looks again, and says which.
                _log.warning("the topic has no record where reading went on: %r", error)
                self._recorder.changes.append(Change("assigned", tuple(self.assignment())))
                return []
            if not messages:
                self._require_connection()
            messages = in_order(messages)
            if messages and time.monotonic() - self._asked_for_topic >= _SAME_TOPIC_SECONDS:
                self._ask_for_topic(messages)
            self._check_topic()
        return messages

    def _fetched(self, timeout_s: float) -> list[Message]:
        """Records as they come, with the group's protocol going on meanwhile."""
        if self._paused:
            # Partitions assigned since then would flow otherwise.
            self._consumer.pause(*self._consumer.assignment())
        # No variable has what came: the client may keep this frame, see `Source.poll`.
        return [
            message_of(each)
            for batch in self._consumer.poll(timeout_ms=round(timeout_s * 1000)).values()
            for each in batch
        ]

    def _require_connection(self) -> None:
        """Tell an outage from a topic with nothing new, which the client's polls do not."""
        # A copy, since the client's thread changes it.
        connections = list(self._consumer._manager._conns.values())  # noqa: SLF001 - nothing public tells it
        if not any(each.connected for each in connections):
            raise KafkaConnectionError("there is no connection to a broker")

    def _ask_for_topic(self, messages: Sequence[Message]) -> None:
        """Learn the topic's id anew; where nobody tells it, these records are read again.

        Records are fetched by the topic's name, and those of a topic that was made anew may come
        before the client hears of its id.
        """
        consumer, began = self._consumer, time.monotonic()
        cluster = consumer._cluster  # noqa: SLF001 - nothing public asks
        try:
            # One that is under way may have been answered before the topic was made.
            for _ in range(1 + cluster.metadata_refresh_in_progress):
                consumer._net.run(cluster.refresh_metadata)  # noqa: SLF001 - as above
        except KafkaError:
            # The first of each partition is what remains of those that are in order.
            first = {(topic, partition): offset for topic, partition, offset, *_ in messages[::-1]}
            self._go_to({ClientPartition(*place): offset for place, offset in first.items()})
            raise
        self._asked_for_topic = began

    def _topic_id(self) -> str | None:
        found = self._consumer._cluster.topic_id(self._settings.topic)  # noqa: SLF001 - nothing public tells it
        return None if found is None else str(found)

    def _check_topic(self) -> None:
        """Have the engine look again when the topic was made anew under the consumer."""
        topic_id = self._topic_id()
        if topic_id is not None and self._topic_ids and topic_id not in self._topic_ids:
            raise LogReplaced(
                f"topic {self._settings.topic!r} was made anew while it was read: its id is "
                f"{topic_id} now. Nothing of it was read"
            )

    def pause(self) -> None:
        """Stop fetching; `poll` keeps the membership alive."""
        self._paused = True
        self._consumer.pause(*self._consumer.assignment())

    def resume(self) -> None:
        """Fetch again."""
        self._paused = False
        self._consumer.resume(*self._consumer.paused())

    def take_changes(self) -> list[Change]:
        """Return what the group did since the last call."""
        changes = self._recorder.changes
        return [changes.popleft() for _ in range(len(changes))]

    def assignment(self) -> set[TopicPartition]:
        """The partitions of its shard for the writer, none for a standby."""
        return set(_ours(self._consumer.assignment()))

    def look(self, marks: Mapping[TopicPartition, LogMark]) -> dict[TopicPartition, FoundLog]:
        """Ask the broker, by a client of its own."""
        with _translated(self._settings):
            found = look_at(self._settings, self._client, self.assignment(), marks)
        # The consumer's own idea of the topic may be older than this look at it.
        self._topic_ids = {log.topic_id for log in found.values()} | {self._topic_id()}
        return found

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Go on from SQL's offsets, never from those that Kafka keeps for the group.

        Records that expired before they were read are skipped, with a warning that counts them.
        """
        with _translated(self._settings):
            assigned = sorted(self._consumer.assignment())
            starts = self._consumer.beginning_offsets(assigned) if assigned else {}
            new = [each for each in assigned if TopicPartition(*each) not in offsets]
            if new and self._settings.auto_offset_reset == "latest":
                starts = starts | self._consumer.end_offsets(new)
            self._go_to(
                {
                    each: _not_before(start, offsets.get(TopicPartition(*each), start), each)
                    for each, start in starts.items()
                }
            )

    def _go_to(self, offsets: Mapping[Any, int]) -> None:
        """Read on from here, of these partitions."""
        for place, offset in offsets.items():
            self._consumer.seek(place, offset)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Tell the group's coordinator where SQL is, without waiting for its answer."""
        ours = {
            ClientPartition(*place): OffsetAndMetadata(offset, "", -1)
            for place, offset in offsets.items()
            if place.topic == self._settings.topic
        }
        if not ours:
            return
        try:
            self._consumer.commit_async(ours, callback=_note_failure)
        except KafkaError as error:
            _note_failure(offsets, error)

    def generation(self) -> int:
        """Return the generation of the group as this member knows it."""
        return int(self._consumer.group_metadata().generation_id)

    def member_id(self) -> str:
        """Return the coordinator's name for this member, made unique: not every broker's is."""
        member = f"{self._consumer.group_metadata().member_id}-{self._process}"
        return owned_by(member, self._group)

    def lag(self) -> dict[TopicPartition, int]:
        """High-water mark less position, for partitions that have been fetched."""
        lag: dict[TopicPartition, int] = {}
        for partition in self._consumer.assignment():
            end = self._consumer.highwater(partition)
            position = self._consumer.position(partition, timeout_ms=0)
            if end is not None and position is not None:
                lag[TopicPartition(partition.topic, partition.partition)] = max(end - position, 0)
        return lag

    def close(self) -> None:
        """Leave the group, so that a standby takes over at once."""
        try:
            self._consumer.close(autocommit=False)
        except KafkaError as error:
            _log.warning("leaving the consumer group failed: %s", error)


def _keep_outcome(coordinator: Any) -> None:
    """Have a member take the outcome of a meeting that ended between two of its polls.

    kafka-python 3.0.12 asks for it while a poll waits, and drops one that has come in between: the
    member joins again, and the whole group has to meet; on a busy machine time and again.
    """
    join = coordinator._do_join_and_sync_async  # noqa: SLF001 - nothing public does it
    complete = coordinator._on_join_complete_async  # noqa: SLF001
    kept: list[tuple[Any, Any]] = []

    async def joined() -> Any:
        # Another generation, or none, is that of a member which has to join anew.
        if not kept or kept[0][0] is not coordinator._generation:  # noqa: SLF001 - as above
            assignment = await join()
            kept[:] = [(coordinator._generation, assignment)]  # noqa: SLF001 - as above
        return kept[0][1]

    async def completed(*outcome: Any) -> None:
        kept.clear()
        await complete(*outcome)

    coordinator._do_join_and_sync_async = joined  # noqa: SLF001 - as above
    coordinator._on_join_complete_async = completed  # noqa: SLF001 - as above


def _require_enough(topic: str, partitions: int, shards: int) -> None:
    """Refuse a topic that is there and has no partition for some shard."""
    if 0 < partitions < shards:
        raise SourceError(
            f"topic {topic!r} has {partitions} partitions, and stream.shards = {shards} needs one "
            f"for each shard: give the topic more (kafka-topics --alter --partitions {shards}), or "
            "a stream of another name fewer shards"
        )


def _not_before(start: int, offset: int, place: Any) -> int:
    if offset < start:
        _log.warning(
            "%d records of %s[%d] expired before they were read: offsets %d to %d are skipped",
            start - offset,
            place.topic,
            place.partition,
            offset,
            start - 1,
        )
    return max(offset, start)


def _ours(partitions: Iterable[Any]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(TopicPartition(each.topic, each.partition) for each in partitions))


def _note_failure(offsets: object, answer: object) -> None:
    if isinstance(answer, Exception):
        _log.debug("the courtesy commit to Kafka of %s failed: %s", offsets, answer)


@contextmanager
def _translated(settings: KafkaSettings, overheard: object = "") -> Iterator[None]:
    place = f"topic {settings.topic!r} at {settings.bootstrap_servers}"
    try:
        yield
    except KafkaConfigurationError as error:
        raise SourceError(f"[kafka] cannot be used for {place}: {error}") from error
    except OversizedBatchError as error:
        raise SourceError(
            f"{place}: {error}. Raise the limit, or take the batch out of the topic "
            "(kafka-delete-records)"
        ) from error
    except UnsupportedCodecError as error:
        raise SourceError(f"{place}: {error}. pip install 'weald[compression]'") from error
    except KafkaError as error:
        passing = isinstance(error, KafkaTimeoutError) or getattr(error, "retriable", False)
        if passing:
            raise SourceUnavailable(f"{place} does not answer: {error!r}{overheard}") from error
        raise SourceError(f"{place} cannot be read: {error!r}") from error
    except (AssertionError, ValueError, OSError) as error:  # a certificate that cannot be read
        raise SourceError(f"[kafka] cannot be used for {place}: {error}") from error
