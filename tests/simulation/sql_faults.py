"""What goes wrong between a process and SQL, which is a real SQLite file.

Each process has connections of its own. A failure comes as the driver would raise it, below
SQLAlchemy, so the product's translation of errors is under test as well.
"""

import random
import sqlite3
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

from .scheduler import KilledError, Process, Scheduler

__all__ = ["FaultyDriver", "SqlFaults"]

_STATEMENT_SECONDS, _COMMIT_SECONDS = 0.0005, 0.003
_LOCK_SECONDS = 0.2


def _error(code: int, text: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


class SqlFaults:
    """The database's state of health, which events change.

    Attributes
    ----------
    away_until, full_until : float
        Virtual times before which nobody answers, and before which nothing can be written.
    armed : list of (str, float)
        What happens at the next commits: "lost", "late", "abort", "drop" or "slow", and a number of
        seconds. A dropped connection breaks in the middle of the transaction.
    """

    def __init__(self, scheduler: Scheduler, draw: random.Random) -> None:
        self._scheduler = scheduler
        self._draw = draw
        self.away_until = 0.0
        self.full_until = 0.0
        self.armed: list[tuple[str, float]] = []
        self.on_commit: Callable[[], None] = lambda: None
        self._server = Process("sql")
        # Connections that the server goes on with although their client has left.
        self._adrift: set[Any] = set()
        # Connections with a transaction that writes.
        self.writing: set[Any] = set()

    def is_adrift(self, connection: Any) -> bool:
        """Whether the server goes on with a connection although its client has left."""
        return connection in self._adrift

    def heal(self) -> None:
        """Nothing goes wrong any more."""
        self.away_until, self.full_until = 0.0, 0.0
        self.armed.clear()

    def statement(self, cursor: Any, statement: str, parameters: Any) -> None:
        begins = statement.startswith("BEGIN")
        if begins or self._draw.random() < 0.1:
            self._scheduler.sleep(_STATEMENT_SECONDS * self._draw.random())
        if self._scheduler.now < self.away_until:
            raise _error(sqlite3.SQLITE_CANTOPEN, "the server closed the connection")
        writes = statement.startswith(("INSERT", "UPDATE", "DELETE"))
        if writes and self._scheduler.now < self.full_until:
            raise _error(sqlite3.SQLITE_FULL, "database or disk is full")
        if writes and self.armed and self.armed[0][0] == "drop":
            self.armed[0] = ("drop", self.armed[0][1] - 1)
            if self.armed[0][1] < 0:
                self.armed.pop(0)
                raise _error(sqlite3.SQLITE_IOERR, "the connection was reset by the server")
        if statement.startswith("BEGIN IMMEDIATE"):
            self._begin(cursor, statement)
        else:
            cursor.execute(statement, parameters)

    def _begin(self, cursor: Any, statement: str) -> None:
        """Wait for another's lock in virtual time."""
        give_up = self._scheduler.now + _LOCK_SECONDS
        while True:
            try:
                cursor.execute(statement)
                self.writing.add(cursor.connection)
            except sqlite3.OperationalError:
                if self._scheduler.now >= give_up:
                    raise
                self._scheduler.sleep(0.02)
            else:
                return

    def commit(self, connection: Any, commit: Callable[[Any], None]) -> None:
        raw = connection.driver_connection
        if raw not in self.writing:
            commit(connection)
            return
        self._scheduler.sleep(_COMMIT_SECONDS * self._draw.random())
        kind, seconds = self.armed.pop(0) if self.armed else ("", 0.0)
        if kind == "slow":
            self._scheduler.sleep(seconds)
        if kind == "abort" or self._scheduler.now < self.away_until:
            raise _error(sqlite3.SQLITE_BUSY, "could not serialize access")
        if kind == "late":
            self._adrift.add(raw)
            self.writing.discard(raw)
            self._scheduler.spawn(self._server, lambda: self._finish(raw), seconds)
            raise _error(sqlite3.SQLITE_IOERR, "the connection was lost; nobody knows the outcome")
        commit(connection)
        self.writing.discard(raw)
        self.on_commit()
        if kind == "lost":
            raise _error(sqlite3.SQLITE_IOERR, "the connection was lost after COMMIT")
        # A process may be killed before it hears of its success.
        self._scheduler.sleep(_COMMIT_SECONDS * self._draw.random())

    def _finish(self, raw: Any) -> None:
        try:
            raw.commit()
            self.on_commit()
            raw.close()
        except (sqlite3.Error, KilledError):
            raw.close()


class FaultyDriver:
    """Puts faults between an engine and its driver.

    Parameters
    ----------
    engine : Engine

    Attributes
    ----------
    faults : SqlFaults
        Those of the run that is on.
    """

    faults: SqlFaults

    def __init__(self, engine: sa.Engine) -> None:
        dialect: Any = engine.dialect
        commit, rollback, close = dialect.do_commit, dialect.do_rollback, dialect.do_close
        lost = dialect.is_disconnect

        @event.listens_for(engine, "do_execute")
        def execute(cursor: Any, statement: str, parameters: Any, _context: Any) -> bool:
            self.faults.statement(cursor, statement, parameters)
            return True

        def do_rollback(connection: Any) -> None:
            if not self.faults.is_adrift(connection.driver_connection):
                self.faults.writing.discard(connection.driver_connection)
                rollback(connection)

        def do_close(connection: Any) -> None:
            if not self.faults.is_adrift(connection):
                close(connection)

        dialect.do_commit = lambda connection: self.faults.commit(connection, commit)
        dialect.do_rollback, dialect.do_close, dialect.do_terminate = (
            do_rollback,
            do_close,
            do_close,
        )
        dialect.is_disconnect = lambda error, connection, cursor: (
            "connection" in str(error) or lost(error, connection, cursor)
        )
