"""Streams on shards, far from their servers: what a round costs, and a record.

    python -m benchmarks.shard_streams                            1, 2, 4 and 8 shards
    python -m benchmarks.shard_streams --shards 8 --delays 0,20 --output eight.json

Starts Apache Kafka and PostgreSQL, whose commits are durable, and for each number of shards and
each delay a stream of its own, in four processes of ``weald run`` at most. All that these say
to either server goes through a relay that holds it for so many milliseconds each way
(`benchmarks.delay_line`).

Records are eight numbers of ten normal clusters, some of which are near each other. At first
``--records`` of each shard wait in the topic: the clock runs from the moment at which all shards
have committed some until all are in; ``rate`` is how many a second, ``us`` processor microseconds
of each, of Weald, of PostgreSQL and of Kafka. Then they come at ``--rate`` a second and shard, and
wait no more. Once a round has ended, and for ``--seconds`` at least, ``round`` is the median time
in seconds of a round from its first report to its last turn, by the times of commits, ``step`` that
from one question to the next in milliseconds. ``cpu`` are processor seconds of that time, of Weald,
of PostgreSQL and of Kafka, and ``trips`` how often all shards have waited for PostgreSQL; ``own``
and ``all`` are the blocks of a shard, in the mean, and of all.

kB are those of payloads, of a round and all shards: what they report; are told of blocks to draw,
and draw; tell of anchors; are told of pairs, and tell of sides; are told for their turns; write
down of these. Of those rounds that are published: items, what is shown of them, and sums with
members. ``trip`` is what a question to PostgreSQL takes through the relay, in milliseconds. Of all
times whatever else the machine does has its part; ``load`` is that of the last minute, with this.
"""

import argparse
import json
import math
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import psycopg
from kafka import KafkaAdminClient

from benchmarks.delay_line import DelayLine
from benchmarks.end_to_end import encoded, produce
from benchmarks.process_memory import mebibytes
from benchmarks.shard_rounds import made
from benchmarks.shards import processor_seconds
from benchmarks.storage_commit import durable
from tests.crash.command import begun
from tests.crash.forked import Run
from tests.crash.processes import wait_until
from tests.servers.kafka import kafka_broker
from tests.servers.postgresql import database, postgresql_server
from tests.servers.server import Server
from weald.mcmc.settings import ModelSettings, RefinementSettings
from weald.mcmc.sharded.round_steps import ANCHORS, ITEMS, REDRAW, REPORT, shown_step, turn_step
from weald.storage.commit.shard_rows import ANSWERED
from weald.storage.errors import StreamNotFound
from weald.storage.settings import StorageSettings
from weald.storage.sql.migrate import upgrade
from weald.storage.writing.store import SqlReader
from weald.stream.model.model import StreamConfig
from weald.stream.settings import FieldSettings, KafkaSettings, SchemaSettings, StreamSettings

NAME = "benchmark"
D, CLUSTERS, DISTANCE = 8, 10, 2.0
PATIENCE_SECONDS = 300.0
CADENCE = RefinementSettings(
    every_records=100, publish_every_records=200, quiet_seconds=0.0, publish_every_seconds=0.0
)
KINDS = ("reports", "blocks", "anchors", "sides", "turns", "kept", "items", "shown", "members")
# What is said in a round, as it is written: when, and how long it is.
_MEASURED = """
CREATE TABLE measured (round bigint, step int, shard int, direction text, n_bytes int);
CREATE FUNCTION measure_message() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO measured VALUES
        (NEW.round_number, NEW.step, NEW.shard, NEW.direction, octet_length(NEW.payload));
    RETURN NULL; END $$;
CREATE FUNCTION measure_turn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO measured SELECT NEW.round_number, 0, streams.shard, 'kept',
        octet_length(NEW.payload) FROM streams WHERE id = NEW.stream_id;
    RETURN NULL; END $$;
CREATE TRIGGER measured AFTER INSERT ON shard_messages
    FOR EACH ROW EXECUTE FUNCTION measure_message();
CREATE TRIGGER measured AFTER INSERT ON adoptions FOR EACH ROW EXECUTE FUNCTION measure_turn();
"""
_SAID = """
SELECT round, step, shard, direction, n_bytes,
       extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8 FROM measured"""


class Said(NamedTuple):
    """One message of a round, or what a shard has written down of its turn."""

    round: int
    step: int
    shard: int
    direction: str
    n_bytes: int
    committed_at: float


@dataclass
class During:
    """What some time of a stream came to, and when it began.

    ``cost`` are processor seconds, of Weald, PostgreSQL and Kafka, and trips to PostgreSQL.
    """

    records: int
    seconds: float
    rounds: int
    cost: list[float]
    began: float


