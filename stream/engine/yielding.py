"""Records first: refinement takes the time that ingestion leaves, and a tenth of it at least.

While so many records wait that a refinement has its turn among them, it is put off, unless the time
for it has been saved up since. There are two accounts, each with half of the tenth: one for those
that look at all of many atoms, which take seconds, and one for all others; else the frequent ones
would never let the rare ones have enough. What is decided is in SQL with the batch in which it took
effect, so a replay decides nothing anew. When the records are caught up, what is owed is made up
for out of turn, as on a quiet topic, until it is paid or the log joint rises no more. So a new
stream with a long backlog shows what the trees make of it first.

Where those of many atoms can go on beside arrivals (`concurrent`), each is put off in its turn and
made up for there, in a backlog, too: what counts as its time is how long the loop stands still.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from weald.mcmc.schedule.kernel_report import Refinement

__all__ = ["Rest", "Yielding"]

# Of the time in which records come first, so much is refinement's.
LEAST_SHARE = 0.1
# The first of each account is expected to take so long: nobody has seen one yet.
_FIRST_SECONDS = 0.25
# The gains of so many refinements are looked at.
_RUN = 6
_STANDARD_ERRORS = 2.0
# More is not owed for a time in which the stream was another process's, unless one takes longer.
_MOST_DUE_SECONDS = 1.0


class Rest:
    """After a step for which records have waited, so long goes by before the next of its kind.

    What came meanwhile is taken in between; two in a row would make it wait for both.

    Parameters
    ----------
    clock : callable
        Seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._until = clock, 0.0

    @property
    def seconds(self) -> float:
        """How long it still goes on; 0 where nothing has been waited for."""
        return max(self._until - self._clock(), 0.0)

    @contextmanager
    def after(self) -> Iterator[None]:
        """Begin one that is as long as what is done here."""
        began = self._clock()
        yield
        ended = self._clock()
        self._until = ended + (ended - began)


class Yielding:
    """The pace of a stream whose records come first.

    Parameters
    ----------
    clock : callable
        Seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._behind, self._looked = False, clock()
        # Of each account: seconds that refinement has had too little, what the last one took (of
        # many atoms each), and what the next one is expected to take.
        self._due, self._took, self._takes = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]
        self._gains: list[float] = []
        self._goes_on = False

    @property
    def behind(self) -> bool:
        """Whether records came first when it was last looked."""
        return self._behind

    def look(self, *, behind: bool) -> None:
        """Note whether records come first."""
        now = self._clock()
        if self._behind:
            more = LEAST_SHARE * (now - self._looked) / len(self._due)
            self._due = [
                min(due + more, max(_MOST_DUE_SECONDS, takes))
                for due, takes in zip(self._due, self._takes, strict=True)
            ]
        self._behind, self._looked = behind, now

    def arrange(self, *, goes_on: bool) -> None:
        """Note whether a refinement goes on beside arrivals."""
        self._goes_on = goes_on

    def postpones(self, seq: int, *, of_many: int, concurrent: bool) -> bool:  # noqa: ARG002 - this goes by time
        """Whether the refinement whose turn it is is put off."""
        if self._goes_on and not of_many:
            # What it moved would be moved back when that of all is taken over.
            return True
        postponed = (concurrent and of_many > 0) or not self._affords(of_many)
        if postponed:
            self._gains.clear()
        return postponed

    def _affords(self, of_many: int) -> bool:
        """Whether there is time for a refinement, of so many atoms if it is of all of many."""
        account = of_many > 0
        takes = self._takes[account] = self._took[account] * max(of_many, 1) or _FIRST_SECONDS
        self.look(behind=self._behind)
        return not self._behind or self._due[account] >= takes

    def refined(self, seconds: float, *, of_many: int) -> None:
        """One was made in its turn, and took so long."""
        account = of_many > 0
        self._took[account] = seconds / max(of_many, 1)
        if self._behind:
            self._due[account] -= seconds

    def stood_still(self, seconds: float, *, of_many: int) -> None:
        """What one has arrived at was published, and that took so long more."""
        self._took[1] += seconds / max(of_many, 1)
        if self._behind:
            self._due[1] -= seconds

    def made_up(self, refinement: Refinement) -> None:
        """One was made out of turn."""
        self._gains.append(refinement.log_joint_after - refinement.log_joint_before)

    def makes_up(self, owed: int, *, of_many: int = 0) -> bool:
        """Whether one more is to be made out of turn, of so many that are owed.

        ``of_many`` counts the atoms where it would go on beside arrivals, and is 0 elsewhere.
        """
        if owed == 0 or self._goes_on or self._settled:
            return False
        return self._affords(of_many) if of_many else not self._behind

    @property
    def _settled(self) -> bool:
        """Whether refinement gains nothing any more.

        By what each gains over the partition that it found: records that come meanwhile change the
        log joint itself.
        """
        if len(self._gains) < _RUN:
            return False
        last = np.array(self._gains[-_RUN:])
        return float(last.mean()) <= _STANDARD_ERRORS * float(last.std(ddof=1)) / math.sqrt(_RUN)
