"""``weald run`` of a stream in shards on Apache Kafka: one process that writes them all."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest
from kafka import KafkaProducer

from tests.crash.processes import wait_until
from tests.servers.server import free_port
from tests.stream.scenario import line_of, values_of
from weald.cli.errors import ExitCode
from weald.storage.errors import StreamNotFound
from weald.storage.settings import StorageSettings
from weald.storage.sql.migrate import upgrade
from weald.storage.writing.store import SqlReader

pytestmark = pytest.mark.slow

N = 400


class World:
    """A topic of four partitions with some records, and ``weald run`` over it."""

    def __init__(self, folder: Path, bootstrap: str, topic: str) -> None:
        self.topic, self.port = topic, free_port()
        self.url = f"sqlite:///{folder / 'weald.db'}"
        self.folder = folder
        upgrade(StorageSettings(url=self.url))
        (folder / "weald.toml").write_text(
            f"[stream]\nname = 'wide'\nsnapshot_records = 100\n[kafka]\ntopic = '{topic}'\n"
            f"bootstrap_servers = '{bootstrap}'\nsession_timeout_ms = 4000\n"
            "heartbeat_interval_ms = 500\n[schema]\nfields = [{name = 'x'}, {name = 'y'}]\n"
            f"key = 'id'\n[model]\nwarmup_records = 60\n[redis]\nenabled = false\n[storage]\n"
            f"url = '{self.url}'\n[monitoring]\nport = {self.port}\n"
        )
        producer = KafkaProducer(bootstrap_servers=bootstrap)
        for i, row in enumerate(values_of(N)):
            producer.send(topic, value=line_of(i, row).encode(), partition=i % 4)
        producer.close()

    def run(self, shards: int, *more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "weald.cli.main", "run", "--config"),
                *(str(self.folder), "--set", f"stream.shards={shards}", *more),
            ],
            stderr=subprocess.PIPE,
            text=True,
        )

    def inserted(self) -> list[int]:
        with SqlReader(StorageSettings(url=self.url)) as reader:
            try:
                return [row.n_inserted for row in reader.shards("wide")]
            except StreamNotFound:
                return []

    def asked(self, path: str) -> tuple[int, str]:
        try:
            with urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as refusal:
            return refusal.code, refusal.read().decode()

    def is_ready(self) -> bool:
        try:
            return self.asked("/readyz")[0] == 200
        except URLError:
            return False


@pytest.fixture
def world(tmp_path: Path, kafka_bootstrap: str, kafka_topic: Callable[..., str]) -> World:
    return World(tmp_path, kafka_bootstrap, kafka_topic(partitions=4))


def test_one_process_writes_all_shards_and_tells_of_each(world: World) -> None:
    process = world.run(4)
    try:
        wait_until(lambda: world.inserted() == [N // 4] * 4, "all shards are in SQL", 120.0)
        code, answer = world.asked("/readyz")
        assert code == 200, answer
        told = {each["name"] for each in json.loads(answer)["conditions"]}
        assert {f"wide/{shard} model" for shard in range(4)} <= told
        _, metrics = world.asked("/metrics")
        for shard in range(4):
            assert f'weald_assigned_partitions{{stream="wide/{shard}"}} 1.0' in metrics
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30.0)
    finally:
        process.kill()
    assert process.returncode == 0, said
    assert "trees and snapshots are listed by shard" in said
    assert f"{N} received: {N} inserted" in said
    with SqlReader(StorageSettings(url=world.url)) as reader:
        keys = [
            str(key)
            for part in reader.parts("wide").values()
            for key in getattr(reader.observations(part, 0, N), "key", ())
        ]
        snapshots = [reader.snapshots(part)[0].seq for part in reader.parts("wide").values()]
    assert sorted(keys) == sorted(f"k{i}" for i in range(N))
    assert snapshots == [N // 4] * 4
    # Another number of shards is refused, and ends the process with the code of a conflict.
    other = world.run(2)
    _, said = other.communicate(timeout=120.0)
    assert other.returncode == ExitCode.CONFLICT, said
    assert "exists with shards 4, asked for 2" in said


@pytest.mark.parametrize("shards", [1, 4])
def test_a_process_that_has_never_written_is_ready_to(world: World, shards: int) -> None:
    """Of four shards the second process takes two over, and has never been the others' writer."""
    first = world.run(shards)
    try:
        wait_until(world.is_ready, "the first is ready", 120.0)
        world.port = free_port()
        second = world.run(shards, f"--set=monitoring.port={world.port}")
        try:
            wait_until(world.is_ready, "the second is ready", 120.0)
            _, metrics = world.asked("/metrics")
        finally:
            second.kill()
            second.communicate()
    finally:
        first.kill()
        first.communicate()
    assert re.search(r'phase="standby".* 1\.0', metrics)
    assert not re.search(r'phase="starting".* 1\.0', metrics)


def test_a_topic_with_too_few_partitions_is_refused(world: World) -> None:
    process = world.run(5)
    _, said = process.communicate(timeout=60.0)
    assert process.returncode == ExitCode.FAILURE, said
    assert "has 4 partitions, and stream.shards = 5 needs one for each shard" in said
