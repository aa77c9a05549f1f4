"""kafka-python's consumer as `weald.stream.source` uses it, over the simulated broker.

The group's protocol runs beside the process's own thread, as in kafka-python 3: partitions come and
go between any two steps of the engine.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, NamedTuple

from kafka import TopicPartition
from kafka.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)

from .broker import Broker
from .scheduler import Scheduler

__all__ = ["consumer_of"]

_HEARTBEAT_SECONDS = 1.0
_METADATA_SECONDS = 3.0
_MAX_POLL_SECONDS = 20.0
_LEAST_SECONDS = 0.002
_LOOK_SECONDS = 0.25
# A round of leases is looked for every five milliseconds at most.
_MOST_POLLS = 300


class SpinningError(Exception):
    """A process goes round and round without waiting for anything."""


class Fetched(NamedTuple):
    """A record as kafka-python hands it out."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def consumer_of(
    broker: Broker, scheduler: Scheduler, draw: random.Random
) -> Callable[..., "_Consumer"]:
    """A class of consumers that talk to this broker."""

    def make(**options: Any) -> _Consumer:
        return _Consumer(broker, scheduler, draw, options)

    return make


class _Consumer:
    def __init__(
        self, broker: Broker, scheduler: Scheduler, draw: random.Random, options: dict[str, Any]
    ) -> None:
        self._broker, self._scheduler, self._draw = broker, scheduler, draw
        self._most = options["max_poll_records"]
        self._strategy: Sequence[Any] = options.get("partition_assignment_strategy", ())
        self._listener: Any = None
        self._positions: dict[TopicPartition, int | None] = {}
        self._paused: set[TopicPartition] = set()
        self._member: str | None = None  # the coordinator names it
        self._generation = -1
        self._closed = False
        self._rejoin = False
        self._met_about: int | None = None
        self._polled_at = scheduler.now
        self._polls: list[float] = []
        self._known: tuple[str | None, int] = (None, 0)
        self._known_at = -_METADATA_SECONDS
        self._cluster = SimpleNamespace(
            config={},
            topic_id=lambda _: self._known[0],
            metadata_refresh_in_progress=0,
            refresh_metadata=self._refresh,
            partitions_for_topic=lambda _: set(range(self._known[1])),
        )
        self._net = SimpleNamespace(run=lambda function: function())
        # It takes what a meeting comes to whenever that is: there is nothing to keep for a poll.
        self._coordinator = SimpleNamespace(
            request_rejoin=self._request_rejoin,
            _do_join_and_sync_async=None,
            _on_join_complete_async=None,
        )
        self._ask()

    # Questions.

    @property
    def _manager(self) -> SimpleNamespace:
        """Who knows whether there is a connection."""
        return SimpleNamespace(_conns={0: SimpleNamespace(connected=not self._broker.away)})

    def _ask(self, error: type[Exception] = KafkaTimeoutError) -> None:
        self._scheduler.sleep(_LEAST_SECONDS * self._draw.random())
        if self._broker.away:
            self._scheduler.sleep(_LOOK_SECONDS)
            raise error("no broker answers")

    def _refresh(self) -> None:
        self._ask(KafkaConnectionError)
        topic = self._broker.topic
        self._known = (topic.id, len(topic.logs))
        self._known_at = self._scheduler.now

    def partitions_for_topic(self, _topic: str) -> set[int]:
        self._refresh()
        return set(range(self._known[1]))

    def beginning_offsets(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        self._ask()
        return {each: self._broker.topic.logs[each.partition].start for each in places}

    def end_offsets(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        self._ask()
        return {each: self._broker.topic.logs[each.partition].end for each in places}

    def assignment(self) -> set[TopicPartition]:
        return set(self._positions)

    def paused(self) -> set[TopicPartition]:
        return set(self._paused)

    def position(self, place: TopicPartition, **_: object) -> int | None:
        return self._positions.get(place)

    def highwater(self, place: TopicPartition) -> int:
        return int(self._broker.topic.logs[place.partition].end)

    def group_metadata(self) -> Any:
        return SimpleNamespace(generation_id=self._generation, member_id=self._member or "")

    # Orders.

    def subscribe(self, _topics: list[str], listener: Any) -> None:
        self._listener = listener
        process = self._scheduler.process
        if process is None:
            raise RuntimeError("a consumer belongs to a process")
        self._scheduler.spawn(process, self._keep_membership)

    def assign(self, places: Iterable[TopicPartition]) -> None:
        self._positions = dict.fromkeys(places)

    def pause(self, *places: TopicPartition) -> None:
        self._paused.update(places)

    def resume(self, *places: TopicPartition) -> None:
        self._paused.difference_update(places)

    def seek(self, place: TopicPartition, offset: int) -> None:
        if place in self._positions:
            self._positions[place] = offset

    def seek_to_beginning(self, *places: TopicPartition) -> None:
        for place, offset in self.beginning_offsets(places).items():
            self.seek(place, offset)

    def seek_to_end(self, *places: TopicPartition) -> None:
        for place, offset in self.end_offsets(places).items():
            self.seek(place, offset)

    def commit_async(self, *_: object, **__: object) -> None:
        """A courtesy that nobody reads."""

    def close(self, **_: object) -> None:
        self._closed = True
        if self._member is not None and not self._broker.away:
            self._broker.group.leave(self._member)

    def poll(self, timeout_ms: int) -> dict[TopicPartition, list[Fetched]]:
        end = self._scheduler.now + timeout_ms / 1000.0
        self._note_poll()
        while True:
            self._polled_at = self._scheduler.now
            self._scheduler.sleep(_LEAST_SECONDS * self._draw.random())
            found = {} if self._broker.away else self._fetch()
            left = end - self._scheduler.now
            if found or left <= 0.0:
                break
            self._scheduler.sleep(min(left, _LOOK_SECONDS))
        if self._broker.away and self._draw.random() < 0.3:
            raise KafkaConnectionError("the connection was closed")
        return found

    def _note_poll(self) -> None:
        """A loop that goes round without waiting would cost a whole processor."""
        now = self._scheduler.now
        self._polls = [at for at in self._polls[-_MOST_POLLS:] if at > now - 1.0] + [now]
        if len(self._polls) > _MOST_POLLS:
            raise SpinningError(f"polled {len(self._polls)} times within a second")

    def _fetch(self) -> dict[TopicPartition, list[Fetched]]:
        found: dict[TopicPartition, list[Fetched]] = {}
        room = self._most
        places = sorted(set(self._positions) - self._paused)
        self._draw.shuffle(places)
        for place in places:
            at = self._positions[place]
            if at is None:
                raise NoOffsetForPartitionError(place)
            if place.partition >= len(self._broker.topic.logs):
                continue
            log = self._broker.topic.logs[place.partition]
            if not log.start <= at <= log.end:
                raise OffsetOutOfRangeError({place: at})
            # Not to a consumer that looks at a single record: a client drops what lies before it.
            if self._member is not None and self._broker.redeliver and at > log.start:
                at = max(log.start, at - self._broker.redeliver)
                self._broker.redeliver = 0
            taken: list[Fetched] = []
            while at < log.end and len(taken) < room:
                record = log.records.get(at)
                if record is not None and record.visible:
                    taken.append(
                        Fetched(place.topic, place.partition, at, *record[2:3], *record[:2])
                    )
                at += 1
            self._positions[place] = at
            room -= len(taken)
            if taken:
                found[place] = taken
        return found

    # The group.

    def _request_rejoin(self) -> None:
        self._rejoin = True

    def _keep_membership(self) -> None:
        while not self._closed:
            if not self._broker.away:
                with suppress(KafkaConnectionError):
                    self._beat()
            self._scheduler.sleep(_HEARTBEAT_SECONDS * self._draw.uniform(0.1, 1.0))

    def _beat(self) -> None:
        group, now = self._broker.group, self._scheduler.now
        if now - self._polled_at > _MAX_POLL_SECONDS:
            if self._member is not None:
                group.leave(self._member)
                self._lose()
            return
        if now - self._known_at > _METADATA_SECONDS:
            self._refresh()
        # Whatever it was that asked: the meeting was about other partitions.
        self._rejoin |= self._met_about not in (None, self._known[1])
        if self._member is None:
            self._member = group.enter(self._strategy[0])
            self._rejoin = True
        if not group.heartbeat(self._member):
            self._lose()
            return
        member = group.members[self._member]
        if member.given is not None and member.given[0] > self._generation:
            self._take(*member.given)
        if (self._rejoin and not group.joining) or (group.joining and not member.joined):
            self._rejoin, self._met_about = False, self._known[1]
            group.join(self._member, self._strategy[0].metadata([self._broker.name]), self._cluster)

    def _lose(self) -> None:
        """The group has gone on without this member."""
        lost = list(self._positions)
        self._member, self._generation = None, -1
        self._positions.clear()
        self._paused.clear()
        self._listener.on_partitions_lost(lost)

    def _take(self, generation: int, assignment: Any) -> None:
        given = {TopicPartition(each.topic, each.partition) for each in assignment.partitions()}
        revoked, added = set(self._positions) - given, given - set(self._positions)
        # As kafka-python does at the end of a meeting, whatever was asked for meanwhile.
        self._generation, self._rejoin = generation, False
        if revoked:
            for place in revoked:
                del self._positions[place]
            self._paused -= revoked
            self._listener.on_partitions_revoked(sorted(revoked))
            self._rejoin = True
        self._strategy[0].on_assignment(assignment, generation)
        self._positions.update(dict.fromkeys(added))
        self._listener.on_partitions_assigned(sorted(added))
