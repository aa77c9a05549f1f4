"""TLS, SASL, ACL users and client certificates against the real servers, by configuration alone."""

import gc
import http.client
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis
from kafka import KafkaAdminClient, KafkaProducer

from tests.crash.processes import wait_until
from tests.e2e.test_run_embedded import await_inserted, running
from tests.security.conftest import PASSWORD, USER
from tests.servers.certificates import Certificates
from tests.servers.server import Server
from tests.stream.scenario import line_of, values_of
from weald.cli.commands.doctor import _kafka
from weald.cli.config.settings import Settings, load
from weald.storage.errors import AccessDenied, StorageUnavailable
from weald.storage.redis.statistics import RedisStatistics
from weald.storage.settings import RedisSettings, StorageSettings
from weald.storage.sql import migrate
from weald.stream.errors import SourceError, SourceUnavailable
from weald.stream.settings import KafkaSettings
from weald.stream.source.kafka_options import client_options
from weald.stream.source.kafka_source import KafkaSource
from weald.stream.source.librdkafka_source import source_of

# kafka-python leaves the socket of a handshake that failed to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def _sockets_of_failed_handshakes() -> Iterator[None]:
    """They are collected here, where the mark above holds, and not during somebody else's test."""
    yield
    gc.collect()


EXAMPLE = Path(__file__).parents[2] / "docs" / "secure.toml"
TOPIC = "readings"


@pytest.fixture
def home(tmp_path: Path, certificates: Certificates) -> Path:
    """A folder with the example and the files that it names."""
    shutil.copy(EXAMPLE, tmp_path / "weald.toml")
    shutil.copy(certificates.authority, tmp_path / "ca.pem")
    (tmp_path / "secrets").mkdir()
    for name in ("kafka", "postgresql", "redis"):
        (tmp_path / "secrets" / name).write_text(f"{PASSWORD}\n")
    (tmp_path / "secrets" / "metrics").write_text("a token for Prometheus\n")
    return tmp_path


def addresses(**servers: Server) -> dict[str, str]:
    """Where the example's servers are in this test."""
    urls = {
        "kafka": ("kafka.bootstrap_servers", "{}"),
        "redis": ("redis.url", "rediss://{}/0"),
        "postgresql": ("storage.url", f"postgresql+psycopg://{USER}@{{}}/{USER}"),
    }
    return {urls[name][0]: urls[name][1].format(each.address) for name, each in servers.items()}


def settings_of(home: Path, changes: Mapping[str, Any]) -> Settings:
    return load(home, dict(changes)).settings


def create_topic(settings: KafkaSettings, name: str) -> None:
    options = client_options(settings, "test")
    del options["metrics_enabled"]
    administrator = KafkaAdminClient(**options)
    try:
        if name not in administrator.list_topics():
            administrator.create_topics({name: {"num_partitions": 1, "replication_factor": 1}})
    finally:
        administrator.close()


