"""Records between their arrival and their commit, with the account of each partition."""

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from weald.storage.commit.commit import DeadLetterLike, ObservationBlock, OffsetAdvance
from weald.storage.commit.log_marks import LogMark

from .decode import set_aside
from .record import Batch, DeadLetter, Message, Reason, TopicPartition, checksum_of, joined

__all__ = ["Held", "fresh", "message_of"]


def fresh(messages: Sequence[Message], offsets: Mapping[TopicPartition, int]) -> list[Message]:
    """Leave out the messages that lie before the next offset of their partition.

    Within one partition offsets must rise; a message that repeats one of the same poll is left
    out as well.
    """
    reached = dict(offsets)
    kept: list[Message] = []
    for (topic, partition), part in groupby(messages, key=itemgetter(0, 1)):
        place = TopicPartition(topic, partition)
        next_offset = reached.get(place, 0)
        for message in part:
            if message.offset >= next_offset:
                kept.append(message)
                next_offset = message.offset + 1
        reached[place] = next_offset
    return kept


def message_of(letter: DeadLetterLike) -> Message:
    """Return the message that a dead letter was made of, as far as it was kept."""
    return Message(
        topic=letter.topic,
        partition=letter.partition,
        offset=letter.offset,
        timestamp_ms=int(letter.received_at * 1000),
        key=letter.key,
        value=None if letter.reason == Reason.TOMBSTONE else letter.value,
    )


@dataclass
class _Account:
    next_offset: int
    received: int = 0
    kept: int = 0
    dead: int = 0
    taken_back: int = 0
    last: Message | None = None

    def advance(self, place: TopicPartition, mark: LogMark) -> OffsetAdvance:
        if self.last is not None:
            mark = replace(mark, last_offset=self.last.offset, checksum=checksum_of(self.last))
        return OffsetAdvance(
            topic=place.topic,
            partition=place.partition,
            next_offset=self.next_offset,
            n_received=self.received,
            n_inserted=self.kept - self.dead,
            # A letter that is taken back was received by an earlier commit, and was dead there.
            n_duplicate=self.received + self.taken_back - self.kept,
            n_dead=self.dead - self.taken_back,
            mark=mark,
        )


