"""Clusters in words and numbers: the rows that commands print, and the columns of their tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .output import Column, Form, number

if TYPE_CHECKING:
    from ..storage.base import ClusterRow, LineageRow
    from ..treecore.family import FeatureSummary
    from .state import State

__all__ = [
    "LINEAGE_COLUMNS",
    "cluster_columns",
    "cluster_record",
    "flattened",
    "lineage_record",
    "share_text",
    "spread_text",
]

LINEAGE_COLUMNS = (
    Column("time", "when"),
    Column("kind", "event"),
    Column("cluster", "cluster", "right"),
    Column("parents", "from"),
    Column("size", "size", "right"),
    Column("n_moved", "moved", "right"),
    Column("publication", "publication", "right"),
)


def cluster_record(state: State, cluster: ClusterRow, n_total: int) -> dict[str, Any]:
    """Return one cluster as a row.

    Parameters
    ----------
    state : State
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
        "features": {each.name: _feature(each) for each in state.describe(cluster)},
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


def share_text(share: float | None) -> str:
    """Return a share between 0 and 1 with two decimals; nothing for an unknown one."""
    return "" if share is None else f"{share:.2f}"


def spread_text(feature: dict[str, Any] | None) -> str:
    """Return ``centre ± spread`` with the digits that the spread supports."""
    if feature is None:
        return ""
    centre, spread = feature["centre"], feature["spread"]
    if not isinstance(centre, float) or spread is None:
        return number(centre)
    decimals = _decimals(spread)
    return f"{centre:.{decimals}f} ± {spread:.{decimals}f}"


def _decimals(spread: float) -> int:
    """Two significant digits of the spread, and never more than four decimals."""
    for decimals, bound in enumerate((10.0, 1.0, 0.1, 0.01)):
        if spread >= bound:
            return decimals
    return 4


def cluster_columns(features: Sequence[str]) -> list[Column]:
    """Return the columns of a table of clusters; the rows are ``cluster_record`` values."""
    return [
        Column("cluster", "cluster", "right"),
        Column("size", "size", "right"),
        Column("share", "share", "right", lambda share: f"{share:.1%}"),
        Column("stability", "stability", "right", share_text),
        *(Column(f"features.{name}", name, "right", spread_text) for name in features),
    ]


def flattened(rows: Sequence[dict[str, Any]], form: Form) -> list[dict[str, Any]]:
    """Bring ``features`` to the top of each row for the forms that have no depth."""
    if form is Form.table:
        return [
            {**row, **{f"features.{name}": it for name, it in row["features"].items()}}
            for row in rows
        ]
    if form is not Form.csv:
        return list(rows)
    flat = []
    for row in rows:
        wide = {key: value for key, value in row.items() if key != "features"}
        for name, feature in row["features"].items():
            wide[f"{name}_centre"] = feature["centre"]
            wide[f"{name}_spread"] = feature["spread"]
        flat.append(wide)
    return flat


def lineage_record(event: LineageRow) -> dict[str, Any]:
    """Return one lineage event as a row."""
    from .output import iso_time

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
