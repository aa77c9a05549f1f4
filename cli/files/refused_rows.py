"""Rows of a file that cannot be read: refused and told, as a stream's dead letters are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from weald.cli.terminal.output import note

__all__ = ["UNREADABLE", "RefusedRow", "tell_refused"]

# Raised by Python's reader of JSON: also an integer of thousands of digits, and nesting that has no
# end, are what a line may hold.
UNREADABLE = (ValueError, RecursionError)

_SHOWN = 5
_COLUMNAR = frozenset({".parquet", ".arrow", ".arrows", ".feather", ".avro"})


class RefusedRow(NamedTuple):
    """One row that was refused.

    Attributes
    ----------
    line:
        Its line in the file, from 1; of columnar files its row, from 1 as well.
    detail:
        Which field, and why.
    """

    line: int
    detail: str


def tell_refused(
    path: Path, refused: Sequence[RefusedRow], n_rows: int, told: str | None = None
) -> None:
    """Say how many of ``n_rows`` were refused, or what else is ``told``, and the first of them."""
    if not refused:
        return
    was = "was" if len(refused) == 1 else "were"
    note(f"{path}: {len(refused)} of {n_rows} rows {told or was + ' refused, the rest is fitted'}")
    # A columnar file has no lines; rows count from 0 everywhere.
    columnar = path.suffix.lower() in _COLUMNAR
    for each in refused[:_SHOWN]:
        note(f"  {f'row {each.line - 1}' if columnar else f'line {each.line}'}: {each.detail}")
    if len(refused) > _SHOWN:
        note(f"  and {len(refused) - _SHOWN} more")
