"""Two workers against inline refinement, on a topic that fills at a steady rate.

    python -m benchmarks.workers                      Apache Kafka and Redis; about 8 minutes
    python -m benchmarks.workers --repeat 1 --only speed
    python -m benchmarks.workers --only bytes         Redis; seconds

Streams the 10,000 observations of ``tgmcmc_10k.npz`` (``WEALD_DATA``, by default ../shared/data)
through Kafka, to a writer as `weald run` has it, in a process of its own, with two processes of
`weald worker` beside it where workers refine. All have their kernels in memory before the first
record is sent. A repetition is one run of each mode, one right after the other: what is printed
last are medians of ratios within a repetition, so that a machine that is busier for a while slows
both.

**speed**: seconds from the first record until the chain of all records first has a given log joint.
The log joint is what a long chain on the same observations rarely falls below: the mean less two
standard deviations of the second half of its trace. Inline refinement gets there only with more
rounds than are its default; workers are compared with the number of rounds that gets there soonest
(by median). The claim is a ratio of at most 0.6.

**latency**: seconds from the broker's stamp on a record to its commit in SQL, at a rate that
inline refinement keeps up with, both modes under their defaults.

**bytes**: what a round of two leases puts into Redis when so many observations have come since the
last, against what it would be if a lease carried the statistics of its atoms.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tests.servers.kafka import kafka_broker
from tests.servers.redis import redis_server

from .papers.data import DATA

Values = NDArray[np.float64]

FAMILY = "gaussian"
N_WORKERS = 2
WORKERS = f"{N_WORKERS} workers"
# A mode that is not there so long after the last record does not get there.
PATIENCE_SECONDS = 60.0
# Observations between two rounds whose bytes are counted.
ARRIVALS = (0, 10, 100, 1000)


@dataclass(frozen=True)
class Run:
    """One stream: where it lives, and how it is refined."""

    bootstrap: str
    redis_url: str
    topic: str
    folder: str
    n: int
    d: int
    mode: Literal["inline", "workers"]
    rounds: int
    sweeps: int | None
    target: float | None

    def __str__(self) -> str:
        return WORKERS if self.mode == "workers" else f"inline, {self.rounds} rounds"


def _settings(run: Run) -> dict[str, Any]:
    from weald.mcmc.settings import ModelSettings, RefinementSettings
    from weald.storage.settings import RedisSettings, StorageSettings
    from weald.stream.settings import FieldSettings, KafkaSettings, SchemaSettings, StreamSettings
    from weald.stream.worker.settings import WorkersSettings

    fields = tuple(FieldSettings(f"x{j}") for j in range(run.d))
    return {
        "stream": StreamSettings(name=run.topic, poll_seconds=0.05),
        "schema": SchemaSettings(fields=fields, key="id"),
        "model": ModelSettings(seed=1, family=FAMILY),
        "refinement": RefinementSettings(mode=run.mode, rounds=run.rounds),
        "kafka": KafkaSettings(
            bootstrap_servers=run.bootstrap,
            topic=run.topic,
            session_timeout_ms=10_000,
            heartbeat_interval_ms=1_000,
        ),
        "storage": StorageSettings(url=f"sqlite:///{run.folder}/weald.db"),
        "redis": RedisSettings(url=run.redis_url),
        "workers": WorkersSettings() if run.sweeps is None else WorkersSettings(sweeps=run.sweeps),
    }


def _write(run: Run, ready: Any) -> None:
    """The writer's process: run, and note log joints and latencies."""
    from weald.cli.service.kernels import compile_kernels
    from weald.monitoring.health import Health
    from weald.monitoring.metrics import Metrics
    from weald.storage.redis.lease_queue import LeaseQueue
    from weald.storage.sql.migrate import upgrade
    from weald.storage.writing.store import SqlStore
    from weald.stream.engine.coordinator import RefinementCoordinator
    from weald.stream.engine.engine import Engine
    from weald.stream.model.model import StreamConfig
    from weald.stream.source.kafka_source import KafkaSource
    from weald.stream.telemetry.telemetry import Telemetry

    compile_kernels(FAMILY)
    settings = _settings(run)
    plan = StreamConfig(*(settings[name] for name in ("stream", "schema", "model", "refinement")))
    log_joints: list[tuple[float, int, float]] = []
    latencies: list[float] = []
    done = threading.Event()

    class Told(Telemetry):
        def phase(self, phase: str, assigned: int) -> None:
            super().phase(phase, assigned)
            if assigned:
                ready.set()

        def committed(self, commit: Any, held: Any, applied: Any, **told: Any) -> None:
            super().committed(commit, held, applied, **told)
            now = time.time()
            if len(held):
                latencies.extend((now - held.broker_times()).tolist())
            n = len(latencies)
            log_joints.extend((now, n, each.log_joint_after) for each in applied.refinements)
            everything = n >= run.n
            last = log_joints[-1] if log_joints else (0.0, 0, 0.0)
            there = run.target is None or (last[1] >= run.n and last[2] >= run.target)
            if everything and (there or run.mode == "inline"):
                engine.stop()
            if everything:
                done.set()

    def give_up() -> None:
        done.wait()
        time.sleep(PATIENCE_SECONDS)
        engine.stop()

    upgrade(settings["storage"])
    with SqlStore(settings["storage"]) as store:
        source = KafkaSource(settings["kafka"], run.topic, plan.stream.most_polled)
        telemetry = Told(Metrics(run.topic), Health())
        engine = Engine(plan, source, store, telemetry=telemetry)
        if run.mode == "workers":
            queue = LeaseQueue(settings["redis"], run.topic)
            engine.refine_by(RefinementCoordinator(settings["workers"], queue, store, telemetry))
        threading.Thread(target=give_up, daemon=True).start()
        engine.run()
    told = {"log_joints": log_joints, "latencies": latencies}
    Path(run.folder, "told.json").write_text(json.dumps(told))


