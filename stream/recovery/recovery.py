"""From what SQL holds back to a model: the snapshot to begin with, the replay, the comparison.

SQL is the truth. A snapshot that is damaged, or that this version cannot read, is passed over for
the one before it. A replay that does not reproduce the partition that SQL shows, as one may not
under another version of a numerical library, still ends in a valid state of the same chain; the
model then goes on showing what SQL shows (`adopt`).
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.settings import RefinementSettings
from weald.storage.commit.commit import Arrays, LeaseRow, ObservationBlock, StreamSpec
from weald.storage.errors import SnapshotCorrupt
from weald.storage.queries.answers import SnapshotInfo
from weald.stream.errors import ReplayDiverged
from weald.stream.model.mixture_shard import MixtureShard
from weald.stream.model.model import new_shard, restored_shard
from weald.stream.model.pace import COUNTED, Remembered
from weald.stream.model.part_shard import PartShard
from weald.stream.model.shard import Shard
from weald.stream.publication.publication import Published
from weald.stream.record.record import TopicPartition
from weald.stream.settings import MemorySettings

from .consistency import faults_of
from .replayed_rounds import ReplayedRounds

if TYPE_CHECKING:
    from weald.storage.queries.reader import SqlReader

__all__ = [
    "adopt",
    "apply_stored",
    "first_difference",
    "is_crossed",
    "offsets_in",
    "replay",
    "restored",
    "usable",
    "with_offsets",
]

_log = logging.getLogger(__name__)

Ids = NDArray[np.int64]

# Rows in memory at a time, whatever there is to replay or to compare.
REPLAY_RECORDS = 5_000
COMPARED_RECORDS = 5_000
OFFSETS = "offsets"


def with_offsets(arrays: Arrays, offsets: dict[TopicPartition, int]) -> Arrays:
    """Add to a model's arrays how far the topic had been read."""
    rows = [[*place, offset] for place, offset in sorted(offsets.items())]
    return {**arrays, OFFSETS: np.frombuffer(json.dumps(rows).encode(), dtype=np.uint8)}


def offsets_in(arrays: Arrays) -> dict[tuple[str, int], int] | None:
    """Return how far the topic had been read; None where an earlier Weald did not write it."""
    if OFFSETS not in arrays:
        return None
    rows = json.loads(arrays[OFFSETS].tobytes())
    return {(topic, partition): offset for topic, partition, offset in rows}


def usable(reader: SqlReader, stream: str, number: int) -> Shard:
    """Make the model of one snapshot and check it.

    Raises
    ------
    SnapshotCorrupt
        When it is damaged, another version's, contradicts itself, or is from before the stream was
        seen anew; the message says which.
    """
    snapshot = reader.snapshot(stream, number)
    if snapshot is None:
        raise SnapshotCorrupt(f"there is no snapshot {number}")
    models = reader.models(stream)
    if models and snapshot.seq < models[-1].seq:
        raise SnapshotCorrupt(
            f"the stream sees its observations otherwise since number {models[-1].seq} "
            f"({models[-1].reason}), and nothing leads across from an earlier image"
        )
    try:
        shard = restored_shard(reader.spec(stream), snapshot.payload)
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise SnapshotCorrupt(
            f"its arrays are not those that this version writes ({error!r})"
        ) from error
    faults = faults_of(shard)
    if shard.seq != snapshot.seq:
        faults.append(f"it holds {shard.seq} observations and says {snapshot.seq}")
    if faults:
        raise SnapshotCorrupt("; ".join(faults))
    return shard


def restored(
    reader: SqlReader, spec: StreamSpec, settings: tuple[RefinementSettings, MemorySettings]
) -> tuple[Shard, SnapshotInfo | None]:
    """Make the model of the newest snapshot that can be used, or an empty one.

    Parameters
    ----------
    reader : SqlReader
    spec : StreamSpec
    settings : RefinementSettings, MemorySettings
        Of an empty model; a snapshot has its own.
    """
    for info in reader.snapshots(spec.name):
        try:
            shard = usable(reader, spec.name, info.number)
            if not is_crossed(reader, spec.name, shard):
                return shard, info
            error: object = "a refinement began before it that was taken over after it"
        except SnapshotCorrupt as damage:
            error = damage
        _log.error(
            "snapshot %d of stream %r (observation %d) is passed over: %s. The one before it "
            "and a longer replay give the same state; nothing is lost",
            info.number,
            spec.name,
            info.seq,
            error,
        )
    return new_shard(spec, *settings, whole=reader.whole(spec.name)), None


def is_crossed(reader: SqlReader, stream: str, shard: Shard) -> bool:
    """Whether a refinement beside the records began before this model's moment and ended after it.

    The writer makes no image then, but a person may. A replay from there could not make it again.
    """
    later = reader.adoptions(stream, shard.rounds.taken)[:1]
    here = shard.seq, shard.publication
    return any(row.is_own and (row.begun_seq, row.begun_publication) < here for row in later)


