"""One tenure as the stream's writer: from claiming it in SQL to losing it.

Everything here is dropped when the tenure ends; SQL has what counts.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from weald.storage.commit.commit import BatchCommit, LeaseRow, LineageRow, Snapshot, StreamSpec
from weald.storage.commit.log_marks import LogMark, LogReplacement
from weald.storage.encoding.snapshot import encode
from weald.storage.errors import Fenced, StorageUnavailable, StreamNotFound
from weald.storage.queries.answers import SnapshotInfo
from weald.storage.sql.failpoints import failpoint
from weald.stream.errors import ReplayDiverged
from weald.stream.model.batch_outcome import BatchOutcome
from weald.stream.model.compacted_atoms import Archive
from weald.stream.model.model import (
    Fitness,
    StreamConfig,
    bounded_by_memory,
    new_shard,
    revision_of,
    spec_from_sample,
    spec_on_record,
    told_of_memory,
)
from weald.stream.model.part_shard import PartShard
from weald.stream.model.shard import Shard
from weald.stream.record.pending_batch import Held
from weald.stream.record.record import DeadLetter, TopicPartition
from weald.stream.recovery.recovery import adopt, first_difference, replay, restored, with_offsets
from weald.stream.source.recognition import Decision, FoundLog, differences_of, replacements
from weald.stream.telemetry.steps import Step

from .concurrent import BackgroundThread
from .yielding import Rest

if TYPE_CHECKING:
    from weald.mcmc.settings import RefinementSettings
    from weald.storage.writing.store import SqlStore
    from weald.stream.settings import MemorySettings

__all__ = ["Claim", "Writer"]

_log = logging.getLogger(__name__)

# In the shadow of one commit.
PRUNING_SECONDS = 0.2
# A snapshot comes when such a share of all atoms is new.
_SHARE = 0.25
# While records come first: a replay makes no refinement that was put off, and so costs less than
# those records did when they came.
_SHARE_HURRIED = 0.75


class Packing:
    """Makes the bytes of a snapshot, whose arrays stay as they are."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._arrays = snapshot.payload
        self.snapshot = replace(snapshot, payload={})

    def run(self) -> None:
        """Make them."""
        self.snapshot = replace(self.snapshot, encoded=encode(self._arrays))
        self._arrays = {}

    def stop(self) -> None:
        """Nothing waits for its end."""


@dataclass(frozen=True)
class Claim:
    """In whose name, and under which generation of the group, the stream is written.

    Parameters
    ----------
    owner : str
    generation : int
    takeover : bool
        Accept a generation older than the last owner's; see `SqlStore.claim`.
    """

    owner: str
    generation: int
    takeover: bool = False