class Ways(NamedTuple):
    """The relays to both servers, and the servers."""

    to_kafka: DelayLine
    to_sql: DelayLine
    broker: Server
    server: Server

    def cost(self, processes: Iterable[subprocess.Popen[bytes]]) -> list[float]:
        """Processor seconds so far: of Weald, PostgreSQL and Kafka; and trips to PostgreSQL."""
        weald = sum(processor_seconds(each.pid) for each in processes)
        sql = sum(map(processor_seconds, _family_of(self.server.pid)))
        return [weald, sql, processor_seconds(self.broker.pid), float(self.to_sql.n_trips)]


@dataclass
class Outcome:
    """What one number of shards came to under one delay; see the head of this file."""

    shards: int
    delay_ms: float
    trip_ms: float = 0.0
    records: int = 0
    taken_in: int = 0
    waited: During | None = None
    came: During | None = None
    round_seconds: list[float] = field(default_factory=list)
    step_seconds: dict[int, float] = field(default_factory=dict)
    kilobytes: dict[str, float] = field(default_factory=dict)
    blocks: tuple[float, int] = (0.0, 0)
    load: float = 0.0
    resident_mb: float = 0.0

    def row(self) -> str:
        """As a line of the table."""
        waited, came = self.waited, self.came
        assert waited
        assert came
        steps = [1e3 * each for step, each in self.step_seconds.items() if step != REPORT]
        told = [
            f"{self.shards:>6} {self.delay_ms:>5g} {self.trip_ms:>5.1f}",
            f"{waited.records / waited.seconds:>7.0f}",
            *(f"{1e6 * each / max(waited.records, 1):>5.0f}" for each in waited.cost[:3]),
            *(f"{each.rounds:>4} in {each.seconds:>4.1f} s" for each in (waited, came)),
            f"{median(self.round_seconds or [math.nan]):>6.2f} {median(steps or [math.nan]):>5.0f}",
            *(f"{each:>5.1f}" for each in came.cost[:3]),
            f"{came.cost[3]:>6.0f} {self.blocks[0]:>4.0f} {self.blocks[1]:>4}",
            *(f"{self.kilobytes.get(kind, math.nan):>7.1f}" for kind in KINDS),
            f"{self.load:>5.1f} {self.taken_in} of {self.records}",
        ]
        return " ".join(told)


HEAD = (
    f"{'shards':>6} {'delay':>5} {'trip':>5} {'rate':>7} {'us':>5} {'sql':>5} {'kafka':>5} "
    f"{'rounds':>14} {'rounds':>14} {'round':>6} {'step':>5} {'cpu':>5} {'sql':>5} {'kafka':>5} "
    f"{'trips':>6} {'own':>4} {'all':>4} "
    + " ".join(f"{kind:>7}" for kind in KINDS)
    + "  load taken in"
)


def kind_of(said: Said, n_shards: int) -> str:
    """Of which kind a message is."""
    last = turn_step(n_shards)
    named = {REPORT: "reports", ITEMS: "items", REDRAW: "blocks", ANCHORS: "anchors"}
    if said.direction == "kept":
        return "kept"
    if said.step == shown_step(n_shards):
        return "shown" if said.direction == "asked" else "members"
    return "turns" if said.step == last else named.get(said.step, "sides")


class Coming:
    """Records that come at a rate until it is said that they are enough."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self.n, self._lines, self._enough = 0, lines, threading.Event()

    def send(self, topic: str, kafka: KafkaSettings, rate: float) -> None:
        """Begin, beside what else is done."""
        to = (topic, self._each(), kafka, rate)
        self._thread = threading.Thread(target=produce, args=to, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Send no more; all that were sent are in the topic then."""
        self._enough.set()
        self._thread.join()

    def _each(self) -> Iterator[bytes]:
        for line in self._lines:
            if self._enough.is_set():
                return
            self.n += 1
            yield line


