"""One batch from the model into SQL, and from there to whoever wants to know."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from weald.storage.commit.commit import Snapshot
from weald.stream.model.batch_outcome import BatchOutcome
from weald.stream.record.pending_batch import Held
from weald.stream.source.retry import RetryPolicy
from weald.stream.source.source import Source
from weald.stream.telemetry.telemetry import Telemetry

from .sinks import Sinks
from .writer import Writer

if TYPE_CHECKING:
    from weald.storage.writing.store import SqlStore

__all__ = ["CommitPipeline"]


class CommitPipeline:
    """Commits; then tells Redis, Kafka and the metrics, in this order.

    Parameters
    ----------
    source : Source
    store : SqlStore
    sinks : Sinks
    retry : RetryPolicy
    telemetry : Telemetry
    """

    def __init__(
        self,
        source: Source,
        store: SqlStore,
        sinks: Sinks,
        retry: RetryPolicy,
        telemetry: Telemetry,
    ) -> None:
        self._source = source
        self._store = store
        self._sinks = sinks
        self._retry = retry
        self._telemetry = telemetry
        # How often an image was begun or written, which takes long for many atoms.
        self.n_images = 0

    def introduce(self, writer: Writer) -> None:
        """Tell SQL of logs that have changed, and show what the stream holds."""
        if writer.replaces_logs:
            self.deliver(writer, Held(), BatchOutcome(), save=True)
        if writer.spec is not None:
            self._sinks.show_all(writer.spec.name, self._store, self._telemetry)

    def deliver(
        self, writer: Writer, held: Held, applied: BatchOutcome, *, save: bool = False
    ) -> None:
        """Write everything in one transaction, with a snapshot when one is due or asked for.

        Records wait long enough for what a refinement beside them has arrived at: an image comes
        with the next commit.

        Raises
        ------
        Fenced
            When the stream has a newer owner; nothing was written.
        Rebalanced
            When the partitions changed hands during a retry.
        """
        if not (save or (writer.snapshot_due() and not applied.adoptions)):
            self._commit(writer, held, applied, None)
            return
        self.n_images += 1
        with writer.rest.after():
            with self._telemetry.step("snapshot"):
                snapshot = writer.image(time.time(), save=save)
            self._commit(writer, held, applied, snapshot)

    def _commit(
        self, writer: Writer, held: Held, applied: BatchOutcome, snapshot: Snapshot | None
    ) -> None:
        commit = writer.commit_of(held, applied, self._source.generation(), snapshot)
        with self._telemetry.step("dead_letters"):
            self._retry.until_done("kafka", lambda: self._sinks.bury(commit))
        with self._telemetry.step("commit"):
            self._retry.until_done("sql", lambda: self._store.commit(commit))
        writer.committed(commit)
        writer.prune()
        with self._telemetry.step("redis"):
            self._sinks.show(commit, self._store, self._telemetry)
        with self._telemetry.step("courtesy"):
            self._source.commit(held.reached)
        self._telemetry.committed(commit, held, applied, timed=writer.timed)
        self._telemetry.standing(writer, self._source.lag(), held)
        if snapshot is not None:
            n_bytes = self._retry.until_done(
                "sql", lambda: self._store.snapshot_bytes(commit.stream)
            )
            self._telemetry.metrics.snapshot(n_bytes)
