"""What must hold of a stream that was killed any number of times: every account, and the model.

The undisturbed run is made from the observations in the order in which SQL has them, so it is the
right one for any number of partitions, whichever of them the broker happened to send first. Where
records come first it puts off what SQL says was put off, and refines out of turn where SQL has a
publication.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.settings import RefinementSettings
from weald.storage.commit.commit import ClusterRow, Handover, ObservationBlock, Reassignment
from weald.storage.writing.store import SqlReader
from weald.stream.model.batch_outcome import BatchOutcome
from weald.stream.model.model import new_shard, restored_shard
from weald.stream.model.pace import Remembered
from weald.stream.model.shard import Shard
from weald.stream.recovery.recovery import first_difference, replay, usable
from weald.stream.settings import MemorySettings

__all__ = ["Expected", "Shed", "faults", "undisturbed"]

BLOCK = 1_000
_OF_A_ROUND = {f"part.{name}" for name in ("answered", "drawn", "side", "named", "item")}


@dataclass(frozen=True, eq=False)
class Shed:
    """The good records of a stream of one partition, whose oldest rows SQL may have let go.

    Parameters
    ----------
    key : list of str
    values : ndarray of float64, shape (n, d)
    times : ndarray of float64, shape (n,)
    n_kept, n_publications : int
        Rows and publications that must be there still.
    """

    key: list[str]
    values: NDArray[np.float64]
    times: NDArray[np.float64]
    n_kept: int
    n_publications: int


@dataclass(frozen=True)
class Expected:
    """What was sent.

    Parameters
    ----------
    keys : Counter of str
        How often a good record with each key was sent.
    n_dead : int
        Bad records.
    ends : dict of int to int
        Offset after the last record of each partition.
    cadence : RefinementSettings
    concluded : bool
        Whether the source has an end, at which the stream is refined and published out of turn.
    memory : MemorySettings
        Windows, half-lives, or a sample; nothing becomes one with others.
    shed : Shed, optional
        Where the retention lets rows go, what they were.
    """

    keys: Counter[str]
    n_dead: int
    ends: dict[int, int]
    cadence: RefinementSettings
    concluded: bool = True
    memory: MemorySettings = field(default_factory=MemorySettings)
    shed: Shed | None = None


def faults(reader: SqlReader, stream: str, expected: Expected) -> list[str]:
    """Say everything that is wrong with the stream; nothing when it is whole."""
    return [
        *_lost_or_doubled(reader, stream, expected),
        *_accounts(reader, stream, expected),
        *_model(reader, stream, expected),
    ]


def _lost_or_doubled(reader: SqlReader, stream: str, expected: Expected) -> list[str]:
    keys = [str(key) for block in _blocks(reader, stream) for key in block.key]
    sent = expected.keys
    wrong = []
    if expected.shed is not None:
        if len(keys) < expected.shed.n_kept:
            wrong.append(f"only {len(keys)} rows of {expected.shed.n_kept} are kept")
        sent = Counter(expected.shed.key[-len(keys) :])
    found = Counter(keys)
    sentences = {"lost": sent - found, "there too often, or never sent": found - sent}
    return wrong + [f"{each.total()} records {words}" for words, each in sentences.items() if each]


def _accounts(reader: SqlReader, stream: str, expected: Expected) -> list[str]:
    ledger = reader.ledger(stream)
    wrong = [
        f"partition {row.partition}: received {row.n_received} is not inserted {row.n_inserted} + "
        f"duplicate {row.n_duplicate} + dead {row.n_dead}"
        for row in ledger
        if row.n_received != row.n_inserted + row.n_duplicate + row.n_dead
    ]
    n_inserted, n_dead = (
        sum(getattr(row, of) for row in ledger) for of in ("n_inserted", "n_dead")
    )
    n_good = expected.keys.total()
    if (n_inserted, n_dead) != (n_good, expected.n_dead):
        wrong.append(f"{n_inserted} inserted and {n_dead} dead of {n_good} good records")
    if sum(reader.dead_letter_counts(stream).values()) != expected.n_dead:
        wrong.append("the table of dead letters does not hold each bad record once")
    ends = {row.partition: row.next_offset for row in ledger}
    if ends != expected.ends:
        wrong.append(f"offsets stand at {ends}, not at {expected.ends}")
    return wrong


def _replayed(reader: SqlReader, stream: str) -> list[str]:
    """What a shard shows against replays: its rounds with others depend on when these came.

    From the oldest image that is kept and from the newest both have to come to it, and to the same
    model, random state included.
    """
    last, kept = reader.position(stream).next_seq - 1, reader.snapshots(stream)
    offered = reader.leases(stream, outcome="offered", limit=1)
    states = []
    wrong = []
    for info in {kept[0].number: kept[0], kept[-1].number: kept[-1]}.values():
        shard = usable(reader, stream, info.number)
        replay(reader, stream, shard, last, lambda _: None, offered[0] if offered else None)
        different = first_difference(reader, stream, shard)
        if different is not None:
            wrong.append(f"a replay from {info.seq} has observation {different} elsewhere")
        state = shard.state()
        shard.table.touch_all()
        if _statistics(reader.clusters(stream)) != _statistics(shard.table.take_changes(1)):
            wrong.append(f"a replay from {info.seq} has other statistics of clusters")
        # A round that is out is in the newest image up to some step, and answered again from there.
        states.append({name: each for name, each in state.items() if name not in _OF_A_ROUND})
    found, expected = states[0], states[-1]
    different_parts = [name for name in expected if not _same(found[name], expected[name])]
    return wrong + [f"the model's {name} depends on the snapshot" for name in different_parts]


def _model(reader: SqlReader, stream: str, sent: Expected) -> list[str]:
    if reader.whole(stream) is not None:
        return _replayed(reader, stream)
    calm, told = undisturbed(reader, stream, sent)
    stored = np.concatenate([block.cluster for block in _blocks(reader, stream)])
    first = calm.seq - len(stored) + 1
    lineage = [(e.kind, e.publication, e.seq, e.cluster, e.parents) for e in reader.lineage(stream)]
    publications = [(e.number, e.seq, e.log_joint) for e in reader.publications(stream)]
    n_lineage, n_publications = len(told.lineage), len(told.publications)
    if sent.shed is not None:
        n_lineage = len(lineage)
        n_publications = max(len(publications), min(sent.shed.n_publications, n_publications))
    comparisons: dict[str, tuple[object, object]] = {
        "clusters of the observations": (
            stored.tolist(),
            _last_clusters(told)[first - 1 :].tolist(),
        ),
        "observations that left": (_left(reader, stream), _departed(told, first)),
        "clusters' statistics": (
            _statistics(reader.clusters(stream)),
            _statistics(calm.table.take_changes(1)),
        ),
        "lineage": (
            lineage,
            [
                (e.kind, e.publication, e.seq, e.cluster, e.parents)
                for e in told.lineage[len(told.lineage) - n_lineage :]
            ],
        ),
        "publications": (
            publications,
            [
                (e.number, e.seq, e.log_joint)
                for e in told.publications[len(told.publications) - n_publications :]
            ],
        ),
    }
    wrong = [
        f"the {what} are not the undisturbed run's"
        for what, (found, expected) in comparisons.items()
        if found != expected
    ]
    return wrong + _snapshot(reader, stream, calm)


def undisturbed(reader: SqlReader, stream: str, sent: Expected) -> tuple[Shard, BatchOutcome]:
    """Run the stream's observations through a model of their own, from the first to the last."""
    shard, told = new_shard(reader.spec(stream), sent.cadence, sent.memory), BatchOutcome()
    if sent.shed is not None:
        told.extend(shard.apply(sent.shed.values, 0.0, times=sent.shed.times))
    elif sent.cadence.pace == "yielding":
        told.extend(_remembered(reader, stream, shard))
    else:
        for block in _blocks(reader, stream):
            told.extend(
                shard.apply(block.values, 0.0, times=block.event_time, replaces=block.replaces)
            )
    if sent.concluded:
        told.extend(shard.conclude(0.0))
    return shard, told


