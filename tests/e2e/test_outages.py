"""PostgreSQL and Redis go away under a running service: it waits, says why, and loses nothing."""

import http.client
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer

from tests.e2e.test_run_embedded import running
from tests.servers.server import Server, wait_until
from tests.stream.scenario import line_of, records_file, values_of
from weald.storage.redis.statistics import RedisStatistics
from weald.storage.settings import RedisSettings, StorageSettings
from weald.storage.sql import migrate
from weald.storage.writing.store import SqlReader

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CONFIGURATION = """\
[stream]
name = "outages"
[kafka]
topic = "{topic}"
bootstrap_servers = "{kafka}"
[schema]
fields = [{{ name = "x" }}, {{ name = "y" }}]
key = "id"
[model]
warmup_records = 30
[storage]
url = "{database}"
connect_timeout_seconds = 1.0
busy_timeout_seconds = 2.0
[redis]
url = "redis://{redis}/0"
timeout_seconds = 0.5
retries = 0
[monitoring]
port = 0
"""


def probe(address: str, path: str) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection(address, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()
    return answer.status, body


def test_a_start_waits_for_postgresql(tmp_path: Path, own_postgresql: Server) -> None:
    database = f"postgresql+psycopg://postgres@{own_postgresql.address}/postgres"
    text = CONFIGURATION.format(topic="none", kafka="none", database=database, redis="none:1")
    (tmp_path / "weald.toml").write_text(text)
    records_file(tmp_path, 60)
    own_postgresql.kill()
    file = ("--source", "file", "--path", "records.jsonl", "--set", "redis.enabled=false")
    with running(tmp_path, file) as run:
        run.said(r"WARNING .* sql is away \(asked again until it answers\): database: connection")
        own_postgresql.start()
        assert run.process.wait(timeout=120) == 0
        assert "sql answers again" in run.text()
    with SqlReader(StorageSettings(url=database)) as reader:
        assert reader.status("outages").n_inserted == 60
    # What waiting does not mend ends at once.
    missing = ("--set", f"storage.url={database}_of_nobody")
    with running(tmp_path, (*file, *missing)) as run:
        assert run.process.wait(timeout=60) == 4
        assert "does not exist" in run.text()


def test_servers_that_go_away_and_come_back(
    tmp_path: Path,
    kafka_bootstrap: str,
    kafka_topic: Callable[..., str],
    own_postgresql: Server,
    own_redis: Server,
) -> None:
    topic = kafka_topic()
    database = f"postgresql+psycopg://postgres@{own_postgresql.address}/postgres"
    settings = StorageSettings(url=database)
    migrate.upgrade(settings)
    places = {"topic": topic, "kafka": kafka_bootstrap, "database": database}
    text = CONFIGURATION.format(**places, redis=own_redis.address)
    (tmp_path / "weald.toml").write_text(text)
    rows = values_of(300)

    def produce(first: int, last: int) -> None:
        producer = KafkaProducer(bootstrap_servers=kafka_bootstrap)
        for i in range(first, last):
            producer.send(topic, line_of(i, rows[i]).encode())
        producer.close()

    def condition(name: str) -> tuple[bool, str]:
        _, body = probe(address, "/readyz")
        (found,) = (each for each in body["conditions"] if each["name"] == name)
        return found["ok"], found["reason"]

    def inserted() -> int:
        with SqlReader(settings) as reader:
            return reader.status("outages").n_inserted if reader.streams() else 0

    def shown() -> float:
        with RedisStatistics(RedisSettings(url=f"redis://{own_redis.address}/0")) as statistics:
            found = statistics.read_all("outages")
        return 0 if found is None else sum(row.statistics[0] for row in found.clusters.values())

    with running(tmp_path, ()) as run:
        address = run.said(r"metrics http://(\S+)/metrics")[1]
        produce(0, 100)
        wait_until(lambda: inserted() == 100, "the first hundred are in SQL", 600)
        wait_until(lambda: probe(address, "/readyz")[0] == 200, "the service is ready")

        own_postgresql.kill()
        produce(100, 200)
        wait_until(lambda: not condition("sql")[0], "readiness says that SQL is away")
        assert probe(address, "/readyz")[0] == 503
        assert "connection" in condition("sql")[1]
        assert probe(address, "/livez")[0] == 200
        own_postgresql.start()
        wait_until(lambda: inserted() == 200, "what came meanwhile is in SQL")
        wait_until(lambda: probe(address, "/readyz")[0] == 200, "the service is ready again")

        own_redis.kill()
        produce(200, 250)
        wait_until(lambda: inserted() == 250, "the stream goes on without Redis")
        wait_until(lambda: not condition("redis")[0], "readiness says that Redis is away")
        assert own_redis.address.split(":")[1] in condition("redis")[1]
        assert probe(address, "/readyz")[0] == 200
        own_redis.start()

        def caught_up() -> bool:
            # Redis is tried again with the next commits, and then rebuilt whole.
            if not remaining:
                return shown() == 300
            produce(remaining[0], remaining.pop(0) + 1)
            return False

        remaining = list(range(250, 300))
        wait_until(caught_up, "Redis shows everything again", 120)
        assert run.stop(signal.SIGTERM) == 0
    with SqlReader(settings) as reader:
        (row,) = reader.ledger("outages")
    assert (row.n_received, row.n_inserted, row.n_dead) == (300, 300, 0)


def test_a_broker_that_goes_away_is_told_of(tmp_path: Path, own_kafka: Server) -> None:
    database = f"sqlite:///{tmp_path / 'weald.db'}"
    migrate.upgrade(StorageSettings(url=database))
    places = {"kafka": own_kafka.address, "database": database, "redis": "none:1"}
    (tmp_path / "weald.toml").write_text(CONFIGURATION.format(topic="told", **places))
    administrator = KafkaAdminClient(bootstrap_servers=own_kafka.address)
    administrator.create_topics({"told": {"num_partitions": 1, "replication_factor": 1}})
    administrator.close()

    def inserted() -> int:
        with SqlReader(StorageSettings(url=database)) as reader:
            return reader.status("outages").n_inserted if reader.streams() else 0

    def produce(first: int, last: int) -> None:
        producer = KafkaProducer(bootstrap_servers=own_kafka.address)
        for i, row in enumerate(values_of(last)[first:], first):
            producer.send("told", line_of(i, row).encode())
        producer.close()

    with running(tmp_path, ("--set", "redis.enabled=false")) as run:
        address = run.said(r"metrics http://(\S+)/metrics")[1]
        produce(0, 60)
        wait_until(lambda: inserted() == 60, "the first records are in SQL", 600)
        wait_until(lambda: probe(address, "/readyz")[0] == 200, "the service is ready")

        own_kafka.kill()
        run.said(r"WARNING .* kafka is away \(asked again .*\): topic 'told' .* does not answer")
        status, body = probe(address, "/readyz")
        (source,) = (each for each in body["conditions"] if each["name"] == "source")
        assert status == 503
        assert not source["ok"]
        assert "no connection to a broker" in source["reason"]
        assert probe(address, "/livez")[0] == 200

        own_kafka.start()
        run.said("kafka answers again")
        wait_until(lambda: probe(address, "/readyz")[0] == 200, "the service is ready again")
        produce(60, 80)
        wait_until(lambda: inserted() == 80, "what comes afterwards is in SQL")
        assert run.stop(signal.SIGTERM) == 0
