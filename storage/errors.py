"""What can go wrong in this room, named by what the caller does about it.

::

    StorageError
    ├── StorageUnavailable      retry: the server is away, busy or full; nothing is known to be lost
    ├── Fenced                  drop the batch, claim the stream anew: someone else writes it now
    ├── StreamNotFound          ask for another stream: this one has never been written
    ├── MomentForgotten         ask for a later moment: what was shown then has been pruned
    └── StorageStopped          stop: retrying cannot help
        ├── SchemaMismatch      the tables are older or newer than this program
        ├── StreamConflict      the stream exists with another model or another schema
        ├── InvariantBroken     a commit contradicts what the tables hold: a bug, not an accident
        ├── AccessDenied        the role may not do this
        └── SnapshotCorrupt     bytes that are not a snapshot, or not all of one
"""

# ruff: noqa: N818 - the names say what happened; the root class says that it is an error

from __future__ import annotations

__all__ = [
    "AccessDenied",
    "Fenced",
    "InvariantBroken",
    "MomentForgotten",
    "SchemaMismatch",
    "SnapshotCorrupt",
    "StorageError",
    "StorageStopped",
    "StorageUnavailable",
    "StreamConflict",
    "StreamNotFound",
]


class StorageError(Exception):
    """Root of this room's errors."""


class StorageUnavailable(StorageError):
    """The database or Redis cannot answer now; the same call may succeed later.

    The outcome of a commit that raised this is unknown. Committing the same batch again is safe.
    """


class Fenced(StorageError):
    """Another owner has claimed the stream since; nothing of the batch was written.

    ``owner`` is who, where that is known.
    """

    def __init__(self, message: str, owner: str | None = None) -> None:
        super().__init__(message)
        self.owner = owner


class StreamNotFound(StorageError):
    """No stream of that name has been written to this database."""


class MomentForgotten(StorageError):
    """What was shown at that time is not known any more: its publications have been pruned."""


class StorageStopped(StorageError):
    """Something that no retry mends."""


class SchemaMismatch(StorageStopped):
    """The database's revision is not the one that this program was written for."""


class StreamConflict(StorageStopped):
    """A stream of that name exists with a different model or schema."""


class InvariantBroken(StorageStopped):
    """A batch contradicts the tables: a repeated offset, a gap, a wrong sum."""


class AccessDenied(StorageStopped):
    """The role or the file's permissions forbid the statement."""


class SnapshotCorrupt(StorageStopped):
    """The bytes are not a snapshot of a version known here, or were damaged."""
