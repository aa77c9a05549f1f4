"""Rounds on small posteriors through a real Redis and SQL, with workers that run at once.

What the service does, without a stream of records: the partition of a few observations is dealt
out, offered in SQL and then in Redis, taken by worker threads, given back, checked against SQL's
tokens, and taken over. Many independent partitions, *copies*, go through each round together, so
that a transaction serves all of them. ``Form`` names the ways of doing it wrong that must show in
the long run.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tests.exact.cases import Problem
from tests.exact.rounds import Rounds, own_labels, scans_of, shape_of, visiting
from weald.mcmc.leases import lease_work
from weald.mcmc.leases.lease_work import Returned
from weald.mcmc.leases.leases import Lease, Pair, coin_groups, make_lease, pair_groups
from weald.mcmc.leases.outstanding import Lent
from weald.storage.commit.commit import BatchCommit, LeaseRow, StreamSpec
from weald.storage.encoding.snapshot import decode
from weald.storage.errors import Fenced
from weald.storage.redis.lease_queue import LeaseQueue
from weald.storage.settings import RedisSettings, StorageSettings
from weald.storage.sql.migrate import upgrade
from weald.storage.writing.store import SqlStore
from weald.stream.worker.row_pages import RowsSent
from weald.stream.worker.settings import WorkersSettings
from weald.stream.worker.worker import Worker

Ids = NDArray[np.int64]
Key = tuple[int, int, int]
OWNER = "exactness"
WAIT_SECONDS = 120.0
_IDS_A_COPY = 1000
# A look costs as much as a lease, and a round of all copies has a hundred.
POLL_SECONDS = 0.02


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


@dataclass(frozen=True)
class Dealt:
    """A lease of one of the copies."""

    copy: int
    number: int
    atoms: Ids
    lease: Lease


class Plane:
    """Copies of one problem's partition, their writer, and workers on threads of their own."""

    def __init__(
        self, small: Problem, form: Form, n_workers: int, n_copies: int, rng: Generator
    ) -> None:
        self._rounds = Rounds(small, ("dp", {"alpha": 1.0}))
        self._form = form
        self._n = n_workers
        self._rng = rng
        # Exact draws: a right form stays there from the first round on.
        start = rng.choice(len(small.states), size=n_copies, p=small.target)
        self.labels: list[Ids] = [np.array(small.states[at], dtype=np.int64) for at in start]
        self._round_number = 0
        self.n_fenced = 0

    @contextmanager
    def running(self, folder: Path, redis_url: str) -> Iterator[None]:
        """Connect, and start the workers."""
        settings = StorageSettings(url=f"sqlite:///{folder}/leases.db")
        upgrade(settings)
        self._store = SqlStore(settings)
        self._store.ensure_stream(StreamSpec(OWNER, "bernoulli", {}, "dp", {}, {}, 0))
        self._epoch = self._store.claim(OWNER, OWNER, 0, takeover=True).epoch
        stream = f"{OWNER}-{self._rng.integers(2**62)}"
        redis = RedisSettings(url=redis_url)
        self._queue = LeaseQueue(redis, stream)
        self._rows = RowsSent()
        queues = [LeaseQueue(redis, stream) for _ in range(self._n)]
        workers = [
            Worker(queue, WorkersSettings(), f"worker-{at}") for at, queue in enumerate(queues)
        ]
        threads = [threading.Thread(target=worker.run, daemon=True) for worker in workers]
        kernels = lease_work.lease_kernels
        lease_work.lease_kernels = scans_of
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            for worker in workers:
                worker.stop()
            for thread in threads:
                thread.join()
            lease_work.lease_kernels = kernels
            for queue in [self._queue, *queues]:
                queue.close()
            self._store.close()

    def turn(self) -> None:
        """One round of every copy; where workers fall asleep, two of them.

        The last lease of the first is given up then, and comes back after the second.
        """
        if self._form not in {Form.LATE, Form.NO_TOKEN}:
            self._round()
            return
        asleep = self._round(last_sleeps=True)
        self._round()
        for key, dealt, answer in asleep:
            if self._form is Form.NO_TOKEN:
                self._write(dealt, answer.labels)
            else:
                self._late(key, dealt)

    def _round(self, *, last_sleeps: bool = False) -> list[tuple[Key, Dealt, Returned]]:
        """Deal out, have it worked on, take over; return the leases that were given up."""
        self._round_number += 1
        token = self._epoch + 1
        dealt = [each for copy in range(len(self.labels)) for each in self._deal(copy)]
        keys: list[Key] = [(self._round_number, at, token) for at in range(len(dealt))]
        leases = dict(zip(keys, dealt, strict=True))
        self._commit([self._row(key, "offered", each) for key, each in leases.items()])
        # Copies share a queue: each has ids of its own there.
        lent = {
            key: Lent(each.atoms + each.copy * _IDS_A_COPY, each.lease)
            for key, each in leases.items()
        }
        self._rows.offer(self._queue, lent, dict.fromkeys(keys, "all"))
        answers = self._wait(set(leases))
        asleep = [key for key, each in leases.items() if last_sleeps and each.number == self._n - 1]
        self._commit(
            [
                self._row(key, "expired" if key in asleep else "adopted", each)
                for key, each in leases.items()
            ]
        )
        start = [each.copy() for each in self.labels]
        for key, each in leases.items():
            if key not in asleep:
                self._take(each, answers[key].labels, start[each.copy])
        return [(key, leases[key], answers[key]) for key in asleep]

    def _deal(self, copy: int) -> list[Dealt]:
        """The leases of one copy's round."""
        form, labels, rng, n = self._form, self.labels[copy], self._rng, self._n
        everything = np.arange(labels.shape[0], dtype=np.int64)
        groups: list[tuple[Ids, int] | Pair]
        scans = [everything.tolist()] * n
        if form is Form.PAIRS:
            groups = list(pair_groups(rng, labels, n))
        elif form is Form.OPTIMISTIC:
            groups = [pair_groups(rng, labels, 1)[0] for _ in range(n)]
        elif form is Form.STALE_COUNTS:
            groups = [(everything, 1) for _ in range(n)]
            scans = [shard_of(everything, number, n).tolist() for number in range(n)]
        else:
            groups = [(atoms, n) for atoms in coin_groups(rng, labels, n)]
        found = []
        for number, group in enumerate(groups):
            atoms = group.atoms if isinstance(group, Pair) else group[0]
            if atoms.shape[0] == 0:
                continue
            visited = scans[number][: atoms.shape[0]]
            budget = visiting(visited)._replace(seed=int(rng.integers(2**63)))
            made = make_lease(self._rounds.model, self._rounds.guide, labels, group, budget)
            if form is Form.PLAIN_ALPHA:
                made = replace(made, log_share=0.0)
            found.append(Dealt(copy, number, atoms, made))
        return found

    def _take(self, dealt: Dealt, returned: Ids, start: Ids) -> None:
        now = self.labels[dealt.copy]
        if self._form is Form.STALE_COUNTS:
            self._write_shard(dealt, returned, start)
            return
        changed = _blocks(start, dealt.atoms) != _blocks(now, dealt.atoms)
        if not (self._form is Form.OPTIMISTIC and changed):
            self._write(dealt, returned)

    def _late(self, key: Key, dealt: Dealt) -> None:
        """SQL refuses a return whose lease is closed, and nothing of it is written."""
        try:
            self._commit([self._row(key, "adopted", dealt)])
        except Fenced:
            self.n_fenced += 1

    def _write(self, dealt: Dealt, returned: Ids) -> None:
        labels = self.labels[dealt.copy]
        labels[dealt.atoms] = returned + labels.max() + 10
        self.labels[dealt.copy] = np.array(shape_of(labels), dtype=np.int64)

    def _write_shard(self, dealt: Dealt, returned: Ids, start: Ids) -> None:
        """Each worker's own atoms go where it put them among the others as they were."""
        labels = self.labels[dealt.copy]
        mine = shard_of(dealt.atoms, dealt.number, self._n)
        labels[mine] = own_labels(start, returned, mine, dealt.number)
        if dealt.number == self._n - 1:
            self.labels[dealt.copy] = np.array(shape_of(labels), dtype=np.int64)

    def _wait(self, keys: set[Key]) -> dict[Key, Returned]:
        came: dict[Key, Returned] = {}
        deadline = time.monotonic() + WAIT_SECONDS
        while len(came) < len(keys):
            assert time.monotonic() < deadline, f"no answer for {keys - set(came)}"
            for back in self._queue.returned():
                assert back.key in keys
                came[back.key] = Returned.from_arrays(decode(back.payload or b""))
            time.sleep(POLL_SECONDS)
        return came

    def _commit(self, rows: list[LeaseRow]) -> None:
        self._store.commit(BatchCommit(OWNER, OWNER, 0, self._epoch + 1, leases=rows))
        self._epoch += 1

    def _row(self, key: Key, outcome: str, dealt: Dealt) -> LeaseRow:
        closed = None if outcome == "offered" else 1.0
        return LeaseRow(*key, outcome, len(dealt.atoms), 0.0, closed)


def shard_of(atoms: Ids, number: int, n: int) -> Ids:
    """Every n-th atom: what one worker has to itself where counts are stale."""
    mine: Ids = atoms[atoms % n == number]
    return mine


def _blocks(labels: Ids, atoms: Ids) -> set[frozenset[int]]:
    held = set(labels[atoms].tolist())
    return {frozenset(np.flatnonzero(labels == k).tolist()) for k in held}
