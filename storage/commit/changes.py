"""What a commit changes about observations that are there already."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CERTAINTY_CHUNK",
    "Bundled",
    "Certainty",
    "Departure",
    "Handover",
    "Reassignment",
    "Unbundled",
]

# Observations whose certainties lie in one row; part of the tables, so it never changes.
CERTAINTY_CHUNK = 4096


def _no_ids() -> NDArray[np.int64]:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Reassignment:
    """The observations that a publication gives to another cluster: ``seq[i]`` to ``cluster[i]``.

    The same for compacted ones: ``bundle[i]`` to ``bundle_cluster[i]``. Applied in the order of the
    commit's sequence, after the commit's own observations.
    """

    publication: int
    seq: NDArray[np.int64]
    cluster: NDArray[np.int64]
    bundle: NDArray[np.int64] = field(default_factory=_no_ids)
    bundle_cluster: NDArray[np.int64] = field(default_factory=_no_ids)


@dataclass(frozen=True, eq=False)
class Handover:
    """What had left by ``seq`` is shown elsewhere: that of ``cluster[i]`` in ``heir[i]``.

    Of a model that holds a sample: a publication divides what it holds, and the others, which are
    shown in the same clusters, follow the largest part.
    """

    publication: int
    seq: int
    cluster: NDArray[np.int64]
    heir: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Bundled:
    """Observations that have become one atom of the model, and share a cluster from now on.

    Attributes
    ----------
    bundle, cluster
        Its number, new or that of the largest bundle that went into it, and its cluster.
    publication
        The newest publication by then: what it changes later holds for these observations too.
    seq : int64[n]
        Observations that were in none before.
    absorbed
        Other bundles that end with it.
    n_observations, doubt
        How many there are in all, and the estimated probability that they are not in one cluster.
    """

    bundle: int
    cluster: int
    publication: int
    seq: NDArray[np.int64]
    absorbed: tuple[int, ...]
    n_observations: int
    doubt: float


@dataclass(frozen=True)
class Unbundled:
    """A bundle whose observations are atoms of their own again, in the cluster that it had."""

    bundle: int


@dataclass(frozen=True, eq=False)
class Departure:
    """Observations that left the model after observation number ``after_seq``.

    They stay in the tables, with the cluster that they had last.
    """

    after_seq: int
    seq: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Certainty:
    """How sure the chain's draws are of a publication: what changed, and every cluster.

    It says of every cluster, too, which group it is in.

    Attributes
    ----------
    seq : int64[n]
        The observations of which something else is said than in the last commit with any.
    percent : uint8[2, n]
        Their probability and their stability.
    cluster : int64[k]
        The clusters that are shown.
    probability, stability : float64[k]
        Means over the observations of each.
    means
        Of both over all observations.
    group, group_born : int64[k], optional
        The group of each cluster, 0 of one that is in none yet, and the first publication that told
        of it, 0 where that is not known; without them there are none.
    """

    seq: NDArray[np.int64]
    percent: NDArray[np.uint8]
    cluster: NDArray[np.int64]
    probability: NDArray[np.float64]
    stability: NDArray[np.float64]
    means: tuple[float, float] = (math.nan, math.nan)
    group: NDArray[np.int64] | None = None
    group_born: NDArray[np.int64] | None = None
