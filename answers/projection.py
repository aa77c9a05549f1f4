"""Two dimensions in which clusters can be looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from weald.stream.record.schema import Schema

__all__ = ["Plane", "plane_of"]

# Data that have a place on the map are shown there.
MAP = ("longitude", "latitude")
# Clusters that are so much narrower than the whole are apart in any picture.
LEAST_WITHIN = 0.1
# Rounds in which a layout comes to rest, and the share of it that discs of clusters cover.
ROUNDS, COVERED = 200, 0.3
# Clusters of which each is held against each; more have a place in the plane of counts.
MOST_LAID_OUT = 500
# From one point of a spiral to the next, so that they lie evenly.
GOLDEN = np.pi * (3.0 - np.sqrt(5.0))


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
    values: NDArray[np.float64],
    clusters: NDArray[np.int64],
    names: Sequence[str],
    schema: Schema | None = None,
) -> Plane:
    """Return the data's own coordinates where there are two, or the principal plane.

    Texts that were hashed to counts have no such plane: their clusters are laid out by likeness.

    Parameters
    ----------
    values : float64[n, d]
        NaN where a value is missing.
    clusters : int64[n]
    names : sequence of str, length d
    schema : Schema, optional
        Of d features, where they were declared: a name does not tell a text from a vector.
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
    texts_alone = schema is not None and set(schema.kinds) == {"text"}
    if texts_alone and len(np.unique(clusters)) <= MOST_LAID_OUT:
        return _by_likeness(values, clusters)
    units = np.arange(len(names)) if schema is None else _units(schema)
    return _principal(values, clusters, units)


def _units(schema: Schema) -> NDArray[np.int64]:
    """Number of the unit of each feature: the counts of a text, and embeddings, share theirs."""
    found: list[int] = []
    for field in schema.fields:
        first = found[-1] + 1 if found else 0
        shared = field.kind == "text" or field.is_long
        found += [first if shared else first + at for at in range(field.width)]
    return np.array(found, dtype=np.int64)


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
    first, second = (f"direction {i + 1} ({share[i]:.0%} of the differences)" for i in range(2))
    how = (
        "Rows that are alike are near each other. Each direction mixes all columns (principal "
        "axes, each feature scaled by its spread within clusters)."
    )
    return Plane(scaled @ axes[:2].T, (first, second), how)


def _by_likeness(counts: NDArray[np.float64], clusters: NDArray[np.int64]) -> Plane:
    """Lay clusters of texts out as discs, the nearer the more alike; no disc lies on another.

    In a plane of counts all lines of a template have one place, and many templates, too.
    """
    _, place, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    roots = np.sqrt(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))
    means = np.zeros((len(sizes), counts.shape[1]))
    np.add.at(means, place, roots)
    means /= sizes[:, None]
    # Discs of an area that is as their clusters are large.
    radius = np.sqrt(COVERED * sizes / sizes.sum())
    middle = _parted(_scaled(_apart(means)), radius)
    from_mean = ((roots - means[place]) ** 2).sum(axis=1)
    rank = np.empty(len(place), dtype=np.int64)
    order = np.lexsort((from_mean, place))
    rank[order] = np.arange(len(place)) - (np.cumsum(sizes) - sizes)[place[order]]
    points = middle[place] + radius[place, None] * _spiral(rank, sizes[place])
    how = (
        "Clusters lie by how much alike their texts are; of each the most usual rows are inmost, "
        "and how far these are apart says nothing."
    )
    return Plane(points, ("by likeness", "by likeness"), how)


def _spiral(rank: NDArray[np.int64], of: NDArray[np.int64]) -> NDArray[np.float64]:
    """Points (n, 2) that fill a disc of radius 1 evenly, by their rank among so many."""
    far, angle = np.sqrt((rank + 0.5) / of), GOLDEN * rank
    return np.column_stack([far * np.cos(angle), far * np.sin(angle)])


def _apart(points: NDArray[np.float64]) -> NDArray[np.float64]:
    squares = (points**2).sum(axis=1)
    found: NDArray[np.float64] = np.sqrt(
        np.maximum(squares[:, None] + squares - 2.0 * points @ points.T, 0.0)
    )
    return found


def _scaled(apart: NDArray[np.float64]) -> NDArray[np.float64]:
    """Places (k, 2) as far from each other as is asked for (k, k), as near as a plane has them.

    By majorisation of the stress (J. de Leeuw, Applications of convex analysis to multidimensional
    scaling, 1977), from a spiral in the order of the clusters' ids, which stays from one time to
    the next; scaled to a square of area 1.
    """
    k = len(apart)
    found = _spiral(np.arange(k), np.full(k, k))
    for _ in range(ROUNDS):
        there = _apart(found)
        ratio = np.divide(apart, there, out=np.zeros_like(apart), where=there > 0.0)
        found = (ratio.sum(axis=1)[:, None] * found - ratio @ found) / k
    centred = found - found.mean(axis=0)
    wide = float(np.abs(centred).max())
    scaled: NDArray[np.float64] = centred / (2.0 * wide) if wide > 0.0 else centred
    return scaled


def _parted(middle: NDArray[np.float64], radius: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same with discs moved until none lies on another; the smaller gives way to the larger."""
    needed = radius[:, None] + radius
    np.fill_diagonal(needed, 0.0)
    gives = radius**2 / (radius[:, None] ** 2 + radius**2)
    for _ in range(ROUNDS):
        there = _apart(middle)
        short = np.maximum(needed - there, 0.0)
        if not short.any():
            break
        share = gives * np.divide(short, there, out=np.zeros_like(short), where=there > 0.0)
        middle = middle + share.sum(axis=1)[:, None] * middle - share @ middle
    return middle
