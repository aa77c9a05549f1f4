"""Readers beside the writer, writers beside each other, and a role that may only read."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import psycopg
import pytest
import sqlalchemy as sa

from tests.storage.batches import OWNER, SPEC, STREAM, batch, full_batch
from weald.storage.errors import AccessDenied, Fenced, StorageUnavailable
from weald.storage.queries.reader import SqlReader
from weald.storage.settings import StorageSettings
from weald.storage.sql import migrate
from weald.storage.writing.store import SqlStore

N_COMMITS = 30


def together(*tasks: Callable[[], object]) -> list[BaseException]:
    """Run the tasks at once, each on its own thread, and return what they raised."""
    start, raised = threading.Barrier(len(tasks)), []

    def run(task: Callable[[], object]) -> None:
        start.wait()
        try:
            task()
        except BaseException as error:  # noqa: BLE001 - handed to the test, whatever it is
            raised.append(error)

    threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_readers_see_whole_commits_while_the_writer_writes(
    store: SqlStore, reader: SqlReader
) -> None:
    done = threading.Event()
    seen = []

    def write() -> None:
        try:
            for epoch in range(1, N_COMMITS + 1):
                store.commit(batch(epoch, 1 + 50 * (epoch - 1), 50))
        finally:
            done.set()

    def read() -> None:
        while not done.is_set():
            status = reader.status(STREAM)
            seen.append((status.epoch, status.n_inserted))

    assert together(write, read, read) == []
    assert len(seen) > 1
    assert all(n_inserted == 50 * epoch for epoch, n_inserted in seen)


def test_of_two_owners_only_one_writes_each_batch(settings: StorageSettings) -> None:
    """Both believe that they own the stream; every observation is written by one of them."""
    with SqlStore(settings) as first, SqlStore(settings) as second:
        first.ensure_stream(SPEC)
        fenced = []

        def own(store: SqlStore, owner: str) -> None:
            for _ in range(20):
                found = store.claim(STREAM, owner, 1)
                made = batch(found.epoch + 1, found.next_seq, 3, owner=owner)
                try:
                    store.commit(made)
                except Fenced as error:
                    fenced.append(error)

        assert together(lambda: own(first, "a"), lambda: own(second, "b")) == []
        position = first.position(STREAM)
        assert position.epoch == 40 - len(fenced)
        assert position.next_seq == 1 + 3 * position.epoch


def test_a_lock_that_does_not_go_away_is_an_outage(settings: StorageSettings) -> None:
    """The commit can be tried again, and then succeeds."""
    impatient = StorageSettings(url=settings.url, busy_timeout_seconds=0.2)
    with SqlStore(settings) as other, SqlStore(impatient) as store:
        store.ensure_stream(SPEC)
        store.claim(STREAM, OWNER, 1)
        with other._writing() as connection:
            connection.execute(sa.text("UPDATE streams SET seed = 1"))
            with pytest.raises(StorageUnavailable):
                store.commit(batch(1, 1, 5))
        store.commit(batch(1, 1, 5))
        assert store.status(STREAM).n_inserted == 5


UPGRADE = """
import sys
from weald.storage.sql import migrate
from weald.storage.settings import StorageSettings
sys.stdin.readline()
migrate.upgrade(StorageSettings(url=sys.argv[1]))
"""


def test_two_services_may_upgrade_at_once(empty_settings: StorageSettings) -> None:
    command = [sys.executable, "-c", UPGRADE, empty_settings.url]
    services = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)
    ]
    for service in services:
        assert service.stdin is not None
        service.stdin.write(b"go\n")
        service.stdin.flush()
    said = [service.communicate()[1].decode() for service in services]
    assert [service.returncode for service in services] == [0, 0], "\n".join(said)
    migrate.check(empty_settings)


@pytest.fixture
def read_only_url(empty_postgresql_url: str) -> Iterator[str]:
    """The address of a filled database as a role that may only read."""
    settings = StorageSettings(url=empty_postgresql_url)
    migrate.upgrade(settings)
    with SqlStore(settings) as store:
        store.ensure_stream(SPEC)
        store.claim(STREAM, OWNER, 1)
        store.commit(full_batch())
    role = "weald_reader"
    dsn = empty_postgresql_url.replace("+psycopg", "")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")
    yield empty_postgresql_url.replace("postgres@", f"{role}@")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {role}")
        connection.execute(f"DROP ROLE {role}")


def test_a_read_only_role_suffices_for_every_question(read_only_url: str) -> None:
    settings = StorageSettings(url=read_only_url)
    migrate.check(settings)
    with SqlReader(settings) as reader:
        assert reader.streams() == [STREAM]
        assert reader.spec(STREAM) == SPEC
        assert reader.status(STREAM).n_inserted == 10
        assert len(reader.ledger(STREAM)) == 1
        assert len(reader.clusters(STREAM, include_retired=True)) == 2
        assert reader.cluster(STREAM, 1) is not None
        assert len(reader.members(STREAM, 2)) == 2
        assert len(reader.assignments(STREAM, ["key-4"])) == 1
        assert len(reader.lineage(STREAM)) == 2
        assert len(reader.publications(STREAM)) == 1
        assert len(reader.rounds(STREAM)) == 1
        assert len(reader.dead_letters(STREAM)) == 1
        assert reader.dead_letter_counts(STREAM) == {"not-json": 1}
        assert reader.newest_snapshot(STREAM) is not None
        assert len(reader.snapshots(STREAM)) == 1
        assert reader.observations(STREAM, 0, 100) is not None


def test_a_read_only_role_cannot_commit(read_only_url: str) -> None:
    """Not even through the writer's class."""
    with SqlStore(StorageSettings(url=read_only_url)) as store:
        with pytest.raises(AccessDenied):
            store.claim(STREAM, "intruder", 9)
        with pytest.raises(AccessDenied):
            store.commit(replace(full_batch(), epoch=2))
