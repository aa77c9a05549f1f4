"""Rounds on a small posterior through a real Redis and SQL, with workers that run at once.

What the service does, without a stream: the partition of five observations is dealt out, offered in
SQL and then in Redis, taken by worker threads, given back, checked against SQL's tokens, and taken
over. ``Form`` names the ways of doing it wrong that must show in the long run.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from weald.mcmc.lease_work import Returned
from weald.mcmc.leases import Budget, Lease, Pair, coin_groups, make_lease, pair_groups
from weald.storage.commit import BatchCommit, LeaseRow, StreamSpec
from weald.storage.errors import Fenced
from weald.storage.lease_queue import LeaseItem, LeaseQueue, LeaseReturn
from weald.storage.migrate import upgrade
from weald.storage.settings import RedisSettings, StorageSettings
from weald.storage.snapshot import decode, encode
from weald.storage.sql import SqlStore
from weald.stream.worker import Worker
from weald.stream.worker_settings import WorkersSettings

from tests.exact.cases import Problem
from tests.exact.rounds import Rounds, shape_of

Ids = NDArray[np.int64]
Key = tuple[int, int, int]
OWNER = "exactness"
# How often a worker sleeps through its round, where that is what is tested.
SLEEPS = 0.5


class Form(StrEnum):
    """Coins or pairs as they should be, and what is wrong with the others."""

    COINS = "coins"
    PAIRS = "pairs"
    LATE = "late returns, tokens checked"
    PLAIN_ALPHA = "plain alpha"
    OPTIMISTIC = "optimistic aborts"
    STALE_COUNTS = "stale counts"
    NO_TOKEN = "late returns, token check off"  # noqa: S105  (no password)

    @property
    def right(self) -> bool:
        """Whether the posterior must come out."""
        return self in {Form.COINS, Form.PAIRS, Form.LATE}


class Plane:
    """One partition, its writer, and ``n_workers`` workers on threads of their own."""

    def __init__(self, small: Problem, form: Form, rng: Generator) -> None:
        self._rounds = Rounds(small, ("dp", {"alpha": 1.0}))
        self._form = form
        self._rng = rng
        self.labels: Ids = np.array(small.states[0], dtype=np.int64)
        self._round = 0
        self._asleep: deque[tuple[Key, Ids, Returned]] = deque()
        self.n_fenced = 0

    @contextmanager
    def running(self, folder: Path, redis_url: str, n_workers: int) -> Iterator[None]:
        """Connect, and start the workers."""
        settings = StorageSettings(url=f"sqlite:///{folder}/leases.db")
        upgrade(settings)
        self._store = SqlStore(settings)
        self._store.ensure_stream(StreamSpec(OWNER, "bernoulli", {}, "dp", {}, {}, 0))
        self._epoch = self._store.claim(OWNER, OWNER, 0, takeover=True).epoch
        stream = f"{OWNER}-{self._rng.integers(2**62)}"
        redis = RedisSettings(url=redis_url)
        self._n = n_workers
        self._queue = LeaseQueue(redis, stream)
        queues = [LeaseQueue(redis, stream) for _ in range(n_workers)]
        workers = [
            Worker(queue, WorkersSettings(), f"worker-{at}") for at, queue in enumerate(queues)
        ]
        threads = [threading.Thread(target=worker.run, daemon=True) for worker in workers]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            for worker in workers:
                worker.stop()
            for thread in threads:
                thread.join()
            for queue in [self._queue, *queues]:
                queue.close()
            self._store.close()

    def _commit(self, rows: list[LeaseRow]) -> None:
        self._store.commit(BatchCommit(OWNER, OWNER, 0, self._epoch + 1, leases=rows))
        self._epoch += 1

    def _deal(self) -> list[tuple[Ids, Lease]]:
        """The round's leases with their atoms."""
        form, labels, rng = self._form, self.labels, self._rng
        groups: list[tuple[Ids, int] | Pair]
        if form is Form.PAIRS:
            groups = list(pair_groups(rng, labels, self._n))
        elif form is Form.OPTIMISTIC:
            groups = [pair_groups(rng, labels, 1)[0] for _ in range(self._n)]
        elif form is Form.STALE_COUNTS:
            everything = np.arange(labels.shape[0], dtype=np.int64)
            groups = [(everything, 1) for _ in range(self._n)]
        else:
            dealt = coin_groups(rng, labels, self._n)
            groups = [(atoms, self._n) for atoms in dealt if atoms.shape[0]]
        leases = []
        for group in groups:
            budget = Budget("gibbs", 1, int(rng.integers(2**63)))
            made = make_lease(self._rounds.model, self._rounds.guide, labels, group, budget)
            atoms = group.atoms if isinstance(group, Pair) else group[0]
            spoilt = form is Form.PLAIN_ALPHA
            leases.append((atoms, replace(made, log_share=0.0) if spoilt else made))
        return leases

    def turn(self) -> None:
        """One round."""
        self._round += 1
        token = self._epoch + 1
        leases = {(self._round, at, token): made for at, made in enumerate(self._deal())}
        self._commit([self._row(key, "offered", atoms) for key, (atoms, _) in leases.items()])
        self._queue.offer(
            [LeaseItem(key, encode(lease.arrays())) for key, (_, lease) in leases.items()]
        )
        late = self._asleep.popleft() if self._asleep else None
        came = self._wait(set(leases))
        slept = None
        if self._form in {Form.LATE, Form.NO_TOKEN} and self._rng.random() < SLEEPS:
            slept = max(came)
        start = self.labels.copy()
        for key in sorted(came):
            atoms, _ = leases[key]
            answer = Returned.from_arrays(decode(came[key].payload or b""))
            if key == slept:
                # Given up: its worker sleeps. It answers after the next round.
                self._asleep.append((key, atoms, answer))
                self._commit([self._row(key, "expired", atoms)])
            else:
                self._take(key, atoms, answer, start)
        if late is not None:
            key, atoms, answer = late
            if self._form is Form.NO_TOKEN:
                self._write(atoms, answer.labels)
            else:
                self._late(key, atoms)

    def _take(self, key: Key, atoms: Ids, answer: Returned, start: Ids) -> None:
        self._commit([self._row(key, "adopted", atoms)])
        if self._form is Form.OPTIMISTIC:
            if (_blocks(start, atoms)) == (_blocks(self.labels, atoms)):
                self._write(atoms, answer.labels)
        elif self._form is Form.STALE_COUNTS:
            self._write_shard(key[1], answer.labels, start)
        else:
            self._write(atoms, answer.labels)

    def _late(self, key: Key, atoms: Ids) -> None:
        """SQL refuses a return whose lease is closed, and nothing of it is written."""
        try:
            self._commit([self._row(key, "adopted", atoms)])
        except Fenced:
            self.n_fenced += 1

    def _write(self, atoms: Ids, labels: Ids) -> None:
        self.labels[atoms] = labels + self.labels.max() + 10
        self.labels = np.array(shape_of(self.labels), dtype=np.int64)

    def _write_shard(self, number: int, labels: Ids, start: Ids) -> None:
        """Each worker's own atoms go where it put them among the others as they were."""
        n = labels.shape[0]
        mine = np.flatnonzero(np.arange(n) % self._n == number)
        others = np.setdiff1d(np.arange(n), mine)
        for atom in mine:
            there = [i for i in others if labels[i] == labels[atom]]
            own = 1000 * (number + 1) + int(labels[atom])
            self.labels[atom] = start[there[0]] if there else own
        if number == self._n - 1:
            self.labels = np.array(shape_of(self.labels), dtype=np.int64)

    def _wait(self, keys: set[Key]) -> dict[Key, LeaseReturn]:
        came: dict[Key, LeaseReturn] = {}
        deadline = time.monotonic() + 60.0
        while set(came) != keys:
            assert time.monotonic() < deadline, f"no answer for {keys - set(came)}"
            came |= {back.key: back for back in self._queue.returned() if back.key in keys}
        return came

    def _row(self, key: Key, outcome: str, atoms: Ids) -> LeaseRow:
        return LeaseRow(*key, outcome, len(atoms), 0.0, None if outcome == "offered" else 1.0)


def _blocks(labels: Ids, atoms: Ids) -> set[frozenset[int]]:
    held = set(labels[atoms].tolist())
    return {frozenset(np.flatnonzero(labels == k).tolist()) for k in held}
