"""Numbers with a decimal comma, "3,5", as much of Europe writes them: read with a point.

A column has decimal commas if nearly all of its cells are numbers, some with a comma and none with
a point. Between commas such cells are quoted, and "1,234" may be a thousand there: a column needs
one that cannot be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from weald.cli.terminal.output import note
from weald.stream.record.inference.field_inference import MOST_ODD

__all__ = ["comma_columns", "has_comma", "tell_decimal_commas", "with_points"]

_COMMA = re.compile(r"\s*[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*")
_POINT = re.compile(r"\s*[+-]?\d*\.\d+(?:[eE][+-]?\d+)?\s*")
_WHOLE = re.compile(r"\s*[+-]?\d+\s*")
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(?:,\d{3})+\s*")


def comma_columns(records: Sequence[Mapping[Any, Any]], separator: str) -> list[Any]:
    """Columns with decimal commas, of records of a table whose cells are parted by ``separator``.

    Parameters
    ----------
    records : sequence of mapping
        Some hundred rows, from the column's name or place to the cell's text.
    separator : str
    """
    names = dict.fromkeys(name for record in records for name in record)
    return [name for name in names if _has(_cells(records, name), separator)]


def _cells(records: Sequence[Mapping[Any, Any]], name: Any) -> Iterable[str]:
    cells = (record.get(name) for record in records)
    return [cell for cell in cells if isinstance(cell, str) and cell.strip()]


def _has(cells: Iterable[str], separator: str) -> bool:
    n_cells = n_numbers = n_certain = 0
    for cell in cells:
        n_cells += 1
        if has_comma(cell):
            n_numbers += 1
            n_certain += separator != "," or not _THOUSANDS.fullmatch(cell)
        elif _POINT.fullmatch(cell):
            return False
        elif _WHOLE.fullmatch(cell):
            n_numbers += 1
    return n_certain > 0 and n_cells - n_numbers <= MOST_ODD * n_cells


def has_comma(cell: str) -> bool:
    """Whether a cell is a number with a decimal comma, if commas are that."""
    return _COMMA.fullmatch(cell) is not None


def with_points(record: Mapping[Any, Any], columns: Iterable[Any]) -> dict[Any, Any]:
    """The record with the decimal commas of these columns as points; what is no number stays."""
    found = dict(record)
    for name in columns:
        cell = found.get(name)
        if isinstance(cell, str) and has_comma(cell):
            found[name] = cell.replace(",", ".")
    return found


def tell_decimal_commas(path: Path, columns: Sequence[str]) -> None:
    """Say which columns are read so."""
    note(f"{path}: commas are decimal points in {', '.join(columns)}")
