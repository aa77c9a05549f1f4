"""A topic that ends: the real Kafka source, until everything that was replayed has been read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from weald.cli.errors import CommandError

if TYPE_CHECKING:
    from weald.storage.commit.log_marks import LogMark
    from weald.stream.record.record import Message, TopicPartition
    from weald.stream.source.recognition import FoundLog
    from weald.stream.source.source import Change, Source

    from .replay import Replay

__all__ = ["BoundedSource"]


class BoundedSource:
    """A source that is exhausted once it has yielded all that the replay sends.

    Parameters
    ----------
    source : Source
        The consumer; every call goes to it.
    replay : Replay
        The producer, told how far the consumer is.

    Attributes
    ----------
    received : callable
        Called after each poll with the number of records read so far.
    """

    def __init__(self, source: Source, replay: Replay) -> None:
        self._source = source
        self._replay = replay
        self.received: Callable[[int], None] = lambda _: None
        self._next: dict[tuple[str, int], int] = {}

    @property
    def exhausted(self) -> bool:
        """Whether the replay has ended and its last record was yielded."""
        return self._replay.done and sum(self._next.values()) >= self._replay.n_sent

    def poll(self, timeout_s: float) -> list[Message]:
        """Return the next records, and let the producer send as many more.

        Raises
        ------
        CommandError
            If the producer failed.
        """
        if self._replay.error is not None:
            raise CommandError(f"the replay failed: {self._replay.error}") from self._replay.error
        messages = self._source.poll(timeout_s)
        before = sum(self._next.values())
        for message in messages:
            # By position, not by number: a rebalance may yield a record again.
            place = (message.topic, message.partition)
            self._next[place] = max(self._next.get(place, 0), message.offset + 1)
        self._replay.received(sum(self._next.values()) - before)
        self.received(sum(self._next.values()))
        return messages

    def pause(self) -> None:
        """Yield nothing until `resume`."""
        self._source.pause()

    def resume(self) -> None:
        """Undo `pause`."""
        self._source.resume()

    def take_changes(self) -> list[Change]:
        """Return the changes of ownership since the last call."""
        return self._source.take_changes()

    def assignment(self) -> set[TopicPartition]:
        """Partitions that this process owns."""
        return self._source.assignment()

    def look(self, marks: Mapping[TopicPartition, LogMark]) -> dict[TopicPartition, FoundLog]:
        """Return what there is of each partition."""
        return self._source.look(marks)

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Go on from these positions."""
        self._source.seek(offsets)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Tell the broker how far SQL is."""
        self._source.commit(offsets)

    def generation(self) -> int:
        """Count of the group's rebalances."""
        return self._source.generation()

    def member_id(self) -> str:
        """Identity of this process in the group."""
        return self._source.member_id()

    def lag(self) -> dict[TopicPartition, int]:
        """Records between the position and the end."""
        return self._source.lag()

    def close(self) -> None:
        """Leave the group."""
        self._source.close()
