"""Clusters in words and numbers: the rows that commands print, and the columns of their tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weald.answers.numbers import share_text, spread_text

from .output import Column, Form

__all__ = [
    "LINEAGE_COLUMNS",
    "cluster_columns",
    "flattened",
]

LINEAGE_COLUMNS = (
    Column("time", "when"),
    Column("kind", "event"),
    Column("cluster", "cluster", "right"),
    Column("parents", "from", gives_way=1),
    Column("size", "size", "right"),
    Column("n_moved", "moved", "right", gives_way=2),
    Column("publication", "publication", "right", gives_way=3),
)


def cluster_columns(features: Sequence[str]) -> list[Column]:
    """Return the columns of a table of clusters; the rows are ``cluster_record`` values."""
    return [
        Column("cluster", "cluster", "right"),
        Column("group", "group", "right", gives_way=2),
        Column("size", "size", "right"),
        Column("share", "share", "right", lambda share: f"{share:.1%}", gives_way=4),
        Column("stability", "stability", "right", share_text, gives_way=3),
        *(Column(f"features.{name}", name, "right", spread_text, gives_way=1) for name in features),
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
