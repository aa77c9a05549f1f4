"""What a family sees of rows: columns as they are, long vectors along their components."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weald.cli.terminal.output import note

if TYPE_CHECKING:
    from weald.mcmc.offline.fit import FitSettings
    from weald.stream.record.schema import Schema

    from .rows import FileRows

__all__ = ["seen_of"]

# Share of a column's spread from which the step of its grid is coarse.
COARSE = 0.1


def seen_of(rows: FileRows, seed: int) -> tuple[NDArray[np.float64], FitSettings]:
    """Return what is fitted (n, q), and a family that takes it, by kinds of columns and gaps."""
    rows = rows._replace(values=_whole_numbers_moved(rows.schema, rows.values))
    schema, seen = _along_components(rows)
    settings = _settings(schema, seen, seed)
    if settings.family == "auto" and schema is rows.schema:
        from weald.cli.files.table import Table
        from weald.cli.fit.columns import transformation_of
        from weald.mcmc.settings import FeatureSettings

        table = Table(seen, list(schema.features), [])
        learned = transformation_of(table, settings.family, FeatureSettings())
        seen = seen if learned is None else learned.seen(seen)
    return _as_finely_as_known(seen, settings), settings


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
    """Whole numbers that are seen by their logarithm moved by up to a half before it is taken.

    Their logarithms lie on no even grid: each of the small ones would be a cluster, too.
    """
    from weald.mcmc.offline.resolution import within_resolution
    from weald.stream.record.fields.originals import unscaled

    scaling = schema.scaling
    if scaling is None:
        return values
    finely = unscaled(schema, values)
    chosen = [at for at in np.flatnonzero(scaling.log) if _is_whole_and_repeats(finely[:, at])]
    # All at once: each column is moved in its own way.
    finely[:, chosen] = within_resolution(finely[:, chosen])
    moved = values.copy()
    moved[:, chosen] = scaling(finely)[:, chosen]
    return moved


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
    return FitSettings(family=family, params=params, seconds=1.0, iterations=None, seed=seed)