def _work(run: Run, ready: Any) -> None:
    from weald.cli.service.kernels import compile_kernels
    from weald.storage.redis.lease_queue import LeaseQueue
    from weald.stream.worker.worker import Worker, worker_name

    compile_kernels(FAMILY)
    settings = _settings(run)
    os.nice(settings["workers"].nice)
    ready.set()
    Worker(LeaseQueue(settings["redis"], run.topic), settings["workers"], worker_name()).run()


def _produce(run: Run, values: Values, rate: float) -> float:
    """Send the records, each when it is due; return when the first one was sent."""
    from confluent_kafka import Producer

    # Encoded beforehand, and sent from compiled code: producing must not take the cores away.
    records = [
        json.dumps({"id": f"k{i}", **{f"x{j}": x for j, x in enumerate(row)}}).encode()
        for i, row in enumerate(values.tolist())
    ]
    producer = Producer({"bootstrap.servers": run.bootstrap, "linger.ms": 5})
    first, began = time.time(), time.monotonic()
    for i, record in enumerate(records):
        if (wait := began + i / rate - time.monotonic()) > 0:
            time.sleep(wait)
        producer.produce(run.topic, record)
    producer.flush()
    return first


def _make_topic(run: Run) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    client = AdminClient({"bootstrap.servers": run.bootstrap})
    client.create_topics([NewTopic(run.topic, 1, 1)])[run.topic].result()


