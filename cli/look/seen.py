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

# Share of a column's spread from which the step of its grid is coarse.
COARSE = 0.1


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
    from weald.stream.warm_up.family_choice import choose_family

    original = originals_seen(rows.values, choose_family(rows.schema)[0], {})
    once = are_originals(original)
    rows = rows._replace(values=_whole_numbers_moved(rows.schema, rows.values))
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
    return Seen(_as_finely_as_known(values, settings), original, chosen, settings)


def _as_finely_as_known(seen: NDArray[np.float64], settings: FitSettings) -> NDArray[np.float64]:
    """Numbers on a coarse grid beside other kinds moved within it, as a fit moves numbers alone.

    Small whole numbers would be clusters of their own else, each as narrow as can be.
    """
    from weald.mcmc.offline.resolution import within_resolution

    finely = seen.copy()
    for part in settings.params.get("parts", ()):
        if part["family"] in ("gaussian", "diagonal"):
            own = seen[:, part["columns"]]
            moved = within_resolution(own)
            coarse = 2.0 * np.nanmax(np.abs(moved - own), axis=0) > COARSE * np.nanstd(own, axis=0)
            finely[:, part["columns"]] = np.where(coarse, moved, own)
    return finely


def _whole_numbers_moved(schema: Schema, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Whole numbers that are seen by their logarithm moved within what rounds to them.

    Their logarithms lie on no even grid: each of the small ones would be a cluster, too. They move
    once the logarithm is taken: to be 0 in all rows of a kind must look like one cluster.
    """
    from weald.mcmc.offline.resolution import moved_about, resolution_of
    from weald.stream.record.fields.originals import unscaled

    scaling = schema.scaling
    if scaling is None:
        return values
    plain = unscaled(schema, values)
    chosen = [at for at in np.flatnonzero(scaling.log) if _is_whole_and_repeats(plain[:, at])]
    half = np.zeros(plain.shape[1])
    half[chosen] = 0.5 * resolution_of(plain[:, chosen])
    # As far down as up: half a step below 0 may have no logarithm.
    step = np.zeros_like(values)
    step[:, chosen] = 2.0 * (scaling(plain + half) - values)[:, chosen]
    return moved_about(values, step)


def _is_whole_and_repeats(column: NDArray[np.float64]) -> bool:
    known = column[np.isfinite(column)]
    return bool((known == np.rint(known)).all()) and 2 * np.unique(known).size <= known.size


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
