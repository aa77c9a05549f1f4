"""A ``weald run`` for the tests: a real process on a real topic under steady traffic."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from kafka import KafkaProducer

from tests.servers.server import free_port, wait_until

SPOILT_EVERY = 40
PAUSE_SECONDS = 0.05
RECORDS_A_PAUSE = 25
# How far traffic runs ahead: on a busy machine kernels compile for minutes, and what would have
# piled up by then takes longer than anyone waits.
RECORDS_AHEAD = 2_000

CONFIGURATION = """
[stream]
name = "points"
batch_records = 100
snapshot_records = 400

[kafka]
bootstrap_servers = "{bootstrap}"
topic = "{topic}"

[schema]
fields = [{{ name = "x" }}, {{ name = "y" }}]
key = "id"
time = "time"

[model]
seed = 1
warmup_records = 100

[refinement]
mode = "workers"
every_records = 100
publish_every_records = 200
rounds = 1

[redis]
url = "{redis}"

[monitoring]
port = {port}
"""


@contextmanager
def traffic(bootstrap: str, topic: str, seed: int, handled: Callable[[], float]) -> Iterator[None]:
    """Send points of three clusters, and now and then a bad record, until the block ends.

    ``handled`` says how many records the service is done with; traffic waits for it.
    """
    rng, stop = np.random.default_rng(seed), threading.Event()
    centres = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])

    def send() -> None:
        producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5)
        sent = 0
        while not stop.wait(PAUSE_SECONDS):
            if sent - handled() > RECORDS_AHEAD:
                continue
            for x, y in centres[rng.integers(3, size=RECORDS_A_PAUSE)] + rng.normal(
                size=(RECORDS_A_PAUSE, 2)
            ):
                sent += 1
                record = {"id": str(sent), "time": 1_700_000_000 + sent, "x": x, "y": y}
                text = json.dumps(record) if sent % SPOILT_EVERY else "{"
                producer.send(topic, value=text.encode())
        producer.close()

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@dataclass(frozen=True)
class Running:
    """A Weald in a process of its own."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def wait_until(self, condition: Callable[[], bool], what: str, seconds: float) -> None:
        """Wait for the condition, or fail with the log as soon as the process is gone."""

        def alive_and_met() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            return condition()

        wait_until(alive_and_met, what, seconds)


@contextmanager
def running_weald(folder: Path, bootstrap: str, topic: str, redis: str) -> Iterator[Running]:
    """Run ``weald run`` and a worker on the topic until the block ends; then SIGTERM ends both."""
    port = free_port()
    configuration = folder / "weald.toml"
    configuration.write_text(
        CONFIGURATION.format(bootstrap=bootstrap, topic=topic, redis=redis, port=port)
    )
    with (
        _command(folder, "run", configuration) as (process, log),
        # Panels by role are about rounds that workers made.
        _command(folder, "worker", configuration),
    ):
        yield Running(process, port, log)


@contextmanager
def _command(
    folder: Path, name: str, configuration: Path
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    argv: list[str | Path] = [Path(sys.executable).with_name("weald"), name]
    argv += ["--config", configuration]
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(argv, cwd=folder, stdout=output, stderr=output)
    try:
        yield process, log
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
    finally:
        process.kill()
        process.wait()
    assert code == 0, log.read_text()
