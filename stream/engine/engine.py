"""The loop: poll, decode, insert, refine, publish, commit; the only place that goes round.

One thread does everything in order. Beside it goes on, on copies, a refinement of very many atoms,
and in a backlog the transaction of the batch before, so at any moment at most two batches are
between the topic and SQL. A bad record becomes a dead
letter; when something is away the partitions are paused and the same step is tried again; a newer
owner makes this one drop its state and join the group anew.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from weald.monitoring.health import Health
from weald.monitoring.metrics import Metrics
from weald.storage.errors import Fenced
from weald.stream.dead_letters.dead_letter import DeadLetterLimit, too_many
from weald.stream.dead_letters.replay import DeadLetterReplay
from weald.stream.errors import Rebalanced
from weald.stream.model.batch_outcome import BatchOutcome
from weald.stream.model.model import StreamConfig
from weald.stream.record.decode import decode
from weald.stream.record.formats import schema_for
from weald.stream.record.pending_batch import Held, fresh
from weald.stream.record.record import Message, Reason
from weald.stream.record.schema import Schema
from weald.stream.source.recognition import Decision
from weald.stream.source.retry import RetryPolicy
from weald.stream.source.source import Source
from weald.stream.telemetry.telemetry import Telemetry

from .batch_size import BatchSize
from .commit_pipeline import CommitPipeline
from .concurrent import Concurrent
from .coordinator import RefinementCoordinator
from .overdue import Overdue
from .ownership import Ownership
from .quiet import Quiet
from .shard_rounds import ShardRounds
from .sinks import Sinks
from .writer import Writer
from .yielding import Yielding

if TYPE_CHECKING:
    from weald.storage.writing.store import SqlStore
    from weald.stream.model.shard import Shard

__all__ = ["Engine"]

# At most so long between two looks at a round that is awaited.
_LOOK_AGAIN_SECONDS = 0.1
_LEAST_LOOK_SECONDS = 0.005


class Engine:
    """Runs one stream until its source ends or `stop` is called.

    Parameters
    ----------
    plan : StreamConfig
    source : Source
        Closed when `run` returns.
    store : SqlStore
    sinks : Sinks, optional
        Redis and the dead-letter topic.
    telemetry : Telemetry, optional
        Metrics and health; by default nobody reads them.
    schema : Schema, optional
        The plan's, compiled for the source's format; by default for JSON.
    """

    def __init__(
        self,
        plan: StreamConfig,
        source: Source,
        store: SqlStore,
        sinks: Sinks | None = None,
        telemetry: Telemetry | None = None,
        schema: Schema | None = None,
    ) -> None:
        reasons = [str(reason) for reason in Reason]
        self._plan = plan
        self._source = source
        self._telemetry = telemetry or Telemetry(Metrics(plan.name, reasons=reasons), Health())
        self._schema = schema or schema_for(plan.stream, plan.schema)
        self._limit = DeadLetterLimit(plan.stream.dead_letter_share, plan.stream.dead_letter_window)
        self._retry = RetryPolicy(source, self._telemetry, lambda: self._stopping)
        self._ownership = Ownership(plan, source, store, self._retry, self._telemetry)
        self._delivery = CommitPipeline(
            source, store, sinks or Sinks(), self._retry, self._telemetry
        )
        self._replay = DeadLetterReplay(plan, self._schema, store)
        self._held = Held()
        self._coordinator: RefinementCoordinator | None = None
        self._size = BatchSize(plan.stream)
        self._quiet = Quiet(plan.refinement.quiet_seconds)
        self._overdue = Overdue(plan.refinement.publish_every_seconds)
        self._yielding = Yielding() if _yields(plan) else None
        self._concurrent = Concurrent()
        self._shards = None if plan.shard is None else ShardRounds(store)
        self._stopping = False

    def refine_by(self, coordinator: RefinementCoordinator) -> None:
        """Give the partition out to workers between two batches."""
        self._coordinator = coordinator

    def go_on_with(self, decision: Decision) -> None:
        """Accept a log that is another one than was read, as a person has decided."""
        self._ownership.decision = decision

    @property
    def name(self) -> str:
        """Name of the stream, or of the shard."""
        return self._plan.name

    def stop(self) -> None:
        """Finish the batch in hand, then return from `run`; safe in a signal handler."""
        self._stopping = True

    def run(self) -> None:
        """Go round until the source ends or somebody calls `stop`.

        Raises
        ------
        TooManyDeadLetters, SourceError, StorageStopped, ReplayDiverged
            What no retry mends. What was committed stays, and nothing else was.
        """
        ended = False
        try:
            while not (self._stopping or ended):
                ended = self._round()
            self._telemetry.phase("stopping", len(self._source.assignment()))
            self._save()
        finally:
            self._concurrent.drop()
            self._delivery.close()
            self._source.close()

    def _round(self) -> bool:
        """Go round once; tell whether the source has ended."""
        ended = False
        try:
            writer = self._ownership.writer
            # What takes long for many atoms has a round of its own: records go on between two.
            if writer is None or writer.rest.seconds or not self._take_over_or_show(writer):
                ended = self._turn()
        except (Fenced, Rebalanced) as lost:
            self._ownership.drop(lost)
        if self._ownership.writer is None:
            self._held = Held()
            self._concurrent.drop()
            self._delivery.drop()
        return ended

    def _turn(self) -> bool:
        """Poll, and do with what came and with what is due; tell whether the source has ended."""
        with self._telemetry.step("poll"):
            messages = self._poll()
        ended = self._take_in(messages)
        # Of this frame the client may have kept hold: see `Source.poll`.
        messages.clear()
        return ended

    def _take_in(self, messages: list[Message]) -> bool:
        """Do with what came and with what is due; tell whether the source has ended."""
        changes = self._source.take_changes()
        if changes or not messages:
            self._delivery.settle()
        if self._ownership.unsettled(changes):
            # What was polled before a seek does not count.
            taken = self._ownership.settle(changes)
            if taken is not None:
                self._delivery.introduce(taken)
            return False
        writer = self._ownership.writer
        if writer is None:
            self._ownership.stand_by()
            return False
        n_images = self._delivery.n_images
        self._refine_by_workers(writer, messages)
        self._refine_with_shards(writer, messages)
        self._hear(writer, messages)
        if not (self._source.exhausted or self._delivery.n_images > n_images):
            self._go_on(writer, messages)
        if len(self._held) or not messages:
            self._telemetry.waiting(self._source.lag(), len(self._held))
        ended = not messages and self._source.exhausted
        again = (ended or self._replay.due) and self._reconsider(writer)
        if not ended or again:
            return False
        self._await_workers(writer)
        self._await_concurrent(writer)
        self._finish(writer)
        return True

    def _poll(self) -> list[Message]:
        """What comes in the time for it, and of a backlog as much as makes a batch."""
        messages = self._retry.poll(self._poll_seconds())
        self._size.begin()
        n_polled = len(messages)
        while self._size.takes_more(len(messages), n_polled):
            more = self._retry.poll(0.0)
            n_polled = len(more)
            messages += more
            more.clear()
        return messages

    def _poll_seconds(self) -> float:
        wait = 0.0 if self._delivery.goes_on else self._plan.stream.poll_seconds
        if self._coordinator is not None:
            # In a silence it is the workers who refine, if there are any.
            return self._coordinator.poll_seconds(wait)
        writer = self._ownership.writer
        if self._shards is not None:
            return self._shards.poll_seconds(writer, wait)
        if writer is None or writer.shard is None:
            return wait
        if writer.rest.seconds:
            return min(wait, writer.rest.seconds)
        if self._concurrent.goes_on or writer.packs:
            return min(wait, _LOOK_AGAIN_SECONDS)
        return 0.0 if self._quiet.due or self._makes_up(writer) else wait

    def _refine_by_workers(self, writer: Writer, messages: list[Message]) -> None:
        """Take back leases and give out others; what that changes is committed at once."""
        if self._coordinator is None or len(self._held):
            return
        stamps = [each.timestamp_ms for each in messages if each.timestamp_ms >= 0]
        late = time.time() - min(stamps) / 1000.0 if stamps else 0.0
        behind, quiet = late > self._coordinator.behind_seconds, self._quiet
        silent = quiet.silent and not messages
        show = self._overdue.due or (silent and quiet.due)
        coordinator, begin = self._coordinator, not silent or quiet.due
        applied = self._retry.until_done(
            "sql", lambda: coordinator.turn(writer, behind=behind, show=show, begin=begin)
        )
        if applied is not None:
            self._deliver_refined(writer, applied, silent=silent)
            self._coordinator.committed()

    def _refine_with_shards(self, writer: Writer, messages: list[Message]) -> None:
        """Take part in a round of the stream's shards; what that changes is committed at once."""
        shard, rounds, quiet = writer.shard, self._shards, self._quiet
        if rounds is None or shard is None or len(self._held) or not self._plan.cadence.rounds:
            return
        silent, every = quiet.silent and not messages, self._plan.cadence.every_records
        show = self._overdue.due or (silent and quiet.due)
        wants = shard.seq - shard.rounds.seq >= every or show
        behind = self._behind(messages)
        applied = self._retry.until_done(
            "sql", lambda: rounds.turn(writer, wants=wants, behind=behind, show=show)
        )
        if applied is not None:
            self._deliver_refined(writer, applied, silent=silent)

    def _deliver_refined(
        self,
        writer: Writer,
        applied: BatchOutcome,
        *,
        silent: bool,
        save: bool = False,
        image: bool = True,
    ) -> None:
        """Commit what came of a refinement, and have the silence count it, if there is one."""
        if silent and applied.refinements:
            self._quiet.refined(applied.refinements[-1].log_joint_after)
        self._delivery.deliver(writer, Held(), applied, save=save, image=image)

    def _await_workers(self, writer: Writer) -> None:
        """Take back the round that is out when a source ends, if it comes back soon."""
        if self._coordinator is None or len(self._held):
            return
        give_up = time.monotonic() + self._coordinator.longest_wait
        while self._coordinator.waits and not self._stopping and time.monotonic() < give_up:
            with self._telemetry.step("await"):
                applied = self._coordinator.turn(writer, begin=False)
            if applied is not None:
                self._delivery.deliver(writer, Held(), applied)
                return
            time.sleep(self._coordinator.poll_seconds(_LOOK_AGAIN_SECONDS))

    def _go_on(self, writer: Writer, messages: list[Message]) -> None:
        """Refine and publish out of turn: what has waited, or while nothing comes."""
        shard = writer.shard
        if shard is None:
            return
        self._overdue.look(shard.publication, unpublished=shard.unpublished)
        silent = not messages and self._quiet.due
        if not messages and not len(self._held) and writer.packed:
            self._delivery.deliver(writer, Held(), BatchOutcome())
        if self._plan.cadence.mode != "inline" or len(self._held) or shard.unshown:
            return
        makes_up = self._makes_up(writer)
        due = (self._overdue.due or makes_up) and not self._behind(messages)
        if self._yielding is not None and shard.refines_concurrently:
            if (silent or due or makes_up) and not self._concurrent.goes_on:
                self._begin_concurrent(writer, shard)
        elif silent or due:
            applied = self._out_of_turn(writer)
            if silent and applied.refinements:
                self._quiet.refined(applied.refinements[-1].log_joint_after)

    def _begin_concurrent(self, writer: Writer, shard: Shard) -> None:
        """Begin a refinement beside the records, or make an image of the model if SQL lacks one.

        While one goes on none can be made, and a replay that began before could not make it again.
        Copies are made for one of them at a time.
        """
        if writer.packs or writer.rest.seconds:
            return
        if writer.snapshot_due():
            self._delivery.deliver(writer, Held(), BatchOutcome())
            return
        with self._telemetry.step("refine"), writer.rest.after():
            self._concurrent.begin(shard)

    def _take_over_or_show(self, writer: Writer) -> bool:
        """Take over what a refinement beside the records has arrived at, or publish what was.

        Tells whether there was anything. No image comes with either: records would wait for both.
        """
        shard = writer.shard
        if shard is None or len(self._held):
            return False
        if not shard.unshown:
            return self._take_over(writer, shard)
        began = time.monotonic()
        with writer.rest.after():
            applied = writer.go_on(time.time(), self._telemetry.step)
            self._delivery.deliver(writer, Held(), applied, image=False)
        if self._yielding is not None:
            self._yielding.stood_still(time.monotonic() - began, of_many=shard.chain.n_atoms)
        return True

    def _take_over(self, writer: Writer, shard: Shard) -> bool:
        with writer.rest.after():
            adopted = self._concurrent.adopt(shard, self._telemetry.step)
            if adopted is None:
                return False
            applied, seconds = adopted
            # No replay begins from an image that a person had made meanwhile, so there is one now.
            since = applied.adoptions[0].begun_seq
            save = self._retry.until_done("sql", lambda: writer.imaged_since(since))
            if self._yielding is not None:
                self._yielding.refined(seconds, of_many=shard.chain.n_atoms)
                self._yielding.made_up(applied.refinements[-1])
            silent = self._quiet.silent
            self._deliver_refined(writer, applied, silent=silent, save=save, image=False)
        return True

    def _await_concurrent(self, writer: Writer) -> None:
        """Take over and publish what goes on beside a source that has ended."""
        while self._concurrent.goes_on and not self._stopping:
            time.sleep(_LEAST_LOOK_SECONDS)
            self._take_over_or_show(writer)
        self._take_over_or_show(writer)

    def _out_of_turn(self, writer: Writer) -> BatchOutcome:
        applied = writer.go_on(time.time(), self._telemetry.step)
        if self._yielding is not None:
            self._yielding.made_up(applied.refinements[-1])
        self._delivery.deliver(writer, Held(), applied)
        return applied

    def _makes_up(self, writer: Writer) -> bool:
        """Whether a refinement that was put off is made up for next."""
        shard = writer.shard
        if shard is None or self._yielding is None:
            return False
        of_many = shard.chain.n_atoms if shard.refines_concurrently else 0
        self._yielding.arrange(goes_on=self._concurrent.goes_on)
        return self._yielding.makes_up(shard.owed, of_many=of_many)

    def _behind(self, messages: list[Message]) -> bool:
        """Whether a refinement has its turn among those that wait; then records come first."""
        most = min(self._plan.stream.most_polled, self._plan.refinement.every_records)
        return len(messages) >= most or sum(self._source.lag().values()) >= most

    def _hear(self, writer: Writer, messages: list[Message]) -> None:
        """Take in what came, if anything did."""
        if self._yielding is not None:
            self._yielding.look(behind=self._behind(messages))
        if messages:
            self._quiet.heard()
            self._digest(writer, messages)
        n_held = len(self._held)
        if writer.shard is None and self._retry.until_done("sql", lambda: writer.may_begin(n_held)):
            self._flush(writer)

    def _digest(self, writer: Writer, messages: list[Message]) -> None:
        now = time.time()
        kept = fresh(messages, writer.offsets)
        with self._telemetry.step("decode"):
            batch, dead = decode(kept, self._schema, received_at=now)
        self._limit.observe(len(kept), dead)
        self._held.add(messages, kept, (batch, dead), now, writer.offsets)
        writer.reached(self._held.reached)
        if writer.shard is not None:
            self._flush(writer)
            self._size.end(len(messages))

    def _reconsider(self, writer: Writer) -> bool:
        """Decide dead letters anew, if somebody asked for it; tell whether there were any.

        Where the stream was put back, that shows here: in a silence no commit would be refused.
        """
        if writer.shard is None:
            return False
        self._delivery.settle()
        self._retry.until_done("sql", writer.confirm)
        held = self._retry.until_done("sql", lambda: self._replay.take(writer.offsets))
        if held is not None:
            # They say nothing about the records that come in: no limit on their share.
            writer.unfit(held)
            self._retry.until_done("sql", lambda: writer.settle_repeats(held))
            self._deliver(writer, held)
        return held is not None

    def _flush(self, writer: Writer, *, last: bool = False) -> None:
        """Take what is held through the model into SQL."""
        if writer.shard is None:
            self._retry.until_done("sql", lambda: writer.begin(self._held))
            self._ownership.show()
        self._limit.observe(0, writer.unfit(self._held))
        self._retry.until_done("sql", lambda: writer.settle_repeats(self._held))
        self._deliver(writer, self._held, last=last)
        self._held = Held()

    def _deliver(self, writer: Writer, held: Held, *, last: bool = False) -> None:
        if writer.shard is not None:
            self._telemetry.arriving(writer.shard, held)
            if self._yielding is not None:
                shard = writer.shard
                shard.pace, writer.hurried = self._yielding, self._yielding.behind
                self._yielding.arrange(goes_on=self._concurrent.goes_on)
        applied = writer.apply(held, time.time(), self._telemetry.step, last=last)
        beside = self._yielding is not None and self._shards is None and not last
        self._delivery.deliver(writer, held, applied, beside=beside)

    def _finish(self, writer: Writer) -> None:
        """Close the books of a source that has ended."""
        if len(self._held) or writer.unfinished:
            self._flush(writer, last=True)
        elif self._held.dead_letters:
            dead = self._held.dead_letters
            raise too_many(len(dead), self._held.n_received, dead)
        if self._yielding is not None:
            self._yielding.look(behind=False)
        while self._makes_up(writer) and not self._stopping:
            self._out_of_turn(writer)

    def _save(self) -> None:
        """Leave a snapshot behind, so that the next start has nothing to replay."""
        try:
            self._delivery.settle()
            writer = self._ownership.writer
            if writer is None or not writer.unsaved:
                return
            self._concurrent.drop()
            self._delivery.deliver(writer, Held(), BatchOutcome(), save=True)
        except (Fenced, Rebalanced) as lost:
            self._ownership.drop(lost)


def _yields(plan: StreamConfig) -> bool:
    """Whether records come before refinement: a topic goes on, and a file is read to its end."""
    pace = plan.refinement.pace
    if pace == "auto":
        pace = "yielding" if plan.stream.source == "kafka" else "counted"
    return pace == "yielding" and plan.cadence.mode == "inline"
