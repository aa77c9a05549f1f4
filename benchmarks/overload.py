"""A burst of twenty times the sustained rate: ``python -m benchmarks.overload --rate 20``.

Produces to a real Kafka at a steady rate, then at twenty times that for a minute, then steadily
again, with a bad record among every hundred, while ``weald run`` reads into SQLite. Ends when SQL
accounts for every record that Kafka confirmed, and tells the memory and the lag on the way.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from kafka import KafkaAdminClient, KafkaProducer

from benchmarks.process_memory import mebibytes
from tests.servers.kafka import kafka_broker
from tests.servers.server import wait_until
from weald.storage.errors import StorageError
from weald.storage.settings import StorageSettings
from weald.storage.sql import migrate
from weald.storage.writing.store import SqlReader

TOPIC = STREAM = "overload"
FACTOR = 20
BAD_EVERY = 100
PARTITIONS = 4
CONFIGURATION = """\
[stream]
name = "overload"
[kafka]
topic = "overload"
bootstrap_servers = "{address}"
[schema]
fields = [{{ name = "x" }}, {{ name = "y" }}]
key = "id"
[storage]
url = "sqlite:///{folder}/weald.db"
[redis]
enabled = false
[monitoring]
port = 0
"""


@dataclass
class Outcome:
    """What the burst did."""

    produced: int = 0
    bad: int = 0
    received: int = 0
    inserted: int = 0
    dead: int = 0
    distinct: int = 0
    largest_lag: int = 0
    drained_seconds: float = 0.0
    resident: list[float] = field(default_factory=list)


class Producing:
    """Sends records at a rate, and counts those that Kafka has confirmed."""

    def __init__(self, address: str) -> None:
        self._producer = KafkaProducer(bootstrap_servers=address, linger_ms=20)
        self._draw = np.random.default_rng(5)
        self.sent = 0
        self.bad = 0

    def send(self, rate: float, seconds: float) -> Iterator[None]:
        """Send at the rate for so long; yields about once a second."""
        began, goal = time.monotonic(), round(rate * seconds)
        pending = []
        for i in range(goal):
            pending.append(self._producer.send(TOPIC, self._record()))
            behind = began + i / rate - time.monotonic()
            if behind > 0:
                time.sleep(behind)
            if i % max(round(rate), 1) == 0:
                yield
        self._producer.flush(timeout=120)
        for each in pending:
            each.get(timeout=120)

    def _record(self) -> bytes:
        number, self.sent = self.sent, self.sent + 1
        if number % BAD_EVERY == BAD_EVERY - 1:
            self.bad += 1
            return b'{"x": "none"}'
        x, y = 10 * self._draw.integers(4) + self._draw.normal(size=2)
        return json.dumps({"id": f"k{number}", "x": x, "y": y}).encode()

    def close(self) -> None:
        """Disconnect."""
        self._producer.close()


def measure(rate: float, steady: float, burst: float, patience: float = 1800.0) -> Outcome:
    """Run the burst and account for it."""
    outcome = Outcome()
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="weald-overload-")))
        broker = running.enter_context(kafka_broker(folder))
        administrator = KafkaAdminClient(bootstrap_servers=broker.address)
        administrator.create_topics(
            {TOPIC: {"num_partitions": PARTITIONS, "replication_factor": 1}}
        )
        administrator.close()
        (folder / "weald.toml").write_text(
            CONFIGURATION.format(address=broker.address, folder=folder)
        )
        settings = StorageSettings(url=f"sqlite:///{folder}/weald.db")
        migrate.upgrade(settings)
        reader = SqlReader(settings)
        running.callback(reader.close)
        service = subprocess.Popen(
            [sys.executable, "-m", "weald.cli.main", "run", "--config", str(folder)],
            env={key: value for key, value in os.environ.items() if not key.startswith("WEALD__")},
        )
        running.callback(service.wait)
        running.callback(service.kill)
        producing = Producing(broker.address)
        running.callback(producing.close)

        def received() -> int:
            try:
                return sum(row.n_received for row in reader.ledger(STREAM))
            except StorageError:
                return 0

        def sample() -> None:
            outcome.resident.append(mebibytes(service.pid))
            outcome.largest_lag = max(outcome.largest_lag, producing.sent - received())

        # The first observations compile the kernels; the clock starts after them.
        for _ in producing.send(500.0, 1.0):
            pass
        wait_until(lambda: received() >= producing.sent, "the service is warm", patience)
        for phase_rate, seconds in ((rate, steady), (FACTOR * rate, burst), (rate, steady)):
            for _ in producing.send(phase_rate, seconds):
                sample()
        ended = time.monotonic()
        while received() < producing.sent and time.monotonic() < ended + patience:
            sample()
            time.sleep(0.5)
        outcome.drained_seconds = time.monotonic() - ended
        service.send_signal(signal.SIGTERM)
        if service.wait(120) != 0:
            raise RuntimeError(f"weald run left with {service.returncode}")
        _account(outcome, producing, reader)
    return outcome


def _account(outcome: Outcome, producing: Producing, reader: SqlReader) -> None:
    ledger = reader.ledger(STREAM)
    outcome.produced, outcome.bad = producing.sent, producing.bad
    outcome.received = sum(row.n_received for row in ledger)
    outcome.inserted = sum(row.n_inserted for row in ledger)
    outcome.dead = sum(row.n_dead for row in ledger)
    keys: set[str | None] = set()
    after = 0
    while block := reader.observations(STREAM, after, 5_000):
        keys.update(block.key)
        after = int(block.seq[-1])
    outcome.distinct = len(keys)


def check(outcome: Outcome) -> None:
    """Raise unless every record is accounted for, once."""
    assert outcome.received == outcome.produced
    assert outcome.dead == outcome.bad
    assert outcome.inserted == outcome.distinct == outcome.produced - outcome.bad


def main() -> None:
    """Run it and print the account."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=20.0, help="sustained records a second")
    parser.add_argument("--steady", type=float, default=15.0, help="seconds before and after")
    parser.add_argument("--burst", type=float, default=60.0, help="seconds of the burst")
    options = parser.parse_args()
    outcome = measure(options.rate, options.steady, options.burst)
    first, peak, last = outcome.resident[0], max(outcome.resident), outcome.resident[-1]
    print(f"burst       {FACTOR * options.rate:g} records/s for {options.burst:g} s")
    print(f"produced    {outcome.produced}, of which {outcome.bad} bad")
    print(f"received    {outcome.received} = {outcome.inserted} inserted + {outcome.dead} dead")
    print(f"distinct    {outcome.distinct} keys")
    print(f"largest lag {outcome.largest_lag}; drained {outcome.drained_seconds:.1f} s after")
    print(f"resident    {first:.0f} MB before, {peak:.0f} MB at most, {last:.0f} MB at the end")
    check(outcome)
    print("every record is accounted for, once")


if __name__ == "__main__":
    main()