def _remembered(reader: SqlReader, stream: str, shard: Shard) -> BatchOutcome:
    told = BatchOutcome()
    shard.pace = Remembered(reader.postponed(stream, 0))
    for publication in reader.publications(stream):
        while shard.seq < publication.seq:
            block = reader.observations(stream, shard.seq, publication.seq - shard.seq)
            assert block is not None
            told.extend(shard.apply(block.values, 0.0, times=block.event_time))
        if shard.publication < publication.number:
            told.extend(shard.go_on(0.0))
    # A stream that is stopped need not have published its last observations.
    while block := reader.observations(stream, shard.seq, BLOCK):
        told.extend(shard.apply(block.values, 0.0, times=block.event_time))
    return told


def _last_clusters(told: BatchOutcome) -> NDArray[np.int64]:
    """The cluster of each observation that came, also of those that have left."""
    clusters = np.concatenate(told.clusters)
    left = np.full(len(clusters), len(clusters) + 1)
    for seq, after in _departed(told, 1).items():
        left[seq - 1] = after
    for change in told.reassigned:
        if isinstance(change, Handover):
            heirs = dict(zip(change.cluster.tolist(), change.heir.tolist(), strict=True))
            gone = np.flatnonzero(left <= change.seq)
            clusters[gone] = [heirs.get(each, each) for each in clusters[gone].tolist()]
        else:
            assert isinstance(change, Reassignment)
            clusters[change.seq - 1] = change.cluster
    return clusters


