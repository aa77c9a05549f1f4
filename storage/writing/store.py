"""The store over SQL: the questions, and the writer's side on top of them.

Safe to share between threads, so that health checks may ask while a batch commits; only one
thread may commit at a time, which the port demands anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from weald.storage.commit.commit import BatchCommit, Rewind, Snapshot, StreamSpec
from weald.storage.commit.parts import part_of
from weald.storage.errors import StreamConflict
from weald.storage.queries.answers import StreamPosition
from weald.storage.queries.base import Letters
from weald.storage.queries.dead_letters import purge, request_replay
from weald.storage.queries.reader import SqlReader, spec_of
from weald.storage.settings import RetentionSettings
from weald.storage.sql.bulk import upsert
from weald.storage.sql.database import writing
from weald.storage.sql.failures import translated
from weald.storage.sql.schema import snapshots, streams

from . import fence
from .retention import prune as retain
from .rewind import rewind as back_to
from .stream_rows import plain, row_of
from .writer import write_batch, write_snapshot

__all__ = ["SqlReader", "SqlStore"]

# Rows of one table in one transaction: some tens of milliseconds.
PRUNED_AT_ONCE = 10_000


class SqlStore(SqlReader):
    """The writer's side as well."""

    _readonly = False

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        with translated(), writing(self._engine).begin() as connection:
            yield connection

    def ensure_stream(self, spec: StreamSpec) -> StreamSpec:
        """Create the stream if it is new and return what is stored.

        Raises
        ------
        StreamConflict
            If the stream exists and anything in its spec is different.
        """
        wanted = plain(spec)
        with self._writing() as connection:
            stored = spec_of(_begun(connection, row_of(wanted)))
        for field in StreamSpec.__dataclass_fields__:
            old, new = getattr(stored, field), getattr(wanted, field)
            if old != new:
                raise StreamConflict(
                    f"stream {spec.name!r} exists with {field} {old!r}, asked for {new!r}. Give "
                    "the new stream another name, or run with the stored settings"
                )
        return stored

    def ensure_part(self, whole: StreamSpec, shard: int) -> StreamSpec:
        """Create a shard of a stream, and the stream itself if it is new; return the shard's spec.

        What the shard is follows from the stream as it is stored: of several that begin at once
        one says what all are.

        Parameters
        ----------
        whole
            What the stream is if it is new.
        shard
            Number of the shard, from 0.
        """
        with self._writing() as connection:
            row = _begun(connection, row_of(plain(whole)))
            part = row_of(part_of(spec_of(row), shard)) | {"part_of": row.id}
            return spec_of(_begun(connection, part))

    def claim(
        self, stream: str, owner: str, generation: int, *, takeover: bool = False
    ) -> StreamPosition:
        """Make ``owner`` the only process whose commits are accepted; return where to go on from.

        Parameters
        ----------
        takeover
            Accept a generation older than the last owner's. For groups whose count has started
            over (a new broker, an expired group, a file). Safe in itself: the previous owner's
            next commit is fenced.

        Raises
        ------
        Fenced
            If the stream was claimed under a later generation, and this is no takeover.
        """
        with self._writing() as connection:
            return fence.claim(connection, stream, owner, generation, takeover=takeover)

    def commit(self, batch: BatchCommit) -> None:
        """Write the batch in one transaction, or nothing.

        Raises
        ------
        Fenced
            If the stream's owner, generation or epoch is no longer the batch's.
        InvariantBroken
            If the batch contradicts the tables (a repeated offset, a gap in ``seq``).
        StorageUnavailable
            If the outcome is unknown: commit the same batch again.
        """
        with self._writing() as connection:
            write_batch(connection, batch, self._settings.snapshots_kept)

    def request_replay(self, stream: str, letters: Letters) -> tuple[int, int]:
        """Have the stream's owner decide these dead letters anew.

        Returns
        -------
        int, int
            How many were marked, and how many cannot be: their value was cut when it was stored.
        """
        with self._writing() as connection:
            return request_replay(connection, self._id_of(connection, stream), letters)

    def purge_dead_letters(self, stream: str, letters: Letters) -> int:
        """Forget dead letters, but none that waits for its replay; return how many went.

        The account of the partition still counts them.
        """
        with self._writing() as connection:
            return purge(connection, self._id_of(connection, stream), letters)

    def prune(self, stream: str, retention: RetentionSettings) -> dict[str, int]:
        """Forget some of what the policy lets go; return how many rows went of each table.

        Bounded work: call again until nothing went.
        """
        with self._writing() as connection:
            return retain(connection, self._id_of(connection, stream), retention, PRUNED_AT_ONCE)

    def save_snapshot(self, stream: str, snapshot: Snapshot, epoch: int) -> int:
        """Keep an image of a stream after commit `epoch`; return the number that it got.

        Raises
        ------
        StreamConflict
            If the stream was put back since then, or has forgotten what a start from there needs.
        """
        with self._writing() as connection:
            # Locks the stream's row, as a commit does, so that no two take the same number.
            stream_id, reverted = connection.execute(
                sa.update(streams)
                .where(streams.c.id == self._id_of(connection, stream))
                .values(owner=streams.c.owner)
                .returning(streams.c.id, streams.c.reverted_epoch)
            ).one()
            oldest = connection.execute(
                sa.select(sa.func.min(snapshots.c.seq)).where(snapshots.c.stream_id == stream_id)
            ).scalar_one()
            if reverted > epoch or (oldest is not None and snapshot.seq < oldest):
                what = "was put back" if reverted > epoch else "moved on too far"
                raise StreamConflict(
                    f"stream {stream!r} {what} while its snapshot was made, and none was kept. "
                    "Make it again"
                )
            return write_snapshot(connection, stream_id, epoch, snapshot)

    def rewind(self, rewind: Rewind) -> int:
        """Take out of the tables everything that came after a snapshot, in one transaction.

        The offsets go back with it, so that the records are read again, and the writer, if there
        is one, is fenced.

        Returns
        -------
        int
            Observations taken out.
        """
        with self._writing() as connection:
            return back_to(connection, rewind)

    def delete_snapshots(self, stream: str, numbers: Sequence[int]) -> None:
        """Forget the snapshots with these numbers."""
        with self._writing() as connection:
            stream_id = self._id_of(connection, stream)
            connection.execute(
                sa.delete(snapshots).where(
                    snapshots.c.stream_id == stream_id, snapshots.c.number.in_(numbers)
                )
            )


def _begun(connection: sa.Connection, row: dict[str, Any]) -> Any:
    """Put the row of a stream in if there is none of that name; return what is there then."""
    insert = upsert(connection.dialect.name, streams).on_conflict_do_nothing(
        index_elements=["name"]
    )
    connection.execute(insert, row)
    return connection.execute(sa.select(streams).where(streams.c.name == row["name"])).one()
