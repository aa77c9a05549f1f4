"""Pytest fixtures over the real servers, each started once a session and when first asked for.

A machine without a server skips the tests that need it and says why; with ``CI=true`` it fails
them. The last lines of every run name the servers that took part.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.servers.chromium import Browser, browser
from tests.servers.kafka import kafka_broker
from tests.servers.postgresql import database, postgresql_server
from tests.servers.prometheus import prometheus_server, promtool
from tests.servers.redis import redis_server, valkey_server
from tests.servers.server import MissingServerError, Server

TOOK_PART = pytest.StashKey[dict[str, str]]()
MISSING = pytest.StashKey[dict[str, str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TOOK_PART] = {}
    config.stash[MISSING] = {}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Learn from a worker process which servers it ran."""
    said = getattr(node, "workeroutput", {})
    node.config.stash[TOOK_PART].update(said.get("took_part", {}))
    node.config.stash[MISSING].update(said.get("missing", {}))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """As a worker process, tell the first one which servers ran."""
    said = getattr(session.config, "workeroutput", None)
    if said is not None:
        said["took_part"] = session.config.stash[TOOK_PART]
        said["missing"] = session.config.stash[MISSING]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    took_part, missing = config.stash[TOOK_PART], config.stash[MISSING]
    if took_part or missing:
        terminalreporter.section("servers")
    if took_part:
        named = ", ".join(f"{name} {version}" for name, version in sorted(took_part.items()))
        terminalreporter.line(f"real servers that took part: {named}")
    for name, reason in sorted(missing.items()):
        terminalreporter.line(f"{name} did not take part: {reason}")


@contextmanager
def taking_part(config: pytest.Config, name: str) -> Iterator[Callable[[Server], Server]]:
    """Note which server ran; turn a missing one into a skip, or into a failure under CI."""

    def note(server: Server) -> Server:
        config.stash[TOOK_PART][server.name] = server.version
        return server

    try:
        yield note
    except MissingServerError as missing:
        config.stash[MISSING][name] = str(missing)
        refuse(name, str(missing))


def refuse(name: str, reason: str) -> NoReturn:
    """Skip or fail the test that asked for a server that is not there."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{name} is required when CI=true: {reason}", pytrace=False)
    pytest.skip(f"needs {name}: {reason}")


@pytest.fixture(scope="session")
def server_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Make a folder for a server's data and log, kept with pytest's other temporary folders."""
    return tmp_path_factory.mktemp


@pytest.fixture(scope="session")
def chromium(request: pytest.FixtureRequest) -> Browser:
    """A real browser without a window."""
    with taking_part(request.config, "Chromium"):
        found = browser()
        request.config.stash[TOOK_PART]["Chromium"] = found.version
        return found


@pytest.fixture(scope="session")
def redis_session(
    request: pytest.FixtureRequest, server_folder: Callable[[str], Path]
) -> Iterator[Server]:
    """The Redis that the whole run shares."""
    with (
        taking_part(request.config, "Redis") as note,
        redis_server(server_folder("redis")) as server,
    ):
        yield note(server)


@pytest.fixture(scope="session")
def valkey_session(
    request: pytest.FixtureRequest, server_folder: Callable[[str], Path]
) -> Iterator[Server]:
    """The Valkey that the whole run shares."""
    with (
        taking_part(request.config, "Valkey") as note,
        valkey_server(server_folder("valkey")) as server,
    ):
        yield note(server)


@pytest.fixture
def redis_url(redis_session: Server) -> str:
    """Address of a real Redis, empty at the start of the test."""
    return _emptied(redis_session)


@pytest.fixture
def valkey_url(valkey_session: Server) -> str:
    """Address of a real Valkey, empty at the start of the test."""
    return _emptied(valkey_session)


