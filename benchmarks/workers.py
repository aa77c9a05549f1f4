"""Two workers against inline refinement, on a topic that fills at a steady rate.

    python -m benchmarks.workers                              the embedded broker and Valkey
    python -m benchmarks.workers --bootstrap HOST:PORT        a real Kafka there
    python -m benchmarks.workers --rate 300 --records 10000

Reads the 10,000 observations of ``tgmcmc_10k.npz`` (``WEALD_DATA``, by default ../shared/data).
Each mode runs as `weald run` does, in a process of its own, with `weald worker` processes beside it
where workers refine. Printed for each: the log joint over time since the first record, the time at
which it reached the lower of the two modes' last log joints, and the 50th and 99th percentile of
the time from a record's broker stamp to its commit in SQL. Log joints are of all observations that
the chain had then, so modes are compared at the same record count: at the end of the stream and
after.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """What to run."""

    bootstrap: str
    api_version: str | None
    redis_url: str
    rate: float
    seconds_after: float


def _settings(asked: Asked, topic: str, mode: str, d: int, folder: str) -> dict[str, Any]:
    from weald.mcmc.settings import ModelSettings, RefinementSettings
    from weald.storage.settings import RedisSettings, StorageSettings
    from weald.stream.settings import FieldSettings, KafkaSettings, SchemaSettings, StreamSettings
    from weald.stream.worker_settings import WorkersSettings

    fields = tuple(FieldSettings(f"x{j}") for j in range(d))
    return {
        "stream": StreamSettings(name=topic, poll_seconds=0.05),
        "schema": SchemaSettings(fields=fields, key="id"),
        "model": ModelSettings(seed=1, family="gaussian"),
        "refinement": RefinementSettings(mode=mode),  # type: ignore[arg-type]  # one of the two
        "kafka": KafkaSettings(
            bootstrap_servers=asked.bootstrap,
            topic=topic,
            api_version=asked.api_version,
            session_timeout_ms=10_000,
            heartbeat_interval_ms=1_000,
        ),
        "storage": StorageSettings(url=f"sqlite:///{folder}/weald.db"),
        "redis": RedisSettings(url=asked.redis_url),
        "workers": WorkersSettings(),
    }


def _write(asked: Asked, topic: str, mode: str, d: int, folder: str, n: int) -> None:
    """The writer's process: run, and note log joints and latencies."""
    from weald.monitoring.health import Health
    from weald.monitoring.metrics import Metrics
    from weald.storage.lease_queue import LeaseQueue
    from weald.storage.migrate import upgrade
    from weald.storage.sql import SqlStore
    from weald.stream.engine import Engine
    from weald.stream.kafka_source import KafkaSource
    from weald.stream.model import Plan
    from weald.stream.refinery import Refinery
    from weald.stream.watch import Watch

    settings = _settings(asked, topic, mode, d, folder)
    plan = Plan(*(settings[name] for name in ("stream", "schema", "model", "refinement")))
    told: dict[str, Any] = {"log_joint": [], "latency": []}

    class Told(Watch):
        done_at = 0.0

        def committed(self, commit: Any, held: Any, applied: Any, *, timed: bool) -> None:
            super().committed(commit, held, applied, timed=timed)
            now = time.time()
            if len(held):
                told["latency"] += (now - held.broker_times()).tolist()
            seq = len(told["latency"])
            for refinement in applied.refinements:
                told["log_joint"].append((now, seq, refinement.log_joint_after))
            if seq >= n and not self.done_at:
                self.done_at = now
            if self.done_at and now - self.done_at > asked.seconds_after:
                engine.stop()

    upgrade(settings["storage"])
    store = SqlStore(settings["storage"])
    source = KafkaSource(settings["kafka"], topic, plan.stream.batch_records)
    watch = Told(Metrics(topic), Health())
    engine = Engine(plan, source, store, watch=watch)
    if mode == "workers":
        queue = LeaseQueue(settings["redis"], topic)
        engine.refine_by(Refinery(settings["workers"], queue, store, watch))

    def give_up() -> None:
        while not watch.done_at:
            time.sleep(0.2)
        time.sleep(asked.seconds_after + 1.0)
        engine.stop()

    threading.Thread(target=give_up, daemon=True).start()
    engine.run()
    Path(folder, "told.json").write_text(json.dumps(told))