def replay(
    reader: SqlReader,
    stream: str,
    shard: Shard,
    last: int,
    breathe: Callable[[int], None],
    out: LeaseRow | None = None,
) -> None:
    """Apply the observations that came after the model's, up to number `last`.

    Parameters
    ----------
    reader : SqlReader
    stream : str
    shard : Shard
    last : int
    breathe : callable
        Called with the number of observations applied since its last call.
    out : LeaseRow, optional
        A lease of the round that is out after the last observation, for a model that goes on
        with it. Who starts the stream anew gives such a round up.

    Raises
    ------
    ReplayDiverged
        When SQL does not hold the observations that it counts.
    """
    # Publications that the model does not make by itself were out of turn; those of a shard, which
    # makes none, come with its rounds.
    told = [] if isinstance(shard, PartShard) else reader.publications(stream)
    ends = deque(
        (row.seq, row.number) for row in told if row.number > shard.publication and row.seq <= last
    )
    shard.pace = Remembered(reader.postponed(stream, shard.seq))
    again = ReplayedRounds(reader.adoptions(stream, shard.rounds.taken), out, shard)
    while True:
        again.catch_up()
        while ends and ends[0][0] <= shard.seq:
            if ends.popleft()[1] > shard.publication:
                shard.forget_lent()
                shard.go_on(0.0)
                again.catch_up()
        limit = again.room(min(REPLAY_RECORDS, (ends[0][0] if ends else last) - shard.seq))
        block = reader.observations(stream, shard.seq, limit) if limit > 0 else None
        if block is None or int(block.seq[0]) != shard.seq + 1:
            break
        apply_stored(shard, block)
        breathe(len(block))
    shard.pace = COUNTED
    if shard.seq != last:
        raise ReplayDiverged(
            f"stream {stream!r}: SQL counts {last} observations, but not all that came after "
            f"number {shard.seq} are there. Restore the database from a backup"
        )


def apply_stored(shard: Shard, block: ObservationBlock) -> None:
    """Apply observations that SQL holds, as they were applied when they came."""
    shard.apply(
        block.values,
        block.received_at,
        times=block.event_time,
        replaces=block.replaces,
        keys=block.key,
    )


def first_difference(
    reader: SqlReader, stream: str, shard: Shard, breathe: Callable[[int], None] | None = None
) -> int | None:
    """Return the first observation that SQL shows in another cluster than the model, if any.

    As of the model's own publication, so that it may be asked of a stream that moves on. `breathe`
    is called with 0 now and then: on a long stream this takes a while, too.
    """
    own, clusters = shard.atom_table.seq[shard.atom_table.singles], shard.clusters
    for here, cluster in _shown(reader, stream, shard.publication, own):
        if breathe is not None:
            breathe(0)
        different = np.flatnonzero(clusters[here] != cluster)
        if len(different):
            return int(own[here[different[0]]])
    return None


def _shown(reader: SqlReader, stream: str, publication: int, own: Ids) -> Iterator[tuple[Ids, Ids]]:
    """Yield places in ``own`` (numbers of observations, in any order) and their clusters in SQL.

    What has left the model, or is in a bundle, is nobody's but SQL's to know, and passed over.
    """
    order = np.argsort(own)
    rising = own[order]
    after, last = 0, int(rising[-1]) if len(rising) else 0
    while after < last:
        seq, cluster = reader.shown(stream, publication, after, COMPARED_RECORDS)
        if not len(seq):
            return
        after = int(seq[-1])
        low, high = np.searchsorted(rising, (seq[0], after + 1))
        _, here, there = np.intersect1d(
            rising[low:high], seq, assume_unique=True, return_indices=True
        )
        yield order[low + here], cluster[there]


def adopt(reader: SqlReader, stream: str, shard: Shard) -> int:
    """Have the model show what SQL shows now; its chain goes on from where it is.

    The ids, the history and every assignment stay as they are. The next publication tells by its
    lineage how the chain's partition differs from the one that was shown.

    Returns
    -------
    int
        Observations of which SQL has no row any more: they are shown as the model has them.

    Raises
    ------
    ReplayDiverged
        When observations have been compacted, which a replay that differs does differently.
    """
    if shard.chain.n_atoms < shard.chain.n_observations:
        raise ReplayDiverged(
            f"stream {stream!r}: the replay differs from what SQL shows, and observations have "
            "been compacted: which of them are in which bundle cannot be told any more. Restore "
            "the database from a backup, or run the version of Weald that wrote it"
        )
    newest = reader.publications(stream, limit=1)
    number, covered = (newest[-1].number, newest[-1].seq) if newest else (0, 0)
    rows = reader.clusters(stream, include_retired=True)
    own, clusters = shard.atom_table.seq[shard.atom_table.singles], shard.clusters.copy()
    n_gone = len(own)
    for here, cluster in _shown(reader, stream, number, own):
        clusters[here] = cluster
        n_gone -= len(here)
    published = Published(number, clusters, max((row.cluster for row in rows), default=0) + 1)
    live = [row for row in rows if row.retired_publication is None]
    shard.adopt(published, covered, live)
    # A name that only an ended cluster has is not given again either.
    shard.groups.adopt(live, max((row.group or 0 for row in rows), default=0) + 1)
    learned = reader.learned_family(stream)
    if learned and isinstance(shard, MixtureShard):
        shard.show_under(learned)
    return n_gone
