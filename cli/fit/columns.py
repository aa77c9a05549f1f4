"""Which columns of a file a fit sees, and how: logarithms, what is left out, and components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from weald.cli.errors import UsageError
from weald.cli.files.table import Table, load_table
from weald.cli.terminal.output import note

if TYPE_CHECKING:
    from weald.mcmc.offline.preparation import Components

__all__ = ["Columns", "chosen_columns", "components_of", "read_columns"]

# Families that see distances: what repeats in them counts twice, and tails are stretched.
_OF_NUMBERS = ("gaussian", "diagonal", "auto")
_NAMES_SHOWN = 8


class Columns(NamedTuple):
    """Names of columns as the file has them, and those whose logarithm is taken."""

    names: list[str]
    logs: list[str]


def read_columns(path: Path, columns: Columns, *, missing: bool = False) -> Table:
    """The columns of a file, in their order; raises UsageError where one cannot be had."""
    return _with_logs(path, load_table(path, columns.names, missing=missing), columns.logs)


def chosen_columns(
    path: Path, table: Table, family: str, logs: Sequence[str]
) -> tuple[Table, Columns]:
    """What there is to be seen of a file's ``table``, and what it was called.

    Columns that say nothing are left out for families of numbers, and told.
    """
    unknown = [name for name in logs if name not in table.names]
    if unknown:
        raise UsageError(
            f"--log: {path} has no column of numbers named {', '.join(unknown)}; "
            f"there are {', '.join(table.names)}"
        )
    if family not in _OF_NUMBERS:
        return _with_logs(path, table, logs), Columns(table.names, list(logs))
    from weald.mcmc.offline.preparation import informative_columns, skewed_columns

    names = table.names
    found = informative_columns(table.values)
    if found.kept.size == 0:
        # One place: nothing is left out, so that there is something to be told of it.
        found = found._replace(kept=np.arange(len(names)), constant=[], repeated=[])
    if found.constant:
        note(f"columns of one value, left out: {_listed([names[c] for c in found.constant])}")
    if found.repeated:
        pairs = [f"{names[column]} (as {names[of]})" for column, of in found.repeated]
        note(f"columns that repeat others, left out: {_listed(pairs)}")
    skewed = [names[c] for c in skewed_columns(table.values) if c in found.kept]
    if skewed := [name for name in skewed if name not in logs]:
        # The whole list: it is there to be copied.
        note(f"columns with heavy tails: --log {','.join(skewed)} may show truer clusters")
    kept = [names[column] for column in found.kept]
    table = replace(table, values=np.ascontiguousarray(table.values[:, found.kept]), names=kept)
    columns = Columns(kept, [name for name in logs if name in kept])
    return _with_logs(path, table, columns.logs), columns


def components_of(table: Table, family: str, asked: str) -> Components | None:
    """Components along which the family sees the table's rows, or None: as they are.

    ``asked`` is "auto" (for many columns of a gaussian), "all" (never) or a number.
    """
    from weald.mcmc.offline.preparation import Components, most_columns

    number = None
    if asked not in ("auto", "all"):
        number = int(asked) if asked.isdecimal() else 0
        if number < 1:
            raise UsageError(f"--components {asked}: expected auto, all, or a number of them")
        if family not in _OF_NUMBERS:
            raise UsageError(
                f"--components {asked}: family {family} has no components; they are for "
                "gaussian and diagonal"
            )
    many = family in ("gaussian", "auto") and len(table.names) > most_columns()
    if many and asked == "auto" and not np.isfinite(table.values).all():
        return None
    if asked == "all" or (number is None and not many):
        return None
    found = Components.of(table.values, number)
    note(
        f"{len(table.names)} columns, seen along {found.axes.shape[1]} principal components with "
        f"{found.share:.0%} of their variance (--components all: as they are)"
    )
    return found


def _with_logs(path: Path, table: Table, logs: Sequence[str]) -> Table:
    if not logs:
        return table
    values, names = table.values.copy(), list(table.names)
    for name in logs:
        at = table.names.index(name)
        low = np.flatnonzero(values[:, at] <= 0.0)
        if low.size:
            raise UsageError(
                f"--log {name}: row {low[0] + 1} of {path} has {values[low[0], at]:g}, and only "
                "numbers above 0 have logarithms"
            )
        values[:, at] = np.log(values[:, at])
        names[at] = f"log {name}"
    return replace(table, values=values, names=names)


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
