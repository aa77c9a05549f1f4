"""A stream at a glance out of an SQLite file, for a command that must answer at once.

Loading SQLAlchemy and NumPy takes longer than the whole of ``weald status`` may. The
statements are those of ``overview``.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from weald.storage.sql.revision import HEAD

from .status_statements import (
    DECISIONS,
    ID,
    LEASES,
    LEDGER,
    MODELS,
    OF_JSON,
    REASONS,
    REVISION,
    ROLES,
    ROUNDS,
    SHARDS,
    status_of,
)

__all__ = ["glance_at"]

_BUSY_SECONDS = 5.0


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
    revision = connection.execute(REVISION).fetchone()
    if revision is None or revision["version_num"] != HEAD:
        return None
    found = connection.execute(ID, {"name": stream}).fetchone()
    if found is None:
        return None
    given = {"stream": found["id"], "rounds": rounds}
    told = status_of(lambda statement: _first(connection, statement, given))
    reasons = connection.execute(REASONS, given).fetchall()
    told["dead_letter_reasons"] = {row["reason"]: row["n"] for row in reasons}
    leases = connection.execute(LEASES, given).fetchall()
    told["leases"] = {row["outcome"]: row["n"] for row in leases}
    told["roles"] = [dict(row) for row in connection.execute(ROLES, given)]
    for name in OF_JSON:
        told[name] = told[name] and json.loads(told[name])
    told["shards"] = [dict(row) for row in connection.execute(SHARDS, given)]
    told["partitions"] = [dict(row) for row in connection.execute(LEDGER, given)]
    told["log_decisions"] = [dict(row) for row in connection.execute(DECISIONS, given)]
    told["models"] = [dict(row) for row in connection.execute(MODELS, given)]
    newest = connection.execute(ROUNDS, given).fetchall()
    told["last_refinement"] = [dict(row) for row in reversed(newest)]
    return told


def _first(
    connection: sqlite3.Connection, statement: str, given: dict[str, int]
) -> dict[str, Any] | None:
    row = connection.execute(statement, given).fetchone()
    return None if row is None else dict(row)
