"""What must hold of a run when it is over: Jepsen's question, asked of every record."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from weald.storage.commit.commit import LeaseRow
from weald.storage.encoding.snapshot import decode
from weald.storage.errors import SnapshotCorrupt
from weald.storage.redis.statistics import _key, _read
from weald.storage.writing.store import SqlReader
from weald.stream.model.lease_rounds import unpacked
from weald.stream.recovery.recovery import first_difference, is_crossed, replay, usable
from weald.stream.worker.row_pages import RowsKept, pages_named

from .chain import work_by_coins
from .history import Row, key_in
from .processes import NAME, TOPIC
from .redis_store import Commands
from .world import World

__all__ = ["faults_of"]


def faults_of(world: World) -> list[str]:
    """Say everything that is wrong; nothing when the run kept every promise."""
    history = world.history
    if history.faults:
        return history.faults
    reader = world.database.reader()
    if not reader.streams():
        return []
    return [
        *_records(world, reader),
        *_accounts(world, reader),
        *_clusters(world, reader),
        *_statistics(world, reader),
        *_leases(world, reader),
        *_replays(world, reader),
    ]


def _topics(reader: SqlReader) -> dict[int, tuple[str, int]]:
    """Name and partition of each account, by its number in the tables."""
    with reader._transaction() as connection:
        rows = connection.exec_driver_sql("SELECT id, topic, partition FROM offsets").all()
    return {row[0]: (row[1], row[2]) for row in rows}


def _records(world: World, reader: SqlReader) -> list[str]:
    """Every record of the log is once in SQL or among the dead letters; nothing else is."""
    topics, history = _topics(reader), world.history
    placed = [(topics[row.place[1]], row.place[2], row) for row in history.rows]
    placed += [(topics[row.place[1]], row.place[2], row) for row in history.letters.values()]
    counts = Counter((account, offset) for account, offset, _ in placed)
    wrong = [f"{place} is there {n} times" for place, n in counts.items() if n > 1]
    accounts: dict[tuple[str, int], list[tuple[int, Row]]] = {}
    for account, offset, row in placed:
        accounts.setdefault(account, []).append((offset, row))
    for account, rows in accounts.items():
        wrong += _foreign(world, account, rows)
    dead = {(topics[row.place[1]], row.place[2]) for row in history.letters.values()}
    return wrong + _lost(world, set(counts), dead)


def _foreign(world: World, account: tuple[str, int], rows: list[tuple[int, Row]]) -> list[str]:
    """What is in an account comes from the log of one topic, byte by byte."""
    ever, partition = world.broker.ever, account[1]
    strangers = [
        [
            offset
            for offset, row in rows
            if not any(
                row.key is None or key_in(record.value or b"") == row.key
                for record in ever.get((topic_id, partition, offset), ())
            )
        ]
        for topic_id in sorted({place[0] for place in ever})
    ]
    fewest = min(strangers, key=len, default=[])
    return [f"records {fewest} in the account of {account} were never in its log"] if fewest else []


def _lost(
    world: World, there: set[tuple[tuple[str, int], int]], dead: set[tuple[tuple[str, int], int]]
) -> list[str]:
    broker, history = world.broker, world.history
    policy = world.scenario.stream["duplicate_keys"]
    keys = {row.key for row in history.rows}
    wrong = []
    for (topic_id, partition, offset), records in broker.ever.items():
        if topic_id != broker.topic.id or (topic_id, partition, offset) in history.gone:
            continue
        log, place = broker.topic.logs[partition], ((TOPIC, partition), offset)
        record = log.records.get(offset, records[-1])
        # What was truncated away is no record of the log any more.
        if offset >= log.end or (offset not in log.records and history.replaced):
            continue
        # Another record in its place may be one that a producer aborted. And nobody is promised to
        # notice a log that loses its end and gets as many records again while it is read on.
        unseen = partition in history.read_on and (topic_id, partition, offset) in history.rewritten
        if not record.visible or unseen:
            continue
        key = key_in(record.value or b"")
        if place in there:
            if (key is None) != (place in dead):
                wrong.append(f"record {offset} of partition {partition} is in the wrong table")
        elif not (policy == "keep-first" and key in keys):
            wrong.append(f"record {offset} of partition {partition} is lost")
    return wrong


def _accounts(world: World, reader: SqlReader) -> list[str]:
    """Received is inserted, duplicates and dead letters; and so many rows came."""
    topics = _topics(reader)
    n_rows = Counter(topics[row.place[1]] for row in world.history.rows)
    n_dead = Counter(topics[row.place[1]] for row in world.history.letters.values())
    wrong = []
    for each in reader.ledger(NAME):
        place = (each.topic, each.partition)
        told = (each.n_received, each.n_inserted, each.n_dead)
        if each.n_received != each.n_inserted + each.n_duplicate + each.n_dead:
            wrong.append(f"the account of {place} does not add up: {each}")
        if told[1:] != (n_rows[place], n_dead[place]):
            wrong.append(f"the account of {place} says {told}, {n_rows[place]} rows came")
    return wrong


def _clusters(world: World, reader: SqlReader) -> list[str]:
    """Clusters count the observations that are shown in them, in SQL and in Redis."""
    wrong = []
    numbers = [row.number for row in reader.publications(NAME)]
    if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        wrong.append(f"publications {numbers} are not numbered one after the other")
    with reader._transaction() as connection:
        # Of a sample those count, too, that the model does not hold.
        held = "" if world.scenario.memory.get("policy") == "sample" else "WHERE left_seq IS NULL"
        shown = connection.exec_driver_sql(
            f"SELECT cluster, count(*) FROM observations {held} GROUP BY cluster"  # noqa: S608 - our own
        ).all()
        first = connection.exec_driver_sql("SELECT min(seq) FROM observations").scalar()
    rows = {row.cluster: row for row in reader.clusters(NAME)}
    counted = {row[0]: row[1] for row in shown}
    if first == 1 and counted != {each: row.n_observations for each, row in rows.items()}:
        wrong.append(f"clusters say {rows.keys()}, observations are in {counted}")
    return wrong


def _statistics(world: World, reader: SqlReader) -> list[str]:
    """After a start alone, Redis shows what SQL shows."""
    found = Commands(world.redis.store).hgetall(_key(NAME))
    epoch, position = found.pop(b"epoch", None), reader.position(NAME)
    if epoch is None or int(epoch) != position.epoch:
        return [f"Redis shows commit {epoch!r}, SQL is at {position.epoch}"]
    here = {int(cluster): _read(row).statistics.tolist() for cluster, row in found.items()}
    if here != {row.cluster: row.statistics.tolist() for row in reader.clusters(NAME)}:
        return ["Redis shows other statistics than SQL"]
    return []


def _leases(world: World, reader: SqlReader) -> list[str]:
    """What was adopted is what the holder of the lease's own token made of it, and nothing else."""
    # Whoever takes over closes what the one before left open.
    last = reader.last_round(NAME)
    left = {row.round_number for row in reader.leases(NAME, outcome="offered")} - {last}
    wrong = [f"leases of the rounds {left} are open, and round {last} began"] if left else []
    rows: dict[int, list[LeaseRow]] = {}
    for row in reader.leases(NAME):
        rows.setdefault(row.round_number, []).append(row)
    for number, payload in world.history.adopted.items():
        # Of a round that the writer made by itself nothing came back.
        kept = decode(payload)
        returns = unpacked(kept) if kept else []
        returned = sorted(labels.tolist() for _, labels in returns)
        expected = []
        for row in rows.get(number, ()):
            if row.outcome == "adopted":
                offer = world.history.offers[row.round_number, row.number, row.token]
                lease = RowsKept().lease(_Pages(world, offer), offer)  # type: ignore[arg-type]
                assert lease is not None
                expected.append(work_by_coins(lease).labels.tolist())
        if number in rows and returned != sorted(expected):
            wrong.append(f"round {number} adopted what no holder of its leases gave back")
        begun = [row for row in rows.get(number, ()) if row.outcome == "offered"]
        if begun:
            wrong.append(f"round {number} was adopted, and leases of it are still open")
        atoms = [atom for each, _ in returns for atom in each.tolist()]
        if len(atoms) != len(set(atoms)):
            wrong.append(f"round {number} adopted atoms twice")
    return wrong