@dataclass
class Held:
    """Decoded records that wait for their commit: one poll's, or all of the warm-up's.

    ``replaces`` says of each observation in `batch` which earlier one leaves the model for it, 0
    for none; it is known last, when no observation is left out any more.
    """

    dead_letters: list[DeadLetter] = field(default_factory=list)
    received_at: float = 0.0
    taken_back: list[DeadLetterLike] = field(default_factory=list)
    replaces: NDArray[np.int64] | None = None
    _batches: list[Batch] = field(default_factory=list)
    _messages: list[Message] = field(default_factory=list)
    _accounts: dict[TopicPartition, _Account] = field(default_factory=dict)

    def __len__(self) -> int:
        """Observations held."""
        return sum(len(batch) for batch in self._batches)

    @property
    def n_received(self) -> int:
        """Messages behind it: observations, duplicates and dead letters."""
        return sum(account.received for account in self._accounts.values())

    @property
    def reached(self) -> dict[TopicPartition, int]:
        """Next offset of each partition that anything is held of."""
        return {place: account.next_offset for place, account in self._accounts.items()}

    @property
    def batch(self) -> Batch:
        """All observations, in order of arrival."""
        if len(self._batches) != 1:
            self._batches = [joined(self._batches)]
        return self._batches[0]

    def add(
        self,
        messages: Sequence[Message],
        kept: Sequence[Message],
        decoded: tuple[Batch, list[DeadLetter]],
        received_at: float,
        offsets: Mapping[TopicPartition, int],
    ) -> None:
        """Take one poll's records in.

        Parameters
        ----------
        messages, kept : sequence of Message
            All, and those that are no duplicates.
        decoded : Batch, list of DeadLetter
            What became of those that were kept.
        received_at : float
            Seconds since the epoch.
        offsets : mapping of TopicPartition to int
            Next offset of each partition that was read before: nothing but duplicates moves none.
        """
        # Of one partition there are many in a row.
        for (topic, partition), part in groupby(messages, key=itemgetter(0, 1)):
            run = list(part)
            first = offsets.get(TopicPartition(topic, partition), run[0].offset)
            account = self._account(topic, partition, first)
            account.received += len(run)
            for message in run:
                if message.offset >= account.next_offset:
                    account.next_offset, account.last = message.offset + 1, message
        self._keep(kept, decoded, received_at)

    def _keep(
        self,
        kept: Sequence[Message],
        decoded: tuple[Batch, list[DeadLetter]],
        received_at: float,
    ) -> None:
        for place, n in Counter(map(itemgetter(0, 1), kept)).items():
            self._account(*place).kept += n
        batch, dead = decoded
        self._bury(dead)
        if len(batch):
            self._batches.append(batch)
        self._messages += kept
        self.received_at = received_at

    def take_back(
        self,
        letters: Sequence[DeadLetterLike],
        decoded: tuple[Batch, list[DeadLetter]],
        offsets: Mapping[TopicPartition, int],
    ) -> None:
        """Take dead letters of earlier commits in, to be decided anew.

        Parameters
        ----------
        letters : sequence of DeadLetterLike
            Of one topic.
        decoded : Batch, list of DeadLetter
            What became of them.
        offsets : mapping of TopicPartition to int
            Next offset of each partition, which this does not change.
        """
        self.taken_back += letters
        messages = [message_of(letter) for letter in letters]
        for topic, partition, *_ in messages:
            place = TopicPartition(topic, partition)
            self._account(topic, partition, offsets[place]).taken_back += 1
        self._keep(messages, decoded, time.time())

    def replace(self, earlier: NDArray[np.int64]) -> None:
        """Let each observation of `batch` replace an earlier one, by number; 0 for none."""
        self.replaces = earlier if earlier.any() else None

    def repeat(self, rows: Collection[int]) -> None:
        """Count observations as duplicates, by their index into `batch`, and leave them out."""
        if not rows:
            return
        batch = self.batch
        for i in rows:
            self._account(batch.topic, int(batch.partition[i])).kept -= 1
        self._batches = [batch.without(rows)]

    def spread(self, rows: Batch) -> None:
        """Put in place of the batch the rows that it becomes; the account counts records."""
        self._batches = [rows]

    def refuse(self, reasons: Mapping[int, str]) -> list[DeadLetter]:
        """Turn observations that the family cannot take into dead letters.

        Parameters
        ----------
        reasons : mapping of int to str
            By index into `batch`.
        """
        if not reasons:
            return []
        batch = self.batch
        raw = {(message.partition, message.offset): message for message in self._messages}
        dead = [
            set_aside(
                raw[int(batch.partition[i]), int(batch.offset[i])],
                (Reason.UNFIT, detail),
                self.received_at,
            )
            for i, detail in sorted(reasons.items())
        ]
        self._bury(dead)
        self._batches = [batch.without(reasons)]
        return dead

    def advances(self, marks: Mapping[TopicPartition, LogMark]) -> list[OffsetAdvance]:
        """Account of each partition, with what its log is known by."""
        return [
            account.advance(place, marks.get(place, LogMark()))
            for place, account in sorted(self._accounts.items())
        ]

    def block(
        self, first_seq: int, clusters: NDArray[np.int64], passed: Sequence[NDArray[np.int64]] = ()
    ) -> ObservationBlock | None:
        """Observations as the store takes them, numbered from `first_seq`.

        ``passed`` are the numbers of those that the model did not take in.
        """
        if not len(self):
            return None
        batch, out = self.batch, None
        if passed:
            out = np.zeros(len(batch), dtype=np.bool_)
            out[np.concatenate(passed) - first_seq] = True
        return ObservationBlock(
            seq=np.arange(first_seq, first_seq + len(batch), dtype=np.int64),
            topic=batch.topic,
            partition=batch.partition,
            offset=batch.offset,
            key=batch.key,
            event_time=batch.event_time,
            values=batch.values,
            text=batch.text,
            replaces=self.replaces,
            passed=out,
            cluster=clusters,
            received_at=self.received_at,
        )

    def event_times(self) -> NDArray[np.float64]:
        """When each record happened, by itself."""
        batch = self.batch
        # What a record brought besides itself has an offset below 0.
        return batch.event_time[batch.offset >= 0]

    def broker_times(self) -> NDArray[np.float64]:
        """Broker's timestamps of what is held, in seconds, unknown ones left out."""
        known = [message.timestamp_ms for message in self._messages if message.timestamp_ms >= 0]
        return np.array(known, dtype=np.float64) / 1000

    def newest(self) -> dict[TopicPartition, float]:
        """Broker's time of the last record of each partition, epoch seconds."""
        return {
            place: account.last.timestamp_ms / 1000
            for place, account in self._accounts.items()
            if account.last is not None and account.last.timestamp_ms >= 0
        }

    def _account(self, topic: str, partition: int, offset: int = 0) -> _Account:
        place = TopicPartition(topic, partition)
        account = self._accounts.get(place)
        if account is None:
            account = self._accounts[place] = _Account(offset)
        return account

    def _bury(self, dead: Sequence[DeadLetter]) -> None:
        for letter in dead:
            self._account(letter.topic, letter.partition).dead += 1
        self.dead_letters += dead
