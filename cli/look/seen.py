"""What a family sees of rows: columns as they are, long vectors along their components."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.cli.terminal.output import note

if TYPE_CHECKING:
    from weald.mcmc.offline.fit import FitSettings
    from weald.stream.record.schema import Schema

    from .rows import FileRows

__all__ = ["Seen", "seen_of"]


class Seen(NamedTuple):
    """What a family sees of rows, and which it is.

    Attributes
    ----------
    values:
        Float64 (n, q).
    original:
        The row that each row (n) is a copy of, itself where it is none.
    chosen:
        Rows (n) that are fitted. Others are copies, or have gaps in numbers of which the family
        wants all.
    settings:
        Of a fit of these rows.
    """

    values: NDArray[np.float64]
    original: NDArray[np.int64]
    chosen: NDArray[np.bool_]
    settings: FitSettings

    @property
    def fitted(self) -> NDArray[np.float64]:
        """The rows that are fitted."""
        return self.values if self.chosen.all() else self.values[self.chosen]

    def with_gaps(self) -> Seen:
        """The same for a family that takes gaps as they are."""
        from weald.mcmc.offline.copies import are_originals

        return self._replace(chosen=are_originals(self.original))


def seen_of(rows: FileRows, seed: int) -> Seen:
    """Return what a family sees of rows, and a family by kinds of columns and gaps.

    Of few rows with gaps in numbers the family need not take any, and copies of rows it sees once.
    """
    from weald.cli.fit.fitted_rows import correlated_columns, whole_rows
    from weald.mcmc.offline.copies import are_originals, originals_seen
    from weald.mcmc.offline.fit import family_for
    from weald.mcmc.offline.resolution import moved_about, resolution_under
    from weald.stream.warm_up.family_choice import choose_family
    from weald.stream.warm_up.log_moves import moved_before_logarithms

    original = originals_seen(rows.values, choose_family(rows.schema)[0], {})
    once = are_originals(original)
    rows = rows._replace(values=moved_before_logarithms(rows.schema, rows.values)[0])
    schema, values = _along_components(rows)
    chosen = once & whole_rows(values, correlated_columns(schema))
    settings = _settings(schema, values[chosen], seed)
    if settings.family == "auto" and schema is rows.schema:
        from weald.cli.files.table import Table
        from weald.cli.fit.columns import transformation_of
        from weald.mcmc.settings import FeatureSettings

        table = Table(values[chosen], list(schema.features), [])
        learned = transformation_of(table, settings.family, FeatureSettings())
        has_gaps = not chosen[original].all()
        if learned is not None and learned.axes is not None and has_gaps:
            # A row without one number has no place along any of the axes.
            chosen = once
            settings = _settings(schema, values[chosen], seed)
        elif learned is not None:
            values = learned.seen(values)
    if settings.family == "mixed":
        family = family_for(values[chosen], settings)
        values = moved_about(values, resolution_under(family, values))
    return Seen(values, original, chosen, settings)


def _along_components(rows: FileRows) -> tuple[Schema, NDArray[np.float64]]:
    """Every long vector by its principal components; a row without the vector has none of them."""
    import msgspec

    from weald.mcmc.offline.transformation import Transformation
    from weald.mcmc.settings import FeatureSettings
    from weald.stream.record.schema import Schema

    if not any(field.is_long for field in rows.schema.fields):
        return rows.schema, rows.values
    fields, parts, at = [], [], 0
    for field in rows.schema.fields:
        own, settings = rows.values[:, at : at + field.width], field.settings
        at += field.width
        learned = None
        if field.is_long:
            whole = own[~np.isnan(own).any(axis=1)]
            learned = Transformation.learned(whole, FeatureSettings(), "gaussian")
        if learned is not None:
            own = learned.seen(own)
            note(f"  {field.name}: seen as {learned.in_words()}")
            settings = msgspec.structs.replace(settings, size=own.shape[1])
        fields.append(settings)
        parts.append(own)
    declared = msgspec.structs.replace(rows.schema.settings, fields=tuple(fields))
    return Schema.of(declared, text=True), np.concatenate(parts, axis=1)


def _settings(schema: Schema, seen: NDArray[np.float64], seed: int) -> FitSettings:
    """A family by the kinds of the columns, one that takes gaps where there are any."""
    from weald.mcmc.offline.fit import FitSettings
    from weald.stream.warm_up.family_choice import family_of_rows

    family, params = family_of_rows(schema, seen)
    return FitSettings(family=family, params=params, seed=seed)
