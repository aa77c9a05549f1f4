"""The schema in steps: from nothing to head, back and up again, the same as the tables in code."""

from pathlib import Path
from urllib.parse import quote

import pytest
import sqlalchemy as sa

from tests.storage.batches import (
    OWNER,
    SPEC,
    STREAM,
    advance,
    batch,
    full_batch,
    observations,
)
from tests.storage.contents import assert_kept, contents
from weald.storage.errors import SchemaMismatch, StorageStopped
from weald.storage.queries.reader import SqlReader
from weald.storage.settings import StorageSettings
from weald.storage.sql import migrate
from weald.storage.sql.database import make_engine
from weald.storage.sql.revision import HEAD
from weald.storage.sql.schema import metadata
from weald.storage.writing.store import SqlStore


def tables(settings: StorageSettings) -> set[str]:
    engine = make_engine(settings, readonly=True)
    with engine.connect() as connection:
        found = set(sa.inspect(connection).get_table_names())
    engine.dispose()
    return found


def test_head_is_the_newest_revision() -> None:
    assert migrate.revisions()[-1] == HEAD


def test_from_nothing_to_head(empty_settings: StorageSettings) -> None:
    assert migrate.upgrade(empty_settings) is None
    assert migrate.current(empty_settings) == HEAD
    migrate.check(empty_settings)
    assert migrate.differences(empty_settings) == []
    assert migrate.upgrade(empty_settings) == HEAD


@pytest.mark.parametrize("revision", migrate.revisions()[:-1])
def test_what_is_stored_survives_the_way_down_and_up(store: SqlStore, revision: str) -> None:
    """Each earlier revision is reached with rows in every table, and left again upwards."""
    settings = store._settings
    store.commit(full_batch())
    at_head = contents(settings)
    store.close()
    migrate.downgrade(settings, revision)
    earlier = contents(settings)
    assert_kept(at_head, earlier)
    with pytest.raises(SchemaMismatch, match=rf"revision {revision}.*weald db upgrade"):
        SqlStore(settings)
    migrate.upgrade(settings)
    migrate.check(settings)
    assert_kept(earlier, contents(settings))
    with SqlStore(settings) as again:
        again.commit(
            batch(
                2,
                11,
                5,
                offsets=[advance(observations(11, 5, first_offset=13))],
                observations=observations(11, 5, first_offset=13),
            )
        )
        assert again.status(STREAM).n_inserted == 15
        assert len(again.lineage(STREAM)) == 2


@pytest.mark.parametrize("revision", ["base", *migrate.revisions()[:-1]])
def test_down_and_up_again(settings: StorageSettings, revision: str) -> None:
    assert migrate.downgrade(settings, revision) == HEAD
    if revision == "base":
        assert tables(settings) <= {"alembic_version"}
    migrate.upgrade(settings)
    migrate.check(settings)
    assert migrate.differences(settings) == []


def test_what_is_stored_survives_an_upgrade_that_changes_nothing(store: SqlStore) -> None:
    store.commit(full_batch())
    migrate.upgrade(store._settings)
    assert store.status(STREAM).n_inserted == 10


def test_an_empty_database_names_the_command(empty_settings: StorageSettings) -> None:
    with pytest.raises(SchemaMismatch, match="weald db upgrade"):
        SqlStore(empty_settings)
    with pytest.raises(SchemaMismatch, match="weald db upgrade"):
        SqlReader(empty_settings)


@pytest.mark.parametrize(
    ("revision", "command"), [("0000", "weald db upgrade"), ("9999", "weald db downgrade")]
)
def test_another_revision_is_refused(
    settings: StorageSettings, revision: str, command: str
) -> None:
    engine = make_engine(settings)
    with engine.begin() as connection:
        change = sa.text("UPDATE alembic_version SET version_num = :revision")
        connection.execute(change, {"revision": revision})
    engine.dispose()
    with pytest.raises(SchemaMismatch, match=rf"{revision}.*{command}"):
        SqlStore(settings)
    with pytest.raises(SchemaMismatch, match=revision):
        migrate.upgrade(settings)


def test_an_upgrade_that_fails_leaves_nothing(
    empty_settings: StorageSettings,
) -> None:
    """A table of ours is in the way of the last step: none of the steps before it stays."""
    engine = make_engine(empty_settings, create=True)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE lineage_parents (x INTEGER)"))
    engine.dispose()
    with pytest.raises(StorageStopped):
        migrate.upgrade(empty_settings)
    assert tables(empty_settings) == {"lineage_parents"}


def test_a_mistyped_path_leaves_no_file_behind(tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatch, match="does not exist"):
        SqlReader(StorageSettings(url=f"sqlite:///{tmp_path}/typo.db"))
    assert migrate.current(StorageSettings(url=f"sqlite:///{tmp_path}/typo.db")) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url", ["mysql://host/db", "not a url", "sqlite://", "sqlite:///:memory:", "oracle:secret"]
)
def test_other_databases_are_refused_by_name(url: str) -> None:
    with pytest.raises(StorageStopped, match=r"storage\.url"):
        SqlStore(StorageSettings(url=url))


def test_every_name_is_free_of_sql_keywords(store: SqlStore) -> None:
    """People ask by hand; no name of ours needs quoting on either database."""
    preparer = store._engine.dialect.identifier_preparer
    for table in metadata.tables.values():
        for name in (table.name, *table.columns.keys()):
            assert preparer.quote(name) == name


def test_a_path_with_strange_characters(tmp_path: Path) -> None:
    folder = tmp_path / "a b%20?#é"
    folder.mkdir()
    settings = StorageSettings(url=f"sqlite:///{quote(str(folder))}/weald.db")
    migrate.upgrade(settings)
    with SqlStore(settings) as store:
        store.ensure_stream(SPEC)
        store.claim(STREAM, OWNER, 1)
        store.commit(full_batch())
    assert (folder / "weald.db").exists()
