"""Two dimensions in which clusters can be looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .report_data import BUCKET

__all__ = ["Plane", "plane_of"]

# Data that have a place on the map are shown there.
MAP = ("longitude", "latitude")
# Clusters that are so much narrower than the whole are apart in any picture.
LEAST_WITHIN = 0.1


@dataclass(frozen=True)
class Plane:
    """Points of a plane, and what its axes are.

    Parameters
    ----------
    points : float64[n, 2]
    axes : (str, str)
    how : str
        One sentence for the reader.
    """

    points: NDArray[np.float64]
    axes: tuple[str, str]
    how: str


def plane_of(
    values: NDArray[np.float64], clusters: NDArray[np.int64], names: Sequence[str]
) -> Plane:
    """Return the data's own coordinates where there are two, or the principal plane.

    Parameters
    ----------
    values : float64[n, d]
        NaN where a value is missing.
    clusters : int64[n]
    names : sequence of str, length d
    """
    lower = [name.lower() for name in names]
    if all(axis in lower for axis in MAP):
        at = [lower.index(axis) for axis in MAP]
        return Plane(values[:, at], (names[at[0]], names[at[1]]), "In the data's own coordinates.")
    if len(names) == 1:
        order = np.arange(len(values), dtype=np.float64)
        points = np.column_stack([order, values[:, 0]])
        return Plane(points, ("order", names[0]), "The one feature, in order of arrival.")
    if len(names) == 2:
        return Plane(values, (names[0], names[1]), "In the data's own coordinates.")
    return _principal(values, clusters, _units(names))


def _units(names: Sequence[str]) -> NDArray[np.int64]:
    """Number of the unit of each feature: the counts that one text was hashed to share theirs."""
    fields = [name.rpartition(".")[0] if BUCKET.search(name) else name for name in names]
    return np.unique(fields, return_inverse=True)[1]


def _principal(
    values: NDArray[np.float64], clusters: NDArray[np.int64], units: NDArray[np.int64]
) -> Plane:
    """Project on the principal plane of the data, each unit scaled by its spread in a cluster.

    So the picture shows what separates clusters, not which unit is the smallest.
    """
    filled = np.where(np.isnan(values), np.nanmean(values, axis=0), values)
    _, place = np.unique(clusters, return_inverse=True)
    sizes = np.bincount(place)
    means = np.zeros((len(sizes), values.shape[1]))
    np.add.at(means, place, filled)
    means /= sizes[:, None]
    n_features = np.bincount(units)
    within, spread = (
        np.sqrt(np.bincount(units, weights=(apart**2).mean(axis=0)) / n_features)[units]
        for apart in (filled - means[place], filled - filled.mean(axis=0))
    )
    # One that hardly varies within clusters would outweigh all others, and hide what they separate.
    scale = np.maximum(within, LEAST_WITHIN * spread)
    scaled = (filled - filled.mean(axis=0)) / np.where(scale > 0.0, scale, 1.0)
    _, singular, axes = np.linalg.svd(scaled, full_matrices=False)
    share = singular**2 / max(float((singular**2).sum()), 1e-300)
    first, second = (f"principal axis {i + 1} ({share[i]:.0%})" for i in range(2))
    how = "Principal axes of the data, each feature scaled by its spread within clusters."
    return Plane(scaled @ axes[:2].T, (first, second), how)
