"""What happens to dead letters beside their rows in SQL: a rate limit, and a topic of their own."""

from collections import deque
from collections.abc import Sequence
from typing import Protocol

from weald.storage.commit.commit import DeadLetterLike
from weald.stream.errors import TooManyDeadLetters
from weald.stream.record.record import DeadLetter

__all__ = ["DeadLetterLimit", "DeadLetterOutlet", "headers_of"]

# A verdict on fewer records than this would stop a stream for its first typing error.
FEWEST = 100


class DeadLetterOutlet(Protocol):
    """Where dead letters go besides SQL; at least once, before the commit that holds them."""

    def send(self, letters: Sequence[DeadLetterLike]) -> None:
        """Deliver, and wait until it is confirmed.

        Raises
        ------
        SourceUnavailable
            When the broker does not answer.
        """

    def close(self) -> None:
        """Free what is held."""


class DeadLetterLimit:
    """Stops the service when most recent records are bad: then the schema is, not the data.

    Parameters
    ----------
    share : float
        Largest accepted share of bad records.
    window : int
        How many recent records it is taken over.
    """

    def __init__(self, share: float, window: int) -> None:
        self._share = share
        self._window = window
        self._recent: deque[tuple[int, int]] = deque()
        self._n_records = 0
        self._n_dead = 0

    def observe(self, n_records: int, dead: Sequence[DeadLetter]) -> None:
        """Take one poll's counts into account.

        Raises
        ------
        TooManyDeadLetters
            Naming the share and the latest reason. Nothing of the poll should be committed.
        """
        self._recent.append((n_records, len(dead)))
        self._n_records += n_records
        self._n_dead += len(dead)
        while self._n_records - self._recent[0][0] >= self._window:
            old_records, old_dead = self._recent.popleft()
            self._n_records -= old_records
            self._n_dead -= old_dead
        if self._n_records >= FEWEST and self._n_dead > self._share * self._n_records:
            raise too_many(self._n_dead, self._n_records, dead)


def too_many(n_dead: int, n_records: int, dead: Sequence[DeadLetter]) -> TooManyDeadLetters:
    """Say what share of the records was refused, with the last of them as the example."""
    last = f", the last one ({dead[-1].reason}): {dead[-1].detail}" if dead else ""
    return TooManyDeadLetters(
        f"{n_dead} of the last {n_records} records are no observations{last}. Nothing of them was "
        "committed. Compare [schema] in weald.toml with the topic, or raise "
        "stream.dead_letter_share"
    )


def headers_of(letter: DeadLetterLike) -> list[tuple[str, bytes]]:
    """Headers of the dead letter's message: where it came from, and why it is dead."""
    return [
        ("weald.topic", letter.topic.encode()),
        ("weald.partition", str(letter.partition).encode()),
        ("weald.offset", str(letter.offset).encode()),
        ("weald.reason", letter.reason.encode()),
        ("weald.detail", letter.detail.encode()),
    ]
