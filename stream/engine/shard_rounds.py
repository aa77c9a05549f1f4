"""A shard's side of the rounds with the others of its stream, between batches, through SQL.

A shard reports when records enough have come, or in a silence, or when another one has. Whoever
writes shard 0 opens a round once all have, asks what they are to do in one step after the other,
and keeps nothing that SQL does not have: from reports and answers a new owner makes the round
again, to the bit. Each shard answers what it is asked, and takes its turn at last; all of it is
written with a commit of its own, behind its fence.

A round waits for all shards, however long one of them is away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from weald.mcmc.sharded.global_round import GlobalRound
from weald.mcmc.sharded.message_arrays import Message, arrays_of, message_of
from weald.mcmc.sharded.round_messages import ShardReport, ShardTurn
from weald.mcmc.sharded.round_steps import REPORT, RoundKey, RoundSteps, turn_step
from weald.storage.commit.commit import AdoptionRow, LeaseRow, StreamSpec
from weald.storage.commit.shard_rows import ANSWERED, ASKED, ShardMessageRow, ShardRoundRow
from weald.storage.errors import StorageUnavailable
from weald.storage.sql.failpoints import failpoint
from weald.stream.model.batch_outcome import BatchOutcome
from weald.stream.model.part_shard import PartShard, model_of, words_of

from .writer import Writer

if TYPE_CHECKING:
    from weald.storage.writing.store import SqlStore

__all__ = ["ShardRounds"]

# While a round is out, or others may begin one, the writer looks so often.
_LOOK_SECONDS, _IDLE_LOOK_SECONDS = 0.01, 0.25
# Of a shard's time rounds have at most so much: less while records wait.
_SHARE, _SHARE_BEHIND = 0.5, 0.1
# What has waited for its publication waits so long for a round that is out: a shard may be away.
_PATIENCE_SECONDS = 5.0


class ShardRounds:
    """Rounds of one shard, and where that is the first, of all of them.

    Parameters
    ----------
    store : SqlStore
    clock : callable
        Wall clock in epoch seconds, written on rounds; it decides nothing.
    """

    def __init__(self, store: SqlStore, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._writer: Writer | None = None
        self._whole: StreamSpec
        self._keeper: _Keeper
        self._lease: LeaseRow | None = None
        self._told = REPORT
        self._rest_until = self._spent = self._since = 0.0

    def poll_seconds(self, writer: Writer | None, at_most: float) -> float:
        """How long the writer may wait for records, at most so many seconds."""
        shard = None if writer is None else writer.shard
        out = shard is not None and bool(shard.rounds.out)
        return min(at_most, _LOOK_SECONDS if out else _IDLE_LOOK_SECONDS)

    def turn(
        self, writer: Writer, *, wants: bool, behind: bool = False, show: bool = False
    ) -> BatchOutcome | None:
        """Look what there is to do; return what is to be committed, if anything is.

        Parameters
        ----------
        writer : Writer
        wants : bool
            Whether this shard would have another round.
        behind : bool
            Records wait: rounds come less often.
        show : bool
            What a round has changed is published out of turn.
        """
        shard, whole = writer.shard, self._whole_of(writer)
        if not isinstance(shard, PartShard) or whole is None:
            return None
        began = time.monotonic()
        applied = BatchOutcome()
        try:
            if shard.part.shard == 0:
                self._keeper.go_on(shard, applied, self._clock())
            if shard.rounds.out:
                self._answer(shard, applied)
                self._rest(shard, began, behind=behind)
                waited = shard.unpublished and began - self._since > _PATIENCE_SECONDS
                if show and (waited or not shard.rounds.out):
                    applied.extend(shard.go_on(self._clock()))
            elif began >= self._rest_until and (wants or self._others_wait(shard)):
                self._report(writer, shard, applied)
        except StorageUnavailable:
            # What is decided has to be written; SQL is asked again then.
            if not applied.says_anything:
                raise
        self._spent += time.monotonic() - began
        return applied if applied.says_anything else None

    def _rest(self, shard: PartShard, began: float, *, behind: bool) -> None:
        """After a turn, leave time for records."""
        if not shard.rounds.out:
            now, share = time.monotonic(), _SHARE_BEHIND if behind else _SHARE
            self._rest_until = now + (self._spent + now - began) * (1.0 / share - 1.0)
            self._spent = 0.0

    def _whole_of(self, writer: Writer) -> StreamSpec | None:
        """The stream of which the writer's is a shard; a new writer begins with what SQL has."""
        spec = writer.spec
        if writer is self._writer or spec is None or writer.shard is None:
            return self._whole if writer is self._writer else None
        whole = self._store.whole(spec.name)
        if whole is None:
            return None
        keeper, out = _Keeper(self._store, whole), writer.shard.rounds.out
        offered = self._store.leases(spec.name, outcome="offered", limit=1)
        said = self._store.shard_steps(whole.name, out, ANSWERED)
        self._writer, self._whole, self._keeper = writer, whole, keeper
        self._since = time.monotonic()
        self._lease = offered[0] if offered and offered[0].round_number == out else None
        self._told = max((step for step, shard in said if shard == spec.shard), default=REPORT)
        return whole

    def _others_wait(self, shard: PartShard) -> bool:
        return bool(self._store.shard_steps(self._whole.name, shard.rounds.taken + 1, ANSWERED))

    def _report(self, writer: Writer, shard: PartShard, applied: BatchOutcome) -> None:
        failpoint("shard.report")
        self._since = time.monotonic()
        number = shard.rounds.taken + 1
        report = shard.report(number, applied, self._clock())
        applied.shard_messages.append(_said(shard, number, REPORT, report))
        self._told = REPORT
        self._lease = LeaseRow(
            round_number=number,
            number=0,
            token=writer.epoch + 1,
            outcome="offered",
            n_atoms=report.n_atoms,
            offered_at=self._clock(),
            begun_seq=shard.rounds.seq,
            begun_publication=shard.rounds.publication,
        )
        applied.leases.append(self._lease)
        failpoint("shard.report.done")

    def _answer(self, shard: PartShard, applied: BatchOutcome) -> None:
        """Answer what was asked and not answered yet, and take the turn when it has come."""
        number, here = shard.rounds.out, shard.part.shard
        row = applied.shard_round or self._store.shard_round(self._whole.name)
        if row is None or row.number != number or row.step <= shard.answered:
            return
        said = applied.shard_messages
        new = [each for each in said if (each.shard, each.direction) == (here, ASKED)]
        asked = self._store.shard_messages(self._whole.name, number, ASKED, shard=here)
        key = RoundKey(row.seed, number)
        for each in [*asked, *new]:
            if each.step <= shard.answered:
                continue
            question = message_of(each.payload)
            if isinstance(question, ShardTurn):
                self._take_turn(shard, row, question, applied)
                continue
            failpoint("shard.answer")
            answer = shard.answer(each.step, key, row.hyperparameters, question)
            # After a restart what was answered before is done again, and known already.
            if each.step > self._told:
                applied.shard_messages.append(_said(shard, number, each.step, answer))
                self._told = each.step
            failpoint("shard.answer.done")

    def _take_turn(
        self, shard: PartShard, row: ShardRoundRow, turn: ShardTurn, applied: BatchOutcome
    ) -> None:
        failpoint("shard.turn")
        began, place = time.monotonic(), (shard.seq, shard.publication)
        begun = shard.rounds.seq, shard.rounds.publication
        key = RoundKey(row.seed, row.number)
        payload, refinement = shard.take_turn(key, row.hyperparameters, turn)
        applied.adoptions.append(AdoptionRow(row.number, *begun, *place, payload))
        refinement = replace(refinement, seconds=time.monotonic() - began)
        n_held = shard.atom_table.n_observations
        applied.refined(refinement, shard.cadence.rounds, shard.seq, n_held)
        if self._lease is not None:
            closed = replace(self._lease, outcome="adopted", closed_at=self._clock())
            applied.leases.append(closed)
            self._lease = None
        failpoint("shard.turn.done")


