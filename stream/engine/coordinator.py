"""The writer's side of the refinement plane: rounds of leases, between batches.

A round begins when the one before has been taken back and a worker is there. The blocks are dealt
out, SQL gets the leases in one transaction, and only then Redis does. Meanwhile records are
inserted as ever; the writer looks for returns between two batches and never waits. When every lease
has come back or been given up, the round is taken back in the next transaction: labels, acceptance,
lineage and the closing of each lease under its fencing token, all or nothing.

A lease is given up when no worker at all has been heard of for two of its times, or when it is
parked; never because it is slow: that would prefer partitions on which moves are cheap. One that is
meant for a role of which nobody is left is offered to another, as it is: its kernels are in it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence

from weald.mcmc.leases.lease_work import Returned, squared_jump
from weald.mcmc.leases.leases import Budget
from weald.mcmc.leases.outstanding import Lent
from weald.mcmc.schedule.kernel_report import added
from weald.mcmc.schedule.stream_kernels import role_kernels
from weald.storage.commit.commit import AdoptionRow, LeaseRow
from weald.storage.encoding.snapshot import decode
from weald.storage.errors import SnapshotCorrupt, StorageUnavailable
from weald.storage.redis.lease_queue import Key, LeaseQueue, LeaseReturn
from weald.stream.model.batch_outcome import BatchOutcome
from weald.stream.model.lease_rounds import packed
from weald.stream.model.shard import Shard
from weald.stream.source.retry import Backoff
from weald.stream.telemetry.telemetry import Telemetry
from weald.stream.worker.row_pages import RowsSent
from weald.stream.worker.settings import WorkersSettings

from .lease_plan import by_role, planned
from .writer import Writer

if TYPE_CHECKING:
    from weald.storage.writing.store import SqlStore

__all__ = ["RefinementCoordinator"]

_log = logging.getLogger(__name__)

# Looking for leases that Redis lost costs a few calls, so it is done a few times a lease.
_LOOKS_A_LEASE = 2
_LONELY_LEASES = 2
_SHARE_BEHIND = 0.25
# While a round is out the writer looks for it again after so much of its age: workers idle for
# little of their time, and long leases cost no more looks than short ones.
_LOOK_AGAIN = 0.1
_LEAST_LOOK_SECONDS = 0.005


@dataclass
class _Out:
    """The round that is out."""

    number: int
    leases: dict[Key, Lent]
    offered_at: float
    sent: bool = False
    returned: dict[Key, tuple[str, Returned]] = field(default_factory=dict)
    given_up: dict[Key, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.began = self.looked_at = self.heard_at = time.monotonic()

    @property
    def open(self) -> list[Key]:
        """Leases of which nothing was heard yet."""
        return [key for key in self.leases if key not in self.returned | self.given_up]


class RefinementCoordinator:
    """Rounds of leases for whoever writes the stream.

    Parameters
    ----------
    settings : WorkersSettings
    queue : LeaseQueue
    store : SqlStore
    telemetry : Telemetry
    clock : callable
        Wall clock in epoch seconds, written on leases; it decides nothing.
    """

    def __init__(
        self,
        settings: WorkersSettings,
        queue: LeaseQueue,
        store: SqlStore,
        telemetry: Telemetry,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._queue = queue
        self._store = store
        self._telemetry = telemetry
        self._clock = clock
        self._writer: Writer | None = None
        self._out: _Out | None = None
        self._rows = RowsSent()
        self._last = 0
        self._away_until = 0.0
        self._begin_at = 0.0
        self._spent = 0.0
        self._backoff = Backoff(0.5, 15.0)

    @property
    def behind_seconds(self) -> float:
        """How late ingestion may be before rounds come less often."""
        return self._settings.behind_seconds

    def poll_seconds(self, at_most: float) -> float:
        """How long the writer may wait for records, at most so many seconds.

        Less while a round is out or about to begin: who waits for records lets workers wait.
        """
        now = time.monotonic()
        if now < self._away_until:
            return at_most
        if self._out is not None:
            look = max(_LEAST_LOOK_SECONDS, _LOOK_AGAIN * (now - self._out.began))
        else:
            look = self._begin_at - now if self._begin_at > now else at_most
        return min(at_most, look)

    @property
    def waits(self) -> bool:
        """Whether a round is out."""
        return self._out is not None

    @property
    def longest_wait(self) -> float:
        """Seconds after which a round that is out is not worth waiting for any more."""
        return _LONELY_LEASES * self._settings.lease_seconds

    def turn(
        self, writer: Writer, *, behind: bool = False, show: bool = False, begin: bool = True
    ) -> BatchOutcome | None:
        """Look what came back; return what is to be committed, if anything is.

        Parameters
        ----------
        writer : Writer
            Whose shard it is. A new one abandons the leases of the one before.
        behind : bool
            Ingestion is late: rounds come less often.
        show : bool
            No record comes: what a round has changed is published out of turn.
        begin : bool
            Whether another round may begin.
        """
        shard, spec = writer.shard, writer.spec
        if shard is None or spec is None or time.monotonic() < self._away_until:
            return None
        if writer is not self._writer:
            return self._take_over(writer, shard, spec.name)
        applied = None
        try:
            applied = self._take_back(shard, show=show)
            if begin and self._out is None and time.monotonic() >= self._begin_at:
                applied = self._begin(writer, shard, applied, behind=behind)
        except StorageUnavailable as error:
            # What was taken back is in the model, and goes to SQL whether Redis is there or not.
            self._rest(error)
            return applied
        self._backoff.reset()
        return applied

    def committed(self) -> None:
        """SQL has what `turn` returned: put new leases up. Redis may be away; they wait then."""
        if self._out is not None and not self._out.sent:
            try:
                self._send(self._out)
            except StorageUnavailable as error:
                self._rest(error)

    def _rest(self, error: StorageUnavailable) -> None:
        self._away_until = time.monotonic() + self._backoff.delay()
        self._telemetry.away("redis", str(error))

    def _take_over(self, writer: Writer, shard: Shard, stream: str) -> BatchOutcome | None:
        """Close what the writer before left open: its memory of it is gone."""
        shard.forget_lent()
        left = self._store.leases(stream, outcome="offered")
        self._last = self._store.last_round(stream)
        self._out, self._writer = None, writer
        if not left:
            return None
        try:
            self._queue.withdraw([(row.round_number, row.number, row.token) for row in left])
        except StorageUnavailable as error:
            # Workers may go on for nothing: their returns are late.
            self._rest(error)
        now = self._clock()
        self._telemetry.leases("abandoned", len(left))
        return BatchOutcome(
            leases=[replace(row, outcome="abandoned", closed_at=now) for row in left]
        )

    def _take_back(self, shard: Shard, *, show: bool) -> BatchOutcome | None:
        out = self._out
        if out is None:
            return None
        if not out.sent:
            self._send(out)
        self._collect(out)
        if out.open:
            self._look(out)
        if out.open:
            return None
        applied = self._adopt(out, shard)
        if show:
            # Before the next round begins, where a replay has its place for it.
            applied.extend(shard.go_on(self._clock(), self._telemetry.step))
        return applied

    # Beginning.

    def _begin(
        self, writer: Writer, shard: Shard, applied: BatchOutcome | None, *, behind: bool
    ) -> BatchOutcome | None:
        alive = self._alive()
        if not any(alive.values()) or shard.seq == 0:
            return applied
        began = time.monotonic()
        self._last += 1
        names = self._settings.kernels
        kernels = shard.cadence.kernels if names == "auto" else names
        budgets = [
            Budget(role_kernels(role, kernels), self._settings.sweeps, 0, role)
            for role in planned(alive, self._settings.leases, self._last)
        ]
        seed = writer.spec.seed if writer.spec is not None else 0
        rng = Generator(PCG64(SeedSequence([seed, self._last])))
        with self._telemetry.step("lend"):
            lent = shard.lend(self._last, rng, budgets)
        token = writer.epoch + 1
        leases = {(self._last, number, token): each for number, each in enumerate(lent)}
        self._out = _Out(self._last, leases, self._clock())
        applied = applied or BatchOutcome()
        applied.leases += [
            LeaseRow(
                round_number=key[0],
                number=key[1],
                token=token,
                outcome="offered",
                n_atoms=len(each.atoms),
                offered_at=self._out.offered_at,
                begun_seq=shard.rounds.seq,
                begun_publication=shard.rounds.publication,
                role=each.lease.budget.role,
            )
            for key, each in leases.items()
        ]
        spent, self._spent = self._spent + time.monotonic() - began, 0.0
        # The next round costs about as much: it waits until that is a small part of the time.
        share = self._settings.writer_share * (_SHARE_BEHIND if behind else 1.0)
        self._begin_at = time.monotonic() + spent * (1.0 / share - 1.0)
        return applied

    def _alive(self) -> dict[str, int]:
        """Workers of each role that were heard of lately."""
        horizon = _LONELY_LEASES * self._settings.lease_seconds
        rows = self._queue.workers()
        for row in rows:
            if row.idle_seconds > horizon:
                self._queue.forget(row.name)
        alive = by_role(row for row in rows if row.idle_seconds <= horizon)
        self._telemetry.workers(alive)
        return alive

    def _send(self, out: _Out) -> None:
        self._offer(out, {key: out.leases[key].lease.budget.role for key in out.open})
        out.sent = True
        self._telemetry.back("redis")

    def _offer(self, out: _Out, roles: dict[Key, str]) -> None:
        """Put leases up for workers of these roles."""
        self._telemetry.lease_bytes(self._rows.offer(self._queue, out.leases, roles))

    # Taking back.

    def _collect(self, out: _Out) -> None:
        for back in self._queue.returned():
            if back.key not in out.leases or back.key in out.returned | out.given_up:
                self._telemetry.late_return()
                continue
            if back.payload is None:
                out.given_up[back.key] = "parked"
            elif (answer := _answer(back, out.leases[back.key])) is not None:
                out.returned[back.key] = (back.worker, answer)

    def _look(self, out: _Out) -> None:
        """See to leases that Redis lost, and to those that nobody is there to work on."""
        now = time.monotonic()
        if now - out.looked_at < self._settings.lease_seconds / _LOOKS_A_LEASE:
            return
        out.looked_at = now
        standing = self._queue.standing()
        # A lease that was given back since `_collect` is neither standing nor returned yet.
        self._collect(out)
        alive = self._alive()
        lost = [key for key in out.open if key not in standing]
        # By where Redis has them: what it has forgotten may be where a lease went.
        left = [key for key in out.open if key in standing and not alive[standing[key].role]]
        if any(alive.values()):
            out.heard_at = now
            if lost:
                _log.warning("leases %s are lost to Redis: offered again", lost)
                # So may their rows be, and a worker drops a lease whose rows are not there.
                self._rows.forget()
            if left:
                _log.info("leases %s have nobody of their role: offered to others", left)
            if lost or left:
                self._queue.withdraw(left)
                self._offer(out, self._takers(out, lost + left, alive))
        elif now - out.heard_at > _LONELY_LEASES * self._settings.lease_seconds:
            out.given_up.update(dict.fromkeys(out.open, "expired"))
            self._queue.withdraw([key for key, why in out.given_up.items() if why == "expired"])

    @staticmethod
    def _takers(out: _Out, keys: list[Key], alive: dict[str, int]) -> dict[Key, str]:
        """Whom to offer each lease to: workers of its role, or of another if there are none."""
        roles = {key: out.leases[key].lease.budget.role for key in keys}
        others = planned(alive, len(keys), out.number) if keys else []
        return {
            key: role if alive[role] else other
            for (key, role), other in zip(roles.items(), others, strict=True)
        }

    def _adopt(self, out: _Out, shard: Shard) -> BatchOutcome:
        self._out = None
        now = self._clock()
        returns = [(out.leases[key].atoms, back.labels) for key, (_, back) in out.returned.items()]
        place = shard.rounds
        row = AdoptionRow(
            round_number=out.number,
            begun_seq=place.seq,
            begun_publication=place.publication,
            seq=shard.seq,
            publication=shard.publication,
            payload=packed(returns),
        )
        with self._telemetry.step("adopt"):
            refinement = shard.take_back(returns)
        self._spent = refinement.seconds
        answers = [answer for _, answer in out.returned.values()]
        refinement = replace(
            refinement, kernels=added(each for answer in answers for each in answer.kernels)
        )
        applied = BatchOutcome(adoptions=[row])
        applied.refined(
            refinement, self._settings.sweeps, shard.seq, shard.atom_table.n_observations
        )
        applied.leases += self._closed(out, now)
        for lease in applied.leases:
            self._telemetry.leases(lease.outcome, 1)
        self._telemetry.staleness(now - out.offered_at, shard.seq - place.seq)
        return applied

    @staticmethod
    def _closed(out: _Out, now: float) -> list[LeaseRow]:
        """The round's leases, with what those that came back did."""
        n = sum(int(each.lease.size.sum()) for each in out.leases.values())
        rows = []
        for key, lent in out.leases.items():
            role, n_atoms = lent.lease.budget.role, len(lent.atoms)
            row = LeaseRow(*key, "", n_atoms, out.offered_at, closed_at=now, role=role)
            if key in out.given_up:
                rows.append(replace(row, outcome=out.given_up[key]))
                continue
            worker, answer = out.returned[key]
            worked = replace(
                row,
                outcome="adopted",
                worker=worker,
                proposed=sum(each.proposed for each in answer.kernels),
                accepted=sum(each.accepted for each in answer.kernels),
                squared_jump=squared_jump(lent.lease, answer.labels, n),
                processor_seconds=sum(each.seconds for each in answer.kernels),
            )
            rows.append(worked)
        return rows


def _answer(back: LeaseReturn, lent: Lent) -> Returned | None:
    """What came back, if it is whole; a lease whose return is not is offered again."""
    try:
        answer = Returned.from_arrays(decode(back.payload or b""))
    except (SnapshotCorrupt, KeyError, TypeError, ValueError) as error:
        _log.warning("the return of lease %s by %s is dropped: %s", back.key, back.worker, error)
        return None
    labels = answer.labels
    whole = labels.shape == lent.atoms.shape and labels.dtype == np.int64
    if not whole or labels.min() < 0 or labels.max() >= labels.shape[0]:
        _log.warning("the labels of lease %s by %s are no partition", back.key, back.worker)
        return None
    return answer
