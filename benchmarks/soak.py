"""A service that runs for an hour while everything around it, and it itself, dies: the soak.

    python -m benchmarks.soak --minutes 60 --window 4000   an hour, 8 records a second
    python -m benchmarks.soak --minutes 3 --rate 20 --output soak.json

`weald run` reads a topic of Apache Kafka into PostgreSQL and shows its statistics in Redis; all are
real programs, started here. At even distances one fault after another strikes: SIGKILL and SIGTERM
of the service, a PostgreSQL that is killed or away for a while, a Redis that is flushed or
restarted, a broker that is killed, a burst of twenty times the rate for a sixtieth of the time.
When all records are through, SQL is compared with what was sent and with an undisturbed run of the
same observations, bit for bit, by the crash harness's own checks.

PostgreSQL, and later Redis, is away for minutes once (`--outage`); what `/readyz` says meanwhile is
among the figures.

The service's memory is sampled throughout and told by the minute. With `--window` the model
forgets, so it can and must stay flat: the median of the last third of the minutes is at most 2 %
above that of the third before. Samples of a process's first minute do not count: it is loading.
"""

import argparse
import http.client
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.process_memory import mebibytes
from tests.crash.ledgers import Expected, faults
from tests.servers.kafka import kafka_broker
from tests.servers.postgresql import database, postgresql_server
from tests.servers.redis import redis_server
from tests.servers.server import Server, free_port
from weald.mcmc.settings import RefinementSettings
from weald.storage.errors import StorageError
from weald.storage.settings import StorageSettings
from weald.storage.writing.store import SqlReader
from weald.stream.settings import MemorySettings

NAME, TOPIC, N_PARTITIONS = "soak", "soak", 4
# Records of a topic come first, as by default; what was put off, and what was published out of
# turn, the comparison replays from SQL.
CADENCE = RefinementSettings(
    every_records=500, publish_every_records=1000, rounds=1, pace="yielding"
)
BAD_EVERY = 500
BURST = 20
# Of the whole time, from one fault to the next; and how long what is away stays away.
N_FAULTS = 28
AWAY_SECONDS = 10.0
SAMPLE_SECONDS = 5.0
FLUSH_SECONDS = 300.0
SETTLED_SECONDS = 60.0
FLAT_SHARE = 0.02
PATIENT_STARTS = 3
# The faults instead of which PostgreSQL and Redis are away for long.
LONG_POSTGRESQL, LONG_REDIS = 9, 17


@dataclass
class Feed:
    """Sends observations of six clusters; remembers what it has sent."""

    bootstrap: str
    memory: MemorySettings
    sent: list[int] = field(default_factory=lambda: [0] * N_PARTITIONS)
    n_dead: int = 0

    def __post_init__(self) -> None:
        from kafka import KafkaAdminClient, KafkaProducer

        administrator = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        administrator.create_topics(
            {TOPIC: {"num_partitions": N_PARTITIONS, "replication_factor": 1}}
        )
        administrator.close()
        # Idempotent, so that a broker's death neither loses nor doubles a record on its way in.
        self._producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            delivery_timeout_ms=600_000,
            max_block_ms=600_000,
        )
        self._draw = np.random.default_rng(11)
        self._centres = self._draw.normal(size=(6, 3)) * 12.0

    @property
    def n_sent(self) -> int:
        """Records so far."""
        return sum(self.sent)

    def send(self, n: int) -> None:
        """Send the next records."""
        for _ in range(n):
            number = self.n_sent
            x = self._centres[self._draw.integers(6)] + self._draw.normal(size=3)
            record = {"id": f"k{number}", "x": x.tolist()}
            if number % BAD_EVERY == BAD_EVERY - 1:
                record["x"] = "far"
                self.n_dead += 1
            partition = number % N_PARTITIONS
            self._producer.send(TOPIC, value=json.dumps(record).encode(), partition=partition)
            self.sent[partition] += 1

    def close(self) -> Expected:
        """Wait for the broker to have all of it, and say what that was."""
        self._producer.flush()
        self._producer.close()
        numbers = range(self.n_sent)
        keys = Counter(f"k{i}" for i in numbers if i % BAD_EVERY != BAD_EVERY - 1)
        ends = dict(enumerate(self.sent))
        return Expected(keys, self.n_dead, ends, CADENCE, concluded=False, memory=self.memory)