class Watch:
    """What a stream has come to so far."""

    def __init__(self, ways: Ways, url: str, n_shards: int) -> None:
        self._ways, self.n_shards = ways, n_shards
        self._own = psycopg.connect(url.replace("+psycopg", ""), autocommit=True)
        self.reader = SqlReader(StorageSettings(url=url))
        self.processes: list[subprocess.Popen[bytes]] = []
        self._own.execute(_MEASURED.encode())

    def close(self) -> None:
        """End the processes and the connections."""
        for process in self.processes:
            process.kill()
            process.wait()
        self._own.close()
        self.reader.close()

    def names(self) -> Sequence[str]:
        """Of the shards that have begun, or of the stream in one piece."""
        try:
            return list(self.reader.parts(NAME).values()) or [NAME]
        except StreamNotFound:
            return []

    def received(self) -> list[int]:
        """How many records each shard that has begun has received."""
        return [sum(row.n_received for row in self.reader.ledger(each)) for each in self.names()]

    def all_have_begun(self) -> bool:
        """Whether each shard has received some."""
        return len(received := self.received()) == self.n_shards and all(received)

    def blocks(self) -> tuple[float, int]:
        """How many blocks a shard has in the mean, by the newest reports, and all together."""
        newest = self.reader.shard_round(NAME) if self.n_shards > 1 else None
        if newest is None:
            n = len(self.reader.clusters(NAME))
            return float(n), n
        answers = self.reader.shard_messages(NAME, newest.number, ANSWERED)
        names = [each.payload["blocks.names"] for each in answers if each.step == REPORT]
        return float(np.mean([each.size for each in names])), np.unique(np.concatenate(names)).size

    def said(self) -> list[Said]:
        """All that was said in rounds."""
        return [Said(*row) for row in self._own.execute(_SAID.encode())]

    def rounds(self, since: float) -> int:
        """How many rounds have begun since then, and have ended."""
        return len(times_of(self.said(), self.n_shards, since))

    def during(self, wait: Callable[[float], None]) -> During:
        """What it costs until something has happened; ``wait`` is told when it began."""
        n, began, cost = sum(self.received()), time.time(), self._ways.cost(self.processes)
        wait(began)
        spent = [now - was for now, was in zip(self._ways.cost(self.processes), cost, strict=True)]
        seconds = time.time() - began
        return During(sum(self.received()) - n, seconds, self.rounds(began), spent, began)

    def stop(self) -> None:
        """End the processes in order."""
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        if codes := [code for each in self.processes if (code := each.wait(60.0))]:
            raise RuntimeError(f"processes left with {codes}")


def measure(ways: Ways, url: str, folder: Path, outcome: Outcome, asked: Any) -> None:
    """Run the stream, and fill the outcome."""
    n_shards, topic = outcome.shards, f"{NAME}-{outcome.shards}-{outcome.delay_ms:g}"
    waiting, rate = asked.records * n_shards, asked.rate * n_shards
    most = 3.0 * PATIENCE_SECONDS
    lines = encoded(made(waiting + round(rate * most), CLUSTERS, DISTANCE, D)[0], packed=False)
    upgrade(StorageSettings(url=url))
    address = f"127.0.0.1:{ways.to_kafka.port}"
    kafka = KafkaSettings(bootstrap_servers=address, topic=topic)
    administrator = KafkaAdminClient(bootstrap_servers=address)
    administrator.create_topics({topic: {"num_partitions": n_shards, "replication_factor": 1}})
    administrator.close()
    produce(topic, lines[:waiting], kafka)
    ways.to_kafka.seconds = ways.to_sql.seconds = outcome.delay_ms / 1e3
    far = url.replace(ways.server.address, f"127.0.0.1:{ways.to_sql.port}")
    outcome.trip_ms = 1e3 * _trip_seconds(far)
    with closing(Watch(ways, url, n_shards)) as watch:
        for number in range(min(n_shards, asked.processes)):
            run = _run(folder / f"{topic}.{number}.log", far, kafka, n_shards)
            watch.processes.append(begun(run))

        def all_is_in(_: float) -> None:
            wait_until(lambda: sum(watch.received()) >= waiting, "all is in", PATIENCE_SECONDS)

        def enough(since: float) -> None:
            rounds = asked.rounds if n_shards > 1 else 0
            until = time.time() + asked.seconds
            wait_until(
                lambda: time.time() > until and watch.rounds(since) >= rounds,
                "rounds have ended",
                PATIENCE_SECONDS,
            )

        wait_until(watch.all_have_begun, "all shards have begun", PATIENCE_SECONDS)
        outcome.waited = watch.during(all_is_in)
        coming = Coming(lines[waiting:])
        coming.send(topic, kafka, rate)
        settled, one = time.time(), min(n_shards - 1, 1)
        wait_until(lambda: watch.rounds(settled) >= one, "a round has ended", PATIENCE_SECONDS)
        outcome.came = watch.during(enough)
        said = watch.said()
        coming.stop()
        outcome.records = waiting + coming.n
        wait_until(
            lambda: sum(watch.received()) == outcome.records, "the last are in", PATIENCE_SECONDS
        )
        outcome.resident_mb = max(mebibytes(each.pid, "RssAnon") for each in watch.processes)
        watch.stop()
        outcome.load, outcome.blocks = os.getloadavg()[0], watch.blocks()
        ledgers = [row for name in watch.names() for row in watch.reader.ledger(name)]
        outcome.taken_in = sum(row.n_inserted for row in ledgers)
    _tell(outcome, said)


