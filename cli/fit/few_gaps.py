"""Rows that have all their numbers, where nearly all do; the others are placed afterwards.

Where few rows have gaps in numbers, a family may want all of these: the others say how the numbers
hang together. Where many have, numbers are independent inside a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from weald.mcmc.offline.fit import FitResult
    from weald.stream.record.schema import Schema

__all__ = ["correlated_columns", "of_all_rows", "whole_rows"]

# Share of the rows that may have gaps in numbers which are clustered with all their covariance.
FEW = 0.05


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


def of_all_rows(
    result: FitResult, values: NDArray[np.float64], whole: NDArray[np.bool_]
) -> FitResult:
    """Return the result of the rows that are whole for all (n, q).

    The others are in the cluster that what they have fits best, of which they are as sure as that
    is probable; they hold together with it as its other members do.
    """
    if whole.all():
        return result
    from weald.mcmc.offline.partly_known import placed

    found, sure = placed(
        result.family, result.prior, (values[whole], result.labels), values[~whole]
    )
    labels = np.empty(len(whole), dtype=np.int64)
    probability, stability = np.empty(len(whole)), np.empty(len(whole))
    sums = np.bincount(result.labels, weights=result.stability)
    labels[whole], labels[~whole] = result.labels, found
    probability[whole], probability[~whole] = result.probability, sure
    stability[whole] = result.stability
    stability[~whole] = (sums / np.bincount(result.labels))[found]
    return replace(result, labels=labels, probability=probability, stability=stability)
