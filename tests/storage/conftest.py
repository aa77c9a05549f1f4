"""Every test that asks for a store runs on SQLite and on PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from tests.servers import postgresql
from tests.servers.fixtures import digest
from tests.servers.server import Server
from tests.storage.at_head import new_file
from tests.storage.batches import OWNER, SPEC, STREAM
from weald.storage.settings import StorageSettings
from weald.storage.sql import migrate
from weald.storage.writing.store import SqlReader, SqlStore


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Literal["sqlite", "postgresql"]:
    """Which database the test runs on."""
    name: Literal["sqlite", "postgresql"] = request.param
    return name


@pytest.fixture
def empty_settings(
    request: pytest.FixtureRequest, database: str, tmp_path: Path
) -> StorageSettings:
    """A database without any tables."""
    if database == "postgresql":
        url = request.getfixturevalue("empty_postgresql_url")
    else:
        url = f"sqlite:///{tmp_path / 'weald.db'}"
    return StorageSettings(url=url, busy_timeout_seconds=10.0)


@pytest.fixture(scope="session")
def postgresql_at_head(postgresql_session: Server) -> Iterator[str]:
    """Name of a database at the head revision, which nobody uses but to copy it."""
    with postgresql.database(postgresql_session, "head") as url:
        migrate.upgrade(StorageSettings(url=url))
        yield "head"


@pytest.fixture
def postgresql_url_at_head(
    request: pytest.FixtureRequest, postgresql_session: Server, postgresql_at_head: str
) -> Iterator[str]:
    """SQLAlchemy address of a database at the head revision that only this test uses."""
    name = f"test_{digest(request.node.nodeid)}"
    with postgresql.database(postgresql_session, name, like=postgresql_at_head) as url:
        yield url


@pytest.fixture
def settings(request: pytest.FixtureRequest, database: str, tmp_path: Path) -> StorageSettings:
    """A database at the head revision."""
    if database == "postgresql":
        url = request.getfixturevalue("postgresql_url_at_head")
    else:
        new_file(tmp_path / "weald.db")
        url = f"sqlite:///{tmp_path / 'weald.db'}"
    return StorageSettings(url=url, busy_timeout_seconds=10.0)


@pytest.fixture
def store(settings: StorageSettings) -> Iterator[SqlStore]:
    """A store with one stream, claimed under generation 1."""
    with SqlStore(settings) as opened:
        opened.ensure_stream(SPEC)
        opened.claim(STREAM, OWNER, 1)
        yield opened


@pytest.fixture
def reader(settings: StorageSettings, store: SqlStore) -> Iterator[SqlReader]:
    """A second, read-only view of the same database."""
    assert store.streams() == [STREAM]
    with SqlReader(settings) as opened:
        yield opened
