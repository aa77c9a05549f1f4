"""The worker's loop: take a lease, spend its moves, give it back.

A worker needs Redis only, and keeps nothing between leases but rows that it need not fetch again.
It may be killed at any moment: the lease goes to another, which comes to the same answer. The same
code runs as a process of its own and, in embedded mode, on a thread beside the writer; kernels run
without the interpreter's lock.
"""

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from weald.mcmc.leases.lease_work import work
from weald.storage.encoding.snapshot import encode
from weald.storage.errors import SnapshotCorrupt, StorageUnavailable
from weald.storage.redis.lease_queue import LeaseQueue, Taken
from weald.stream.source.retry import Backoff
from weald.stream.telemetry.outages import Outages

from .row_pages import RowsKept
from .settings import WorkersSettings

__all__ = ["Done", "Worker", "worker_name"]

_log = logging.getLogger(__name__)

_WAIT_SECONDS = 1.0
_BEATS_A_LEASE = 4


@dataclass(frozen=True)
class Done:
    """A lease that was given back: its round and number, atoms, moves, and the time it took."""

    round_number: int
    number: int
    n_atoms: int
    n_moves: int
    log_joint_gain: float
    seconds: float


def worker_name() -> str:
    """A name that no other worker ever had, telling host and process."""
    return f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


class Worker:
    """Works for one stream until `stop` is called.

    Parameters
    ----------
    queue : LeaseQueue
        Of its own: connections are not shared between threads here.
    settings : WorkersSettings
    name : str
    tell : callable, optional
        Called with each `Done`.
    """

    def __init__(
        self,
        queue: LeaseQueue,
        settings: WorkersSettings,
        name: str,
        tell: Callable[[Done], None] = lambda _: None,
    ) -> None:
        self._queue = queue
        self._settings = settings
        self._name = name
        self._tell = tell
        self._stopping = threading.Event()
        self._rows = RowsKept()
        self._backoff = Backoff(0.5, 15.0)
        self._outages = Outages()

    def stop(self) -> None:
        """Finish the lease in hand, then return from `run`; safe in a signal handler."""
        self._stopping.set()

    def run(self) -> None:
        """Go round until `stop`; an unreachable Redis is asked again and again."""
        while not self._stopping.is_set():
            try:
                self.turn(_WAIT_SECONDS)
            except StorageUnavailable as error:
                self._outages.away("redis", str(error))
                self._stopping.wait(self._backoff.delay())
            else:
                self._backoff.reset()
                self._outages.back("redis")
        try:
            self._queue.forget(self._name)
        except StorageUnavailable:
            _log.info("left without taking leave: redis is away")

    def turn(self, wait_seconds: float) -> Done | None:
        """Take one lease, if there is one within the wait, and give it back.

        Raises
        ------
        StorageUnavailable
            When Redis does not answer; the lease, if any, is another's after its time.
        """
        taken = self._queue.take(self._name, self._settings.lease_seconds, wait_seconds)
        if taken is None:
            return None
        if taken.deliveries > self._settings.deliveries:
            _log.error("lease %s was delivered %d times: parked", taken.key, taken.deliveries - 1)
            self._queue.give_back(self._name, taken, None)
            return None
        began = time.perf_counter()
        try:
            lease = self._rows.lease(self._queue, taken.payload)
            if lease is None:
                _log.info("lease %s: its rows are not in redis any more", taken.key)
                self._queue.drop(taken)
                return None
            with self._beating(taken):
                returned = work(lease)
        except (SnapshotCorrupt, KeyError, ValueError, ArithmeticError):
            # Not acknowledged: it comes again, is counted, and is parked in the end.
            _log.exception("lease %s failed", taken.key)
            return None
        self._queue.give_back(self._name, taken, encode(returned.arrays()))
        done = Done(
            round_number=taken.key[0],
            number=taken.key[1],
            n_atoms=lease.labels.shape[0],
            n_moves=sum(kernel.proposed for kernel in returned.kernels),
            log_joint_gain=sum(kernel.log_joint_gain for kernel in returned.kernels),
            seconds=time.perf_counter() - began,
        )
        self._tell(done)
        return done

    @contextmanager
    def _beating(self, taken: Taken) -> Iterator[None]:
        ended = threading.Event()
        pause = self._settings.lease_seconds / _BEATS_A_LEASE

        def beat() -> None:
            while not ended.wait(pause):
                try:
                    if not self._queue.beat(self._name, taken):
                        _log.info("lease %s is another's by now", taken.key)
                        return
                except StorageUnavailable as error:
                    self._outages.away("redis", str(error))

        beater = threading.Thread(target=beat, name="weald-beat", daemon=True)
        beater.start()
        try:
            yield
        finally:
            ended.set()
            beater.join()
