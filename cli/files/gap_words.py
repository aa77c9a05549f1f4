"""What people and programs write in a cell where there is nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["NO_NUMBER", "is_gap", "without_gaps"]

# Nothing where there should be a number; elsewhere it may be one of several answers.
NO_NUMBER = ("None", "none", "NONE")

_GAPS = frozenset(
    {"", "na", "n/a", "nan", "<na>", "null", "?", "-", "--", ".", "#n/a", "#div/0!", "#value!"}
)
# What these begin with, and blanks: of most cells this is all that is looked at.
_BEGIN = frozenset({"", "n", "N", "<", "?", "-", ".", "#", " ", "\t"})


def is_gap(cell: object, *, number: bool = False) -> bool:
    """Whether a cell says that there is nothing, or no ``number`` where there should be one."""
    if not isinstance(cell, str):
        return cell is None
    word = cell.strip()
    return word.lower() in _GAPS or (number and word in NO_NUMBER)


def without_gaps(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with None where there is nothing."""
    return {
        name: None if isinstance(value, str) and value[:1] in _BEGIN and is_gap(value) else value
        for name, value in record.items()
    }