@dataclass
class Service:
    """`weald run`, started again whenever it is gone."""

    config: Path
    log: Path
    port: int
    restarts: int = -1
    started: float = 0.0
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        self.restarts += 1
        self.started = time.monotonic()
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "weald.cli.main", "run", "--verbose"]
            self._process = subprocess.Popen(
                [*command, "--config", str(self.config)], stdout=log, stderr=log
            )

    @property
    def process_id(self) -> int:
        """Of the one that was started last."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """The last resort."""
        if self._process is not None:
            self._process.kill()

    def end(self, number: signal.Signals) -> None:
        """Send it a signal and wait for its end."""
        assert self._process is not None
        self._process.send_signal(number)
        status = self._process.wait(120.0)
        # Before it has come as far as to listen for it, SIGTERM ends it like any process.
        fine = {0, -number} if number == signal.SIGTERM else {-number}
        assert status in fine, f"the service left with {status}; see {self.log}"

    def alive(self) -> None:
        """Fail when it has left on its own."""
        assert self._process is not None
        status = self._process.poll()
        assert status is None, f"the service left with {status}; see {self.log}"

    def unready(self) -> list[str]:
        """What is not as it should be, by its own words."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5.0)
        try:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            conditions = json.loads(answer.read())["conditions"]
        except OSError:
            return ["not started yet"]
        finally:
            connection.close()
        return [
            f"{answer.status}, {each['name']}: {each['reason']}"
            for each in conditions
            if not each["ok"]
        ]

    def resident_megabytes(self) -> float:
        """Memory that it holds now."""
        return mebibytes(self.process_id)


@dataclass
class Soak:
    """The run: what is fed, what is served, and what was seen.

    Parameters
    ----------
    feed : Feed
    service : Service
    url : str
        Of the database.
    rate : float
        Records a second.
    output : Path or None
        What was seen so far is kept there.
    """

    feed: Feed
    service: Service
    url: str
    rate: float
    output: Path | None = None
    samples: list[dict[str, float]] = field(default_factory=list)
    struck: list[str] = field(default_factory=list)
    longest_lag: int = 0
    outages: list[dict[str, object]] = field(default_factory=list)
    _began: float = field(default_factory=time.monotonic)
    _sampled: float = 0.0

    def run(self, seconds: float, rate: float) -> None:
        """Feed at a steady rate for so long, sampling."""
        began, sent = time.monotonic(), 0
        while (passed := time.monotonic() - began) < seconds:
            due = int(rate * passed) - sent
            self.feed.send(due)
            sent += due
            self.sample()
            time.sleep(0.25)

    def sample(self) -> None:
        """Note memory and progress, once every so many seconds."""
        now = time.monotonic()
        if now - self._sampled < SAMPLE_SECONDS:
            return
        self._sampled = now
        self.service.alive()
        n = self.inserted()
        if n is not None:
            self.longest_lag = max(self.longest_lag, self.feed.n_sent - self.feed.n_dead - n)
        # Where SQL does not answer nothing has come in since.
        known = self.samples[-1]["observations"] if self.samples else 0
        self.samples.append(
            {
                "seconds": round(now - self._began, 1),
                "observations": known if n is None else n,
                "megabytes": round(self.service.resident_megabytes(), 1),
                "run": self.service.restarts,
                "run_seconds": round(now - self.service.started, 1),
            }
        )

        if self.output is not None:
            seen = {"samples": self.samples, "outages": self.outages, "struck": self.struck}
            self.output.write_text(json.dumps(seen))

    def outage(self, server: Server, seconds: float) -> None:
        """Keep a server away for so long; note what the service says, and when it has caught up."""
        behind, said = self.longest_lag, set()
        server.stop()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.run(min(5.0, max(end - time.monotonic(), 0.0)), self.rate)
            said.update(self.service.unready())
        n_sent = self.feed.n_sent - self.feed.n_dead
        back(server)
        began = time.monotonic()
        while self.service.unready() or (self.inserted() or 0) < n_sent:
            assert time.monotonic() - began < FLUSH_SECONDS, f"{server.name} is back, nothing else"
            self.run(0.5, self.rate)
        caught_up = time.monotonic() - began
        self.outages.append(
            {
                "server": server.name,
                "seconds_away": round(seconds, 1),
                "readyz": sorted(said),
                "longest_lag_before": behind,
                "longest_lag_now": self.longest_lag,
                "seconds_until_caught_up": round(caught_up, 1),
            }
        )

    def inserted(self) -> int | None:
        """Observations in SQL; None while it does not answer."""
        try:
            with SqlReader(StorageSettings(url=self.url, connect_timeout_seconds=2.0)) as reader:
                if NAME not in reader.streams():
                    return 0
                return sum(row.n_inserted for row in reader.ledger(NAME))
        except StorageError:
            return None

    def drain(self) -> Expected:
        """Feed no more and wait until SQL has everything."""
        expected = self.feed.close()
        end = time.monotonic() + FLUSH_SECONDS
        while self.inserted() != len(expected.keys):
            assert time.monotonic() < end, f"{self.inserted()} of {len(expected.keys)} arrived"
            self.service.alive()
            time.sleep(1.0)
        self.service.end(signal.SIGTERM)
        return expected


