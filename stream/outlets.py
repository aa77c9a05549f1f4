"""Where results go besides SQL. None of it is needed for correctness."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ..storage.base import Reader
from ..storage.commit import BatchCommit, ClusterRow
from ..storage.errors import StorageUnavailable
from ..storage.redis_statistics import Outcome
from .dead_letter import DeadLetterOutlet
from .retry import Backoff
from .watch import Watch

__all__ = ["Outlets", "Statistics"]


class Statistics(Protocol):
    """Shows clusters' statistics to whoever reads them; `RedisStatistics` is one."""

    def publish(self, stream: str, epoch: int, clusters: Sequence[ClusterRow]) -> Outcome:
        """Show the clusters that commit `epoch` changed."""

    def rebuild(self, stream: str, reader: Reader) -> bool:
        """Show everything anew, from SQL."""


@dataclass
class Outlets:
    """Redis and the dead-letter topic, each of which may be missing.

    Parameters
    ----------
    statistics : Statistics, optional
    dead_letters : DeadLetterOutlet, optional
    """

    statistics: Statistics | None = None
    dead_letters: DeadLetterOutlet | None = None
    _backoff: Backoff = field(default_factory=lambda: Backoff(0.5, 15.0))
    _rest_until: float = 0.0

    def bury(self, commit: BatchCommit) -> None:
        """Send the commit's dead letters to their topic.

        Raises
        ------
        SourceUnavailable
            When the broker does not answer.
        """
        if self.dead_letters is not None and commit.dead_letters:
            self.dead_letters.send(commit.dead_letters)

    def show(self, commit: BatchCommit, reader: Reader, watch: Watch) -> None:
        """Show the commit's statistics; when Redis is away go on without it.

        What is missed meanwhile is a gap that the next success closes from SQL. After a failure
        Redis is left alone for a while, so that its timeouts do not become the stream's pace.
        """
        if self.statistics is None or time.monotonic() < self._rest_until:
            return
        try:
            outcome = self.statistics.publish(commit.stream, commit.epoch, commit.clusters)
            if outcome is Outcome.GAP:
                self.statistics.rebuild(commit.stream, reader)
        except StorageUnavailable as error:
            self._rest_until = time.monotonic() + self._backoff.delay()
            watch.away("redis", str(error))
            return
        self._backoff.reset()
        watch.metrics.redis_published(len(commit.clusters))
        watch.back("redis")
