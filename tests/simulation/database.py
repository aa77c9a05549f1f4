"""The one SQLite file that runs share, one after the other, with the statements compiled once."""

import copy
import shutil
from pathlib import Path

from weald.storage.queries.reader import SqlReader
from weald.storage.settings import RetentionSettings, StorageSettings
from weald.storage.sql.migrate import upgrade
from weald.storage.writing.store import SqlStore

from .sql_faults import FaultyDriver, SqlFaults

__all__ = ["Database"]


class _Store(SqlStore):
    sheds = True

    def close(self) -> None:
        """The connections are everybody's."""

    def prune(self, stream: str, retention: RetentionSettings) -> dict[str, int]:
        """Look for old rows only where the run has a retention; it is a third of all statements."""
        return super().prune(stream, retention) if self.sheds else {}


class Database:
    """A database that can be made anew in a moment.

    Parameters
    ----------
    folder : Path
        Best in memory.
    """

    def __init__(self, folder: Path) -> None:
        self._template = folder / "template.db"
        upgrade(StorageSettings(url=f"sqlite:///{self._template}"))
        self.path = folder / "weald.db"
        settings = StorageSettings(
            url=f"sqlite:///{self.path}", busy_timeout_seconds=0.0, snapshots_kept=2
        )
        shutil.copyfile(self._template, self.path)
        self._store, self._reader = _Store(settings), SqlReader(settings)
        self._driver = FaultyDriver(self._store._engine)

    def renew(self, faults: SqlFaults, *, sheds: bool) -> None:
        """Begin with empty tables, behind these faults; say whether there is a retention."""
        self._store.sheds = sheds
        for engine in (self._store._engine, self._reader._engine):
            engine.dispose()
        # Another file: a connection that the run before has left keeps the old one.
        for more in ("", "-wal", "-shm"):
            Path(f"{self.path}{more}").unlink(missing_ok=True)
        shutil.copyfile(self._template, self.path)
        self._driver.faults = faults
        self._reader._ids.clear()

    def store(self) -> SqlStore:
        """A store of a process's own; its connections come from one pool."""
        store = copy.copy(self._store)
        store._ids = {}
        return store

    def reader(self) -> SqlReader:
        """A reader that nothing happens to."""
        return self._reader
