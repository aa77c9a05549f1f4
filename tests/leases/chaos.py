"""Faults without end on a writer, its workers and their Redis; what is left must be whole.

    python -m tests.leases.chaos                    500 faults and more
    python -m tests.leases.chaos --faults 40

Stream after stream is written in ``workers`` mode by a process beside two workers, while these
happen at random: a worker is killed, or stopped for longer than a lease lasts and then goes on;
Redis is flushed, or killed and started anew; the writer is killed at any instant, or at a step of
the taking back of leases, inside of its transaction too; returns come twice and in any order. At
the end of a stream: each record is there once and every account adds up; each lease was closed
once, with one outcome, and each round was taken back once; a replay from the newest snapshot and
one from the very beginning come to the same model and random state, bit for bit, and to the
clusters that SQL has; the forest and the partition pass their invariants. Leaves with 1 when
anything was lost, applied twice or different.
"""

# What is forked must have one thread, also in BLAS, which reads this as it is loaded.

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import random
import signal
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import redis

from tests.crash.forked import _child
from tests.servers.redis import redis_server
from tests.servers.server import Server
from tests.stream.scenario import NAME, assert_exactly_once, new_store, plan_for, records_file
from tests.treecore.invariants import Broken, forest_faults
from weald.cli.service.kernels import compile_kernels
from weald.monitoring.health import Health
from weald.monitoring.metrics import Metrics
from weald.storage.redis.lease_queue import LeaseQueue, Taken
from weald.storage.settings import RedisSettings, StorageSettings
from weald.storage.sql.failpoints import PLANE_LABELS, arm
from weald.storage.writing.store import SqlStore
from weald.stream.engine.coordinator import RefinementCoordinator
from weald.stream.engine.engine import Engine
from weald.stream.engine.writer import Claim, Writer
from weald.stream.model.mixture_shard import MixtureShard
from weald.stream.model.model import StreamConfig
from weald.stream.source.file_source import FileSource
from weald.stream.telemetry.telemetry import Telemetry
from weald.stream.worker.settings import WorkersSettings
from weald.stream.worker.worker import Worker, worker_name

N_RECORDS = 600
N_WORKERS = 2
LEASE_SECONDS = 0.6
SETTINGS = WorkersSettings(
    leases=2,
    sweeps=1,
    lease_seconds=LEASE_SECONDS,
    writer_share=1.0,
    behind_seconds=1e12,
    deliveries=50,
)
# Between two faults, and what the writer waits before each batch, so that rounds fit in between.
FAULT_SECONDS = 0.25
BATCH_SECONDS = 0.1
PATIENCE_SECONDS = 300.0
FAULTS = (
    "worker killed",
    "worker stopped past its lease",
    "redis flushed",
    "redis restarted",
    "writer killed",
    "writer bound to die",
    "returns repeated and reordered",
)
# Where a writer is bound to die, beside the kills at any instant.
STEPS = (*PLANE_LABELS, "commit.adopting", "commit.fenced", "commit.written")
MID_ADOPTION = ("adopt", "adopt.done", "commit.adopting")
RETURNS = f"weald:{{{NAME}}}:returns"
# Copies of the last returns, to be given in again.
COPIES = "copies"
N_REPEATED = 6


class Copying(LeaseQueue):
    """A worker's queue that leaves a copy of each return."""

    def give_back(self, worker: str, taken: Taken, payload: bytes | None) -> None:
        super().give_back(worker, taken, payload)
        key = ":".join(str(part) for part in taken.key)
        fields: Any = {"key": key, "worker": worker} | ({"payload": payload} if payload else {})
        self._client.xadd(COPIES, fields)


class Paced(Telemetry):
    """Waits after each batch, and lets itself be bound to die at a step."""

    def __init__(self, order: Path) -> None:
        super().__init__(Metrics(NAME), Health())
        self._order = order

    def standing(self, *rest: object) -> None:
        super().standing(*rest)  # type: ignore[arg-type]  # passed on as they are
        time.sleep(BATCH_SECONDS)
        if self._order.exists():
            arm(self._order.read_text())
            self._order.unlink()


