"""Dead letters that somebody asked for again, decided anew by the stream's one writer.

Whoever asks only marks them in SQL. Each keeps its partition and offset, and the commit that takes
it back holds what became of it, so that a replay can be killed, repeated or raced and still counts
every record once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from weald.storage.commit.commit import DeadLetterRow
from weald.stream.model.model import StreamConfig
from weald.stream.record.decode import decode
from weald.stream.record.pending_batch import Held, message_of
from weald.stream.record.record import TopicPartition
from weald.stream.record.schema import Schema

if TYPE_CHECKING:
    from weald.storage.writing.store import SqlStore

__all__ = ["DeadLetterReplay"]

# How often SQL is asked whether somebody wants a replay.
SECONDS = 2.0


class DeadLetterReplay:
    """Finds what is to be replayed.

    Parameters
    ----------
    plan : StreamConfig
    schema : Schema
        By which the records are decoded now.
    store : SqlStore
    """

    def __init__(self, plan: StreamConfig, schema: Schema, store: SqlStore) -> None:
        self._plan = plan
        self._schema = schema
        self._store = store
        self._next = 0.0

    @property
    def due(self) -> bool:
        """Whether it is time to ask."""
        return time.monotonic() >= self._next

    def take(self, offsets: Mapping[TopicPartition, int]) -> Held | None:
        """Return letters of one topic, decoded, or None when nobody wants any.

        Parameters
        ----------
        offsets : mapping of TopicPartition to int
            Next offset of each partition that SQL knows.
        """
        limit = self._plan.stream.most_polled
        found = self._store.replay_requests(self._plan.name, limit=limit)
        self._next = time.monotonic() + (0.0 if len(found) == limit else SECONDS)
        return self._held(found, offsets) if found else None

    def _held(self, found: Sequence[DeadLetterRow], offsets: Mapping[TopicPartition, int]) -> Held:
        now = time.time()
        letters = [letter for letter in found if letter.topic == found[0].topic]
        if len(letters) < len(found):
            self._next = 0.0
        decoded = decode([message_of(each) for each in letters], self._schema, received_at=now)
        held = Held()
        held.take_back(letters, decoded, offsets)
        return held