def _departed(told: BatchOutcome, first: int) -> dict[int, int]:
    """After how many observations each of those left that did."""
    departed = ((seq, each.after_seq) for each in told.departures for seq in each.seq.tolist())
    # What a sample did not take in has left as it came.
    passed = ((seq, seq) for each in told.passed for seq in each.tolist())
    return {seq: after for seq, after in chain(departed, passed) if seq >= first}


def _left(reader: SqlReader, stream: str) -> dict[int, int]:
    seqs = (block.seq.tolist() for block in _blocks(reader, stream))
    rows = (row for block in seqs for row in reader.observed(stream, block))
    return {row.seq: row.left_seq for row in rows if row.left_seq is not None}


def _snapshot(reader: SqlReader, stream: str, calm: Shard) -> list[str]:
    """Compare the newest snapshot, random state included, with the undisturbed run's model."""
    newest = reader.newest_snapshot(stream)
    if newest is None or newest.seq != calm.seq:
        return ["the newest snapshot is not of the stream's end"]
    restored = restored_shard(reader.spec(stream), newest.payload)
    # It may be that of the last batch, which the publications at the end of a source come after.
    while restored.publication < calm.publication:
        restored.go_on(0.0)
    found, expected = restored.state(), calm.state()
    different = [name for name in expected if not _same(found[name], expected[name])]
    return [f"the model's {name} is not the undisturbed run's" for name in different]


def _same(found: NDArray[Any], expected: NDArray[Any]) -> bool:
    # NaN stands for what is not set.
    return np.array_equal(found, expected, equal_nan=expected.dtype.kind == "f")


def _statistics(rows: list[ClusterRow]) -> dict[int, tuple[int, float, list[float]]]:
    return {
        row.cluster: (row.n_observations, row.log_marginal, row.statistics.tolist())
        for row in rows
        if row.retired_publication is None
    }


def _blocks(reader: SqlReader, stream: str) -> Iterator[ObservationBlock]:
    after = 0
    while block := reader.observations(stream, after, BLOCK):
        after = int(block.seq[-1])
        yield block
