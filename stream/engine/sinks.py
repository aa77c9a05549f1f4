"""Where results go besides SQL. None of it is needed for correctness."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from weald.storage.commit.commit import BatchCommit, ClusterRow
from weald.storage.commit.parts import whole_written_by
from weald.storage.errors import StorageUnavailable
from weald.storage.redis.statistics import Outcome
from weald.stream.dead_letters.dead_letter import DeadLetterOutlet
from weald.stream.source.retry import Backoff
from weald.stream.telemetry.telemetry import Telemetry

if TYPE_CHECKING:
    from weald.storage.queries.reader import SqlReader

__all__ = ["Sinks", "Statistics"]

# As often as Prometheus looks, or so.
MEASURED_EVERY_SECONDS = 15.0


class Statistics(Protocol):
    """Shows clusters' statistics to whoever reads them; `RedisStatistics` is one."""

    def publish(self, stream: str, epoch: int, clusters: Sequence[ClusterRow]) -> Outcome:
        """Show the clusters that commit `epoch` changed."""

    def rebuild(self, stream: str, reader: SqlReader, written_by: str | None = None) -> bool:
        """Show everything anew, from SQL; ``written_by`` the commits of another stream."""

    def n_bytes(self, stream: str) -> int | None:
        """Memory that what is shown takes; None where it may not be asked for."""


@dataclass
class Sinks:
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
    _measured_at: float = -math.inf

    def bury(self, commit: BatchCommit) -> None:
        """Send the commit's dead letters to their topic.

        Raises
        ------
        SourceUnavailable
            When the broker does not answer.
        """
        # Those that were taken back and refused again are in the topic already.
        old = {(each.topic, each.partition, each.offset) for each in commit.taken_back}
        letters = [
            each
            for each in commit.dead_letters
            if (each.topic, each.partition, each.offset) not in old
        ]
        if self.dead_letters is not None and letters:
            self.dead_letters.send(letters)

    def show(self, commit: BatchCommit, reader: SqlReader, telemetry: Telemetry) -> None:
        """Show the commit's statistics; when Redis is away go on without it.

        What is missed meanwhile is a gap that the next success closes from SQL. After a failure
        Redis is left alone for a while, so that its timeouts do not become the stream's pace.
        """
        statistics = self.statistics
        if statistics is None or time.monotonic() < self._rest_until:
            return
        with self._forgiven(telemetry):
            outcome = statistics.publish(commit.stream, commit.epoch, commit.clusters)
            if outcome is Outcome.GAP:
                statistics.rebuild(commit.stream, reader)
            if outcome is Outcome.GAP or commit.whole is not None:
                _rebuild_whole(statistics, commit.stream, reader)
            telemetry.metrics.redis_published(len(commit.clusters))
            if time.monotonic() - self._measured_at >= MEASURED_EVERY_SECONDS:
                self._measured_at = time.monotonic()
                if (size := statistics.n_bytes(commit.stream)) is not None:
                    telemetry.metrics.redis_size(size)

    def show_all(self, stream: str, reader: SqlReader, telemetry: Telemetry) -> None:
        """Show everything from SQL: a former owner may have died before it could."""
        statistics = self.statistics
        if statistics is not None:
            with self._forgiven(telemetry):
                statistics.rebuild(stream, reader)
                _rebuild_whole(statistics, stream, reader)

    @contextmanager
    def _forgiven(self, telemetry: Telemetry) -> Iterator[None]:
        try:
            yield
        except StorageUnavailable as error:
            self._rest_until = time.monotonic() + self._backoff.delay()
            telemetry.away("redis", str(error))
        else:
            self._backoff.reset()
            telemetry.back("redis")


def _rebuild_whole(statistics: Statistics, stream: str, reader: SqlReader) -> None:
    """Show the clusters of all shards, if the owner of this stream publishes them."""
    if (whole := whole_written_by(stream)) is not None:
        statistics.rebuild(whole, reader, written_by=stream)