def scrape(address: str, token: str | None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(address, timeout=10)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    connection.request("GET", "/metrics", headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


# All of it together.


@pytest.mark.slow
def test_the_example_runs_over_encrypted_connections(
    home: Path,
    secure_kafka: Server,
    secure_redis: Server,
    secure_postgresql: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where = addresses(kafka=secure_kafka, redis=secure_redis, postgresql=secure_postgresql)
    for key, value in {**where, "monitoring.port": "0", "model.warmup_records": "20"}.items():
        monkeypatch.setenv("WEALD__" + key.upper().replace(".", "__"), value)
    settings = load(home).settings
    create_topic(settings.kafka, TOPIC)
    producer = KafkaProducer(**client_options(settings.kafka, "test"))
    lines = [line_of(i, row) for i, row in enumerate(values_of(60))]
    for line in [*lines, "nonsense"]:
        producer.send(TOPIC, line.encode())
    producer.close()
    with running(home, (), settings=True) as run:
        address = run.said(r"metrics http://(\S+)/metrics")[1]
        await_inserted(home, 60)
        assert scrape(address, None)[0] == http.HTTPStatus.UNAUTHORIZED
        status, body = scrape(address, "a token for Prometheus")
        assert (status, b"weald_" in body) == (http.HTTPStatus.OK, True)
        assert run.stop(15) == 0
        assert PASSWORD not in run.text()
    with RedisStatistics(settings.redis) as statistics:
        shown = statistics.read_all("readings")
    assert shown is not None
    dead = KafkaSource(msgspec.structs.replace(settings.kafka, topic=f"{TOPIC}.dlq"), "dlq")
    assert dead._consumer.partitions_for_topic(f"{TOPIC}.dlq") == {0}
    dead.close()
    assert sum(each.statistics[0] for each in shown.clusters.values()) == 60


# Kafka.


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_kafka_lets_in_who_knows_the_password(
    home: Path, secure_kafka: Server, mechanism: str
) -> None:
    changes = {**addresses(kafka=secure_kafka), "kafka.sasl_mechanism": mechanism}
    settings = settings_of(home, changes).kafka
    create_topic(settings, TOPIC)
    source = KafkaSource(settings, f"test-{mechanism}")
    source.close()
    producer = KafkaProducer(**client_options(settings, "test"))
    producer.send(TOPIC, b"a record")
    producer.close()
    settings = msgspec.structs.replace(settings, client="librdkafka")
    with closing(source_of(settings, f"test-{mechanism}", 10)) as source:
        wait_until(lambda: source.poll(0.1) == [] and bool(source.assignment()), "it has joined")
        source.seek({})
        wait_until(lambda: bool(source.poll(0.1)), "a record came")


@pytest.mark.parametrize("wrong", ["password", "user", "authority", "protocol"])
def test_kafka_refuses_everybody_else(
    home: Path, secure_kafka: Server, certificates: Certificates, wrong: str
) -> None:
    shutil.copy(certificates.stranger, home / "stranger.pem")
    changes: dict[str, dict[str, Any]] = {
        "password": {"sasl_password": "wrong horse"},
        "user": {"sasl_username": "mallory"},
        "authority": {"ssl_cafile": str(home / "stranger.pem")},
        "protocol": {"security_protocol": "SASL_PLAINTEXT", "ssl_cafile": None},
    }
    where = addresses(kafka=secure_kafka)
    good = settings_of(home, {**where, "kafka.connect_timeout_seconds": 2.0}).kafka
    settings = msgspec.structs.replace(good, **changes[wrong])
    with pytest.raises((SourceError, SourceUnavailable)) as caught:
        KafkaSource(settings, "test").poll(0.1)
    # Kafka may hang up before the client has read why it was refused.
    why = {"authority": "CERTIFICATE_VERIFY_FAILED", "protocol": "disconnected|Invalid frame"}
    assert re.search(why.get(wrong, "Authentication failed|disconnected"), str(caught.value))
    assert str(settings.sasl_password) not in str(caught.value)


def test_the_doctor_says_what_kafka_has_against_it(home: Path, secure_kafka: Server) -> None:
    good = settings_of(home, addresses(kafka=secure_kafka))
    create_topic(good.kafka, TOPIC)
    assert _kafka(good).state == "ok"
    kafka = msgspec.structs.replace(good.kafka, sasl_password="wrong horse")  # noqa: S106  # is wrong
    found = _kafka(msgspec.structs.replace(good, kafka=kafka))
    assert found.state == "bad"
    assert re.search("Authentication failed|disconnected", found.detail)


# Redis.


def redis_settings(home: Path, server: Server, **changes: Any) -> RedisSettings:
    good = settings_of(home, addresses(redis=server)).redis
    return msgspec.structs.replace(good, retries=0, timeout_seconds=2.0, **changes)


def test_redis_lets_its_user_touch_weald_alone(home: Path, secure_redis: Server) -> None:
    settings = redis_settings(home, secure_redis)
    with RedisStatistics(settings) as statistics:
        statistics.ping()
        assert statistics.publish("readings-2", 1, []) is not None
        # Missing, and not forbidden.
        assert statistics._client.memory_usage("weald:{readings-2}:statistics") is None
        with pytest.raises(redis.exceptions.NoPermissionError):
            statistics._client.set("other", 1)
        with pytest.raises(redis.exceptions.NoPermissionError):
            statistics._client.flushall()


def test_redis_refuses_everybody_else(
    home: Path, secure_redis: Server, certificates: Certificates
) -> None:
    wrong: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"password": "wrong horse"}, AccessDenied),
        ({"username": None, "password": None}, AccessDenied),
        ({"ssl_cafile": str(certificates.stranger)}, StorageUnavailable),
        ({"url": f"redis://{secure_redis.address}/0", "ssl_cafile": None}, StorageUnavailable),
    ]
    for changes, expected in wrong:
        settings = redis_settings(home, secure_redis, **changes)
        with RedisStatistics(settings) as statistics, pytest.raises(expected) as caught:
            statistics.ping()
        assert "horse" not in str(caught.value)


# PostgreSQL.


def storage_settings(home: Path, server: Server, **changes: Any) -> StorageSettings:
    good = settings_of(home, addresses(postgresql=server)).storage
    return msgspec.structs.replace(good, **changes)


def test_postgresql_lets_in_a_password_or_a_certificate(
    home: Path, secure_postgresql: Server, certificates: Certificates
) -> None:
    by_password = storage_settings(home, secure_postgresql)
    migrate.upgrade(by_password)
    by_certificate = msgspec.structs.replace(
        by_password,
        url=by_password.url.replace(f"//{USER}@", f"//{USER}_by_certificate@"),
        password=None,
        ssl_certfile=str(certificates.client),
        ssl_keyfile=str(certificates.client_key),
    )
    migrate.check(by_certificate)
    in_the_url = f"?sslmode=verify-full&sslrootcert={certificates.authority}"
    migrate.check(msgspec.structs.replace(by_password, url=by_password.url + in_the_url))


def test_postgresql_refuses_everybody_else(
    home: Path, secure_postgresql: Server, certificates: Certificates
) -> None:
    good = storage_settings(home, secure_postgresql)
    wrong: list[dict[str, Any]] = [
        {"password": "wrong horse"},
        {"password": None},
        {"ssl_cafile": str(certificates.stranger)},
        {"ssl_cafile": None, "url": f"{good.url}?sslmode=disable"},
    ]
    for changes in wrong:
        settings = msgspec.structs.replace(good, **changes)
        with pytest.raises((AccessDenied, StorageUnavailable)) as caught:
            migrate.check(settings)
        assert "horse" not in str(caught.value)


def test_what_is_shown_of_the_example_holds_no_secret(home: Path) -> None:
    from weald.cli.commands.config import setting_rows

    shown = json.dumps(setting_rows(load(home)))
    assert PASSWORD not in shown
    assert shown.count('"***"') == 4
