"""Which columns of a file a fit sees, and how: logarithms, what is left out, components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.cli.errors import UsageError
from weald.cli.files.table import Table
from weald.cli.terminal.output import note

if TYPE_CHECKING:
    from weald.mcmc.offline.transformation import Transformation
    from weald.mcmc.settings import FeatureSettings, FitSettings
    from weald.stream.record.schema import Schema

__all__ = [
    "Columns",
    "as_kinds_are_known",
    "chosen_columns",
    "components_asked",
    "transformation_of",
    "with_logs",
]


class Columns(NamedTuple):
    """Names of columns as the file has them, and those whose logarithm is taken."""

    names: list[str]
    logs: list[str]


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
    from weald.mcmc.offline.transformation import NUMERIC

    # Families that see distances: what repeats in them counts twice, and tails are stretched.
    if family not in NUMERIC:
        return with_logs(path, table, logs), Columns(table.names, list(logs))
    from weald.mcmc.offline.preparation import Informative, informative_columns, skewed_columns
    from weald.stream.warm_up.stored_transformation import listed

    names = table.names
    found = informative_columns(table.values)
    if found.kept.size == 0:
        # One place: nothing is left out, so that there is something to be told of it.
        found = Informative(np.arange(len(names)), [], [], [])
    if found.constant:
        note(f"columns of one value, left out: {listed([names[c] for c in found.constant])}")
    if found.repeated:
        pairs = [f"{names[column]} (as {names[of]})" for column, of in found.repeated]
        note(f"columns that repeat others, left out: {listed(pairs)}")
    if found.combined:
        sums = [names[c] for c in found.combined]
        note(f"columns that are sums of others, left out: {listed(sums)}")
    skewed = [names[c] for c in skewed_columns(table.values) if c in found.kept]
    if skewed := [name for name in skewed if name not in logs]:
        # The whole list: it is there to be copied.
        note(f"columns with heavy tails: --log {','.join(skewed)} may show truer clusters")
    kept = [names[column] for column in found.kept]
    table = replace(table, values=np.ascontiguousarray(table.values[:, found.kept]), names=kept)
    columns = Columns(kept, [name for name in logs if name in kept])
    return with_logs(path, table, columns.logs), columns


def components_asked(text: str) -> Literal["auto", "all"] | int:
    """What ``--components`` says: auto, all, or a number; raises UsageError."""
    if text == "auto":
        return "auto"
    if text == "all":
        return "all"
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise UsageError(f"--components {text}: expected auto, all, or a number of them")
    return number


def transformation_of(table: Table, family: str, asked: FeatureSettings) -> Transformation | None:
    """How the family sees the table's rows, or None: as they are."""
    from weald.mcmc.offline.transformation import NUMERIC, Transformation, wants_components

    flags = (
        (f"--components {asked.components}", not isinstance(asked.components, str)),
        ("--standardise", asked.standardise is True),
        ("--unit-length", asked.unit_length),
    )
    given = [flag for flag, is_given in flags if is_given]
    if given and family not in NUMERIC:
        raise UsageError(f"{given[0]}: it is for families gaussian and diagonal, not {family}")
    if family not in NUMERIC:
        return None
    if not np.isfinite(table.values).all():
        if given and given != ["--standardise"]:
            raise UsageError(f"{given[0]}: values are missing, and every row has to be whole")
        if wants_components(asked, family, len(table.names)):
            return None
    found = Transformation.learned(table.values, asked, family, _logs_of(table, asked))
    if found is not None:
        end = " (--components all: as they are)" if found.axes is not None else ""
        note(f"seen by the family: {found.in_words()}{end}")
    return found


def as_kinds_are_known(
    schema: Schema | None, values: Any, settings: FitSettings, fitted: NDArray[np.bool_]
) -> Any:
    """Rows (n, d) of declared fields, numbers as finely as they are known; others alike.

    The family is asked for of the ``fitted`` (n) rows alone: it need not take gaps of others.

    Here are those that are seen by their logarithm, and those beside other kinds of fields; what
    makes a chain of numbers alone knows the rest.
    """
    if schema is None:
        return values
    from weald.mcmc.offline.fit import family_for
    from weald.mcmc.offline.resolution import moved_about, resolution_under
    from weald.stream.warm_up.log_moves import moved_before_logarithms

    values, _ = moved_before_logarithms(schema, values)
    if settings.family != "mixed":
        return values
    step = resolution_under(family_for(values[fitted], settings), values)
    return moved_about(values, step)


def _logs_of(table: Table, asked: FeatureSettings) -> list[int]:
    """Columns whose logarithm ``features.log`` asks for; raises UsageError where one has none."""
    places = []
    for name in asked.log:
        if name not in table.names:
            raise UsageError(f"features.log: there is no {name}, but {', '.join(table.names)}")
        places.append(table.names.index(name))
        if not (table.values[:, places[-1]] > 0.0).all():
            raise UsageError(f"features.log: {name} is not above 0 in every row")
    return places


def with_logs(path: Path, table: Table, logs: Sequence[str]) -> Table:
    """The table with the logarithms of these columns; raises UsageError where one has none."""
    if not logs:
        return table
    values, names = table.values.copy(), list(table.names)
    for name in logs:
        at = table.names.index(name)
        low = np.flatnonzero(values[:, at] <= 0.0)
        if low.size:
            raise UsageError(
                f"--log {name}: row {table.place_of(low[0])} of {path} has {values[low[0], at]:g}, "
                "and only numbers above 0 have logarithms"
            )
        values[:, at] = np.log(values[:, at])
        names[at] = f"log {name}"
    return replace(table, values=values, names=names)
