"""Fresh SQLite databases at the head revision: copies of one that was brought there once."""

import tempfile
from functools import cache
from pathlib import Path

from weald.storage.settings import StorageSettings
from weald.storage.sql.migrate import upgrade

__all__ = ["new_file"]


def new_file(path: Path) -> None:
    """Make a database that looks as after every step of the way up, in a fraction of its time."""
    path.write_bytes(_file())


@cache
def _file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "head.db")
        upgrade(StorageSettings(url=f"sqlite:///{path}"))
        # Whoever is last to close it leaves everything in this one file.
        assert [each.name for each in path.parent.iterdir()] == [path.name]
        return path.read_bytes()
