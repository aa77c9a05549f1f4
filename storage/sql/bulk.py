"""The statements that see every observation, each in the fastest form its database has.

PostgreSQL: COPY for new rows, arrays for changes. SQLite: prepared statements over tuples. All
of it inside the transaction that the connection already has.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.dialects import postgresql, sqlite

from weald.storage.commit.commit import Departure, Handover, ObservationBlock, Reassignment
from weald.storage.encoding.row_bytes import rows_to_bytes

from .database import walk_indexes
from .failures import meaning_of
from .schema import observations

__all__ = ["hand_over", "insert_observations", "mark_departed", "reassign", "upsert"]

# What becomes of an observation later is nobody's to say when it comes.
_LATER = {"bundle", "bundle_since"}
_COLUMNS = tuple(column.name for column in observations.columns if column.name not in _LATER)
_COPY = f"COPY {observations.name} ({', '.join(_COLUMNS)}) FROM STDIN (FORMAT BINARY)"
_COPY_TYPES = (
    "int4",
    "int8",
    "int4",
    "int8",
    "int8",
    "float8",
    "float8",
    "text",
    "bytea",
    "text",
    "int8",
    "int8",
)
_ROW = f"({', '.join('?' * len(_COLUMNS))})"
_INSERT = f"INSERT INTO {observations.name} ({', '.join(_COLUMNS)}) VALUES "  # noqa: S608 - names of our own
# Values of one statement, the most first: each costs as much as a row besides, and other threads
# have the interpreter while one runs. The oldest SQLite that Python takes allows for the second.
_VALUES_AT_ONCE = (32_766, 999)

# Both databases: first the history, from what the row still says, then the row.
_SQLITE_HISTORY = """
    INSERT INTO assignment_changes (stream_id, seq, publication, old_cluster, new_cluster)
    SELECT stream_id, seq, ?3, cluster, ?4 FROM observations
    WHERE stream_id = ?1 AND seq = ?2 AND cluster <> ?4"""
_SQLITE_CHANGE = """
    UPDATE observations SET cluster = ?4
    WHERE stream_id = ?1 AND seq = ?2 AND cluster <> ?4 AND ?3 >= 0"""
_POSTGRESQL_HISTORY = """
    INSERT INTO assignment_changes (stream_id, seq, publication, old_cluster, new_cluster)
    SELECT o.stream_id, o.seq, %(publication)s, o.cluster, change.cluster
    FROM unnest(%(seq)s::bigint[], %(cluster)s::bigint[]) AS change (seq, cluster)
    JOIN observations o ON o.stream_id = %(stream_id)s AND o.seq = change.seq
    WHERE o.cluster <> change.cluster"""
_POSTGRESQL_CHANGE = """
    UPDATE observations o SET cluster = change.cluster
    FROM unnest(%(seq)s::bigint[], %(cluster)s::bigint[]) AS change (seq, cluster)
    WHERE o.stream_id = %(stream_id)s AND o.seq = change.seq AND o.cluster <> change.cluster"""
# The same of all that had left the model by an observation, each once: an heir may hand over, too.
_HANDED_OVER = (
    """
    INSERT INTO assignment_changes (stream_id, seq, publication, old_cluster, new_cluster)
    SELECT stream_id, seq, :publication, cluster, :heir FROM observations
    WHERE stream_id = :stream_id AND cluster = :cluster AND left_seq <= :seq
    AND NOT EXISTS (
        SELECT 1 FROM assignment_changes c WHERE c.stream_id = observations.stream_id
        AND c.seq = observations.seq AND c.publication = :publication)""",
    """
    UPDATE observations SET cluster = :heir
    WHERE stream_id = :stream_id AND cluster = :cluster AND left_seq <= :seq
    AND EXISTS (
        SELECT 1 FROM assignment_changes c WHERE c.stream_id = observations.stream_id
        AND c.seq = observations.seq AND c.publication = :publication
        AND c.old_cluster = :cluster)""",
)
_SQLITE_DEPARTED = "UPDATE observations SET left_seq = ?3 WHERE stream_id = ?1 AND seq = ?2"
_POSTGRESQL_DEPARTED = """
    UPDATE observations SET left_seq = %(after_seq)s
    WHERE stream_id = %(stream_id)s AND seq = ANY(%(seq)s::bigint[])"""


def upsert(dialect: str, table: sa.Table) -> Any:
    """Return the dialect's INSERT for the table, which can go on with ON CONFLICT."""
    insert: Callable[[sa.Table], Any] = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return insert(table)


