"""Replays a bundled stream onto a topic, as its own producer would have sent it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Self

import msgspec

from weald.cli.service.embedded import API_VERSION

from .streams import Record

__all__ = ["Replay"]

# Far below what the embedded broker keeps of a partition, so that nothing is dropped unread.
MOST_AHEAD = 4_000
# For a batch to be full.
LONGEST_WAIT_MS = 60_000


class Replay:
    """A producer on a thread of its own, for as long as its ``with`` block.

    All records go to one partition, where a topic keeps order. The broker hands out one of the
    producer's batches at a time, and the first records say what a cluster is like: so batches are
    sent when they are full, and the same stream gives the same clusters at every run.

    Parameters
    ----------
    bootstrap_servers : str
    topic : str
    records : iterable of dict
        Sent as JSON, keyed by their ``id``.
    """

    def __init__(self, bootstrap_servers: str, topic: str, records: Iterable[Record]) -> None:
        self._thread = threading.Thread(target=self._run, name="weald-replay", daemon=True)
        self._servers = bootstrap_servers
        self._topic = topic
        self._records = records
        self._room = threading.Semaphore(MOST_AHEAD)
        self._stopped = threading.Event()
        self._begun = threading.Event()
        self.n_sent = 0
        self.done = False
        self.error: Exception | None = None

    def received(self, n_records: int) -> None:
        """Say that so many more records were consumed."""
        if n_records:
            self._room.release(n_records)

    def __enter__(self) -> Self:
        """Return once the topic exists: the consumer makes none."""
        self._thread.start()
        self._begun.wait()
        return self

    def __exit__(self, *_: object) -> None:
        """Send no more, and wait for the thread."""
        self._stopped.set()
        self._room.release()
        self._thread.join()

    def _run(self) -> None:
        """Send everything, at the consumer's pace."""
        try:
            self._send()
        except Exception as error:  # noqa: BLE001  # told on the main thread, which decides
            self.error = error
        self.done = True
        self._begun.set()

    def _send(self) -> None:
        from kafka import KafkaProducer

        producer = KafkaProducer(
            bootstrap_servers=self._servers, api_version=API_VERSION, linger_ms=LONGEST_WAIT_MS
        )
        # One for all: in a batch later times take more bytes.
        now = int(time.time() * 1000)
        try:
            producer.partitions_for(self._topic)
            self._begun.set()
            for record in self._records:
                self._room.acquire()
                if self._stopped.is_set():
                    break
                producer.send(
                    self._topic,
                    value=msgspec.json.encode(record),
                    key=str(record["id"]).encode(),
                    partition=0,
                    timestamp_ms=now,
                )
                self.n_sent += 1
            producer.flush()
        finally:
            producer.close()
