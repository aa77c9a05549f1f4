"""Writers forked from a process that has everything in memory: a restart costs milliseconds.

The parent has no threads, so what the child inherits is whole. A child runs one stream to its end,
unless it is killed first: by itself at a labelled step, or by the parent at any instant.
"""

import logging
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from weald.monitoring.health import Health
from weald.monitoring.metrics import Metrics
from weald.storage.settings import StorageSettings
from weald.storage.sql.failpoints import arm
from weald.storage.writing.store import SqlStore
from weald.stream.engine import yielding
from weald.stream.engine.engine import Engine
from weald.stream.engine.sinks import Sinks
from weald.stream.model.model import StreamConfig
from weald.stream.record.record import Message, Reason, TopicPartition
from weald.stream.settings import KafkaSettings
from weald.stream.source.file_source import FileSource
from weald.stream.source.kafka_source import KafkaSource
from weald.stream.source.librdkafka_source import source_of
from weald.stream.source.source import Source
from weald.stream.telemetry.telemetry import Telemetry

__all__ = ["Run", "Topic", "aside", "forked", "write"]

# What an undisturbed writer never takes; one that does is stuck, and that is a finding.
PATIENCE_SECONDS = 120.0
# So few points are refined in less than a tenth of the time, and nothing would be put off.
_LEAST_SHARE = 0.005


@dataclass(frozen=True)
class Run:
    """One stream and where it lives.

    Parameters
    ----------
    plan : StreamConfig
    database : str
        URL.
    log : Path
        Appended to.
    kafka : KafkaSettings, optional
        The topic; by default the plan's file is read.
    ends : dict of int to int
        Offset after the last record of each of the topic's partitions.
    """

    plan: StreamConfig
    database: str
    log: Path
    kafka: KafkaSettings | None
    ends: Mapping[int, int]


class Topic:
    """A topic that ends: exhausted once every record that was sent has been polled."""

    def __init__(self, source: KafkaSource, ends: Mapping[int, int]) -> None:
        self._source = source
        self._ends = ends
        self._reached: dict[int, int] = {}

    @property
    def exhausted(self) -> bool:
        """Whether all partitions are ours, and read to where they were sent to."""
        return self._reached == self._ends and len(self.assignment()) == len(self._ends)

    def poll(self, timeout_s: float) -> list[Message]:
        """Poll, and note how far it went."""
        messages = self._source.poll(timeout_s)
        for message in messages:
            self._reached[message.partition] = message.offset + 1
        return messages

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Go on from there."""
        self._source.seek(offsets)
        self._reached = {place.partition: offset for place, offset in offsets.items()}

    def assignment(self) -> set[TopicPartition]:
        """The source's."""
        return self._source.assignment()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def forked(run: Run, order: str, kill_after: float | None = None) -> bool:
    """Run the stream in a child until it ends or is killed; tell whether it was killed.

    Parameters
    ----------
    run : Run
    order : str
        ``LABEL:COUNT`` at which the child kills itself; "" for none.
    kill_after : float, optional
        Seconds after which the parent kills it.

    Raises
    ------
    RuntimeError
        When it ended in any other way; the message carries the end of its log.
    """
    pid = os.fork()
    if pid == 0:
        _child(run.log, lambda: write(run, order))
    ended = select.poll()
    descriptor = os.pidfd_open(pid)
    ended.register(descriptor, select.POLLIN)
    patience = PATIENCE_SECONDS if kill_after is None else kill_after
    in_time = bool(ended.poll(1000.0 * patience))
    if not in_time:
        os.kill(pid, signal.SIGKILL)
    os.close(descriptor)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    stuck = kill_after is None and not in_time
    if stuck or status not in {0, -signal.SIGKILL}:
        tail = run.log.read_text(errors="replace")[-3000:]
        raise RuntimeError(f"the writer {'is stuck' if stuck else f'left with {status}'}:\n{tail}")
    return status != 0


def aside(task: Callable[[], None]) -> None:
    """Run what starts threads, a Kafka client for one, in a child and wait for it."""
    pid = os.fork()
    if pid == 0:
        _child(None, task)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status != 0:
        raise RuntimeError(f"the child left with {status}")


def _child(log: Path | None, task: Callable[[], None]) -> NoReturn:
    status = 1
    try:
        if log is not None:
            descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            logging.basicConfig(level=logging.INFO, stream=sys.stderr, force=True)
            logging.getLogger("kafka").setLevel(logging.WARNING)
        task()
        status = 0
    except BaseException:  # noqa: BLE001  whoever waits for it reads what it was
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def write(run: Run, order: str) -> None:
    """Run the stream in this process, which is for nothing else, to its end."""
    yielding.LEAST_SHARE = _LEAST_SHARE
    plan = run.plan
    arm(order)
    source: Source
    if run.kafka is None:
        source = FileSource(plan.stream)
    else:
        kafka = run.kafka
        if kafka.api_version is not None:
            # The embedded broker doesn't forget a dead member: each run is a group of its own.
            kafka = msgspec.structs.replace(kafka, group=f"{plan.stream.name}-{os.getpid()}")
        topic = source_of(kafka, plan.stream.name, plan.stream.most_polled)
        source = Topic(topic, run.ends)
    settings = StorageSettings(url=run.database, busy_timeout_seconds=10.0)
    telemetry = Telemetry(
        Metrics(plan.stream.name, reasons=[str(each) for each in Reason]), Health()
    )
    with SqlStore(settings) as store:
        Engine(plan, source, store, Sinks(), telemetry).run()
