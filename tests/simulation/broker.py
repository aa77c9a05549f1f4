"""A Kafka topic in memory, and what happens to its logs; `ever` remembers what was ever in them."""

from collections import defaultdict
from typing import NamedTuple

from .group import Group
from .scheduler import Scheduler

__all__ = ["Broker", "Log", "Record", "Topic"]


class Record(NamedTuple):
    """A record as a log has it; `visible` is false for markers and what a producer aborted."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    visible: bool = True


class Log:
    """A partition's log: records by offset, some of which may be gone."""

    def __init__(self) -> None:
        self.records: dict[int, Record] = {}
        self.start = 0
        self.end = 0

    def append(self, record: Record) -> int:
        """Add a record; return its offset."""
        self.records[self.end] = record
        self.end += 1
        return self.end - 1

    def expire(self, before: int) -> None:
        """Let records go that are older than an offset."""
        self.start = min(max(self.start, before), self.end)
        for offset in [each for each in self.records if each < self.start]:
            del self.records[offset]

    def compact(self, keep: int) -> None:
        """Let some records go that are not among the newest."""
        for offset in sorted(self.records)[: -keep or None]:
            if offset % 3 == 1 and offset < self.end - keep:
                del self.records[offset]

    def truncate(self, to: int) -> None:
        """Lose the end, as under an election of a leader that was behind."""
        for offset in [each for each in self.records if each >= to]:
            del self.records[offset]
        self.end = max(to, self.start)


class Topic:
    """The topic of one life."""

    def __init__(self, number: int, n_partitions: int) -> None:
        self.id = f"topic-{number}"
        self.logs = [Log() for _ in range(n_partitions)]


class Broker:
    """The topic, the group that reads it, and whether anybody answers.

    Attributes
    ----------
    ever : dict
        For each topic's id, partition and offset the values that have been there.
    redeliver : int
        So many records are delivered again by the next poll.
    """

    def __init__(self, scheduler: Scheduler, name: str, n_partitions: int) -> None:
        self.name = name
        self.group = Group(scheduler)
        self.away_until = 0.0
        self.redeliver = 0
        self.ever: defaultdict[tuple[str, int, int], list[Record]] = defaultdict(list)
        self._lives = 1
        self._scheduler = scheduler
        self.topic = Topic(1, n_partitions)

    @property
    def away(self) -> bool:
        """Whether nobody answers."""
        return self._scheduler.now < self.away_until

    def append(self, partition: int, record: Record) -> None:
        """Have a producer send a record."""
        place = partition % len(self.topic.logs)
        offset = self.topic.logs[place].append(record)
        if record.visible:
            self.ever[self.topic.id, place, offset].append(record)

    def recreate(self) -> None:
        """Delete the topic and make another under its name."""
        self._lives += 1
        self.topic = Topic(self._lives, len(self.topic.logs))