def back(server: Server) -> None:
    """Start a server again; beside others' work that takes longer than a test would wait."""
    for _ in range(PATIENT_STARTS):
        with suppress(TimeoutError):
            server.start()
            return
    server.start()


def strikes(
    soak: Soak, postgresql: Server, redis: Server, kafka: Server
) -> list[tuple[str, Callable[[float], None]]]:
    """The faults by name; each takes how long things stay away."""

    def killed(_: float) -> None:
        soak.service.end(signal.SIGKILL)
        soak.service.start()

    def stopped(_: float) -> None:
        soak.service.end(signal.SIGTERM)
        soak.service.start()

    def away(server: Server, *, kill: bool) -> Callable[[float], None]:
        def strike(seconds: float) -> None:
            (server.kill if kill else server.stop)()
            soak.run(seconds, soak.rate)
            back(server)

        return strike

    def flushed(_: float) -> None:
        from redis import Redis

        with Redis.from_url(f"redis://{redis.address}/0") as client:
            client.flushall()

    def burst(seconds: float) -> None:
        soak.run(6 * seconds, BURST * soak.rate)

    return [
        ("service killed", killed),
        ("PostgreSQL stopped and started", away(postgresql, kill=False)),
        ("Redis flushed", flushed),
        ("broker killed and started", away(kafka, kill=True)),
        ("burst", burst),
        ("service stopped and started", stopped),
        ("PostgreSQL killed and started", away(postgresql, kill=True)),
        ("Redis killed and started", away(redis, kill=True)),
    ]


def settings_text(kafka: str, url: str, redis: str, port: int, memory: MemorySettings) -> str:
    """The service's ``weald.toml``."""
    window = "" if memory.window_records is None else f"window_records = {memory.window_records}"
    return f"""
[stream]
name = "{NAME}"
snapshot_records = 2000
[schema]
fields = [{{name = "x", size = 3}}]
key = "id"
[memory]
{window}
[kafka]
bootstrap_servers = "{kafka}"
topic = "{TOPIC}"
session_timeout_ms = 6000
heartbeat_interval_ms = 1000
[model]
seed = 5
[refinement]
every_records = {CADENCE.every_records}
publish_every_records = {CADENCE.publish_every_records}
rounds = {CADENCE.rounds}
[storage]
url = "{url}"
[redis]
url = "redis://{redis}/0"
[monitoring]
port = {port}
"""


