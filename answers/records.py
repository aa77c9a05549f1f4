"""Clusters and lineage events as rows of plain values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .group_births import births_of_groups
from .numbers import iso_time

if TYPE_CHECKING:
    from weald.storage.queries.base import ClusterRow, LineageRow
    from weald.treecore.family import FeatureSummary

    from .stored_stream import StoredStream

__all__ = ["cluster_record", "group_records", "lineage_record", "mean_sure"]


def cluster_record(stored: StoredStream, cluster: ClusterRow, n_total: int) -> dict[str, Any]:
    """Return one cluster as a row.

    Parameters
    ----------
    stored : StoredStream
    cluster : ClusterRow
    n_total : int
        Observations in all clusters that are shown, for the share; one that ended has none of them.
    """
    ended = cluster.retired_publication is not None
    return {
        "cluster": cluster.cluster,
        "group": cluster.group,
        "size": cluster.n_observations,
        "share": 0.0 if ended or not n_total else cluster.n_observations / n_total,
        "probability": cluster.probability,
        "stability": cluster.stability,
        "features": {each.name: _feature(each) for each in stored.describe(cluster)},
        "log_marginal": stored.log_marginal(cluster),
        "version": cluster.version,
        "born_publication": cluster.born_publication,
        "retired_publication": cluster.retired_publication,
    }


def mean_sure(told: Iterable[tuple[float | None, int]]) -> float | None:
    """Return how sure clusters of these sizes are together; None where it is known of none."""
    known = [(sure, size) for sure, size in told if sure is not None]
    weight = sum(size for _, size in known)
    return sum(sure * size for sure, size in known) / weight if weight else None


def group_records(stored: StoredStream) -> list[dict[str, Any]]:
    """Return the groups of the newest publication as rows, largest first.

    Clusters that were born since are in none yet. A group was born with the publication that first
    told of it or of one of its clusters, and is new where that is the newest, but for the very
    first.
    """
    members: dict[int, list[ClusterRow]] = {}
    there = stored.reader.clusters(stored.stream)
    for cluster in there:
        if cluster.group is not None:
            members.setdefault(cluster.group, []).append(cluster)
    total = stored.n_clustered
    times = stored.reader.publication_times(stored.stream)
    births = births_of_groups(there, stored.reader.births(stored.stream), times)
    rows = []
    for group, clusters in members.items():
        size = sum(each.n_observations for each in clusters)
        described = stored.describe(*clusters)
        born = births[group].told if group in births else None
        rows.append(
            {
                "group": group,
                "size": size,
                "share": size / total if total else 0.0,
                "probability": mean_sure(
                    (each.probability, each.n_observations) for each in clusters
                ),
                "born_publication": born,
                "born": None if born is None else iso_time(times.get(born)),
                "is_new": born is not None and born == max(times, default=None) != 1,
                "clusters": [each.cluster for each in clusters],
                "features": {each.name: _feature(each) for each in described},
            }
        )
    return sorted(rows, key=lambda row: (-row["size"], row["group"]))


def _feature(summary: FeatureSummary) -> dict[str, Any]:
    return {
        "kind": summary.kind,
        "centre": summary.centre,
        "spread": summary.spread,
        "n": summary.n,
    }


def lineage_record(event: LineageRow) -> dict[str, Any]:
    """Return one lineage event as a row."""
    return {
        "time": iso_time(event.time),
        "kind": event.kind,
        "cluster": event.cluster,
        "parents": list(event.parents),
        "size": event.size,
        "n_moved": event.n_moved,
        "publication": event.publication,
        "seq": event.seq,
    }
