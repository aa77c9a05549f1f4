"""``weald watch`` on a stream that a real engine has filled, and ``weald worker`` against Redis."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import N_BAD, N_GOOD, Command
from tests.servers.server import wait_until
from weald.monitoring.exporter import Exporter
from weald.monitoring.health import Health
from weald.monitoring.metrics import Metrics
from weald.monitoring.settings import MonitoringSettings
from weald.storage.redis.lease_queue import LeaseItem, LeaseQueue
from weald.storage.settings import RedisSettings


@pytest.fixture
def at_home(clean: Path, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001  (first)
    monkeypatch.setenv("WEALD_CONFIG", str(filled))


@pytest.mark.usefixtures("at_home")
def test_each_look_is_a_line(weald: Command) -> None:
    result = weald("watch", "--looks", "2", "--every", "0.1")
    first, second = (json.loads(line) for line in result.out.splitlines())
    assert (first["received"], first["inserted"], first["dead"]) == (N_GOOD + N_BAD, N_GOOD, N_BAD)
    assert first["records_per_second"] is None
    assert second["records_per_second"] == 0.0
    assert first["clusters"] == 2
    assert {"gibbs"} <= set(first["kernels"])
    assert "leases" not in first


@pytest.mark.usefixtures("at_home")
def test_workers_are_seen(weald: Command, redis_url: str) -> None:
    sets = ("refinement.mode=workers", "redis.enabled=true", f"redis.url={redis_url}")
    ask: tuple[str, ...] = ("watch", "--looks", "1", "--output", "json")
    ask += tuple(each for one in sets for each in ("--set", one))
    look = json.loads(weald(*ask).out)
    assert (look["leases"], look["workers"]) == ({}, [])
    with LeaseQueue(RedisSettings(url=redis_url), look["stream"]) as queue:
        queue.take("somebody", 10.0, 0.001)
    (row,) = json.loads(weald(*ask).out)["workers"]
    assert (row["name"], row["n_held"]) == ("somebody", 0)


@pytest.mark.usefixtures("at_home")
def test_lag_and_workers_of_a_running_writer(weald: Command) -> None:
    stream = json.loads(weald("status", "--output", "json").out)["name"]
    metrics = Metrics(stream, reasons=[], version="0")
    metrics.held(3)
    metrics.partition_lag("topic", 0, 40, 2.5)
    metrics.partition_lag("topic", 1, 2, 7.0)
    metrics.workers({"all": 2, "sdds": 1, "subc": 0})
    with Exporter(MonitoringSettings(port=0), metrics.registry, Health()) as exporter:
        port = exporter.url.rpartition(":")[2]
        sets = (f"monitoring.port={port}", "refinement.mode=workers", "redis.enabled=false")
        ask = (*(each for one in sets for each in ("--set", one)), "--output", "json")
        told = json.loads(weald("status", *ask).out)
        look = json.loads(weald("watch", "--looks", "1", *ask).out)
    assert (told["lag_records"], told["lag_seconds"], told["workers"]) == (
        42,
        7.0,
        {"all": 2, "sdds": 1},
    )
    assert (look["lag_records"], look["lag_seconds"], look["workers"]) == (42, 7.0, None)
    # Nobody is there any more.
    assert "lag_records" not in json.loads(weald("status", *ask).out)


def test_a_window_goes_with_workers_and_bundles_do_not(
    weald: Command, clean: Path, filled: Path, redis_url: str
) -> None:
    """`weald run` offers leases of a stream whose window is full, and says what it cannot do."""
    told = (
        (filled / "weald.toml").read_text().replace("'records.jsonl'", f"'{filled}/records.jsonl'")
    )
    told = told.replace("'pairs'", "'windowed'").replace(
        "enabled = false", f"url = '{redis_url}'", 1
    )
    told = told.replace("[refinement]", "[refinement]\nmode = 'workers'")
    home = clean / "weald.toml"
    home.write_text(f"{told}[memory]\nleaf_budget = 4000\npolicy = 'bundles'\n")
    refused = weald("run")
    assert refused.code != 0
    assert '"bundles" needs refinement.mode = "inline"' in refused.err
    home.write_text(f"{told}[memory]\nwindow_records = 120\n")
    with LeaseQueue(RedisSettings(url=redis_url), "windowed") as queue:
        # Leases are made for whoever was heard of lately.
        queue.take("somebody", 10.0, 0.001)
        result = weald("run")
        assert result.code == 0, result.err
        assert queue.standing()
    clusters = json.loads(weald("clusters", "--output", "json").out)
    assert sum(row["size"] for row in clusters) == 120


def test_a_worker_parks_what_cannot_be_worked_on_and_leaves(clean: Path, redis_url: str) -> None:
    """The process itself takes a lease of damaged bytes again and again, and parks it."""
    stream = "damaged"
    lines = ["[stream]", f'name = "{stream}"', "[redis]", f'url = "{redis_url}"']
    lines += ["[workers]", "lease_seconds = 0.05", "deliveries = 2"]
    (clean / "weald.toml").write_text("\n".join(lines))
    with LeaseQueue(RedisSettings(url=redis_url), stream) as queue:
        queue.offer([LeaseItem((1, 0, 1), b"no lease")])
        process = subprocess.Popen(
            [sys.executable, "-m", "weald.cli.main", "worker"], cwd=clean, stderr=subprocess.PIPE
        )
        try:
            came: list[bytes | None] = []

            def parked() -> bool:
                came.extend(back.payload for back in queue.returned())
                return bool(came)

            wait_until(parked, "the lease is parked")
            assert came == [None]
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
        assert process.returncode == 0, said.decode()
        assert queue.workers() == []
