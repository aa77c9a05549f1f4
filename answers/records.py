"""Clusters and lineage events as rows of plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .numbers import iso_time

if TYPE_CHECKING:
    from weald.storage.queries.base import ClusterRow, LineageRow
    from weald.treecore.family import FeatureSummary

    from .stored_stream import StoredStream

__all__ = ["cluster_record", "lineage_record"]


def cluster_record(stored: StoredStream, cluster: ClusterRow, n_total: int) -> dict[str, Any]:
    """Return one cluster as a row.

    Parameters
    ----------
    stored : StoredStream
    cluster : ClusterRow
    n_total : int
        Observations in all clusters, for the share.
    """
    return {
        "cluster": cluster.cluster,
        "size": cluster.n_observations,
        "share": cluster.n_observations / n_total if n_total else 0.0,
        "probability": cluster.probability,
        "stability": cluster.stability,
        "features": {each.name: _feature(each) for each in stored.describe(cluster)},
        "log_marginal": cluster.log_marginal,
        "version": cluster.version,
        "born_publication": cluster.born_publication,
        "retired_publication": cluster.retired_publication,
    }


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
