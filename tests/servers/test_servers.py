"""The servers that other tests rely on: that they are the real ones, and outages can be staged."""

import http.client
import json
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from redis import Redis
from sqlalchemy import create_engine, text

from benchmarks.delay_line import DelayLine
from tests.servers import fixtures
from tests.servers.server import Server, ServerDiedError, free_port, wait_until


def test_redis_runs_lua(redis_url: str) -> None:
    with Redis.from_url(redis_url) as client:
        assert client.eval("return redis.call('SET', KEYS[1], ARGV[1])", 1, "k", "v")
        assert client.get("k") == b"v"


def test_valkey_speaks_redis(valkey_url: str) -> None:
    with Redis.from_url(valkey_url) as client:
        assert client.dbsize() == 0
        assert client.info("server")["server_name"] == "valkey"


def test_redis_comes_back_on_the_same_port(own_redis: Server) -> None:
    own_redis.kill()
    assert not own_redis.ready()
    own_redis.start()
    with Redis(port=own_redis.port) as client:
        assert client.ping()


def test_a_delay_line_holds_what_passes_both_ways(own_postgresql: Server) -> None:
    with DelayLine().to(own_postgresql.port) as line:
        place = f"host=127.0.0.1 port={line.port} user=postgres dbname=postgres"
        with psycopg.connect(place, autocommit=True) as client:
            line.seconds, before = 0.05, line.n_trips
            sent, began = "weald " * 100_000, time.monotonic()
            # More than a chunk each way: they follow each other, and come in order.
            said = client.execute("SELECT %s::text", [sent]).fetchone()
            seconds = time.monotonic() - began
        assert said == (sent,)
        assert seconds >= 0.1
        assert min(line.n_bytes) > len(sent)
        assert line.n_trips - before == 1


def test_postgresql_database_is_empty(postgresql_url: str) -> None:
    engine = create_engine(postgresql_url)
    with engine.connect() as connection:
        tables = connection.execute(
            text("SELECT count(*) FROM pg_tables WHERE schemaname='public'")
        )
        assert tables.scalar_one() == 0
    engine.dispose()


def test_postgresql_keeps_its_rows_when_killed(own_postgresql: Server) -> None:
    address = f"host=127.0.0.1 port={own_postgresql.port} user=postgres"
    with psycopg.connect(address) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
    own_postgresql.kill()
    own_postgresql.start()
    with psycopg.connect(address) as connection:
        assert connection.execute("SELECT number FROM kept").fetchall() == [(7,)]


def test_kafka_round_trip(kafka_bootstrap: str, kafka_topic: Callable[..., str]) -> None:
    topic = kafka_topic(partitions=2)
    producer = KafkaProducer(bootstrap_servers=kafka_bootstrap)
    for number in range(10):
        producer.send(topic, b"%d" % number, partition=number % 2)
    producer.close()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=kafka_bootstrap,
        group_id=topic,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    received: list[bytes] = []

    def all_received() -> bool:
        for records in consumer.poll(timeout_ms=200).values():
            received.extend(record.value for record in records)
        return len(received) == 10

    # The group's first member waits for the broker's own topic, on a busy machine for minutes.
    wait_until(all_received, "ten records", 240.0)
    consumer.close()
    assert sorted(received) == [b"%d" % number for number in range(10)]


def test_kafka_is_apache_kafka(kafka_bootstrap: str) -> None:
    administrator = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    features = administrator.describe_features()
    administrator.close()
    assert "metadata.version" in json.dumps(features, default=str)


def test_kafka_keeps_its_topics_when_killed(own_kafka: Server) -> None:
    producer = KafkaProducer(bootstrap_servers=own_kafka.address)
    producer.send("kept", b"value").get(timeout=30)
    producer.close()
    own_kafka.kill()
    own_kafka.start()
    administrator = KafkaAdminClient(bootstrap_servers=own_kafka.address)
    assert "kept" in administrator.list_topics()
    administrator.close()


def test_prometheus_answers_a_query(start_prometheus: Callable[[str], Server]) -> None:
    server = start_prometheus("global: {scrape_interval: 1s}\n")
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    connection.request("GET", "/api/v1/query?" + urllib.parse.urlencode({"query": "1 + 1"}))
    answer = json.load(connection.getresponse())
    connection.close()
    assert answer["data"]["result"][1] == "2"


def test_promtool_checks_rules(run_promtool: Callable[..., tuple[int, str]]) -> None:
    status, output = run_promtool("--version")
    assert status == 0
    assert "promtool" in output


def test_missing_server_fails_under_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="required when CI=true"):
        fixtures.refuse("Kafka", "no java")
    monkeypatch.setenv("CI", "")
    with pytest.raises(pytest.skip.Exception, match="no java"):
        fixtures.refuse("Kafka", "no java")


def test_server_that_dies_shows_its_log(server_folder: Callable[[str], Path]) -> None:
    folder = server_folder("dying")
    argv = ["sh", "-c", "echo out of luck; exit 3"]
    server = Server("Dying", "0", argv, free_port(), folder, ready=lambda: False)
    with pytest.raises(ServerDiedError, match="out of luck"):
        server.start()