class Writer:
    """The stream's model and its place in the topic, in step with SQL.

    Parameters
    ----------
    plan : StreamConfig
    store : SqlStore
    claim : Claim
    """

    def __init__(self, plan: StreamConfig, store: SqlStore, claim: Claim) -> None:
        self._plan = plan
        self._store = store
        self._claim = claim
        self._spec: StreamSpec | None = None
        self._fitness: Fitness | None = None
        self._shard: Shard | None = None
        self._epoch = 0
        self._snapshots = 0
        self._snapshot_seq = 0
        self._packing: tuple[Packing, BackgroundThread] | None = None
        self._due = False
        self._pruning = False
        self._replaced: list[LogReplacement] = []
        # Whether records come first now: a snapshot then waits longer.
        self.hurried = False
        # From copies and images of many atoms.
        self.rest = Rest()
        self.offsets: dict[TopicPartition, int] = {}
        self.marks: dict[TopicPartition, LogMark] = {}

    @property
    def shard(self) -> Shard | None:
        """The model; None while a new stream warms up."""
        return self._shard

    @property
    def spec(self) -> StreamSpec | None:
        """What the stream is; None while it warms up."""
        return self._spec

    @property
    def epoch(self) -> int:
        """Number of the last commit."""
        return self._epoch

    @property
    def timed(self) -> bool:
        """Whether records tell their own time."""
        return self._plan.schema.time is not None

    # Coming back.

    def load(self, breathe: Callable[[int], None]) -> None:
        """Claim the stream, take its newest good snapshot and replay what came after.

        Does nothing for a stream that SQL does not know yet.

        Parameters
        ----------
        breathe : callable
            Called with the number of observations replayed since its last call; a replay may be
            long, and the group must hear of this process meanwhile.

        Raises
        ------
        Fenced
            When the stream was claimed under a later generation.
        StreamConflict
            When the settings describe another stream.
        ReplayDiverged
            When SQL lacks observations that it counts, or when replay does not reproduce what it
            shows and the settings say to stop then.
        """
        name = self._plan.name
        spec = self._on_record()
        if spec is None:
            return
        self._take(spec)
        failpoint("load.claimed")
        settings = self._settings(spec)
        shard, snapshot = restored(self._store, spec, settings)
        self._snapshot_seq = 0 if snapshot is None else snapshot.seq
        failpoint("load.restored")
        self._snapshots = max((each.number for each in self._store.snapshots(name)), default=0)
        try:
            replay(self._store, name, shard, self._next_seq - 1, breathe, self._out(shard))
            failpoint("load.replayed")
            shard.table.take_changes(self._epoch)
            agrees = self._compare(shard, snapshot, breathe)
        except ReplayDiverged:
            self.confirm()
            raise
        if shard.bundled:
            settings = self._settings(spec, bundled=True)
        # A later replay must not take the new settings for the old ones.
        was = (shard.cadence, shard.forgetting.settings)
        self._due = snapshot is None or not agrees or was != settings
        shard.settle(*settings)
        self._equip(shard)

    def _out(self, shard: Shard) -> LeaseRow | None:
        """The round that is out and goes on: that of a stream's shards, which wait for this one."""
        if not isinstance(shard, PartShard):
            return None
        offered = self._store.leases(self._plan.name, outcome="offered", limit=1)
        return offered[0] if offered else None

    def _known(self, name: str) -> StreamSpec | None:
        try:
            return self._store.spec(name)
        except StreamNotFound:
            return None

    def _on_record(self) -> StreamSpec | None:
        """What the stream is, or the shard of it that this is, if SQL knows the stream."""
        stored = self._known(self._plan.stream.name)
        if stored is None:
            return None
        whole = self._store.ensure_stream(spec_on_record(self._plan, stored))
        return whole if self._plan.shard is None else self._made(whole)

    def _made(self, whole: StreamSpec) -> StreamSpec:
        if self._plan.shard is None:
            return self._store.ensure_stream(whole)
        return self._store.ensure_part(whole, self._plan.shard)

    def _take(self, spec: StreamSpec) -> None:
        claim = self._claim
        position = self._store.claim(
            spec.name, claim.owner, claim.generation, takeover=claim.takeover
        )
        self._spec = spec
        self._epoch = position.epoch
        self._next_seq = position.next_seq
        self.offsets = {TopicPartition(*place): next_ for place, next_ in position.offsets.items()}
        self.marks = {TopicPartition(*place): mark for place, mark in position.marks.items()}

    def confirm(self) -> None:
        """Ask SQL whether the stream is still written by this tenure.

        Raises
        ------
        Fenced
            When it was taken, or put back.
        """
        name, claim = self._plan.name, self._claim
        now = self._store.position(name)
        if (now.owner, now.epoch) != (claim.owner, self._epoch):
            raise Fenced(f"stream {name!r} was claimed by {now.owner!r} meanwhile", now.owner)

    def _compare(
        self, shard: Shard, snapshot: SnapshotInfo | None, breathe: Callable[[int], None]
    ) -> bool:
        """Whether the replay arrived at what SQL shows; if not, the model takes that over."""
        name = self._plan.name
        different = first_difference(self._store, name, shard, breathe)
        if different is None:
            return True
        self.confirm()
        first = 1 if snapshot is None else snapshot.seq + 1
        what = (
            f"stream {name!r}: replaying observations {first} to {shard.seq} gave observation "
            f"{different} another cluster than SQL holds. They were written by another version of "
            "Weald or of its libraries, or SQL was changed by hand"
        )
        if self._plan.stream.diverged == "stop":
            raise ReplayDiverged(
                f"{what}. Run the version that wrote them and stop it with SIGTERM, which leaves a "
                'snapshot, or set stream.diverged = "adopt"'
            )
        adopt(self._store, name, shard)
        _log.error(
            "%s. Every assignment, id and offset stays as SQL has it, and the model goes on from "
            "there; a snapshot of it comes with the next commit",
            what,
        )
        return False

    # Going on.

    def may_begin(self, n_held: int) -> bool:
        """Whether so many observations make the model of a new stream.

        Any do, or none, where another shard of the stream has said what the model is: a round waits
        for all of them.
        """
        enough = max(self._plan.model.warmup_records, 1)
        shared = self._plan.shard is not None
        return n_held >= enough or (shared and self._known(self._plan.stream.name) is not None)

    def begin(self, held: Held) -> None:
        """Make the model of a new stream from its first observations.

        Raises
        ------
        Fenced
            When another process has begun the stream meanwhile.
        """
        if self._known(self._plan.name) is not None:
            raise Fenced(f"stream {self._plan.name!r} was begun by another process")
        offsets, marks = self.offsets, self.marks
        # Of a stream in shards another one may have said meanwhile what all are.
        spec = None if self._plan.shard is None else self._on_record()
        if spec is None:
            sample = held.batch.values[: max(self._plan.model.warmup_records, 1)]
            spec = self._made(spec_from_sample(self._plan, sample))
        self._take(spec)
        if spec.seen_as is not None:
            _log.info("stream %r: the family sees %s ([features])", spec.name, spec.seen_as)
        failpoint("begin.created")
        self.offsets, self.marks = offsets, marks
        whole = self._store.whole(spec.name)
        self._equip(new_shard(spec, *self._settings(spec), whole))
        self._due = True

    def _settings(
        self, spec: StreamSpec, *, bundled: bool = False
    ) -> tuple[RefinementSettings, MemorySettings]:
        return self._plan.cadence, bounded_by_memory(self._plan, spec, bundled=bundled)

    def _equip(self, shard: Shard) -> None:
        """Take a model on, with what it may ask for while it is no replay."""
        self._shard, spec = shard, self._spec
        shard.archive = Archive(self._store, self._plan.name)
        shard.revise = None if spec is None else revision_of(self._plan, spec)
        if (told := told_of_memory(self._plan, shard.forgetting.settings)) is not None:
            _log.info("stream %r: %s", self._plan.name, told)

    def settle_repeats(self, held: Held) -> None:
        """Do with those of a key that has come before what the settings say.

        Comes after `unfit`: a record that becomes a dead letter neither replaces another nor makes
        a duplicate of the next.
        """
        policy = self._plan.stream.duplicate_keys
        if self._spec is None or policy == "allow" or not len(held):
            return
        keys = held.batch.key
        asked = {key for key in keys if key is not None}
        newest = self._store.newest_of_keys(self._spec.name, asked)
        earlier = np.zeros(len(keys), dtype=np.int64)
        for i, key in enumerate(keys):
            if key is not None:
                earlier[i] = newest.get(key, 0)
                newest[key] = self._model().seq + 1 + i
        if policy == "update":
            held.replace(earlier)
        else:
            held.repeat(np.flatnonzero(earlier).tolist())

    def unfit(self, held: Held) -> list[DeadLetter]:
        """Set aside what the family cannot take."""
        if self._spec is None or not len(held):
            return []
        self._fitness = self._fitness or Fitness(self._spec)
        return held.refuse(self._fitness.refused(held.batch.values))

    @property
    def reads_back(self) -> bool:
        """Whether the next batch may ask SQL for what this one brings."""
        archive = self._model().archive
        seen_again = self._plan.stream.duplicate_keys != "allow"
        return seen_again or (archive is not None and archive.waits)

    def apply(self, held: Held, now: float, step: Step, *, last: bool = False) -> BatchOutcome:
        """Insert what is held into the model.

        Parameters
        ----------
        held : Held
        now : float
            Seconds since the epoch.
        step : callable
            Context manager around each labelled step.
        last : bool
            The source has ended: refine and publish out of turn.
        """
        shard = self._model()
        applied = BatchOutcome()
        if len(held):
            rows, applied = shard.digest(held.batch, now, step, held.replaces)
            held.spread(rows)
        if last:
            applied.extend(shard.conclude(now, step))
        return applied

    def go_on(self, now: float, step: Step) -> BatchOutcome:
        """Refine and publish out of turn, while nothing comes."""
        return self._model().go_on(now, step)

    def commit_of(
        self, held: Held, applied: BatchOutcome, generation: int, snapshot: Snapshot | None
    ) -> BatchCommit:
        """Put together what one transaction writes."""
        shard, claim = self._model(), self._claim
        clusters = np.concatenate(applied.clusters) if applied.clusters else np.empty(0, np.int64)
        epoch = self._epoch + 1
        return BatchCommit(
            stream=self._plan.name,
            owner=claim.owner,
            generation=max(generation, claim.generation),
            epoch=epoch,
            offsets=held.advances(self.marks),
            observations=held.block(shard.seq - len(held) + 1, clusters, applied.passed),
            dead_letters=held.dead_letters,
            taken_back=held.taken_back,
            publications=applied.publications,
            lineage=[LineageRow(**vars(event)) for event in applied.lineage],
            reassigned=applied.reassigned,
            clusters=shard.table.take_changes(epoch),
            rounds=applied.rounds,
            certainties=applied.certainties,
            departures=applied.departures,
            snapshot=snapshot,
            leases=applied.leases,
            adoptions=applied.adoptions,
            postponed=applied.postponed,
            revisions=applied.revisions,
            shard_round=applied.shard_round,
            shard_messages=applied.shard_messages,
            whole=applied.whole,
            replaced=self._replaced,
        )

    def committed(self, commit: BatchCommit) -> None:
        """Note that SQL holds the commit."""
        self._epoch = commit.epoch
        self._replaced = []
        for each in commit.offsets:
            self.marks[TopicPartition(each.topic, each.partition)] = each.mark
        shard = self._model()
        if shard.archive is not None:
            shard.archive.committed()
        for revision in commit.revisions:
            self._spec, self._fitness = revision.spec, None
            _log.info(
                "stream %r: columns that said nothing have begun to: %s. From observation %d on "
                "the %s family sees %s",
                commit.stream,
                revision.row.reason,
                revision.row.seq + 1,
                revision.spec.family,
                revision.spec.seen_as or "the columns as they are",
            )
        if commit.snapshot is not None:
            self._snapshots, self._snapshot_seq = commit.snapshot.number, commit.snapshot.seq
            self._pruning = True
            if commit.snapshot.encoded is None:
                # What has come since one was packed it knows nothing of.
                shard.uncrossable = self._due = False

    def reached(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Note how far the records in hand go."""
        self.offsets.update(offsets)

    def recognise(
        self, found: Mapping[TopicPartition, FoundLog], decision: Decision | None
    ) -> None:
        """Compare what there is with what was read; where it is another log, do as was decided.

        Raises
        ------
        LogReplaced
            When nobody has decided.
        """
        differences = differences_of(self.offsets, self.marks, found)
        if differences:
            now = time.time()
            self._replaced = replacements(differences, found, self.offsets, decision, now)
        for each in self._replaced:
            place = TopicPartition(each.topic, each.partition)
            self.marks.pop(place)
            self.offsets[TopicPartition(each.kept_as, each.partition)] = self.offsets[place]
            self.offsets[place] = each.next_offset
            _log.warning(
                "%s[%d] is another log (%s): it is read from offset %d on, and what was read of "
                "the earlier one is kept as %s",
                *place,
                each.difference,
                each.next_offset,
                each.kept_as,
            )
        for place, log in found.items():
            was = self.marks.get(place, LogMark())
            self.marks[place] = replace(was, topic_id=log.topic_id, log_start=log.start)

    @property
    def replaces_logs(self) -> bool:
        """Whether SQL has to be told of another log before anything is read of it."""
        return bool(self._replaced)

    def prune(self) -> None:
        """Forget what the retention lets go, for a moment; the rest after a later commit.

        Begins anew with every snapshot, since what came before the oldest one may go.
        """
        end = time.monotonic() + PRUNING_SECONDS
        try:
            while self._pruning and time.monotonic() < end:
                gone = self._store.prune(self._plan.name, self._plan.retention)
                self._pruning = bool(gone)
                if gone:
                    _log.info("forgotten, as [retention] says: %s", gone)
        except StorageUnavailable as error:
            _log.warning("old rows stay for now: %s", error)
        failpoint("pruned")

    # Snapshots.

    def snapshot_due(self) -> bool:
        """Whether so much came since the last snapshot that a replay of it would be long.

        Not while a refinement goes on beside the records: a replay has to begin before it did. Nor
        while one is being packed, but it is once that has ended; nor in a rest, of many atoms.
        """
        shard = self._model()
        if self.packed:
            return True
        if shard.concurrent is not None:
            return False
        since = shard.seq - self._snapshot_seq
        share = _SHARE_HURRIED if self.hurried else _SHARE
        rare = since < max(self._plan.stream.snapshot_records, int(share * shard.chain.n_atoms))
        waits = self._packing is not None or (self.rest.seconds and not shard.few)
        return self._uncrossable or not (waits or rare)

    @property
    def packs(self) -> bool:
        """Whether an image is being packed beside the records."""
        return self._packing is not None and not self._packing[1].ended

    @property
    def packed(self) -> bool:
        """Whether an image has been packed beside the records, and is due in the next commit."""
        return self._packing is not None and self._packing[1].ended and not self.rest.seconds

    @property
    def _uncrossable(self) -> bool:
        """Whether no replay leads from the last snapshot to what the model is now."""
        return self._due or self._model().uncrossable

    def image(self, now: float, *, save: bool) -> Snapshot | None:
        """What the next commit is to hold of the model, when a snapshot is due or to be saved.

        The bytes of many atoms are made beside the records, from copies: they come with a later
        commit, unless something happens that no replay crosses. None when the model holds nothing.
        """
        shard, at_once = self._model(), save or self._uncrossable
        if self._packing is not None and not at_once:
            (packing, _), self._packing = self._packing, None
            return packing.snapshot
        # One that is being packed would be older.
        self._packing = None
        if shard.seq == 0:
            return None
        arrays = with_offsets(shard.state(), self.offsets)
        snapshot = Snapshot(self._snapshots + 1, shard.seq, arrays, now)
        if at_once or shard.few:
            return snapshot
        packing = Packing(replace(snapshot, epoch=self._epoch + 1))
        self._packing = packing, BackgroundThread(packing, "snapshot")
        return None

    def imaged_since(self, seq: int) -> bool:
        """Whether somebody has made an image of the model after this observation."""
        return any(each.seq > seq for each in self._store.snapshots(self._plan.name))

    @property
    def unfinished(self) -> bool:
        """Whether observations came that no publication covers."""
        return self._shard is not None and self._shard.unpublished

    @property
    def unsaved(self) -> int:
        """Observations since the newest snapshot."""
        return 0 if self._shard is None else self._shard.seq - self._snapshot_seq

    def _model(self) -> Shard:
        if self._shard is None:
            raise RuntimeError("the stream has no model yet: load or begin it first")
        return self._shard