def insert_observations(
    connection: sa.Connection,
    stream_id: int,
    sources: dict[tuple[str, int], int],
    block: ObservationBlock,
) -> None:
    """Append the block; ``sources`` gives the id of each (topic, partition) in it."""
    rows = _tuples(stream_id, _source_ids(block, sources), block)
    if connection.dialect.name == "sqlite":
        _insert(connection, list(rows))
    else:
        _copy(connection, rows)


def _insert(connection: sa.Connection, rows: list[tuple[Any, ...]]) -> None:
    """Append rows, many to a statement, and what is left one by one."""
    driver: Any = connection.connection.driver_connection
    most = driver.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
    for values in (*(n for n in _VALUES_AT_ONCE if n <= most), len(_COLUMNS)):
        n_rows = values // len(_COLUMNS)
        together = len(rows) - len(rows) % n_rows
        if not together:
            continue
        flat, width = tuple(chain.from_iterable(rows[:together])), n_rows * len(_COLUMNS)
        many = [flat[at : at + width] for at in range(0, together * len(_COLUMNS), width)]
        connection.exec_driver_sql(_INSERT + ", ".join([_ROW] * n_rows), many)
        rows = rows[together:]


def _source_ids(block: ObservationBlock, sources: dict[tuple[str, int], int]) -> NDArray[np.int64]:
    partitions, position = np.unique(block.partition, return_inverse=True)
    ids = [sources[block.topic, partition] for partition in partitions.tolist()]
    return np.array(ids, dtype=np.int64)[position]


def _tuples(
    stream_id: int, source_ids: NDArray[np.int64], block: ObservationBlock
) -> Iterator[tuple[Any, ...]]:
    n = len(block)
    return zip(
        [stream_id] * n,
        block.seq.tolist(),
        source_ids.tolist(),
        block.offset.tolist(),
        block.cluster.tolist(),
        block.event_time.tolist(),
        [block.received_at] * n,
        block.key,
        rows_to_bytes(block.values),
        [None] * n if block.text is None else block.text,
        [None] * n if block.passed is None else _left(block.seq, block.passed),
        [None] * n if block.replaces is None else [seq or None for seq in block.replaces.tolist()],
        strict=True,
    )


def _left(seq: NDArray[np.int64], passed: NDArray[np.bool_]) -> list[int | None]:
    return [n if out else None for n, out in zip(seq.tolist(), passed.tolist(), strict=True)]


def _copy(connection: sa.Connection, rows: Iterator[tuple[Any, ...]]) -> None:
    import psycopg

    driver: Any = connection.connection.driver_connection
    try:
        with driver.cursor() as cursor, cursor.copy(_COPY) as copy:
            copy.set_types(_COPY_TYPES)
            for row in rows:
                copy.write_row(row)
    except psycopg.Error as error:
        # The driver's own cursor: SQLAlchemy is not there to wrap it.
        raise meaning_of(error) from error


def reassign(connection: sa.Connection, stream_id: int, change: Reassignment) -> None:
    """Give observations to other clusters, and keep what each had before."""
    seq, cluster = change.seq.tolist(), change.cluster.tolist()
    if not seq:
        return
    if connection.dialect.name == "sqlite":
        rows = [
            (stream_id, number, change.publication, to)
            for number, to in zip(seq, cluster, strict=True)
        ]
        connection.exec_driver_sql(_SQLITE_HISTORY, rows)
        connection.exec_driver_sql(_SQLITE_CHANGE, rows)
        return
    arrays = {
        "stream_id": stream_id,
        "publication": change.publication,
        "seq": seq,
        "cluster": cluster,
    }
    walk_indexes(connection)
    connection.exec_driver_sql(_POSTGRESQL_HISTORY, arrays)
    connection.exec_driver_sql(_POSTGRESQL_CHANGE, arrays)


def hand_over(connection: sa.Connection, stream_id: int, change: Handover) -> None:
    """Give what had left the model of some clusters to others, and keep where each was before."""
    walk_indexes(connection)
    for cluster, heir in zip(change.cluster.tolist(), change.heir.tolist(), strict=True):
        row = {
            "stream_id": stream_id,
            "publication": change.publication,
            "seq": change.seq,
            "cluster": cluster,
            "heir": heir,
        }
        for statement in _HANDED_OVER:
            connection.execute(sa.text(statement), row)


def mark_departed(connection: sa.Connection, stream_id: int, departure: Departure) -> None:
    """Note that observations left the model."""
    seq = departure.seq.tolist()
    if not seq:
        return
    if connection.dialect.name == "sqlite":
        rows = [(stream_id, number, departure.after_seq) for number in seq]
        connection.exec_driver_sql(_SQLITE_DEPARTED, rows)
        return
    arrays = {"stream_id": stream_id, "after_seq": departure.after_seq, "seq": seq}
    walk_indexes(connection)
    connection.exec_driver_sql(_POSTGRESQL_DEPARTED, arrays)
