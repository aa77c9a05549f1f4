"""What there is to explore of a partition: rows in a plane, groups of clusters, columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weald.stream.record.originals import Original

if TYPE_CHECKING:
    from .explanation import Sentence
    from .projection import Plane

__all__ = ["Exploration", "Part"]


@dataclass(frozen=True, kw_only=True)
class Part:
    """A cluster, or a group of clusters.

    Attributes
    ----------
    id : int
    size : int
    share : float
        Of all rows.
    sure : float, optional
        Mean probability that a member belongs here.
    sentences : sequence of Sentence
        What sets it apart, the most telling first.
    pattern : str
        What its texts have in common, where rows have texts.
    group : int, optional
        Of a cluster, the group that it is in.
    """

    id: int
    size: int
    share: float
    sure: float | None
    sentences: Sequence[Sentence] = ()
    pattern: str = ""
    group: int | None = None


@dataclass(frozen=True, kw_only=True)
class Exploration:
    """Rows, what they are called, where they lie, what they hold, and the parts that they make.

    Attributes
    ----------
    plane : Plane
    keys : sequence of str, length n
    clusters : int64[n]
    density : float64[n]
        Log predictive density under the clusters: high is typical, low is like nothing else.
    columns : sequence of Original
        Values as they came in.
    texts : sequence of str, length n or none
    parts : sequence of Part
        The clusters, largest first.
    groups : sequence of Part
        The groups, largest first; none where clusters are not grouped.
    n_all : int
        Rows that these n stand for.
    """

    plane: Plane
    keys: Sequence[str]
    clusters: NDArray[np.int64]
    density: NDArray[np.float64]
    columns: Sequence[Original]
    texts: Sequence[str]
    parts: Sequence[Part]
    groups: Sequence[Part]
    n_all: int

    def sampled(self, most: int, rng: np.random.Generator) -> Exploration:
        """Return the same with at most so many rows, drawn at random; the parts stay whole."""
        n = len(self.clusters)
        if n <= most:
            return self
        kept = np.sort(rng.choice(n, most, replace=False))
        rows = kept.tolist()
        return replace(
            self,
            plane=replace(self.plane, points=self.plane.points[kept]),
            keys=[self.keys[at] for at in rows],
            clusters=self.clusters[kept],
            density=self.density[kept],
            columns=[replace(each, values=each.values[kept]) for each in self.columns],
            texts=[self.texts[at] for at in rows] if self.texts else (),
        )
