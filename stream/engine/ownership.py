"""Who writes the stream: acting, on the engine's thread, on what the group has decided."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from weald.storage.errors import Fenced, StreamConflict
from weald.stream.model.model import StreamConfig
from weald.stream.source.recognition import Decision
from weald.stream.source.retry import RetryPolicy
from weald.stream.source.source import Change, Source, group_of
from weald.stream.telemetry.telemetry import Telemetry

from .writer import Claim, Writer

if TYPE_CHECKING:
    from weald.storage.writing.store import SqlStore

__all__ = ["Ownership"]

_log = logging.getLogger(__name__)

# Between two refused claims, and between two lines about them.
REST_SECONDS = 1.0
TELL_SECONDS = 60.0


class Ownership:
    """Takes the stream over when the group says so, and drops it when it is another's.

    Parameters
    ----------
    plan : StreamConfig
    source : Source
    store : SqlStore
    retry : RetryPolicy
    telemetry : Telemetry
    """

    def __init__(
        self,
        plan: StreamConfig,
        source: Source,
        store: SqlStore,
        retry: RetryPolicy,
        telemetry: Telemetry,
    ) -> None:
        self._plan = plan
        self._source = source
        self._store = store
        self._retry = retry
        self._telemetry = telemetry
        self._refused_since: float | None = None
        self._told = -math.inf
        self._shown = False
        self.decision: Decision | None = None
        self.writer: Writer | None = None

    def unsettled(self, changes: Sequence[Change]) -> bool:
        """Whether something must be settled before records count for anything."""
        return bool(changes) or (self.writer is None and bool(self._source.assignment()))

    def settle(self, changes: Sequence[Change]) -> Writer | None:
        """Follow the group: take over, stand by, or go on with more partitions.

        Returns
        -------
        Writer or None
            The new tenure, when one has begun.

        Raises
        ------
        Rebalanced
            When the partitions changed hands again meanwhile.
        """
        for change in changes:
            _log.info("partitions %s: %s", change.kind, change.partitions)
            self._telemetry.metrics.rebalance(change.kind)
        if any(change.kind != "assigned" for change in changes):
            self.drop("the group gave the partitions to another process")
        former = self.writer
        if self._source.assignment():
            if self.writer is None:
                self._take_over()
            if self.writer is not None:
                self._go_on(self.writer)
        self.show()
        return self.writer if self.writer is not former else None

    def drop(self, reason: object) -> None:
        """Forget everything; SQL has what counts.

        Raises
        ------
        StreamConflict
            When another consumer group writes the stream, too: each would go on fencing the other.
        """
        if isinstance(reason, Fenced):
            self._telemetry.metrics.fenced()
            self._stop_between_groups(reason.owner)
        if self.writer is not None:
            _log.warning("the stream's state is dropped: %s", reason)
        self._shown = False
        self.writer = None

    def _stop_between_groups(self, other: str | None) -> None:
        ours = group_of(self._source.member_id())
        theirs = None if other is None else group_of(other)
        if ours is not None and theirs is not None and ours != theirs:
            raise StreamConflict(
                f"stream {self._plan.name!r} is written by the consumer group {theirs!r} "
                f"now; this process is of the group {ours!r}, and two groups cannot write one "
                "stream"
            )

    def stand_by(self) -> None:
        """Tell that another process writes, if this one has joined the group and got nothing.

        The group says nothing of partitions to a member that has none from the first.
        """
        if not self._shown and self._source.generation() > 0:
            self.show()

    def show(self) -> None:
        """Tell metrics and health where this process stands."""
        self._shown = True
        if self.writer is None:
            phase = "standby"
        else:
            phase = "warming_up" if self.writer.shard is None else "running"
        self._telemetry.phase(phase, len(self._source.assignment()))

    def _go_on(self, writer: Writer) -> None:
        """Have the source go on from SQL's offsets, if the logs are those that they are of."""
        until_done = self._retry.until_done
        found = until_done("kafka", lambda: self._source.look(writer.marks))
        writer.recognise(found, self.decision)
        until_done("kafka", lambda: self._source.seek(writer.offsets))

    def _take_over(self) -> None:
        self._telemetry.phase("replaying", len(self._source.assignment()))
        generation = self._source.generation()
        claim = Claim(self._source.member_id(), generation, takeover=self._believes(generation))
        writer = Writer(self._plan, self._store, claim)
        self._source.pause()
        try:
            self._retry.until_done("sql", lambda: writer.load(self._breathe))
        except Fenced as refusal:
            self._refused(refusal)
            return
        finally:
            self._source.resume()
        self._refused_since = None
        self.writer = writer

    def _believes(self, generation: int) -> bool:
        """Whether the group is believed against SQL; a source without a group always is."""
        if generation == 0:
            return True
        since = self._refused_since
        return since is not None and (
            time.monotonic() - since >= self._plan.stream.takeover_seconds
        )

    def _refused(self, refusal: Fenced) -> None:
        now = time.monotonic()
        self._refused_since = now if self._refused_since is None else self._refused_since
        if now - self._told >= TELL_SECONDS:
            self._told = now
            _log.warning(
                "%s. If the group goes on naming this process as the owner, it takes the stream "
                "over %.0f s after the first refusal",
                refusal,
                self._plan.stream.takeover_seconds,
            )
        self._retry.rest(min(REST_SECONDS, self._plan.stream.takeover_seconds))

    def _breathe(self, n_replayed: int) -> None:
        self._telemetry.metrics.observations_replayed(n_replayed)
        self._telemetry.health.progress()
        # Without its broker the replay goes on: SQL is what it reads.
        self._retry.poll_paused(0.0)
        self._retry.heed_changes("the replay")
