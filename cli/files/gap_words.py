"""What people write in a cell where there is nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["is_gap", "without_gaps"]

_GAPS = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})


def is_gap(cell: object) -> bool:
    """Whether a cell says that there is nothing."""
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in _GAPS)


def without_gaps(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with None where there is nothing."""
    return {name: None if is_gap(value) else value for name, value in record.items()}