def _run(run: Run, values: Values, rate: float) -> tuple[float, list[Any], list[float]]:
    """Run one stream; return when its first record was sent, its log joints and its latencies."""
    spawn = multiprocessing.get_context("spawn")
    tasks = [_write] + [_work] * (N_WORKERS * (run.mode == "workers"))
    with tempfile.TemporaryDirectory() as folder:
        run = replace(run, folder=folder)
        _make_topic(run)
        ready = [spawn.Event() for _ in tasks]
        processes = [
            spawn.Process(target=task, args=(run, event))
            for task, event in zip(tasks, ready, strict=True)
        ]
        for each in processes:
            each.start()
        try:
            for event in ready:
                if not event.wait(timeout=300.0):
                    raise RuntimeError(f"{run} does not start")
            first = _produce(run, values, rate)
            processes[0].join()
        finally:
            for each in processes:
                each.kill()
                each.join()
        told = json.loads(Path(folder, "told.json").read_text())
    return first, told["log_joints"], told["latencies"]


def level(values: Values) -> float:
    """What a long chain on these observations rarely falls below: mean less two deviations."""
    from weald.mcmc.settings import ModelSettings, RefinementSettings
    from weald.stream.model.model import StreamConfig, new_shard, spec_from_sample
    from weald.stream.settings import FieldSettings, SchemaSettings, StreamSettings

    fields = tuple(FieldSettings(f"x{j}") for j in range(values.shape[1]))
    plan = StreamConfig(
        StreamSettings(name="level"),
        SchemaSettings(fields=fields, key="id"),
        ModelSettings(seed=1, family=FAMILY),
        RefinementSettings(),
    )
    spec = spec_from_sample(plan, values[: plan.model.warmup_records])
    shard = new_shard(spec, plan.refinement, plan.memory)
    shard.apply(values, 0.0)
    trace = [shard.chain.refine(5).log_joint_after for _ in range(80)]
    late = np.array(trace[len(trace) // 2 :])
    return float(late.mean() - 2.0 * late.std())


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Median and range of the ratios within repetitions."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}; {len(ratios)} pairs)"


def speed(runs: Sequence[Run], values: Values, rate: float, repeat: int) -> None:
    """Print how long each mode takes to the target, and the ratio to the best inline one."""
    seconds: dict[str, list[float]] = {str(run): [] for run in runs}
    for at in range(repeat):
        for run in runs:
            first, log_joints, _ = _run(replace(run, topic=f"{run.topic}-{at}"), values, rate)
            reached = [now for now, n, value in log_joints if n >= run.n and value >= run.target]
            took = reached[0] - first if reached else float("inf")
            seconds[str(run)].append(took)
            last = log_joints[-1][2] if log_joints else float("nan")
            print(
                f"  {run!s:18} {took:6.1f} s; {len(log_joints)} refinements, "
                f"log joint {last:.0f} at the end",
                flush=True,
            )
    for name, took in seconds.items():
        print(f"{name:18} median {median(took):.1f} s of {repeat}")
    workers = seconds.pop(WORKERS)
    best = min(seconds, key=lambda name: median(seconds[name]))
    print(
        f"time to the log joint, {WORKERS} / {best}: {_ratio(workers, seconds[best])}", flush=True
    )


def latency(runs: Sequence[Run], values: Values, rate: float, repeat: int) -> None:
    """Print the latency of assignments of each mode, and the ratio of their 99th percentiles."""
    found: dict[str, list[Values]] = {run.mode: [] for run in runs}
    for at in range(repeat):
        for run in runs:
            _, _, latencies = _run(replace(run, topic=f"{run.topic}-{at}"), values, rate)
            p = np.percentile(latencies, [50, 99])
            found[run.mode].append(p)
            print(f"  {run!s:18} p50 {p[0]:.3f} s, p99 {p[1]:.3f} s", flush=True)
    for mode, each in found.items():
        p = np.median(each, axis=0)
        print(f"{mode:18} median of {repeat}: p50 {p[0]:.3f} s, p99 {p[1]:.3f} s", flush=True)
    p99 = {mode: [float(p[1]) for p in each] for mode, each in found.items()}
    print(f"p99 of latency, workers / inline: {_ratio(p99['workers'], p99['inline'])}", flush=True)


def bytes_a_round(redis_url: str, values: Values) -> None:
    """Print what the first round and later ones put into Redis, and what whole leases would."""
    from weald.mcmc.chain.chain import MixtureChain
    from weald.mcmc.leases.leases import Budget
    from weald.storage.encoding.snapshot import encode
    from weald.storage.redis.lease_queue import LeaseQueue
    from weald.storage.settings import RedisSettings
    from weald.stream.worker.row_pages import RowsSent
    from weald.treecore.family import FAMILIES
    from weald.treecore.prior import build_prior

    family = FAMILIES[FAMILY].build({}, values)
    chain = MixtureChain.start(family, build_prior("dp", {}), seed=1)
    n, rng, sent = len(values) - len(ARRIVALS) * max(ARRIVALS), np.random.default_rng(1), RowsSent()
    chain.insert(values[:n])
    with LeaseQueue(RedisSettings(url=redis_url), "bytes") as queue:
        for number, arrivals in enumerate((0, *ARRIVALS)):
            chain.insert(values[n : n + arrivals])
            n += arrivals
            lent = chain.lend(rng, N_WORKERS, Budget("gibbs", 1, 0))
            leases = {(number, at, 0): each for at, each in enumerate(lent)}
            whole = sum(len(encode(each.lease.arrays())) for each in lent)
            went = sent.offer(queue, leases, dict.fromkeys(leases, "all"))
            chain.forget_lent()
            told = f"{arrivals:5} arrivals" if number else "the first round"
            print(
                f"{told}, {n} atoms: {went / 1e6:.2f} MB, with rows {whole / 1e6:.2f} MB "
                f"({went / whole:.2f})",
                flush=True,
            )


def main() -> None:
    """Measure what was asked for and print."""
    from weald.cli.service.kernels import compile_kernels

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=2000.0, help="records a second, for speed")
    parser.add_argument("--calm-rate", type=float, default=250.0, help="the same, for latency")
    parser.add_argument("--calm-records", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, nargs="*", default=[24, 28, 40], help="of inline")
    parser.add_argument("--sweeps", type=int, help="of a lease; by default that of [workers]")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", choices=["speed", "latency", "bytes"])
    asked = parser.parse_args()
    data = DATA / "tgmcmc_10k.npz"
    values = np.load(data)["X"][: asked.records]
    # Once here: the processes of each run find them compiled.
    compile_kernels(FAMILY)
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        redis = redis_server(folder)
        redis.start()
        running.callback(redis.stop)
        redis_url = f"redis://127.0.0.1:{redis.port}/0"
        if asked.only in {None, "bytes"}:
            print(f"bytes: {N_WORKERS} leases a round")
            bytes_a_round(redis_url, values)
        if asked.only == "bytes":
            return
        kafka = kafka_broker(folder)
        kafka.start()
        running.callback(kafka.stop)
        plain = Run(
            f"127.0.0.1:{kafka.port}",
            redis_url,
            "",
            "",
            *values.shape,
            "inline",
            5,
            asked.sweeps,
            None,
        )
        if asked.only in {None, "speed"}:
            target = level(values)
            print(f"speed: {asked.rate:.0f} records a second, to a log joint of {target:.0f}")
            inline = [
                replace(plain, topic=f"inline-{n}", mode="inline", rounds=n, target=target)
                for n in asked.rounds
            ]
            workers = replace(plain, topic="workers", mode="workers", target=target)
            speed([workers, *inline], values, asked.rate, asked.repeat)
        if asked.only in {None, "latency"}:
            calm = values[: asked.calm_records]
            print(f"latency: {asked.calm_rate:.0f} records a second")
            plain = replace(plain, n=len(calm))
            modes = [
                replace(plain, topic=f"calm-{mode}", mode=mode) for mode in ("inline", "workers")
            ]
            latency(modes, calm, asked.calm_rate, asked.repeat)


if __name__ == "__main__":
    main()
