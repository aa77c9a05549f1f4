"""A stream at a glance out of an SQLite file, for a command that must answer at once.

Loading SQLAlchemy and NumPy takes longer than the whole of ``weald status`` may. The same answers
come from ``overview`` and ``history``; a test holds the two together.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from weald.storage.sql.revision import HEAD

__all__ = ["glance_at"]

_BUSY_SECONDS = 5.0

_REVISION = "SELECT version_num FROM alembic_version"
_STREAM = """
    SELECT id, name, family, prior, seed, owner, generation, epoch, committed_at
    FROM streams WHERE name = ?"""
_ACCOUNT = """
    SELECT coalesce(sum(n_received), 0) AS n_received, coalesce(sum(n_inserted), 0) AS n_inserted,
           coalesce(sum(n_duplicate), 0) AS n_duplicate, coalesce(sum(n_dead), 0) AS n_dead
    FROM offsets WHERE stream_id = ?"""
_CLUSTERS = """
    SELECT count(*) - count(retired_publication) AS n_clusters,
           count(retired_publication) AS n_clusters_retired,
           count(DISTINCT CASE WHEN retired_publication IS NULL THEN cluster_group END) AS n_groups
    FROM clusters WHERE stream_id = ?"""
_PUBLICATION = """
    SELECT number AS publication, published_at, log_joint_before, log_joint,
           n_observations, n_atoms, disruption AS estimated_disruption, warnings
    FROM publications WHERE stream_id = ? ORDER BY number DESC LIMIT 1"""
_SNAPSHOT = """
    SELECT seq AS snapshot_seq, created_at AS snapshot_at
    FROM snapshots WHERE stream_id = ? ORDER BY number DESC LIMIT 1"""
_LEDGER = """
    SELECT topic, partition, next_offset, n_received, n_inserted, n_duplicate, n_dead, updated_at
    FROM offsets WHERE stream_id = ? ORDER BY topic, partition"""
_REASONS = """
    SELECT reason, count(*) AS n FROM dead_letters
    WHERE stream_id = ? GROUP BY reason ORDER BY reason"""
_LEASES = """
    SELECT outcome, count(*) AS n FROM leases
    WHERE stream_id = ? GROUP BY outcome ORDER BY outcome"""
_DECISIONS = """
    SELECT topic, partition, kept_as, next_offset, difference, decided_at
    FROM log_decisions WHERE stream_id = ? ORDER BY id"""
_ROUNDS = """
    SELECT seq, kernel, proposed, accepted, log_joint_before, log_joint_after, seconds
    FROM rounds WHERE stream_id = ? ORDER BY id DESC LIMIT ?"""

_NOTHING = {
    "publication": 0,
    "published_at": None,
    "log_joint_before": None,
    "log_joint": None,
    "n_observations": None,
    "n_atoms": None,
    "estimated_disruption": None,
    "warnings": None,
}
_NO_SNAPSHOT = {"snapshot_seq": None, "snapshot_at": None}


def glance_at(file: Path, stream: str, rounds: int) -> dict[str, Any] | None:
    """Return what ``weald status`` tells, or None where this shortcut does not lead.

    That is a stream of another name, a database of another revision, or anything else that the
    longer way has words for.

    Parameters
    ----------
    file : Path
        An SQLite database.
    stream : str
    rounds : int
        How many refinement rounds to tell, oldest of them first.
    """
    try:
        connection = sqlite3.connect(
            f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=_BUSY_SECONDS
        )
    except sqlite3.Error:
        return None
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("BEGIN")  # one moment throughout
        return _told(connection, stream, rounds)
    except sqlite3.Error:
        return None
    finally:
        connection.close()


def _told(connection: sqlite3.Connection, stream: str, rounds: int) -> dict[str, Any] | None:
    revision = connection.execute(_REVISION).fetchone()
    if revision is None or revision["version_num"] != HEAD:
        return None
    found = connection.execute(_STREAM, (stream,)).fetchone()
    if found is None:
        return None
    stream_id = found["id"]

    def one(statement: str, otherwise: dict[str, Any] | None = None) -> dict[str, Any]:
        row = connection.execute(statement, (stream_id,)).fetchone()
        return dict(row) if row is not None else dict(otherwise or {})

    told = {name: found[name] for name in found.keys() if name != "id"}  # noqa: SIM118 - not a dict
    told |= one(_ACCOUNT) | one(_CLUSTERS) | one(_PUBLICATION, _NOTHING)
    told |= one(_SNAPSHOT, _NO_SNAPSHOT)
    reasons = connection.execute(_REASONS, (stream_id,)).fetchall()
    told["dead_letter_reasons"] = {row["reason"]: row["n"] for row in reasons}
    leases = connection.execute(_LEASES, (stream_id,)).fetchall()
    told["leases"] = {row["outcome"]: row["n"] for row in leases}
    told["warnings"] = told["warnings"] and json.loads(told["warnings"])
    told["partitions"] = [dict(row) for row in connection.execute(_LEDGER, (stream_id,))]
    told["log_decisions"] = [dict(row) for row in connection.execute(_DECISIONS, (stream_id,))]
    newest = connection.execute(_ROUNDS, (stream_id, rounds)).fetchall()
    told["last_refinement"] = [dict(row) for row in reversed(newest)]
    return told