@pytest.fixture
def own_redis(
    request: pytest.FixtureRequest, server_folder: Callable[[str], Path]
) -> Iterator[Server]:
    """A Redis of the test's own, to stop and to start again."""
    with (
        taking_part(request.config, "Redis") as note,
        redis_server(server_folder("redis")) as server,
    ):
        yield note(server)


@pytest.fixture(scope="session")
def postgresql_session(request: pytest.FixtureRequest) -> Iterator[Server]:
    """The PostgreSQL that the whole run shares."""
    with taking_part(request.config, "PostgreSQL") as note, postgresql_server() as server:
        yield note(server)


@pytest.fixture
def own_postgresql(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A PostgreSQL of the test's own, to stop and to start again."""
    with taking_part(request.config, "PostgreSQL") as note, postgresql_server() as server:
        yield note(server)


@pytest.fixture(scope="module")
def postgresql_url(request: pytest.FixtureRequest, postgresql_session: Server) -> Iterator[str]:
    """SQLAlchemy address of a PostgreSQL database that only this module uses."""
    with database(postgresql_session, f"module_{digest(request.node.nodeid)}") as url:
        yield url


@pytest.fixture
def empty_postgresql_url(
    request: pytest.FixtureRequest, postgresql_session: Server
) -> Iterator[str]:
    """SQLAlchemy address of a PostgreSQL database that only this test uses."""
    with database(postgresql_session, f"test_{digest(request.node.nodeid)}") as url:
        yield url


@pytest.fixture(scope="session")
def kafka_session(
    request: pytest.FixtureRequest, server_folder: Callable[[str], Path]
) -> Iterator[Server]:
    """The Apache Kafka broker that the whole run shares."""
    with (
        taking_part(request.config, "Kafka") as note,
        kafka_broker(server_folder("kafka")) as server,
    ):
        yield note(server)


@pytest.fixture
def own_kafka(
    request: pytest.FixtureRequest, server_folder: Callable[[str], Path]
) -> Iterator[Server]:
    """An Apache Kafka broker of the test's own, to stop and to start again."""
    with (
        taking_part(request.config, "Kafka") as note,
        kafka_broker(server_folder("kafka")) as server,
    ):
        yield note(server)


@pytest.fixture(scope="session")
def kafka_bootstrap(kafka_session: Server) -> str:
    """Address of the real Kafka broker."""
    return kafka_session.address


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest, kafka_bootstrap: str) -> Callable[..., str]:
    """Create a topic that only this test uses: ``kafka_topic(partitions=1) -> name``."""

    from kafka import KafkaAdminClient

    def create(partitions: int = 1, suffix: str = "") -> str:
        name = f"test-{digest(request.node.nodeid)}{suffix}"
        administrator = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)
        try:
            administrator.create_topics(
                {name: {"num_partitions": partitions, "replication_factor": 1}}
            )
        finally:
            administrator.close()
        return name

    return create


@pytest.fixture
def start_prometheus(
    request: pytest.FixtureRequest, server_folder: Callable[[str], Path]
) -> Iterator[Callable[[str], Server]]:
    """Start a Prometheus with the given configuration (YAML text)."""
    with ExitStack() as running, taking_part(request.config, "Prometheus") as note:

        def start(configuration: str) -> Server:
            described = prometheus_server(server_folder("prometheus"), configuration)
            return note(running.enter_context(described))

        yield start


@pytest.fixture(scope="session")
def run_promtool(request: pytest.FixtureRequest) -> Callable[..., tuple[int, str]]:
    """Run promtool on arguments and return its exit status and all that it printed."""

    def run(*arguments: str | Path) -> tuple[int, str]:
        with taking_part(request.config, "Prometheus"):
            done = promtool(*arguments)
        return done.returncode, done.stdout + done.stderr

    return run


def digest(text: str) -> str:
    """Shorten a test id to what database and topic names admit."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _emptied(server: Server) -> str:
    from redis import Redis

    url = f"redis://{server.address}/0"
    with Redis.from_url(url) as client:
        client.flushall()
    return url