class _Keeper:
    """What the writer of shard 0 asks. It may be forgotten at any moment."""

    def __init__(self, store: SqlStore, whole: StreamSpec) -> None:
        self._store, self._whole = store, whole
        self._row = store.shard_round(whole.name)
        self._steps: RoundSteps | None = None

    def go_on(self, shard: PartShard, applied: BatchOutcome, now: float) -> None:
        """Open a round if all have reported, or ask the next if all have answered."""
        row = self._row
        if row is None or row.step == turn_step(self._whole.shards):
            number = 1 if row is None else row.number + 1
            if not self._all_said(number, REPORT):
                return
            failpoint("shard.ask")
            steps, at = self._opened(shard, number, row), REPORT
        elif self._all_said(row.number, row.step):
            failpoint("shard.ask")
            steps, at = self._steps or self._made_again(shard, row), row.step
            answers = self._said(row.number)
            steps.hear(_messages(answers, at))
        else:
            return
        self._steps, questions = steps, steps.questions()
        # Turns are decided on when they are asked for, and give names.
        whole = steps.round
        learned = words_of((whole.family, whole.prior))
        opened_at = now if row is None or at == REPORT else row.opened_at
        self._row = ShardRoundRow(
            whole.number, whole.seed, steps.step, learned, whole.next_name, opened_at
        )
        applied.shard_round = self._row
        applied.shard_messages += [
            ShardMessageRow(whole.number, steps.step, to, ASKED, arrays_of(question))
            for to, question in enumerate(questions)
        ]
        failpoint("shard.ask.done")

    def _all_said(self, number: int, step: int) -> bool:
        said = self._store.shard_steps(self._whole.name, number, ANSWERED)
        return sum(each == step for each, _ in said) == self._whole.shards

    def _said(self, number: int) -> list[ShardMessageRow]:
        return self._store.shard_messages(self._whole.name, number, ANSWERED)

    def _opened(self, shard: PartShard, number: int, before: ShardRoundRow | None) -> RoundSteps:
        """The round of these reports at its first step; ``before`` is the round before it."""
        family, next_name = shard.chain.first_family, self._whole.shards
        # From words, as a new owner would have them.
        learned = words_of((family, shard.first_prior))
        if before is not None:
            learned, next_name = before.hyperparameters, before.next_name
        said, model = self._said(number), model_of(family, learned)
        reports = cast("list[ShardReport]", _messages(said, REPORT))
        learner = shard.chain.learner
        return RoundSteps(
            GlobalRound(number, self._whole.seed, *model, learner, reports, next_name)
        )

    def _made_again(self, shard: PartShard, row: ShardRoundRow) -> RoundSteps:
        """The round that is out, at its present step, from what SQL has of it."""
        before = self._store.shard_round(self._whole.name, row.number - 1)
        steps = self._opened(shard, row.number, before)
        said = self._said(row.number)
        while steps.step < row.step:
            steps.hear(_messages(said, steps.step))
        return steps


def _said(shard: PartShard, number: int, step: int, answer: Message) -> ShardMessageRow:
    return ShardMessageRow(number, step, shard.part.shard, ANSWERED, arrays_of(answer))


def _messages(rows: Iterable[ShardMessageRow], step: int) -> Sequence[Message]:
    """The messages of a step, by shard."""
    return [message_of(row.payload) for row in rows if row.step == step]