class _Pages:
    """Rows as the writer sent them, under the checksums that a lease names."""

    def __init__(self, world: World, offer: bytes) -> None:
        self._sent, self._named = world.history.pages, pages_named(decode(offer))

    def pages(self, numbers: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        for number in numbers:
            yield number, self._sent[number, self._named[number]]


def _replays(world: World, reader: SqlReader) -> list[str]:
    """From every snapshot that is kept a replay arrives at the newest, bit for bit."""
    infos = [each for each in reader.snapshots(NAME) if each.number != world.history.damaged]
    wrong: list[str] = []
    if not infos:
        return ["no snapshot is left"]
    position = reader.position(NAME)
    newest = max(infos, key=lambda each: (each.seq, each.number))
    states = []
    for info in infos:
        try:
            shard = usable(reader, NAME, info.number)
        except SnapshotCorrupt as error:
            return [f"snapshot {info.number} cannot be used: {error}"]
        if is_crossed(reader, NAME, shard):
            if info == newest:
                return [f"no start from the newest snapshot {info.number} makes the rounds again"]
            continue
        replay(reader, NAME, shard, position.next_seq - 1, lambda _: None)
        # Whoever starts gives a round up that was out.
        shard.forget_lent()
        different = first_difference(reader, NAME, shard)
        if different is not None:
            wrong.append(f"from snapshot {info.number} observation {different} differs from SQL")
        states.append((info.number, shard.state()))
    last = next(state for number, state in states if number == newest.number)
    for number, state in states:
        names = [
            name
            for name in sorted(set(state) | set(last))
            if name != "lease_rounds"
            and not (
                name in state
                and name in last
                and np.array_equal(state[name], last[name], equal_nan=last[name].dtype.kind == "f")
            )
        ]
        if names:
            wrong.append(f"a replay from snapshot {number} differs from {newest.number} in {names}")
    return wrong
