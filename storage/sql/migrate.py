"""Moving a database between revisions, with the migrations that ship in this package."""

from __future__ import annotations

from typing import Any

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError

from weald.storage.errors import SchemaMismatch
from weald.storage.settings import StorageSettings, redacted

from .database import is_missing, make_engine, require_head, revision_of, writing
from .failures import translated
from .schema import metadata

__all__ = ["check", "current", "differences", "downgrade", "revisions", "upgrade"]

_LOCATION = "weald.storage:migrations"


def upgrade(settings: StorageSettings, revision: str = "head") -> str | None:
    """Bring the database to ``revision``, creating it if need be; return the one it had before.

    All steps are one transaction on both databases: a failure leaves the schema as it was.

    Raises
    ------
    SchemaMismatch
        If the database is at a revision that this program does not know.
    """
    return _move(settings, revision, command.upgrade, create=True)


def downgrade(settings: StorageSettings, revision: str) -> str | None:
    """Take the database back to ``revision`` ("base" for none) and return the one it had before.

    What the undone steps stored is lost.
    """
    return _move(settings, revision, command.downgrade, create=False)


def current(settings: StorageSettings) -> str | None:
    """Return the database's revision, or None if it has no tables of ours or is not there yet."""
    if is_missing(settings):
        return None
    engine = make_engine(settings, readonly=True)
    try:
        return revision_of(engine)
    finally:
        engine.dispose()


def check(settings: StorageSettings) -> None:
    """Raise ``SchemaMismatch`` unless the database is at the head revision."""
    engine = make_engine(settings, readonly=True)
    try:
        require_head(settings, engine)
    finally:
        engine.dispose()


def revisions() -> list[str]:
    """Return every revision that this program knows, oldest first."""
    script = ScriptDirectory.from_config(_config())
    return [step.revision for step in reversed(list(script.walk_revisions()))]


def differences(settings: StorageSettings) -> list[Any]:
    """Return where the database's tables differ from ``storage.schema``; nothing when at head."""
    engine = make_engine(settings, readonly=True)
    try:
        with translated(), engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            found: list[Any] = compare_metadata(context, metadata)
            return found
    finally:
        engine.dispose()


def _move(settings: StorageSettings, revision: str, step: Any, *, create: bool) -> str | None:
    engine = make_engine(settings, create=create, foreign_keys=False)
    config = _config()
    try:
        before = revision_of(engine)
        with translated(), writing(engine).begin() as connection:
            config.attributes["connection"] = connection
            step(config, revision)
    except CommandError as error:
        raise SchemaMismatch(f"{redacted(settings.url)}: {error}") from error
    finally:
        engine.dispose()
    return before


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", _LOCATION)
    config.set_main_option("path_separator", "os")
    return config
