"""`weald run --embedded` as a program: produced to, stopped by SIGTERM, and started again."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

from tests.servers.server import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CONFIGURATION = """\
[schema]
fields = [{ name = "x" }]
key = "id"
[model]
warmup_records = 20
[monitoring]
port = 0
"""
N = 40


class Running:
    """A run in a process of its own."""

    def __init__(self, folder: Path, arguments: Sequence[str], *, settings: bool) -> None:
        self._log = folder / "stderr.txt"
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "weald.cli.main", "run", *arguments],
                cwd=folder,
                stderr=log,
                env={k: v for k, v in os.environ.items() if settings or k[:7] != "WEALD__"},
            )

    def said(self, pattern: str) -> re.Match[str]:
        """Wait for a line on standard error."""

        def found() -> re.Match[str] | None:
            assert self.process.poll() is None, self._log.read_text()
            return re.search(pattern, self._log.read_text(), re.MULTILINE)

        wait_until(lambda: found() is not None, f"a line like {pattern}", 60)
        match = found()
        assert match is not None
        return match

    def text(self) -> str:
        """All that it said."""
        return self._log.read_text()

    def stop(self, number: int) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=60)


@contextmanager
def running(
    folder: Path, arguments: Sequence[str] = ("--embedded",), *, settings: bool = False
) -> Iterator[Running]:
    """Run the service; with `settings` those of the environment count."""
    run = Running(folder, arguments, settings=settings)
    try:
        yield run
    finally:
        run.process.kill()
        run.process.wait()


def status(folder: Path) -> dict[str, Any]:
    argv = [sys.executable, "-m", "weald.cli.main", "status", "--output", "json"]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    answer: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
    return answer


def await_inserted(folder: Path, n: int) -> None:
    wait_until(lambda: status(folder).get("n_inserted") == n, f"{n} observations", 600)


def produce(run: Running, prefix: str) -> str:
    """Send N records to the announced topic; return its name."""
    topic, server = run.said(r"reading topic (\S+) at (\S+)").groups()
    producer = KafkaProducer(bootstrap_servers=server, api_version=(2, 3))
    for i in range(N):
        value = json.dumps({"id": f"{prefix}{i}", "x": float(i % 5)}).encode()
        producer.send(topic, value)
    producer.flush()
    producer.close()
    return topic


def test_every_record_of_both_runs_is_counted_once(tmp_path: Path) -> None:
    (tmp_path / "weald.toml").write_text(CONFIGURATION)
    with running(tmp_path) as run:
        assert produce(run, "a") == "events"
        await_inserted(tmp_path, N)
        assert run.stop(signal.SIGTERM) == 0
    with running(tmp_path) as run:
        assert produce(run, "b") == "events-2"
        await_inserted(tmp_path, 2 * N)
        assert run.stop(signal.SIGINT) == 130
    answer = status(tmp_path)
    assert answer["n_received"] == answer["n_inserted"] == 2 * N
    assert answer["n_duplicate"] == answer["n_dead"] == 0
