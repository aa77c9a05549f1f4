"""One batch from the model into SQL, and from there to whoever wants to know."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from weald.stream.model.batch_outcome import BatchOutcome
from weald.stream.record.pending_batch import Held
from weald.stream.source.retry import RetryPolicy
from weald.stream.source.source import Source
from weald.stream.telemetry.telemetry import Telemetry

from .sinks import Sinks
from .writer import Writer

if TYPE_CHECKING:
    from weald.storage.writing.store import SqlStore

__all__ = ["Delivery"]


class Delivery:
    """Commits; then tells Redis, Kafka and the metrics, in this order.

    Parameters
    ----------
    source : Source
    store : SqlStore
    outlets : Sinks
    patience : RetryPolicy
    watch : Telemetry
    """

    def __init__(
        self,
        source: Source,
        store: SqlStore,
        outlets: Sinks,
        patience: RetryPolicy,
        watch: Telemetry,
    ) -> None:
        self._source = source
        self._store = store
        self._outlets = outlets
        self._patience = patience
        self._watch = watch

    def introduce(self, writer: Writer) -> None:
        """Tell SQL of logs that have changed, and show what the stream holds."""
        if writer.replaces_logs:
            self.deliver(writer, Held(), BatchOutcome(), save=True)
        if writer.spec is not None:
            self._outlets.show_all(writer.spec.name, self._store, self._watch)

    def deliver(
        self, writer: Writer, held: Held, applied: BatchOutcome, *, save: bool = False
    ) -> None:
        """Write everything in one transaction, with a snapshot when one is due or asked for.

        Raises
        ------
        Fenced
            When the stream has a newer owner; nothing was written.
        Rebalanced
            When the partitions changed hands during a retry.
        """
        snapshot = None
        if save or writer.snapshot_due():
            with self._watch.step("snapshot"):
                snapshot = writer.snapshot(time.time())
        commit = writer.commit_of(held, applied, self._source.generation(), snapshot)
        with self._watch.step("dead_letters"):
            self._patience.until_done("kafka", lambda: self._outlets.bury(commit))
        with self._watch.step("commit"):
            self._patience.until_done("sql", lambda: self._store.commit(commit))
        writer.committed(commit)
        writer.prune()
        with self._watch.step("redis"):
            self._outlets.show(commit, self._store, self._watch)
        with self._watch.step("courtesy"):
            self._source.commit(held.reached)
        self._watch.committed(commit, held, applied, timed=writer.timed)
        self._watch.standing(writer, self._source.lag(), held)
        if snapshot is not None:
            n_bytes = self._patience.until_done(
                "sql", lambda: self._store.snapshot_bytes(commit.stream)
            )
            self._watch.metrics.snapshot(n_bytes)
