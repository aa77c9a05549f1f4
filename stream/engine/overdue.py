"""Whether observations have waited so long for a publication that one comes out of turn.

Publications are counted in records: on a topic that brings one record a second, what is new would
wait for a quarter of an hour. As those of a quiet topic these are kept in SQL, and a replay repeats
them.
"""

import time
from collections.abc import Callable

__all__ = ["Overdue"]


class Overdue:
    """For how long the model has had something to show.

    Parameters
    ----------
    seconds : float
        How long observations may wait; 0 for as long as it takes.
    clock : callable
        Seconds that only grow.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._since: float | None = None
        self._publication = 0

    def look(self, publication: int, *, unpublished: bool) -> None:
        """Note the number of the newest publication, and whether observations came after it."""
        if not unpublished:
            self._since = None
        elif self._since is None or publication != self._publication:
            self._since = self._clock()
        self._publication = publication

    @property
    def due(self) -> bool:
        """Whether somebody has waited long enough."""
        waits = self._since is not None and self._seconds > 0.0
        return waits and self._clock() - (self._since or 0.0) >= self._seconds
