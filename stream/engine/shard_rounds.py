"""A shard's side of the rounds with the others of its stream, between batches, through SQL.

A shard reports when records enough have come, or in a silence, or when another one has. Whoever
writes shard 0 opens a round once all have, asks what they are to do in one step after the other,
and keeps nothing that SQL does not have: from reports and answers a new owner makes the round
again, to the bit. Each shard answers what it is asked, and takes its turn at last; all of it is
written with a commit of its own, behind its fence.

In some of the rounds shards tell their items as well, and with their turns they are told what is
published. What people are told of it, of all shards, is written where turns are asked for.

A round waits for all shards, however long one of them is away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from weald.mcmc.settings import RefinementSettings
from weald.mcmc.sharded.global_round import GlobalRound
from weald.mcmc.sharded.message_arrays import Message, arrays_of, message_of
from weald.mcmc.sharded.round_messages import (
    ItemsAsked,
    ShardReport,
    ShardTurn,
    ShownItems,
    ShownSums,
)
from weald.mcmc.sharded.round_steps import (
    ITEMS,
    REPORT,
    RoundKey,
    RoundSteps,
    shown_step,
    turn_step,
)
from weald.storage.commit.commit import AdoptionRow, LeaseRow, StreamSpec
from weald.storage.commit.shard_rows import ANSWERED, ASKED, ShardMessageRow, ShardRoundRow
from weald.storage.errors import Fenced, StorageUnavailable
from weald.storage.sql.failpoints import failpoint
from weald.stream.model.batch_outcome import BatchOutcome
from weald.stream.model.mixture_shard import FEW_ATOMS
from weald.stream.model.part_shard import PartShard, model_of, words_of
from weald.stream.publication.certainty import DRAWS_KEPT
from weald.stream.publication.whole import ShownBefore, publication_of_items
from weald.stream.publication.whole_groups import groups_of_whole
from weald.stream.publication.whole_rows import rows_of_sums, rows_of_whole

from .writer import Writer

if TYPE_CHECKING:
    from weald.storage.writing.store import SqlStore

__all__ = ["ShardRounds"]

# While a round is out, or others may begin one, the writer looks so often.
_LOOK_SECONDS, _IDLE_LOOK_SECONDS = 0.01, 0.25
# What is published of more than a few observations comes when about so many are new.
_NEW_SHARE = 0.1
# Of a shard's time rounds have at most so much: less while records wait.
_SHARE, _SHARE_BEHIND = 0.5, 0.1


class _When(NamedTuple):
    """Whether something has waited for its publication, and whether records wait."""

    show: bool
    behind: bool


class ShardRounds:
    """Rounds of one shard, and where that is the first, of all of them.

    Parameters
    ----------
    store : SqlStore
    clock : callable
        Wall clock in epoch seconds, written on rounds. It decides whether what has waited is
        published, which SQL has from then on.
    """

    def __init__(self, store: SqlStore, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._writer: Writer | None = None
        self._whole: StreamSpec
        self._keeper: _Keeper
        self._lease: LeaseRow | None = None
        self._told = REPORT
        # Seconds of the round that is out, and of the last one, and when that ended.
        self._spent = self._took = self._ended = 0.0

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
            The next round that this shard opens is published out of turn.
        """
        shard, whole = writer.shard, self._whole_of(writer)
        if not isinstance(shard, PartShard) or whole is None:
            return None
        began, was_out = time.monotonic(), bool(shard.rounds.out)
        applied = BatchOutcome()
        try:
            if shard.part.shard == 0:
                self._keeper.go_on(shard, applied, self._clock(), _When(show, behind))
            if shard.rounds.out:
                self._answer(shard, applied)
            elif self._rested(began, behind=behind) and (wants or self._others_wait(shard)):
                self._report(writer, shard, applied)
        except StorageUnavailable:
            # What is decided has to be written; SQL is asked again then.
            if not applied.says_anything:
                raise
        if was_out or shard.rounds.out:
            self._spent += time.monotonic() - began
        if was_out and not shard.rounds.out:
            self._took, self._ended, self._spent = self._spent, time.monotonic(), 0.0
        return applied if applied.says_anything else None

    def _rested(self, now: float, *, behind: bool) -> bool:
        """Whether records have had their share since the last round, as they wait now."""
        share = _SHARE_BEHIND if behind else _SHARE
        return now - self._ended >= self._took * (1.0 / share - 1.0)

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
        self._lease = offered[0] if offered and offered[0].round_number == out else None
        self._told = max((step for step, shard in said if shard == spec.shard), default=REPORT)
        return whole

    def _others_wait(self, shard: PartShard) -> bool:
        return bool(self._store.shard_steps(self._whole.name, shard.rounds.taken + 1, ANSWERED))

    def _report(self, writer: Writer, shard: PartShard, applied: BatchOutcome) -> None:
        failpoint("shard.report")
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
        # Nobody but the first shard writes rounds, and it knows what it has written.
        row = self._keeper.row if here == 0 else self._store.shard_round(self._whole.name)
        if row is None or row.number != number or row.step <= shard.answered:
            return
        said = applied.shard_messages
        new = [each for each in said if (each.shard, each.direction) == (here, ASKED)]
        name, since = self._whole.name, shard.answered + 1
        asked = self._store.shard_messages(name, number, ASKED, shard=here, since=since)
        key = RoundKey(row.seed, number)
        for each in [*asked, *new]:
            if each.step <= shard.answered:
                continue
            question = message_of(each.payload)
            if isinstance(question, ShardTurn):
                step = shown_step(shard.part.n_shards)
                shown = [message_of(each.payload) for each in [*asked, *new] if each.step == step]
                told = cast("ShownItems", shown[0]) if shown else None
                self._take_turn(shard, row, (question, told), applied)
                return
            failpoint("shard.answer")
            answer = shard.answer(each.step, key, row.hyperparameters, question)
            # After a restart what was answered before is done again, and known already.
            if each.step > self._told:
                applied.shard_messages.append(_said(shard, number, each.step, answer))
                self._told = each.step
            failpoint("shard.answer.done")

    def _take_turn(
        self,
        shard: PartShard,
        row: ShardRoundRow,
        asked: tuple[ShardTurn, ShownItems | None],
        applied: BatchOutcome,
    ) -> None:
        failpoint("shard.turn")
        began, place = time.monotonic(), (shard.seq, shard.publication)
        begun = shard.rounds.seq, shard.rounds.publication
        key = RoundKey(row.seed, row.number)
        turn, shown = asked
        if shown is None:
            payload, refinement = shard.take_turn(key, row.hyperparameters, turn)
        else:
            told = applied, self._clock()
            payload, refinement = shard.take_turn_and_show(
                key, row.hyperparameters, turn, shown, told
            )
            step = shown_step(shard.part.n_shards)
            applied.shard_messages.append(_said(shard, row.number, step, shard.shown_sums()))
            failpoint("shard.show")
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
    """What the writer of shard 0 asks. It may be forgotten at any moment.

    Attributes
    ----------
    row : ShardRoundRow or None
        The newest round as it stands.
    """

    def __init__(self, store: SqlStore, whole: StreamSpec) -> None:
        self._store, self._whole = store, whole
        self.row = store.shard_round(whole.name)
        self._steps: RoundSteps | None = None
        # The last round of which it is known that nothing is to be summed.
        self._summed = 0

    def go_on(self, shard: PartShard, applied: BatchOutcome, now: float, when: _When) -> None:
        """Open a round if all have reported, or ask the next if all have answered."""
        if self.row is not None and self._sums_due(self.row):
            # Noted afterwards: SQL may be away meanwhile, and then it is made again.
            self._sum(shard, self.row, applied)
            self._summed = self.row.number
        row = self.row
        if row is None or row.step == turn_step(self._whole.shards):
            number = 1 if row is None else row.number + 1
            # Before its own report there is nothing to look for.
            if shard.rounds.out != number or not self._all_said(number, REPORT):
                return
            failpoint("shard.ask")
            steps, at = self._opened(shard, number, row), REPORT
            if self._publishes(shard.cadence, steps.round, when, now):
                steps.publish(_items_before(number))
        elif self._all_said(row.number, row.step):
            failpoint("shard.ask")
            steps, at = self._steps or self._made_again(shard, row), row.step
            steps.hear(self._messages(self._said(row.number, at), at))
        else:
            return
        self._steps, questions = steps, steps.questions()
        # Turns are decided on when they are asked for, and give names.
        whole = steps.round
        learned = words_of((whole.family, whole.prior))
        opened_at = now if row is None or at == REPORT else row.opened_at
        self.row = ShardRoundRow(
            whole.number,
            whole.seed,
            steps.step,
            learned,
            whole.next_name,
            opened_at,
            next_group=1 if row is None else row.next_group,
        )
        applied.shard_round = self.row
        applied.shard_messages += [
            ShardMessageRow(whole.number, steps.step, to, ASKED, arrays_of(question))
            for to, question in enumerate(questions)
        ]
        if steps.items and steps.step == turn_step(self._whole.shards):
            self._publish(shard, steps, applied, now)
        failpoint("shard.ask.done")

    def _publishes(
        self, cadence: RefinementSettings, whole: GlobalRound, when: _When, now: float
    ) -> bool:
        """Whether a round is published: in its turn, or since something has waited."""
        n, new = int(whole.whole().size.sum()), cadence.every_records * whole.n_shards
        first = max(cadence.publish_every_records // cadence.every_records, 1)
        if _in_turn(whole.number, first, n, new):
            return True
        waits = cadence.publish_every_seconds
        if when.behind or when.show or waits <= 0.0:
            return when.show and not when.behind
        newest = self._store.publications(self._whole.name, limit=1)
        return not newest or now - newest[-1].time >= waits

    def _publish(
        self, shard: PartShard, steps: RoundSteps, applied: BatchOutcome, now: float
    ) -> None:
        """Tell all shards, and people, what the items of this round support."""
        failpoint("shard.publish")
        name, whole = self._whole.name, steps.round
        newest = self._store.publications(name, limit=1)
        there = {row.cluster: row for row in self._store.clusters(name)}
        before = ShownBefore(
            newest[-1].number if newest else 0,
            self._store.last_cluster(name, multiple_of=self._whole.shards + 1),
            {each: row.n_observations for each, row in there.items()},
        )
        found = publication_of_items(steps.items, before, now)
        if found is None:
            return
        model = whole.family, whole.prior, shard.chain.learner
        applied.whole = rows_of_whole(found, model, there, now)
        step = shown_step(self._whole.shards)
        applied.shard_messages += [
            ShardMessageRow(whole.number, step, to, ASKED, arrays_of(shown))
            for to, shown in enumerate(found.shown)
        ]
        failpoint("shard.publish.done")

    def _all_said(self, number: int, step: int) -> bool:
        said = self._store.shard_steps(self._whole.name, number, ANSWERED)
        return sum(each == step for each, _ in said) == self._whole.shards

    def _said(self, number: int, since: int = REPORT) -> list[ShardMessageRow]:
        return self._store.shard_messages(self._whole.name, number, ANSWERED, since=since)

    def _messages(self, rows: Iterable[ShardMessageRow], step: int) -> Sequence[Message]:
        """The messages of a step, by shard, which were there when it was looked for them.

        Raises
        ------
        Fenced
            When they are gone: another owner asks now, and has opened the next round.
        """
        found = [message_of(row.payload) for row in rows if row.step == step]
        if len(found) < self._whole.shards:
            raise Fenced(f"stream {self._whole.name!r} has another owner, who has gone on")
        return found

    def _sums_due(self, row: ShardRoundRow) -> bool:
        """Whether all shards show what the round has published, and people are not told so yet."""
        name, step = self._whole.name, shown_step(self._whole.shards)
        if row.number <= self._summed or row.step != turn_step(self._whole.shards):
            return False
        if (step, 0) not in self._store.shard_steps(name, row.number, ASKED):
            self._summed = row.number
            return False
        return self._all_said(row.number, step)

    def _sum(self, shard: PartShard, row: ShardRoundRow, applied: BatchOutcome) -> None:
        """Tell what all shards have of the clusters that the round has published, and groups."""
        name, step = self._whole.name, shown_step(self._whole.shards)
        there = {each.cluster: each for each in self._store.clusters(name)}
        # Once that has been told they have more than a count.
        if all(each.statistics.shape[0] > 1 for each in there.values()):
            return
        failpoint("shard.sum")
        shown = cast("list[ShownSums]", self._messages(self._said(row.number, step), step))
        family = model_of(shard.chain.family, row.hyperparameters)[0]
        publication = self._store.publications(name, limit=1)[-1].number
        told = groups_of_whole(shown, there, family, publication, row.next_group)
        applied.whole = rows_of_sums(told, there, family, publication)
        applied.shard_round = self.row = replace(row, next_group=told.next_group)
        failpoint("shard.sum.done")

    def _opened(
        self,
        shard: PartShard,
        number: int,
        before: ShardRoundRow | None,
    ) -> RoundSteps:
        """The round of these reports at its first step; ``before`` is the round before it."""
        family, next_name = shard.chain.first_family, self._whole.shards
        # From words, as a new owner would have them.
        learned = words_of((family, shard.first_prior))
        if before is not None:
            learned, next_name = before.hyperparameters, before.next_name
        said, model = self._said(number), model_of(family, learned)
        reports = cast("list[ShardReport]", self._messages(said, REPORT))
        learner = shard.chain.learner
        return RoundSteps(
            GlobalRound(number, self._whole.seed, *model, learner, reports, next_name)
        )

    def _made_again(self, shard: PartShard, row: ShardRoundRow) -> RoundSteps:
        """The round that is out, at its present step, from what SQL has of it."""
        before = self._store.shard_round(self._whole.name, row.number - 1)
        steps = self._opened(shard, row.number, before)
        if (ITEMS, 0) in self._store.shard_steps(self._whole.name, row.number, ASKED):
            steps.publish(_items_before(row.number))
        said = self._said(row.number)
        while steps.step < row.step:
            steps.hear(self._messages(said, steps.step))
        return steps


def _in_turn(number: int, first: int, n: int, new: int) -> bool:
    """Whether a round has its turn to be published, where about ``new`` of ``n`` come in each.

    Every so many rounds, the ``first`` times sooner; and where a publication looks at many, as
    often as a tenth of them is new. Turns by powers of two are turns of fewer, too.
    """
    every = first
    while n > FEW_ATOMS and every * new < _NEW_SHARE * n:
        every *= 2
    return number % every == 0 or (number < first and number.bit_count() == 1)


def _items_before(number: int) -> ItemsAsked:
    """Ask for the draws of the rounds before this one."""
    return ItemsAsked(np.arange(max(number - DRAWS_KEPT, 1), number))


def _said(shard: PartShard, number: int, step: int, answer: Message) -> ShardMessageRow:
    return ShardMessageRow(number, step, shard.part.shard, ANSWERED, arrays_of(answer))
