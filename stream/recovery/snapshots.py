"""What a person may do with a stream's snapshots: make one, check one, go back, compare two.

None of it needs the writer to be stopped. Making one and going back with the later results kept
replay beside the writer; going back without them fences it, and it begins again from there.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weald.mcmc.settings import RefinementSettings
from weald.storage.commit.commit import BatchCommit, LeaseRow, Rewind, Snapshot
from weald.storage.errors import Fenced, SnapshotCorrupt, StreamConflict
from weald.storage.queries.answers import StreamPosition
from weald.stream.errors import ReplayDiverged
from weald.stream.model.batch_outcome import BatchOutcome
from weald.stream.model.network_shard import NetworkShard
from weald.stream.model.shard import Shard
from weald.stream.record.record import TopicPartition
from weald.stream.settings import MemorySettings
from weald.stream.tables.contingency import numbered, overlaps

from .recovery import (
    COMPARED_RECORDS,
    REPLAY_RECORDS,
    adopt,
    apply_stored,
    first_difference,
    offsets_in,
    replay,
    restored,
    usable,
    with_offsets,
)

if TYPE_CHECKING:
    from weald.storage.queries.reader import SqlReader
    from weald.storage.writing.store import SqlStore

__all__ = [
    "Difference",
    "Flow",
    "compare",
    "create",
    "revert_dropping",
    "revert_keeping",
    "shown_network",
    "verify",
]

Progress = Callable[[int], None]

# A cadence under which nothing is refined or published.
NEVER = RefinementSettings(every_records=2**62, publish_every_records=2**62)
ATTEMPTS = 5


@dataclass(frozen=True)
class Flow:
    """Observations that one snapshot has in one cluster and the other in another."""

    from_cluster: int
    to_cluster: int
    n_observations: int


@dataclass(frozen=True)
class Difference:
    """How the shown partitions of two snapshots differ, on the observations that both know.

    Parameters
    ----------
    n_compared, n_moved : int
        Observations that are atoms of their own in both; those of them that have another cluster
        in the later one.
    n_new : int
        Observations that only the later one knows.
    variation_of_information : float
        In nats; 0 for the same partition under whatever names.
    flows : list of Flow
        Largest first.
    """

    n_compared: int
    n_moved: int
    n_new: int
    variation_of_information: float
    flows: list[Flow]


def verify(reader: SqlReader, stream: str, number: int) -> None:
    """Check a snapshot: its bytes, its parts against each other, and its partition against SQL.

    Raises
    ------
    SnapshotCorrupt
        Saying what is wrong.
    """
    shard = usable(reader, stream, number)
    different = first_difference(reader, stream, shard)
    if different is not None:
        raise SnapshotCorrupt(f"SQL has observation {different} in another cluster at that moment")


def create(store: SqlStore, stream: str, label: str | None, progress: Progress) -> int:
    """Replay to where the stream stands and keep an image of it; return its number.

    Raises
    ------
    ReplayDiverged
        When the replay does not arrive at what SQL shows.
    StreamConflict
        When the stream was put back meanwhile, or moved on so far that the image is of no use.
    """
    began = store.position(stream).epoch
    for _ in range(ATTEMPTS):
        oldest = _oldest(store, stream)
        # The image comes first: the writer may make a newer one at any moment.
        spec = store.spec(stream)
        shard, _ = restored(store, spec, (RefinementSettings(), MemorySettings()))
        first = shard.seq
        position, out = _standing(store, stream)
        if store.spec(stream) != spec:
            continue  # seen anew meanwhile: no replay comes across
        try:
            replay(store, stream, shard, position.next_seq - 1, progress, out)
            if not _has_forgotten(store, stream, first, oldest):
                _refuse_different(store, stream, shard)
                break
        except ReplayDiverged as error:
            if store.position(stream).reverted_epoch > began:
                raise _put_back(stream) from error
            if not _has_forgotten(store, stream, first, oldest):
                raise
    else:
        raise StreamConflict(
            f"stream {stream!r} moves on faster than it can be replayed. Make the snapshot when "
            "less comes, or keep more of them (storage.snapshots_kept)"
        )
    if position.reverted_epoch > began:
        raise _put_back(stream)
    offsets = {TopicPartition(*place): offset for place, offset in position.offsets.items()}
    arrays = with_offsets(shard.state(), offsets)
    image = Snapshot(0, shard.seq, arrays, time.time(), label)
    return store.save_snapshot(stream, image, position.epoch)


def _oldest(store: SqlReader, stream: str) -> int:
    """Observations that the oldest snapshot holds: SQL keeps what a replay from there needs."""
    return min((each.seq for each in store.snapshots(stream)), default=0)


def _has_forgotten(store: SqlReader, stream: str, first: int, oldest: int) -> bool:
    """Whether rows or rounds may have gone that a replay from observation `first` needs.

    `oldest` is what `_oldest` said before. Rows that are missing are noticed; rounds that are
    missing would only make another model.
    """
    now = _oldest(store, stream)
    return now != oldest and now > first


def _refuse_different(store: SqlReader, stream: str, shard: Shard) -> None:
    different = first_difference(store, stream, shard)
    if different is not None:
        raise ReplayDiverged(
            f"stream {stream!r}: the replay gives observation {different} another cluster than "
            "SQL holds. Start the stream with this version first; it then goes on from SQL"
        )


def _put_back(stream: str) -> StreamConflict:
    return StreamConflict(
        f"stream {stream!r} was put back while its snapshot was made, and none was kept. Make it "
        "again"
    )


def _standing(store: SqlStore, stream: str) -> tuple[StreamPosition, LeaseRow | None]:
    """Where the stream stands, and a lease of the round that is out there."""
    while True:
        position = store.position(stream)
        offered = store.leases(stream, outcome="offered", limit=1)
        if store.position(stream).epoch == position.epoch:
            return position, offered[0] if offered else None


def revert_dropping(store: SqlStore, stream: str, number: int) -> int:
    """Go back to a snapshot as if nothing had come after; return the observations taken out.

    The offsets go back as well: what the topic still has is read and decided anew.

    Raises
    ------
    SnapshotCorrupt
        When the snapshot cannot be used.
    StreamConflict
        When it does not say how far the topic had been read, when records would be lost, or when
        observations have been compacted.
    """
    _refuse_shard(store, stream)
    _refuse_compacted(store, stream)
    info = next((each for each in store.snapshots(stream) if each.number == number), None)
    shard = usable(store, stream, number)
    snapshot = store.snapshot(stream, number)
    offsets = None if snapshot is None else offsets_in(snapshot.payload)
    if info is None or offsets is None:
        raise StreamConflict(
            f"snapshot {number} was written by an earlier version and does not say how far the "
            "topic had been read. Keep the later results, or choose a later snapshot"
        )
    shard.table.touch_all()
    rewind = Rewind(
        stream=stream,
        owner=_owner(),
        snapshot=number,
        epoch=info.epoch,
        seq=shard.seq,
        publication=shard.publication,
        taken_round=shard.rounds.taken,
        clusters=shard.table.take_changes(store.position(stream).epoch + 1),
        next_cluster=shard.next_cluster,
        held=shard.numbers,
        offsets=offsets,
    )
    return store.rewind(rewind)


def revert_keeping(
    store: SqlStore, stream: str, number: int, cadence: RefinementSettings, progress: Progress
) -> int:
    """Take the model back to a snapshot, and keep every later observation and what is shown.

    Later observations are inserted anew, each by one draw; what refinement has done since is
    forgotten. What people see stays until the next publication, whose lineage tells the rest.

    Returns
    -------
    int
        Number of the snapshot that the writer now goes on from.

    Raises
    ------
    SnapshotCorrupt
        When the snapshot cannot be used.
    StreamConflict
        When observations have been compacted, or rows that the snapshot needs are gone.
    Fenced
        When the stream moves on too fast for it; stop the writer, or try again.
    """
    _refuse_shard(store, stream)
    _refuse_compacted(store, stream)
    for _ in range(ATTEMPTS):
        # Comes first: whatever is read after it is of this very moment, or the epoch has moved.
        position = store.position(stream)
        shard = usable(store, stream, number)
        try:
            _insert_later(store, stream, shard, position.next_seq - 1, progress)
            n_gone = _let_go(store, stream, shard)
            n_gone += adopt(store, stream, shard)
        except ReplayDiverged:
            if store.position(stream).epoch == position.epoch:
                raise
            continue
        if n_gone:
            raise StreamConflict(
                f"observations that snapshot {number} holds have no row any more (retention): "
                "nothing tells whether they have left since, and what they are shown in. Choose "
                "a later snapshot, or drop the later results"
            )
        shard.cadence = cadence
        owner = _owner()
        # From here on the writer is fenced, so what follows is of the moment that was replayed.
        claimed = store.claim(stream, owner, position.generation, takeover=True)
        if claimed.epoch != position.epoch:
            continue
        # A replay begins with the rounds after this one: those before it are forgotten.
        shard.forget_lent()
        shard.rounds.taken = store.last_round(stream)
        offsets = {TopicPartition(*place): offset for place, offset in position.offsets.items()}
        arrays = with_offsets(shard.state(), offsets)
        epoch = position.epoch + 1
        commit = BatchCommit(
            stream=stream,
            owner=owner,
            generation=position.generation,
            epoch=epoch,
            clusters=shard.table.take_changes(epoch),
            snapshot=Snapshot(0, shard.seq, arrays, time.time()),
            reverts=True,
        )
        store.commit(commit)
        return store.snapshots(stream)[0].number
    raise Fenced(f"stream {stream!r} moves on faster than it can be replayed")


def compare(reader: SqlReader, stream: str, earlier: int, later: int) -> Difference:
    """Compare what two snapshots show.

    Raises
    ------
    SnapshotCorrupt
        When one of them cannot be used.
    """
    before, after = usable(reader, stream, earlier), usable(reader, stream, later)
    earlier_seq, later_seq = (
        each.atom_table.seq[each.atom_table.singles] for each in (before, after)
    )
    both, here, there = np.intersect1d(
        earlier_seq, later_seq, assume_unique=True, return_indices=True
    )
    n, old, new = len(both), before.clusters[here], after.clusters[there]
    old_ids, old_places = numbered(old)
    new_ids, new_places = numbered(new)
    cells = overlaps(old_places, new_places)
    lost = np.log(cells.row_size[cells.row] / cells.n)
    gained = np.log(cells.column_size[cells.column] / cells.n)
    information = float((cells.n / max(n, 1) * (lost + gained)).sum())
    flows = [
        Flow(int(old_ids[row]), int(new_ids[column]), int(size))
        for row, column, size in zip(cells.row, cells.column, cells.n, strict=True)
        if old_ids[row] != new_ids[column]
    ]
    flows.sort(key=lambda flow: (-flow.n_observations, flow.from_cluster, flow.to_cluster))
    return Difference(n, int((old != new).sum()), after.seq - before.seq, information, flows)


def shown_network(reader: SqlReader, stream: str) -> NetworkShard:
    """The network that a stream holds, its vertices in the clusters that are shown now.

    The newest snapshot and what came after it, unrefined, and where counts fade not yet faded.

    Raises
    ------
    ReplayDiverged
        When SQL lacks rows that it counts.
    """
    spec = reader.spec(stream)
    shard, _ = restored(reader, spec, (NEVER, MemorySettings()))
    if not isinstance(shard, NetworkShard):
        raise TypeError(f"stream {stream!r} is no network")
    _insert_later(reader, stream, shard, reader.position(stream).next_seq - 1, lambda _: None)
    if shard.forgetting.settings.forgets:
        _let_go(reader, stream, shard)
    adopt(reader, stream, shard)
    return shard


def _refuse_shard(store: SqlReader, stream: str) -> None:
    """Raise StreamConflict for a shard of a stream: the others would not go back with it."""
    whole = store.whole(stream)
    if whole is not None:
        raise StreamConflict(
            f"{stream!r} is a shard of stream {whole.name!r}, whose others have had rounds with it "
            "since: none of them goes back alone"
        )


def _refuse_compacted(reader: SqlReader, stream: str) -> None:
    """Raise StreamConflict where SQL knows of bundles: it does not know which there were before."""
    status = reader.status(stream)
    if status.n_atoms is not None and status.n_atoms < (status.n_observations or 0):
        raise StreamConflict(
            f"stream {stream!r} has compacted observations (memory.leaf_budget), and SQL does not "
            "know which of them were in which bundle before. Restore the database from a backup"
        )


def _insert_later(
    store: SqlReader, stream: str, shard: Shard, last: int, progress: Progress
) -> None:
    shard.cadence = NEVER
    while shard.seq < last:
        block = store.observations(stream, shard.seq, min(REPLAY_RECORDS, last - shard.seq))
        if block is None:
            raise ReplayDiverged(f"stream {stream!r}: SQL lacks observations after {shard.seq}")
        apply_stored(shard, block)
        progress(len(block))


def _owner() -> str:
    return f"weald-snapshot-{os.getpid()}-{uuid.uuid4().hex[:12]}"


def _let_go(store: SqlReader, stream: str, shard: Shard) -> int:
    """Take out of the model what has left it since, as SQL says: nobody sees it come back.

    Returns of how many SQL has no row any more, so that it cannot say.
    """
    seqs = shard.numbers.tolist()
    n_gone, left = len(seqs), []
    for start in range(0, len(seqs), COMPARED_RECORDS):
        rows = store.observed(stream, seqs[start : start + COMPARED_RECORDS])
        n_gone -= len(rows)
        left += [row.seq for row in rows if row.left_seq is not None]
    shard.remove(np.array(left, dtype=np.int64), BatchOutcome(), 0.0)
    return n_gone
