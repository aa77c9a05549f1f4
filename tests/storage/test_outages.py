"""The database goes away: what is known, what is not, and that asking again is safe."""

from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import PoolProxiedConnection, event

from tests.servers.server import Server
from tests.storage.batches import OWNER, SPEC, STREAM, batch, full_batch
from weald.storage.errors import StorageUnavailable
from weald.storage.settings import StorageSettings
from weald.storage.sql import migrate
from weald.storage.writing.store import SqlStore


@pytest.fixture
def outage_store(own_postgresql: Server) -> Iterator[SqlStore]:
    """A store on a PostgreSQL of its own."""
    settings = StorageSettings(
        url=f"postgresql+psycopg://postgres@{own_postgresql.address}/postgres",
        connect_timeout_seconds=2.0,
    )
    migrate.upgrade(settings)
    with SqlStore(settings) as store:
        store.ensure_stream(SPEC)
        store.claim(STREAM, OWNER, 1)
        yield store


def test_the_store_comes_back_with_the_server(
    outage_store: SqlStore, own_postgresql: Server
) -> None:
    outage_store.commit(batch(1, 1, 5))
    own_postgresql.kill()
    for _ in range(2):
        with pytest.raises(StorageUnavailable):
            outage_store.commit(batch(2, 6, 5))
        with pytest.raises(StorageUnavailable):
            outage_store.status(STREAM)
    own_postgresql.start()
    outage_store.commit(batch(2, 6, 5))
    assert outage_store.status(STREAM).n_inserted == 10


@pytest.mark.parametrize("committed", [False, True])
def test_a_lost_answer_is_asked_for_again(
    outage_store: SqlStore,
    own_postgresql: Server,
    monkeypatch: pytest.MonkeyPatch,
    committed: bool,
) -> None:
    """The server dies right before COMMIT, or right after it: the writer cannot tell which."""
    dialect = outage_store._engine.dialect
    commit = dialect.do_commit

    def die(connection: PoolProxiedConnection) -> None:
        if committed:
            commit(connection)
        own_postgresql.kill()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    with monkeypatch.context() as patch:
        patch.setattr(dialect, "do_commit", die)
        with pytest.raises(StorageUnavailable):
            outage_store.commit(full_batch())
    own_postgresql.start()
    assert outage_store.position(STREAM).epoch == int(committed)
    outage_store.commit(full_batch())
    status = outage_store.status(STREAM)
    assert (status.epoch, status.n_inserted, status.n_dead) == (1, 10, 1)
    assert len(outage_store.lineage(STREAM)) == 2


def test_a_connection_cut_in_the_middle_of_copying(
    outage_store: SqlStore, own_postgresql: Server
) -> None:
    """The rows go by COPY through the driver itself, which SQLAlchemy does not watch."""

    def cut(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "offsets" in statement and "INSERT" in statement:
            own_postgresql.kill()

    event.listen(outage_store._engine, "after_cursor_execute", cut)
    with pytest.raises(StorageUnavailable):
        outage_store.commit(batch(1, 1, 5))
    # Not in the middle: others listen there, too, and are being told.
    event.remove(outage_store._engine, "after_cursor_execute", cut)
    own_postgresql.start()
    assert outage_store.status(STREAM).n_received == 0
    outage_store.commit(batch(1, 1, 5))
    assert outage_store.status(STREAM).n_inserted == 5


def test_a_server_that_is_not_there(own_postgresql: Server) -> None:
    own_postgresql.stop()
    url = f"postgresql+psycopg://postgres:secret@{own_postgresql.address}/postgres"
    with pytest.raises(StorageUnavailable) as caught:
        SqlStore(StorageSettings(url=url, connect_timeout_seconds=1.0))
    assert "secret" not in str(caught.value)
