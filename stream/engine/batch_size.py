"""How many records of a backlog one batch takes: as many as lately took the time that was set.

Each batch costs a transaction and much else that goes by batches, whatever is in it. Where there is
no backlog a batch is what one poll brings.
"""

import time
from collections.abc import Callable

from weald.stream.settings import StreamSettings

__all__ = ["BatchSize"]

# Of what one poll may bring: what a client has at hand of a backlog may be less.
_ENOUGH = 0.5
# What the newest batch says about the cost of a record, against all that came before it.
_NEWEST = 0.5


class BatchSize:
    """The size of batches, by what the last ones took.

    Parameters
    ----------
    stream : StreamSettings
        With ``batch_records`` every batch is one poll.
    clock : callable
        Seconds that only grow.
    """

    def __init__(self, stream: StreamSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._polled = stream.most_polled
        self._seconds = 0.0 if stream.batch_records else stream.latency_ms / 1000.0
        self._clock = clock
        self._since = clock()
        self._cost: float | None = None

    def begin(self) -> None:
        """Note that a batch's first poll has returned."""
        self._since = self._clock()

    def takes_more(self, n: int, last: int) -> bool:
        """Whether a batch of n records, `last` of them of its last poll, goes on with another."""
        if n < _ENOUGH * self._polled or last == 0 or self._cost is None:
            return False
        return (n + self._polled) * self._cost <= self._seconds

    def end(self, n: int) -> None:
        """Note that the batch, of n records, is in SQL."""
        if n < self._polled:
            return
        cost = (self._clock() - self._since) / n
        self._cost = cost if self._cost is None else self._cost + _NEWEST * (cost - self._cost)