def _run(log: Path, url: str, kafka: KafkaSettings, n_shards: int) -> Run:
    stream = StreamSettings(
        name=NAME, shards=n_shards, batch_records=500, takeover_seconds=0.0, dead_letter_topic=False
    )
    schema = SchemaSettings(fields=tuple(FieldSettings(f"x{at}") for at in range(D)), key="id")
    return Run(StreamConfig(stream, schema, ModelSettings(), CADENCE), url, log, kafka, {})


def _trip_seconds(url: str) -> float:
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as far:
        taken = []
        for _ in range(20):
            began = time.perf_counter()
            far.execute("SELECT 1")
            taken.append(time.perf_counter() - began)
    return median(taken)


def _family_of(parent: int) -> Iterable[int]:
    """The process and its children, by their ids."""
    yield parent
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    yield from map(int, listed.split())


def times_of(
    said: Sequence[Said], n_shards: int, after: float
) -> Mapping[int, tuple[float, float]]:
    """Beginning and end of each round that has ended, of those begun later than that."""
    ends: dict[int, list[float]] = {}
    begins: dict[int, float] = {}
    for each in said:
        if each.direction == "kept":
            ends.setdefault(each.round, []).append(each.committed_at)
        elif each.step == REPORT:
            begins[each.round] = min(each.committed_at, begins.get(each.round, math.inf))
    return {
        number: (begins[number], max(found))
        for number, found in sorted(ends.items())
        if len(found) == n_shards and begins[number] >= after
    }


def _tell(outcome: Outcome, said: Sequence[Said]) -> None:
    """Times and bytes of the rounds that were begun and ended since then."""
    n_shards, came = outcome.shards, outcome.came
    times = times_of(said, n_shards, came.began if came else math.inf)
    outcome.round_seconds = [end - begin for begin, end in times.values()]
    asked = {
        (each.round, each.step): each.committed_at for each in said if each.direction == "asked"
    }
    steps: dict[int, list[float]] = {}
    for number, (begin, end) in times.items():
        at = sorted(step for of, step in asked if of == number and step <= turn_step(n_shards))
        moments = [begin, *(asked[number, step] for step in at), end]
        for step, since, until in zip([REPORT, *at], moments, moments[1:], strict=False):
            steps.setdefault(step, []).append(until - since)
    outcome.step_seconds = {step: median(found) for step, found in sorted(steps.items())}
    for kind in KINDS:
        of_kind = [each for each in said if each.round in times and kind_of(each, n_shards) == kind]
        rounds = {each.round for each in of_kind}
        if rounds:
            outcome.kilobytes[kind] = sum(each.n_bytes for each in of_kind) / len(rounds) / 1e3


def main() -> None:
    """Print a line for each number of shards and delay."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shards", default="1,2,4,8")
    parser.add_argument("--delays", default="0,5,20", help="milliseconds each way")
    parser.add_argument("--records", type=int, default=6_000, help="that wait, of a shard")
    parser.add_argument("--rate", type=float, default=40.0, help="records a second and shard")
    parser.add_argument("--seconds", type=float, default=24.0, help="for which they come")
    parser.add_argument("--rounds", type=int, default=3, help="that are to end in them at least")
    parser.add_argument("--processes", type=int, default=4, help="at most, of weald run")
    parser.add_argument("--output", type=Path, help="JSON of all that was measured")
    asked = parser.parse_args()
    print(HEAD, flush=True)
    outcomes = []
    with (
        tempfile.TemporaryDirectory(prefix="weald-shard-streams-") as made_folder,
        DelayLine() as to_kafka,
        DelayLine() as to_sql,
        postgresql_server(lambda *_: {"track_commit_timestamp": "on"}) as server,
        kafka_broker(Path(made_folder), reached_at=to_kafka.port) as broker,
    ):
        durable(server)
        ways = Ways(to_kafka.to(broker.port), to_sql.to(server.port), broker, server)
        for n_shards in map(int, asked.shards.split(",")):
            for delay in map(float, asked.delays.split(",")):
                outcome = Outcome(n_shards, delay)
                with database(server, f"{NAME}-{n_shards}-{delay:g}") as url:
                    measure(ways, url, Path(made_folder), outcome, asked)
                outcomes.append(asdict(outcome))
                print(outcome.row(), flush=True)
                if asked.output is not None:
                    asked.output.write_text(json.dumps(outcomes, indent=1) + "\n")


if __name__ == "__main__":
    main()
