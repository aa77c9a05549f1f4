"""The statistics of a stream's clusters in Redis: a copy that anyone may read and nobody needs.

One hash per stream, ``weald:{<stream>}:statistics``, whose tag keeps it on one slot of a Redis
Cluster. Each field is a cluster; its value is the row's version and epoch and then float64
bytes, never a number that Redis would round. The hash moves from commit to commit by compare
and set, so a late writer changes nothing and a missed commit shows as a gap. After a gap, a
flush or a restart the hash is rebuilt from SQL.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from weald.storage.commit.commit import ClusterRow
from weald.storage.encoding.row_bytes import from_bytes, to_bytes
from weald.storage.errors import AccessDenied
from weald.storage.settings import RedisSettings, redacted

from .client import answering, connect

if TYPE_CHECKING:
    from weald.storage.queries.reader import SqlReader

__all__ = ["ClusterStatistics", "Outcome", "RedisStatistics", "ShardStatistics"]

# Big-endian, so that the script compares versions byte by byte.
_STAMP = struct.Struct(">QQ")

# Rows that one call carries: keeps the server's single thread free for others in between.
_ROWS_PER_CALL = 256

# A rebuild that died half way leaves nothing behind for longer than this.
_REBUILD_SECONDS = 600


class Outcome(Enum):
    """What became of a publish."""

    PUBLISHED = 1
    STALE = 0
    GAP = -1


@dataclass(frozen=True, eq=False)
class ClusterStatistics:
    """One cluster's sufficient statistics float64[m], count first, as of a commit."""

    version: int
    epoch: int
    statistics: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ShardStatistics:
    """All clusters of a stream as of the commit ``epoch``."""

    epoch: int
    clusters: dict[int, ClusterStatistics]


class RedisStatistics:
    """Publishes to and reads from one Redis; connects when first used.

    Every method raises ``StorageUnavailable`` when the server is away, full, or a replica; the
    caller goes on without it, and the next publish finds the gap.
    """

    def __init__(self, settings: RedisSettings) -> None:
        self._place = redacted(settings.url)
        self._client: Any = connect(settings)
        room = files(__package__)
        self._move = self._client.register_script(_source(room, "compare_and_set.lua"))
        self._replace = self._client.register_script(_source(room, "replace_shard.lua"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def publish(self, stream: str, epoch: int, clusters: Sequence[ClusterRow]) -> Outcome:
        """Show the clusters that commit ``epoch`` changed; call it for every commit.

        Returns
        -------
        Outcome
            ``GAP`` when an earlier commit is missing: call ``rebuild``. ``STALE`` when this
            commit or a later one is shown already.
        """
        shown = [row for row in clusters if row.retired_publication is None]
        ended = [str(row.cluster) for row in clusters if row.retired_publication is not None]
        # At least one call: a commit that changed no cluster moves the hash's epoch all the same.
        for start in range(0, max(len(shown), 1), _ROWS_PER_CALL):
            chunk = shown[start : start + _ROWS_PER_CALL]
            last = start + _ROWS_PER_CALL >= len(shown)
            arguments: list[Any] = [epoch, int(last), len(chunk)]
            for row in chunk:
                arguments += [str(row.cluster), _value(row, epoch)]
            with answering(self._place):
                reply = self._move(keys=[_key(stream)], args=arguments + (ended if last else []))
            if reply[0] != Outcome.PUBLISHED.value:
                return Outcome(reply[0])
        return Outcome.PUBLISHED

    def rebuild(self, stream: str, reader: SqlReader, written_by: str | None = None) -> bool:
        """Replace what Redis shows of the stream by what SQL holds.

        Parameters
        ----------
        stream : str
        reader : SqlReader
        written_by : str, optional
            The stream whose commits write its clusters, if not its own: a shard.

        Returns
        -------
        bool
            False if Redis was already further on, and was left as it was.
        """
        # The epoch first: rows that a later commit changes meanwhile are then newer than the
        # hash says, which the next publish puts right; the other order would hide a change.
        epoch = reader.position(written_by or stream).epoch
        rows = reader.clusters(stream)
        fresh = f"{_key(stream)}:{uuid.uuid4().hex}"
        with answering(self._place):
            self._client.hset(fresh, "epoch", epoch)
            self._client.expire(fresh, _REBUILD_SECONDS)
            for start in range(0, len(rows), _ROWS_PER_CALL):
                chunk = rows[start : start + _ROWS_PER_CALL]
                values = {str(row.cluster): _value(row, epoch) for row in chunk}
                self._client.hset(fresh, mapping=values)
            self._client.persist(fresh)
            return bool(self._replace(keys=[_key(stream), fresh], args=[epoch]))

    def read_all(self, stream: str) -> ShardStatistics | None:
        """Return every cluster's statistics at one moment, or None if there are none."""
        with answering(self._place):
            found: dict[bytes, bytes] = self._client.hgetall(_key(stream))
        if b"epoch" not in found:
            return None
        epoch = int(found.pop(b"epoch"))
        return ShardStatistics(epoch, {int(field): _read(value) for field, value in found.items()})

    def n_bytes(self, stream: str) -> int | None:
        """Return the memory that the stream's statistics take in Redis, overhead included.

        Estimated by the server from some of the fields. None where there are none, or where this
        user may not ask.
        """
        try:
            with answering(self._place):
                found: int | None = self._client.memory_usage(_key(stream))
        except AccessDenied:
            return None
        return found

    def ping(self) -> None:
        """Raise unless the server answers."""
        with answering(self._place):
            self._client.ping()


def _source(room: Any, name: str) -> str:
    return str((room / name).read_text(encoding="utf-8"))


def _key(stream: str) -> str:
    return f"weald:{{{stream}}}:statistics"


def _value(row: ClusterRow, epoch: int) -> bytes:
    return _STAMP.pack(row.version, epoch) + to_bytes(row.statistics)


def _read(value: bytes) -> ClusterStatistics:
    version, epoch = _STAMP.unpack_from(value)
    return ClusterStatistics(version, epoch, from_bytes(value[_STAMP.size :]))
