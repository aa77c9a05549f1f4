"""One batch from the model into SQL, and from there to whoever wants to know.

In a backlog its transaction is written on a thread, while the loop takes the next batch into the
model; so is one with an image of many atoms, which is large, whenever records come first. It is
waited for before anything else is written or read of SQL, so there is one at a time, and they come
in the order of their numbers.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

from weald.storage.commit.commit import BatchCommit, Snapshot
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


class _Delivery(NamedTuple):
    """A batch on its way, and who is told of it."""

    writer: Writer
    held: Held
    applied: BatchOutcome
    commit: BatchCommit


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
        self._thread = ThreadPoolExecutor(1, "commit")
        self._beside: tuple[_Delivery, Future[tuple[float, float]]] | None = None

    @property
    def goes_on(self) -> bool:
        """Whether a transaction is written beside the loop, or has been and nobody was told."""
        return self._beside is not None

    def introduce(self, writer: Writer) -> None:
        """Tell SQL of logs that have changed, and show what the stream holds."""
        if writer.replaces_logs:
            self.deliver(writer, Held(), BatchOutcome(), save=True)
        if writer.spec is not None:
            self._sinks.show_all(writer.spec.name, self._store, self._telemetry)

    def deliver(
        self,
        writer: Writer,
        held: Held,
        applied: BatchOutcome,
        *,
        save: bool = False,
        image: bool = True,
        beside: bool = False,
    ) -> None:
        """Write everything in one transaction, with a snapshot when one is due or asked for.

        Without ``image`` one comes with a later commit, unless it is to be saved. ``beside`` allows
        for a transaction to be written beside the loop.

        Raises
        ------
        Fenced
            When the stream has a newer owner; nothing was written.
        Rebalanced
            When the partitions changed hands during a retry.
        """
        self.settle()
        beside = beside and not writer.reads_back
        if not (save or (image and writer.snapshot_due())):
            delivery = self._begin(writer, held, applied, None)
            self._hand_over(delivery, beside=beside and writer.hurried)
            return
        self.n_images += 1
        with writer.rest.after():
            with self._telemetry.step("snapshot"):
                snapshot = writer.image(time.time(), save=save)
            packed = snapshot is not None and snapshot.encoded is not None
            self._hand_over(self._begin(writer, held, applied, snapshot), beside=beside and packed)

    def _hand_over(self, delivery: _Delivery, *, beside: bool) -> None:
        if beside:
            self._beside = delivery, self._thread.submit(self._write, delivery.commit)
        else:
            self._finish(delivery)

    def settle(self) -> None:
        """Wait for what is written beside the loop, and tell of it; raises as `deliver` does."""
        if self._beside is not None:
            (delivery, written), self._beside = self._beside, None
            large = delivery.commit.snapshot is not None
            with delivery.writer.rest.after() if large else nullcontext():
                self._finish(delivery, written)

    def drop(self) -> None:
        """Wait until nothing is written any more, and tell nobody: SQL has what counts."""
        if self._beside is not None:
            self._beside[1].exception()
            self._beside = None

    def close(self) -> None:
        """Wait until nothing is written any more, and let go of the thread."""
        self.drop()
        self._thread.shutdown()

    def _begin(
        self, writer: Writer, held: Held, applied: BatchOutcome, snapshot: Snapshot | None
    ) -> _Delivery:
        commit = writer.commit_of(held, applied, self._source.generation(), snapshot)
        with self._telemetry.step("dead_letters"):
            # With nothing to send nobody was asked, and nobody has answered.
            if commit.dead_letters:
                self._retry.until_done("kafka", lambda: self._sinks.bury(commit))
        return _Delivery(writer, held, applied, commit)

    def _write(self, commit: BatchCommit) -> tuple[float, float]:
        """Write it; returns when SQL held it, in seconds since the epoch, and how long it took."""
        began = time.perf_counter()
        self._store.commit(commit)
        return time.time(), time.perf_counter() - began

    def _finish(
        self, delivery: _Delivery, beside: Future[tuple[float, float]] | None = None
    ) -> None:
        """Write it, or wait for what has begun to, and tell of it."""
        writer, held, applied, commit = delivery
        begun = [] if beside is None else [beside]

        def write() -> tuple[float, float]:
            return begun.pop().result() if begun else self._write(commit)

        self._telemetry.committing(commit)
        with self._telemetry.step("commit"):
            at, seconds = self._retry.until_done("sql", write)
        writer.committed(commit)
        writer.prune()
        with self._telemetry.step("redis"):
            self._sinks.show(commit, self._store, self._telemetry)
        with self._telemetry.step("courtesy"):
            self._source.commit(held.reached)
        self._telemetry.metrics.sql_transaction(seconds)
        self._telemetry.committed(commit, held, applied, timed=writer.timed, at=at)
        self._telemetry.standing(writer, self._source.lag(), held)
        if commit.snapshot is not None:
            n_bytes = self._retry.until_done(
                "sql", lambda: self._store.snapshot_bytes(commit.stream)
            )
            self._telemetry.metrics.snapshot(n_bytes)