def flatness(samples: list[dict[str, float]]) -> dict[str, object]:
    """Tell by the minute how much memory was held, and whether it stayed flat."""
    settled = [each for each in samples if each["run_seconds"] >= SETTLED_SECONDS]
    by_minute: dict[int, list[float]] = {}
    for each in settled:
        by_minute.setdefault(int(each["seconds"] // 60), []).append(each["megabytes"])
    if len(by_minute) < 3:
        return {"megabytes_by_minute": {}, "flat": None}
    minute = np.array(sorted(by_minute))
    medians = np.array([np.median(by_minute[each]) for each in minute.tolist()])
    last = np.array_split(np.arange(len(minute)), 3)
    middle, end = (float(np.median(medians[part])) for part in last[1:])
    late = np.concatenate(last[1:])
    slope, error = float("nan"), float("nan")
    if len(late) > 3:
        (slope, _), covariance = np.polyfit(minute[late], medians[late], 1, cov=True)
        error = float(np.sqrt(covariance[0, 0]))
    return {
        "megabytes_by_minute": dict(zip(minute.tolist(), medians.round(1).tolist(), strict=True)),
        "megabytes_middle_third": round(middle, 1),
        "megabytes_last_third": round(end, 1),
        "megabytes_a_minute_late": [round(float(slope), 3), round(error, 3)],
        "megabytes_highest": max(each["megabytes"] for each in samples),
        "flat": end <= (1.0 + FLAT_SHARE) * middle,
    }


def told(soak: Soak, wrong: list[str], minutes: float) -> dict[str, object]:
    """The figures."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "minutes": round(minutes, 1),
        "records_sent": soak.feed.n_sent,
        "dead_letters": soak.feed.n_dead,
        "window_records": soak.feed.memory.window_records,
        "faults_struck": {name: soak.struck.count(name) for name in sorted(set(soak.struck))},
        "outages": soak.outages,
        "service_starts": soak.service.restarts + 1,
        "longest_lag_records": soak.longest_lag,
        **flatness(soak.samples),
        "cpu_share_of_a_core": round((usage.ru_utime + usage.ru_stime) / (60 * minutes), 3),
        "wrong": wrong,
    }


def main() -> None:
    """Soak for so many minutes and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=8.0, help="records a second")
    parser.add_argument("--window", type=int, help="observations that the model keeps")
    parser.add_argument(
        "--outage",
        type=float,
        default=0.0,
        help="seconds for which PostgreSQL, and later Redis, is away once",
    )
    parser.add_argument("--output", type=Path, help="also write figures and samples to this file")
    parser.add_argument("--log", type=Path, help="keep the service's log in this file")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    began = time.monotonic()
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="weald-soak-")))
        postgresql = running.enter_context(postgresql_server())
        url = running.enter_context(database(postgresql, "soak"))
        redis = running.enter_context(redis_server(folder))
        kafka = running.enter_context(kafka_broker(folder))
        config, port = folder / "weald.toml", free_port()
        memory = MemorySettings(window_records=options.window)
        config.write_text(settings_text(kafka.address, url, redis.address, port, memory))
        service = Service(config, options.log or folder / "weald.log", port)
        soak = Soak(Feed(kafka.address, memory), service, url, options.rate, options.output)
        service.start()
        running.callback(service.kill)
        between = 60 * options.minutes / (N_FAULTS + 1)
        away = min(AWAY_SECONDS, between / 7)
        planned = strikes(soak, postgresql, redis, kafka)
        long = {LONG_POSTGRESQL: postgresql, LONG_REDIS: redis} if options.outage else {}
        for number in range(N_FAULTS):
            passed = time.monotonic() - soak._began  # noqa: SLF001  the schedule follows its clock
            soak.run((number + 1) * between - passed, soak.rate)
            name, strike = planned[number % len(planned)]
            if number in long:
                name = f"{long[number].name} away for long"
            print(f"{time.monotonic() - began:7.0f} s  {name}", file=sys.stderr, flush=True)
            if number in long:
                soak.outage(long[number], options.outage)
            else:
                strike(away)
            soak.struck.append(name)
        soak.run(60 * options.minutes - (time.monotonic() - soak._began), soak.rate)  # noqa: SLF001
        expected = soak.drain()
        minutes = (time.monotonic() - began) / 60
        with SqlReader(StorageSettings(url=url)) as reader:
            wrong = faults(reader, NAME, expected)
        figures = told(soak, wrong, minutes)
        print(json.dumps(figures, indent=2))
        if options.output is not None:
            options.output.write_text(json.dumps(figures | {"samples": soak.samples}))
    grew = options.window is not None and figures["flat"] is False
    sys.exit(1 if wrong or grew else 0)


if __name__ == "__main__":
    main()
