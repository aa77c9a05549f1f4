"""Rows that a fit sees, and the others, which have their clusters afterwards.

Where few rows have gaps in numbers, a family may want all of these: the others say how the numbers
hang together. Where many have, numbers are independent inside a cluster. Copies of rows are seen
once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weald.cli.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from weald.cli.files.table import Table
    from weald.mcmc.offline.fit import FitResult
    from weald.mcmc.settings import FitSettings
    from weald.stream.record.schema import Schema

__all__ = [
    "correlated_columns",
    "of_all_rows",
    "refused_by_place",
    "takes_any_number",
    "tell_copies",
    "tell_placed",
    "whole_rows",
    "without_far",
]

# Share of the rows that may have gaps in numbers which are clustered with all their covariance.
FEW = 0.05
# Families of numbers, or of which numbers are a part.
_OF_NUMBERS = frozenset({"auto", "gaussian", "diagonal", "mixed"})
# Of rows that are refused.
_SHOWN = 5
# How a family's error begins.
_ROW = re.compile(r"\Arow (\d+)")


def correlated_columns(schema: Schema) -> list[int]:
    """Columns of numbers that a family sees together, by the kinds of the fields."""
    from weald.stream.warm_up.family_choice import choose_family

    family, params = choose_family(schema)
    whole = {"family": family, "columns": list(range(len(schema.features)))}
    parts = params.get("parts", [whole])
    return [at for part in parts if part["family"] == "gaussian" for at in part["columns"]]


def whole_rows(values: NDArray[np.float64], columns: Sequence[int]) -> NDArray[np.bool_]:
    """Rows (n) with all of some columns, where nearly all have them; all rows elsewhere."""
    whole = ~np.isnan(values[:, columns]).any(axis=1)
    few = bool((~whole).mean() <= FEW)
    return np.asarray(whole if few else np.ones(len(values), dtype=np.bool_))


def takes_any_number(settings: FitSettings) -> bool:
    """Whether a fit of such settings takes a number however far it is from the others."""
    return settings.family not in _OF_NUMBERS or bool(settings.params)


def without_far(path: Path, table: Table, fitted: Table | None = None) -> Table:
    """The table without rows that a stream of its columns would set aside as unfit, which is said.

    They have a number so far from the others that no family of numbers takes both: from those of
    the table itself, or of the one that was ``fitted`` where this one is to be predicted.
    """
    from weald.cli.terminal.output import note
    from weald.mcmc.offline.preparation import FARTHEST, too_far

    if not isinstance(table.values, np.ndarray) or not table.values.size:
        return table
    far = too_far(table.values, None if fitted is None else fitted.values)
    kept: NDArray[np.bool_] = ~np.asarray(far.any(axis=1))
    if kept.all():
        return table
    rows = np.flatnonzero(~kept)
    is_are = "is" if rows.size == 1 else "are"
    done = "fitted" if fitted is None else "predicted"
    note(
        f"{path}: {rows.size} of {len(kept)} rows {is_are} refused, the rest is {done}: no family "
        f"of numbers takes one that is over {FARTHEST:,.0f} spreads from the others"
    )
    for row in rows[:_SHOWN]:
        at = int(far[row].argmax())
        note(f"  row {table.place_of(row)}: {table.names[at]} is {table.values[row, at]:g}")
    if rows.size > _SHOWN:
        note(f"  and {rows.size - _SHOWN} more")
    return table.of_rows(kept)


@contextmanager
def refused_by_place(path: Path, table: Table, rows: NDArray[np.int64]) -> Iterator[None]:
    """Name a row that a family refuses by its place in the file.

    ``rows`` are the places in the table of what the family is given.

    Raises
    ------
    UsageError
        In place of the family's error, which begins with the place among what it was given.
    """
    from weald.treecore.errors import ObservationError

    try:
        yield
    except ObservationError as error:
        told = _ROW.sub(lambda at: f"row {table.place_of(rows[int(at[1])])}", str(error))
        raise UsageError(f"{path}: {told}") from error


def tell_copies(original: NDArray[np.int64]) -> None:
    """Say how many rows (n) are copies of others, where some are."""
    from weald.cli.terminal.output import note
    from weald.mcmc.offline.copies import are_originals

    n_copies = int((~are_originals(original)).sum())
    if n_copies == 1:
        note("1 row is an exact copy of another: seen once, shown with it and counted in sizes")
    elif n_copies:
        note(
            f"{n_copies} rows are exact copies of others: each is seen once, copies are shown with "
            "it and counted in sizes"
        )


def tell_placed(n_partly: int, indent: str = "") -> None:
    """Say how many rows have gaps and are placed afterwards, where some do."""
    from weald.cli.terminal.output import note

    if n_partly:
        one = "1 row with a gap in a number: put where what it has fits best"
        many = f"{n_partly} rows with gaps in numbers: put where what they have fits best"
        note(indent + (one if n_partly == 1 else many))


def of_all_rows(
    result: FitResult,
    values: NDArray[np.float64],
    fitted: NDArray[np.bool_],
    original: NDArray[np.int64],
) -> FitResult:
    """Return the result of the rows that were fitted for all (n, q).

    A copy is where its ``original`` (n) is, as sure as that. Others are in the cluster that what
    they have fits best, of which they are as sure as that is probable; they hold together with it
    as its other members do.
    """
    if fitted.all():
        return result
    labels = np.empty(len(fitted), dtype=np.int64)
    probability, stability = np.empty(len(fitted)), np.empty(len(fitted))
    labels[fitted], stability[fitted] = result.labels, result.stability
    probability[fitted] = result.probability
    if (partly := ~fitted[original]).any():
        from weald.mcmc.offline.partly_known import placed

        found, sure = placed(
            result.family, result.prior, (values[fitted], result.labels), values[partly]
        )
        sums = np.bincount(result.labels, weights=result.stability)
        labels[partly], probability[partly] = found, sure
        stability[partly] = (sums / np.bincount(result.labels))[found]
    return replace(
        result,
        labels=labels[original],
        probability=probability[original],
        stability=stability[original],
    )
