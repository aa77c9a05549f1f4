"""Engines: how SQLite and PostgreSQL are opened, and which revision they must have.

Every transaction is explicit. A writer's on SQLite starts with BEGIN IMMEDIATE: a deferred one
that reads first and then writes fails at once when another writer came between, whatever the
busy timeout.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from weald.storage.errors import SchemaMismatch, StorageStopped
from weald.storage.settings import StorageSettings, redacted

from .failures import translated
from .revision import HEAD

__all__ = [
    "is_missing",
    "looking",
    "make_engine",
    "reading",
    "require_head",
    "revision_of",
    "walk_indexes",
    "writing",
]

Engine = sa.Engine

_CHECKPOINT_PAGES = 4_000
_CACHE_KIBIBYTES = 16_384

_WALK_INDEXES = """
    SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
           set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true)
    """


def make_engine(
    settings: StorageSettings,
    *,
    readonly: bool = False,
    create: bool = False,
    foreign_keys: bool = True,
) -> Engine:
    """Return an engine for the settings' URL; nothing is connected yet.

    Parameters
    ----------
    readonly
        The database itself refuses writes.
    create
        Let SQLite make the file if it is missing.
    foreign_keys
        Enforce them on SQLite; migrations, which rebuild tables there, must not.

    Raises
    ------
    StorageStopped
        If the URL is not one of SQLite or PostgreSQL, or its driver is not installed.
    """
    url = _parsed(settings.url)
    if url.get_backend_name() == "sqlite":
        pragmas = [
            f"PRAGMA busy_timeout={round(settings.busy_timeout_seconds * 1000)}",
            f"PRAGMA foreign_keys={int(foreign_keys)}",
            "PRAGMA query_only=1" if readonly else "PRAGMA synchronous=NORMAL",
            # Pages of an index that many commits change reach the file once for many of them.
            f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}",
            f"PRAGMA cache_size=-{_CACHE_KIBIBYTES}",
        ]
        if create:
            pragmas.append("PRAGMA journal_mode=WAL")
        return _sqlite_engine(url, pragmas, create=create)
    return _postgresql_engine(url, settings, readonly=readonly)


def _parsed(text: str) -> sa.URL:
    try:
        url = sa.make_url(text)
    except ArgumentError as error:
        raise StorageStopped(f"storage.url is not a database URL: {redacted(text)!r}") from error
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername not in {"sqlite", "sqlite+pysqlite", "postgresql+psycopg"}:
        raise StorageStopped(
            f"storage.url names {url.drivername!r}; Weald keeps its state in sqlite:///FILE or "
            "postgresql+psycopg://USER@HOST/DATABASE"
        )
    if url.get_backend_name() == "sqlite" and url.database in {None, "", ":memory:"}:
        raise StorageStopped("storage.url must name a file, as in sqlite:///weald.db")
    return url


def _sqlite_engine(url: sa.URL, pragmas: list[str], *, create: bool) -> Engine:
    # mode=rw never makes a file: a mistyped path must not leave an empty database behind.
    engine = sa.create_engine(
        sa.URL.create(
            "sqlite+pysqlite",
            database=_sqlite_path(url).as_uri(),
            query={"uri": "true", "mode": "rwc" if create else "rw"},
        ),
        poolclass=sa.QueuePool,
    )

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # no implicit BEGIN: ours are explicit, see above
        for pragma in pragmas:
            connection.execute(pragma).close()

    @event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("weald_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgresql_engine(url: sa.URL, settings: StorageSettings, *, readonly: bool) -> Engine:
    lock_timeout = round(settings.busy_timeout_seconds * 1000)
    options = [f"-c lock_timeout={lock_timeout}"]
    if readonly:
        options.append("-c default_transaction_read_only=on")
    if settings.password is not None:
        url = url.set(password=settings.password)
    try:
        return sa.create_engine(
            url,
            pool_pre_ping=True,
            connect_args={
                "application_name": "weald",
                "connect_timeout": max(1, round(settings.connect_timeout_seconds)),
                "options": " ".join(options),
                # A silent server must not hold a commit for the kernel's default of many minutes.
                "tcp_user_timeout": max(lock_timeout, 10_000),
                "keepalives_idle": 30,
                **_encryption(settings),
            },
        )
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise StorageStopped(
            "PostgreSQL needs the psycopg driver: pip install 'weald[postgres]'"
        ) from error


def _encryption(settings: StorageSettings) -> dict[str, str]:
    """Return libpq's parameters; where none is given, those of the URL hold."""
    given = {
        "sslmode": None if settings.ssl_cafile is None else "verify-full",
        "sslrootcert": settings.ssl_cafile,
        "sslcert": settings.ssl_certfile,
        "sslkey": settings.ssl_keyfile,
    }
    return {name: value for name, value in given.items() if value is not None}


def reading(engine: Engine) -> Engine:
    """Return the engine as questions use it: each transaction sees one moment throughout."""
    if engine.dialect.name == "sqlite":
        return engine
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def looking(engine: Engine) -> Engine:
    """Return the engine as questions of one statement use it, which sees one moment by itself.

    No transaction is begun and ended for it: of four answers that it would wait for two are left.
    """
    if engine.dialect.name == "sqlite":
        return engine
    return engine.execution_options(isolation_level="AUTOCOMMIT")


def writing(engine: Engine) -> Engine:
    """Return the engine as commits use it: on SQLite the lock is taken at the start."""
    return engine.execution_options(weald_writes=True)


def walk_indexes(connection: sa.Connection) -> None:
    """Have this transaction's queries look rows up by index, whatever PostgreSQL has counted.

    Until the first ANALYZE of a young table the planner takes a stream for a handful of rows,
    and reads all of it to find a few.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(_WALK_INDEXES)


def is_missing(settings: StorageSettings) -> bool:
    """Whether the settings name an SQLite file that is not there."""
    url = _parsed(settings.url)
    return url.get_backend_name() == "sqlite" and not _sqlite_path(url).exists()


def revision_of(engine: Engine) -> str | None:
    """Return the schema revision that the database carries, or None if it carries none."""
    with translated(), engine.connect() as connection:
        if not sa.inspect(connection).has_table("alembic_version"):
            return None
        found = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def require_head(settings: StorageSettings, engine: Engine) -> None:
    """Refuse a database whose tables are not the ones that this program was written for.

    Raises
    ------
    SchemaMismatch
        Naming the revision found, the one needed, and the command that mends it.
    """
    place = redacted(settings.url)
    if is_missing(settings):
        raise SchemaMismatch(f"{place} does not exist yet. Create it with: weald db upgrade")
    found = revision_of(engine)
    if found == HEAD:
        return
    if found is None:
        raise SchemaMismatch(f"{place} has no tables yet. Create them with: weald db upgrade")
    # Revisions are numbered, so their order as text is their order in time.
    if found < HEAD:
        raise SchemaMismatch(
            f"{place} is at revision {found}, this program needs {HEAD}. Run: weald db upgrade"
        )
    raise SchemaMismatch(
        f"{place} is at revision {found}, newer than this program's {HEAD}. Install the newer "
        f"Weald, or with that one run: weald db downgrade {HEAD}"
    )


def _sqlite_path(url: sa.URL) -> Path:
    return Path(str(url.database)).absolute()
