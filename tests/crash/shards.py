"""Kills the writers of a stream in shards again and again, and counts every record.

    python -m tests.crash.shards                  half a minute of kills
    python -m tests.crash.shards --minutes 30     what a release stands on

Three processes of ``weald run`` share a topic of four partitions on Apache Kafka, in four shards,
while records come all the while. One of the three after the other is killed with SIGKILL at a
random instant and started again. At the end each has to leave in order; then what PostgreSQL holds
of each shard is compared with what was sent to its partition, as the harness does: each observation
there once, and received = inserted + duplicates + dead letters. The shards have rounds with each
other all the while, so that no run is another's: what each shows, its statistics and the model with
its random state have to be what replays come to, bit for bit, from the oldest image and the newest.
What is published is published of all shards: each cluster begins once and ends once, whatever was
killed meanwhile, and sizes add up.

Leaves with 1 when anything was lost, doubled or different.
"""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from kafka import KafkaAdminClient, KafkaProducer

from tests.crash.command import begun
from tests.crash.forked import Run
from tests.crash.ledgers import Expected, faults
from tests.crash.processes import wait_until
from tests.crash.streams import BAD_EVERY, CADENCE, MODEL, SCHEMA, Records, records
from tests.servers.kafka import kafka_broker
from tests.servers.postgresql import database, postgresql_server
from weald.storage.commit.parts import part_name
from weald.storage.errors import StreamNotFound
from weald.storage.queries.whole import WholeReader
from weald.storage.settings import StorageSettings
from weald.storage.sql.migrate import upgrade
from weald.storage.writing.store import SqlReader
from weald.stream.model.model import StreamConfig
from weald.stream.settings import KafkaSettings, StreamSettings

__all__ = ["Outcome", "play"]

NAME = "sharded"
SHARDS = 4
PROCESSES = 3
# Records a second, and seconds between two kills in the mean.
RATE = 100.0
BETWEEN_KILLS = 6.0
# A killed member holds its partitions for as long as the session.
SESSION_MS, HEARTBEAT_MS = 3_000, 500
# Records that come before the first kill, and after the last.
FIRST, LAST = 100 * SHARDS, 10 * SHARDS
# What stands in a log before a process begins, and what it says once it runs.
STARTED, RUNS = "--- started\n", "reading topic"
# Else load decides what is refined when.
COUNTED = msgspec.structs.replace(CADENCE, pace="counted")


@dataclass
class Outcome:
    """What it came to.

    Attributes
    ----------
    n_kills, n_records, n_rounds, n_publications
    owners
        How many processes wrote shards, each time that it was looked.
    faults
    """

    n_kills: int = 0
    n_records: int = 0
    n_rounds: int = 0
    n_publications: int = 0
    owners: list[int] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def play(folder: Path, bootstrap: str, url: str, seconds: float, seed: int) -> Outcome:
    """Kill for so long; say what is wrong then.

    Parameters
    ----------
    folder : Path
        Of logs and configurations.
    bootstrap : str
    url : str
        Of an empty database.
    seconds : float
    seed : int
        Of who is killed when.
    """
    topic = f"{NAME}-{seed}"
    upgrade(StorageSettings(url=url))
    administrator = KafkaAdminClient(bootstrap_servers=bootstrap)
    administrator.create_topics({topic: {"num_partitions": SHARDS, "replication_factor": 1}})
    administrator.close()
    sent = records(FIRST + round(RATE * seconds) + LAST)
    runs = [_run(folder, bootstrap, topic, url, number) for number in range(PROCESSES)]
    outcome = Outcome(n_records=len(sent.lines))
    n = len(sent.lines)
    during = (sent, topic, bootstrap, range(FIRST, n - LAST))
    producing = threading.Thread(target=_produce, args=during, daemon=True)
    processes = [_begun(run) for run in runs]
    try:
        _produce(sent, topic, bootstrap, range(FIRST))
        with SqlReader(StorageSettings(url=url)) as reader:
            wait_until(lambda: _read(reader) == FIRST, "the first records are in SQL", 60.0)
            producing.start()
            _kill(processes, runs, reader, seconds, random.Random(seed), outcome)  # noqa: S311
            producing.join()
            wait_until(lambda: all(map(_runs, processes, runs)), "all processes run", 60.0)
            wait_until(lambda: len(_owners(reader)) == PROCESSES, "all have a shard", 60.0)
            # Whoever has a shard now has to show it.
            _produce(sent, topic, bootstrap, range(n - LAST, n))
            wait_until(lambda: _read(reader) == n, "all records are in SQL", 180.0)
            outcome.faults += _stopped(processes)
            newest = reader.shard_round(NAME)
            outcome.n_rounds = 0 if newest is None else newest.number
            for shard in range(SHARDS):
                wrong = faults(reader, part_name(NAME, shard), _expected(sent, shard))
                outcome.faults += [f"shard {shard}: {each}" for each in wrong]
            published = reader.publications(NAME, limit=1)
            outcome.n_publications = published[-1].number if published else 0
            outcome.faults += _of_the_whole(reader, outcome.n_publications)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return outcome