def _fork(log: Path, task: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        _child(log, task)
    return pid


@dataclass
class Scene:
    """One stream, and the processes at work on it."""

    folder: Path
    server: Server
    draw: random.Random
    faults: Counter[str] = field(default_factory=Counter)
    stopped: dict[int, float] = field(default_factory=dict)
    workers: list[int] = field(default_factory=list)
    writer: int = 0
    bound: str = ""
    kept: deque[dict[bytes, bytes]] = field(default_factory=lambda: deque(maxlen=N_REPEATED))

    def __post_init__(self) -> None:
        path = records_file(self.folder, N_RECORDS)
        plan = plan_for(path, batch_records=20, snapshot_records=150, diverged="stop")
        mode = msgspec.structs.replace(plan.refinement, mode="workers")
        self.plan: StreamConfig = replace(plan, refinement=mode)
        new_store(self.folder).close()
        self.redis_url = f"redis://127.0.0.1:{self.server.port}/0"
        self.redis = redis.Redis.from_url(self.redis_url)
        self.log = self.folder / "children.log"
        self.order = self.folder / "order"

    def store(self) -> SqlStore:
        # Every snapshot is kept, and with it every round, for the replay from the beginning.
        url = f"sqlite:///{self.folder}/weald.db"
        return SqlStore(StorageSettings(url=url, busy_timeout_seconds=10.0, snapshots_kept=100_000))

    def _settings(self) -> RedisSettings:
        return RedisSettings(url=self.redis_url, timeout_seconds=2.0, retries=0)

    def _work(self) -> None:
        Worker(Copying(self._settings(), NAME), SETTINGS, worker_name()).run()

    def _write(self) -> None:
        telemetry = Paced(self.order)
        with self.store() as store:
            engine = Engine(self.plan, FileSource(self.plan.stream), store, telemetry=telemetry)
            queue = LeaseQueue(self._settings(), NAME)
            engine.refine_by(RefinementCoordinator(SETTINGS, queue, store, telemetry))
            engine.run()

    def run(self) -> None:
        """Write the stream to its end, faults all the while."""
        self.workers = [_fork(self.log, self._work) for _ in range(N_WORKERS)]
        self.writer = _fork(self.log, self._write)
        deadline = time.monotonic() + PATIENCE_SECONDS
        try:
            while True:
                time.sleep(self.draw.uniform(0.5, 1.5) * FAULT_SECONDS)
                if time.monotonic() > deadline:
                    raise RuntimeError(f"stuck:\n{self.log.read_text()[-3000:]}")
                self._wake()
                left = self._left(self.writer)
                if left == 0:
                    return
                if left is not None:
                    if left != -signal.SIGKILL:
                        raise RuntimeError(f"writer left with {left}:\n{self._tail()}")
                    self._note_death()
                    self.writer = _fork(self.log, self._write)
                self._copy()
                self._fault()
        finally:
            for pid in [*self.workers, self.writer]:
                with suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)

    def _tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]

    def _note_death(self) -> None:
        """Count a writer that died where it was bound to."""
        if self.bound:
            where = "mid-adoption" if self.bound in MID_ADOPTION else "in another step"
            self.faults[f"writer killed {where}"] += 1
        self.bound = ""
        self.order.unlink(missing_ok=True)

    def _left(self, pid: int) -> int | None:
        found, status = os.waitpid(pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if found else None

    def _wake(self) -> None:
        now = time.monotonic()
        for pid in [pid for pid, until in self.stopped.items() if until < now]:
            del self.stopped[pid]
            if pid in self.workers:
                os.kill(pid, signal.SIGCONT)

    def _fault(self) -> None:
        kind = self.draw.choice(FAULTS)
        if kind == "worker killed":
            at = self.draw.randrange(N_WORKERS)
            os.kill(self.workers[at], signal.SIGKILL)
            os.waitpid(self.workers[at], 0)
            self.workers[at] = _fork(self.log, self._work)
        elif kind == "worker stopped past its lease":
            pid = self.draw.choice(self.workers)
            os.kill(pid, signal.SIGSTOP)
            self.stopped[pid] = time.monotonic() + 1.5 * LEASE_SECONDS
        elif kind == "redis flushed":
            self.redis.flushall()
        elif kind == "redis restarted":
            self.server.kill()
            self.server.start()
        elif kind == "writer killed":
            os.kill(self.writer, signal.SIGKILL)
            self.bound = ""
        elif kind == "writer bound to die":
            self.bound = self.bound or self.draw.choice(STEPS)
            self.order.write_text(self.bound)
            return
        elif kind == "returns repeated and reordered":
            if not self._repeat_returns():
                return
        else:
            return
        self.faults[kind] += 1

    def _copy(self) -> None:
        """Keep what was returned lately; Redis may be flushed at any moment."""
        entries: Any = self.redis.xrange(COPIES)
        if entries:
            self.redis.xdel(COPIES, *(entry for entry, _ in entries))
        self.kept.extend(fields for _, fields in entries)

    def _repeat_returns(self) -> bool:
        """Give the last returns in again, twice and in another order, those on the way included."""
        waiting: Any = self.redis.xrange(RETURNS)
        if waiting:
            self.redis.xdel(RETURNS, *(entry for entry, _ in waiting))
        returns = [*self.kept, *(fields for _, fields in waiting)] * 2
        self.draw.shuffle(returns)
        for fields in returns:
            self.redis.xadd(RETURNS, fields)
        return bool(returns)

    def check(self) -> Counter[str]:
        """Raise AssertionError for whatever is not whole; return the leases by outcome."""
        with self.store() as store:
            assert_exactly_once(store, N_RECORDS)
            leases = store.leases(NAME)
            tokens = {(row.round_number, row.number): row.token for row in leases}
            assert len(tokens) == len(leases)
            assert_each_round_once(store)
            newest = self._loaded(store)
            numbers = [each.number for each in store.snapshots(NAME)]
            store.delete_snapshots(NAME, numbers)
            again = self._loaded(store)
            same_model(newest, again)
            assert again.clusters.tolist() == stored_clusters(store)
            assert_valid(again)
            return Counter(row.outcome for row in leases)

    def _loaded(self, store: SqlStore) -> MixtureShard:
        writer = Writer(self.plan, store, Claim("chaos", 0, takeover=True))
        writer.load(lambda _: None)
        assert isinstance(writer.shard, MixtureShard)
        # What the last writer had out when it ended is nobody's.
        writer.shard.forget_lent()
        return writer.shard


def assert_each_round_once(store: SqlStore) -> None:
    """What came back is there once, each atom once a round, with its leases closed."""
    adoptions = store.adoptions(NAME, 0)
    rounds = {each.round_number for each in adoptions}
    assert len(rounds) == len(adoptions)
    assert {row.round_number for row in store.leases(NAME, outcome="adopted")} <= rounds
    assert not rounds & {row.round_number for row in store.leases(NAME, outcome="offered")}
    for each in adoptions:
        atoms = each.payload["atoms"]
        assert len(np.unique(atoms)) == len(atoms)


def stored_clusters(store: SqlStore) -> list[int]:
    """Cluster of every observation, by SQL."""
    clusters: list[int] = []
    while block := store.observations(NAME, len(clusters), 1_000):
        clusters += block.cluster.tolist()
    return clusters


def same_model(one: MixtureShard, other: MixtureShard) -> None:
    """Labels, statistics and random state are the same; the forest may have been tidied earlier."""
    found, expected = one.state(), other.state()
    for name in expected:
        if not name.startswith("chain.forest_") and name != "lease_rounds":
            np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


def assert_valid(shard: MixtureShard) -> None:
    """The chain's forest holds each observation once, with sums that add up."""
    chain = shard.chain
    assert (chain.labels >= 0).sum() == shard.seq
    assert forest_faults(chain._first_model(0), chain._forest) == Broken(0)


def main() -> None:
    """Go on until there were enough faults, and tell."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    faults, outcomes = chaos(asked.faults, asked.seed)
    for name, n in sorted(faults.items()):
        sys.stdout.write(f"{n:6}  {name}\n")
    sys.stdout.write(f"{faults.total():6}  faults; leases: {dict(outcomes)}\n")


def chaos(n_faults: int, seed: int) -> tuple[Counter[str], Counter[str]]:
    """Run streams until there were so many faults; return them and the leases by outcome."""
    # Children inherit the kernels: one that had to load them would be killed before it is done.
    compile_kernels("gaussian")
    draw = random.Random(seed)  # noqa: S311  (protects nothing)
    faults: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    while faults.total() < n_faults:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "redis").mkdir()
            server = redis_server(folder / "redis")
            server.start()
            try:
                scene = Scene(folder, server, draw)
                scene.run()
                outcomes += scene.check()
            finally:
                server.stop()
            faults += scene.faults
        sys.stderr.write(f"{faults.total()} faults, leases {dict(outcomes)}\n")
    return faults, outcomes


if __name__ == "__main__":
    main()
