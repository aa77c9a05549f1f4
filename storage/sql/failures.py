"""What a driver's error means to the caller: try again, stop, or ask for permission."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from weald.storage.errors import (
    AccessDenied,
    InvariantBroken,
    SchemaMismatch,
    StorageError,
    StorageStopped,
    StorageUnavailable,
)

__all__ = ["meaning_of", "translated"]

# First characters of PostgreSQL's SQLSTATE, longest first where one contains the other.
_BY_SQLSTATE: tuple[tuple[str, type[StorageError]], ...] = (
    ("25006", AccessDenied),
    ("42501", AccessDenied),
    ("28", AccessDenied),
    ("42P01", SchemaMismatch),
    ("42703", SchemaMismatch),
    ("23", InvariantBroken),
    ("08", StorageUnavailable),
    ("25P03", StorageUnavailable),
    ("40", StorageUnavailable),
    ("53", StorageUnavailable),
    ("55", StorageUnavailable),
    ("57", StorageUnavailable),
    ("58", StorageUnavailable),
)

_BY_SQLITE_CODE: dict[int, type[StorageError]] = {
    sqlite3.SQLITE_BUSY: StorageUnavailable,
    sqlite3.SQLITE_LOCKED: StorageUnavailable,
    sqlite3.SQLITE_FULL: StorageUnavailable,
    sqlite3.SQLITE_IOERR: StorageUnavailable,
    sqlite3.SQLITE_CANTOPEN: StorageUnavailable,
    sqlite3.SQLITE_PROTOCOL: StorageUnavailable,
    sqlite3.SQLITE_READONLY: AccessDenied,
    sqlite3.SQLITE_PERM: AccessDenied,
    sqlite3.SQLITE_AUTH: AccessDenied,
    sqlite3.SQLITE_CONSTRAINT: InvariantBroken,
}


def meaning_of(error: BaseException) -> StorageError:
    """Return our error for a driver's: its kind says what to do, its text what happened.

    Parameters
    ----------
    error
        An error of sqlite3 or psycopg, or SQLAlchemy's wrapper of one.
    """
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    text = " ".join(str(cause).split()) or type(cause).__name__
    if isinstance(cause, sqlite3.Error):
        return _sqlite_kind(cause, text)(f"SQLite: {text}")
    state = getattr(cause, "sqlstate", None)
    if state is None:
        # psycopg gives no state when the connection itself failed or could not be made.
        lost = type(cause).__name__ in {"OperationalError", "InterfaceError"}
        return (StorageUnavailable if lost else StorageStopped)(f"database: {text}")
    for prefix, kind in _BY_SQLSTATE:
        if state.startswith(prefix):
            return kind(f"PostgreSQL ({state}): {text}")
    return StorageStopped(f"PostgreSQL ({state}): {text}")


def _sqlite_kind(error: sqlite3.Error, text: str) -> type[StorageError]:
    if "no such table" in text or "no such column" in text:
        return SchemaMismatch
    # The low byte is the primary code; the rest refines it (SQLITE_BUSY_SNAPSHOT and the like).
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return _BY_SQLITE_CODE.get(code, StorageStopped)


@contextmanager
def translated() -> Iterator[None]:
    """Raise this room's errors instead of the driver's."""
    try:
        yield
    except PoolTimeout as error:
        raise StorageUnavailable(f"database: {error}") from error
    except (DBAPIError, sqlite3.Error) as error:
        raise meaning_of(error) from error