def _of_the_whole(reader: SqlReader, newest: int) -> list[str]:
    """What is wrong with what all shards show, whose newest publication has that number."""
    parts = reader.parts(NAME)
    whole = WholeReader(reader, NAME)
    begun: Counter[int] = Counter()
    ended: Counter[int] = Counter()
    wrong = []
    for event in whole.lineage(NAME):
        begun[event.cluster] += event.kind in ("birth", "split")
        ended[event.cluster] += event.kind == "retire"
        if not {event.cluster, *event.parents} <= set(+begun):
            wrong.append(f"a cluster of {event} never began")
    wrong += [f"cluster {each} began {n} times" for each, n in begun.items() if n != 1]
    wrong += [f"cluster {each} ended {n} times" for each, n in ended.items() if n > 1]
    rows = whole.clusters(NAME)
    n = sum(row.n_observations for row in rows)
    if n != (sent := whole.status(NAME).n_inserted):
        wrong.append(f"clusters have {n} observations of {sent}")
    for part in parts.values():
        told = reader.publications(part, limit=1)
        # One round's last step may be done by some shards only.
        if (told[-1].number if told else 0) < newest - 1:
            wrong.append(f"{part} shows publication {told}, and the newest is {newest}")
    strangers = {row.cluster for row in rows} - set(+begun)
    return wrong + [f"cluster {each} is shown and never began" for each in sorted(strangers)]


def _run(folder: Path, bootstrap: str, topic: str, url: str, number: int) -> Run:
    stream = StreamSettings(
        name=NAME,
        shards=SHARDS,
        batch_records=32,
        poll_seconds=0.05,
        snapshot_records=150,
        takeover_seconds=0.0,
        dead_letter_topic=False,
    )
    kafka = KafkaSettings(
        bootstrap_servers=bootstrap,
        topic=topic,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    plan = StreamConfig(stream, SCHEMA, MODEL, COUNTED)
    return Run(plan, url, folder / f"process{number}.log", kafka, {})


def _produce(sent: Records, topic: str, bootstrap: str, which: range) -> None:
    """Send some records at their rate, the i-th to partition i modulo their number."""
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    began = time.monotonic()
    for i in which:
        time.sleep(max(began + (i - which.start) / RATE - time.monotonic(), 0.0))
        producer.send(topic, value=sent.lines[i], partition=i % SHARDS)
    producer.close()


def _kill(
    processes: list[subprocess.Popen[bytes]],
    runs: list[Run],
    reader: SqlReader,
    seconds: float,
    draw: random.Random,
    outcome: Outcome,
) -> None:
    """Kill one process after the other at random instants, and start it again."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(draw.expovariate(1.0 / BETWEEN_KILLS), left))
        outcome.owners.append(len(_owners(reader)))
        at = outcome.n_kills % PROCESSES
        processes[at].kill()
        if processes[at].wait() != -signal.SIGKILL:
            outcome.faults.append(f"process {at} had left with {processes[at].returncode}")
        outcome.n_kills += 1
        time.sleep(draw.uniform(0.0, 1.0))
        processes[at] = _begun(runs[at])


def _runs(process: subprocess.Popen[bytes], run: Run) -> bool:
    """Whether the process has come so far that it would leave in order."""
    said = run.log.read_text(errors="replace")
    return process.poll() is None and RUNS in said.rpartition(STARTED)[2]


def _begun(run: Run) -> subprocess.Popen[bytes]:
    with run.log.open("a") as log:
        log.write(STARTED)
    return begun(run)


def _owners(reader: SqlReader) -> set[str]:
    """The processes that wrote a shard last; the name of a member ends in its process's."""
    owners = (reader.position(part).owner for part in _parts(reader))
    return {owner.partition(" of group ")[0].rpartition("-")[2] for owner in owners}


def _parts(reader: SqlReader) -> list[str]:
    try:
        return list(reader.parts(NAME).values())
    except StreamNotFound:
        return []


def _read(reader: SqlReader) -> int:
    return sum(row.n_received for part in _parts(reader) for row in reader.ledger(part))


def _stopped(processes: list[subprocess.Popen[bytes]]) -> list[str]:
    """End all in order, and say who did not leave so."""
    for process in processes:
        process.send_signal(signal.SIGTERM)
    codes = [process.wait(60.0) for process in processes]
    return [f"process {at} left with {code}" for at, code in enumerate(codes) if code]


def _expected(sent: Records, shard: int) -> Expected:
    """What was sent to the shard's partition."""
    good = [i for i in range(len(sent.lines)) if i % BAD_EVERY != BAD_EVERY - 1]
    keys = [key for i, key in zip(good, sent.keys, strict=True) if i % SHARDS == shard]
    n = len(sent.lines[shard::SHARDS])
    return Expected(Counter(keys), n - len(keys), {shard: n}, COUNTED, concluded=False)


def main() -> None:
    """Play for as long as was asked for and print what came of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="weald-shards-") as folder,
        postgresql_server() as server,
        database(server, NAME) as url,
        kafka_broker(Path(folder)) as broker,
    ):
        seconds = 60.0 * options.minutes
        outcome = play(Path(folder), broker.address, url, seconds, options.seed)
        if outcome.faults:
            for log in sorted(Path(folder).glob("process*.log")):
                sys.stderr.write(f"{log.name}: ...{log.read_text(errors='replace')[-8_000:]}\n")
    told = Counter(outcome.owners)
    sys.stdout.write(
        f"{outcome.n_kills} kills, {outcome.n_records} records, "
        f"{outcome.n_rounds} rounds, {outcome.n_publications} publications, "
        f"{len(outcome.faults)} faults; "
        f"processes that wrote shards, and how often: {dict(sorted(told.items()))}\n"
    )
    sys.stdout.writelines(f"  {fault}\n" for fault in outcome.faults)
    sys.exit(1 if outcome.faults else 0)


if __name__ == "__main__":
    main()
