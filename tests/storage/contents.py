"""Every row of a database, and whether another one has lost any of it."""

from typing import Any

import sqlalchemy as sa

from weald.storage.settings import StorageSettings
from weald.storage.sql.database import make_engine


def contents(settings: StorageSettings) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table, by the columns that the database has now."""
    engine = make_engine(settings, readonly=True)
    try:
        with engine.connect() as connection:
            present = sa.MetaData()
            present.reflect(connection)
            return {
                name: [dict(row) for row in connection.execute(sa.select(table)).mappings()]
                for name, table in present.tables.items()
                if name != "alembic_version"
            }
    finally:
        engine.dispose()


def assert_kept(
    before: dict[str, list[dict[str, Any]]], after: dict[str, list[dict[str, Any]]]
) -> None:
    """What both databases can hold, both hold."""
    for name in before.keys() & after.keys():
        shared = sorted(set().union(*before[name]) & set().union(*after[name]))
        assert shared or not (before[name] or after[name])

        def told(rows: list[dict[str, Any]], shared: list[str] = shared) -> list[str]:
            return sorted(repr([row[key] for key in shared]) for row in rows)

        assert told(before[name]) == told(after[name]), name