def _work(asked: Asked, topic: str, mode: str, d: int, folder: str) -> None:
    from weald.storage.lease_queue import LeaseQueue
    from weald.stream.worker import Worker, worker_name

    settings = _settings(asked, topic, mode, d, folder)
    os.nice(settings["workers"].nice)
    Worker(LeaseQueue(settings["redis"], topic), settings["workers"], worker_name()).run()


def _produce(asked: Asked, topic: str, values: Values) -> None:
    from kafka import KafkaProducer
    from weald.stream.kafka_options import client_options
    from weald.stream.settings import KafkaSettings

    kafka = KafkaSettings(
        bootstrap_servers=asked.bootstrap, topic=topic, api_version=asked.api_version
    )
    producer = KafkaProducer(**client_options(kafka, "benchmark"), linger_ms=5)
    began = time.monotonic()
    for i, row in enumerate(values.tolist()):
        due = began + i / asked.rate
        if (wait := due - time.monotonic()) > 0:
            time.sleep(wait)
        record = {"id": f"k{i}", **{f"x{j}": x for j, x in enumerate(row)}}
        producer.send(topic, value=json.dumps(record).encode())
    producer.flush()
    producer.close()


def measure(asked: Asked, mode: str, values: Values, n_workers: int) -> dict[str, Any]:
    """Run one mode over the values."""
    spawn = multiprocessing.get_context("spawn")
    topic = f"workers-{mode}-{os.getpid()}"
    d = values.shape[1]
    with tempfile.TemporaryDirectory() as folder:
        place = (asked, topic, mode, d, folder)
        workers = [
            spawn.Process(target=_work, args=place) for _ in range(n_workers * (mode == "workers"))
        ]
        writer = spawn.Process(target=_write, args=(*place, len(values)))
        for each in [*workers, writer]:
            each.start()
        # Until the writer has joined its group, records would only wait.
        time.sleep(15.0)
        began = time.time()
        _produce(asked, topic, values)
        writer.join()
        for each in workers:
            each.kill()
            each.join()
        told = json.loads(Path(folder, "told.json").read_text())
    return {"began": began, **told}


def reached(found: dict[str, Any], n: int, target: float) -> float | None:
    """Seconds from the first record until the chain of all n records was at the target."""
    for now, seq, log_joint in found["log_joint"]:
        if seq >= n and log_joint >= target:
            return float(now - found["began"])
    return None


def main() -> None:
    """Measure both modes and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=250.0, help="records per second")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--after", type=float, default=20.0, help="seconds after the last record")
    parser.add_argument("--bootstrap", help="address of a real Kafka")
    options = parser.parse_args()
    data = Path(os.environ.get("WEALD_DATA", "../shared/data"), "tgmcmc_10k.npz")
    values = np.load(data)["X"][: options.records]
    from weald.cli import embedded

    with ExitStack() as running:
        bootstrap, version = options.bootstrap, None
        if bootstrap is None:
            bootstrap = running.enter_context(embedded.kafka_broker())
            version = ".".join(str(part) for part in embedded.API_VERSION)
        redis_url = running.enter_context(embedded.redis_server())
        asked = Asked(bootstrap, version, redis_url, options.rate, options.after)
        modes = {
            mode: measure(asked, mode, values, options.workers) for mode in ("inline", "workers")
        }
    n = len(values)
    last = {mode: found["log_joint"][-1][2] for mode, found in modes.items()}
    target = min(last.values())
    for mode, found in modes.items():
        latency = np.percentile(found["latency"], [50, 99])
        seconds = reached(found, n, target)
        print(
            f"{mode:8} log joint {last[mode]:.1f} at the end; {target:.1f} "
            f"{'not reached' if seconds is None else f'after {seconds:.1f} s'}; "
            f"{len(found['log_joint'])} refinements; "
            f"latency p50 {latency[0]:.3f} s, p99 {latency[1]:.3f} s"
        )


if __name__ == "__main__":
    main()
