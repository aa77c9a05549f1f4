"""What ``weald status`` asks, as SQL that both databases understand.

The reader and the short way to an SQLite file send the same statements, so that they cannot tell
different things.
"""

from collections.abc import Callable, Mapping
from typing import Any

__all__ = [
    "DECISIONS",
    "ID",
    "LEASES",
    "LEDGER",
    "MODELS",
    "OF_JSON",
    "REASONS",
    "REVISION",
    "ROLES",
    "ROUNDS",
    "SHARDS",
    "status_of",
]

REVISION = "SELECT version_num FROM alembic_version"
ID = "SELECT id FROM streams WHERE name = :name"
# A stream in shards has the accounts of its parts, whose rows name it.
_STREAM = """
    SELECT name, family, seen_as, prior, seed, owner, generation,
           (SELECT CAST(sum(epoch) AS BIGINT) FROM streams
            WHERE :stream IN (id, part_of)) AS epoch,
           (SELECT max(committed_at) FROM streams WHERE :stream IN (id, part_of)) AS committed_at
    FROM streams WHERE id = :stream"""
_ACCOUNT = """
    SELECT coalesce(sum(n_received), 0) AS n_received, coalesce(sum(n_inserted), 0) AS n_inserted,
           coalesce(sum(n_duplicate), 0) AS n_duplicate, coalesce(sum(n_dead), 0) AS n_dead
    FROM offsets WHERE stream_id IN (SELECT id FROM streams WHERE :stream IN (id, part_of))"""
_CLUSTERS = """
    SELECT count(*) - count(retired_publication) AS n_clusters,
           count(retired_publication) AS n_clusters_retired,
           count(DISTINCT CASE WHEN retired_publication IS NULL THEN cluster_group END) AS n_groups,
           CAST(coalesce(sum(CASE WHEN retired_publication IS NULL THEN n_observations END), 0)
                AS bigint) AS n_clustered
    FROM clusters WHERE stream_id = :stream"""
_PUBLICATION = """
    SELECT number AS publication, published_at, log_joint_before, log_joint,
           n_observations, n_atoms, disruption AS estimated_disruption, warnings,
           base_measure
    FROM publications WHERE stream_id = :stream ORDER BY number DESC LIMIT 1"""
_MOVED = """
    SELECT coalesce(sum(n_moved), 0) AS n_moved FROM lineage_events
    WHERE stream_id = :stream
      AND publication = (SELECT max(number) FROM publications WHERE stream_id = :stream)"""
_SNAPSHOT = """
    SELECT seq AS snapshot_seq, created_at AS snapshot_at
    FROM snapshots WHERE stream_id = :stream ORDER BY number DESC LIMIT 1"""
LEDGER = """
    SELECT topic, partition, next_offset, n_received, n_inserted, n_duplicate, n_dead, updated_at
    FROM offsets WHERE stream_id IN (SELECT id FROM streams WHERE :stream IN (id, part_of))
    ORDER BY topic, partition"""
REASONS = """
    SELECT reason, count(*) AS n FROM dead_letters
    WHERE stream_id IN (SELECT id FROM streams WHERE :stream IN (id, part_of))
    GROUP BY reason ORDER BY reason"""
LEASES = """
    SELECT outcome, count(*) AS n FROM leases
    WHERE stream_id = :stream GROUP BY outcome ORDER BY outcome"""
ROLES = """
    SELECT role, count(*) AS leases, sum(proposed) AS proposed, sum(accepted) AS accepted,
           sum(processor_seconds) AS processor_seconds,
           sum(squared_jump) / nullif(sum(processor_seconds), 0) AS squared_jump_per_second
    FROM leases WHERE stream_id = :stream AND role IS NOT NULL AND proposed IS NOT NULL
    GROUP BY role ORDER BY role"""
DECISIONS = """
    SELECT topic, partition, kept_as, next_offset, difference, decided_at
    FROM log_decisions WHERE stream_id IN (SELECT id FROM streams WHERE :stream IN (id, part_of))
    ORDER BY id"""
MODELS = """
    SELECT seq, publication, decided_at, family, seen_as, earlier_family, earlier_seen_as, reason
    FROM stream_models WHERE stream_id = :stream ORDER BY seq"""
SHARDS = """
    SELECT s.shard, s.owner, s.committed_at,
           coalesce(sum(o.n_received), 0) AS n_received,
           coalesce(sum(o.n_inserted), 0) AS n_inserted,
           coalesce(sum(o.n_duplicate), 0) AS n_duplicate, coalesce(sum(o.n_dead), 0) AS n_dead,
           (SELECT count(*) FROM clusters c
            WHERE c.stream_id = s.id AND c.retired_publication IS NULL) AS n_clusters
    FROM streams s LEFT JOIN offsets o ON o.stream_id = s.id
    WHERE s.part_of = :stream GROUP BY s.id, s.shard, s.owner, s.committed_at ORDER BY s.shard"""
ROUNDS = """
    SELECT seq, kernel, proposed, accepted, log_joint_before, log_joint_after, seconds
    FROM rounds WHERE stream_id = :stream ORDER BY id DESC LIMIT :rounds"""

_NOTHING = {
    "publication": 0,
    "published_at": None,
    "log_joint_before": None,
    "log_joint": None,
    "n_observations": None,
    "n_atoms": None,
    "estimated_disruption": None,
    "warnings": None,
    "base_measure": None,
}
# What a database may give as the text that it keeps.
OF_JSON = ("warnings", "base_measure")
_NO_SNAPSHOT = {"snapshot_seq": None, "snapshot_at": None}

Row = Mapping[str, Any]


def status_of(ask: Callable[[str], Row | None]) -> dict[str, Any]:
    """Return the fields of a `StreamStatus`.

    Parameters
    ----------
    ask : callable
        Sends a statement about one stream, and returns its first row, if any.
    """
    told: dict[str, Any] = {}
    for statement, otherwise in (
        (_STREAM, {}),
        (_ACCOUNT, {}),
        (_CLUSTERS, {}),
        (_PUBLICATION, _NOTHING),
        (_MOVED, {}),
        (_SNAPSHOT, _NO_SNAPSHOT),
    ):
        row = ask(statement)
        told |= otherwise if row is None else dict(row)
    return told
