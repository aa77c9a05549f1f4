"""How clusters relate: the tree above them, and who was with whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.estimate.predictive import Predictive
from weald.treecore.family.interface.base import workspace
from weald.treecore.forest.forest import add_leaf, add_root, empty_forest
from weald.treecore.guide.guide import Guide, freeze
from weald.treecore.partition.partition import Model, make_atoms
from weald.treecore.prior import PartitionPrior

from .report_data import Sampled

__all__ = ["CoClustering", "co_clustering", "linkage_of"]

# Beyond these a picture has more cells than a screen has points.
CLUSTERS_IN_TREE = 30
ROWS_IN_MATRIX = 320


@dataclass(frozen=True)
class CoClustering:
    """Share of draws in which two observations are together.

    Parameters
    ----------
    share : float64[m, m]
    clusters : int64[m]
        The reported cluster of each row; equal ones lie side by side.
    """

    share: NDArray[np.float64]
    clusters: NDArray[np.int64]


def linkage_of(predictive: Predictive, prior: PartitionPrior) -> NDArray[np.float64]:
    """Join the largest clusters as the guide joins the forest's trees, by least dissimilarity.

    Returns
    -------
    float64[k - 1, 4]
        As ``scipy.cluster.hierarchy`` has it. Heights are ``log10(1 + d)`` for a dissimilarity
        of d nats, and never lower than those below.
    """
    rows = np.ascontiguousarray(predictive.rows[: min(CLUSTERS_IN_TREE, len(predictive.clusters))])
    sizes = np.rint(rows[:, 0]).astype(np.int64)
    family, k = predictive.family, len(rows)
    atoms = make_atoms(family, rows, sizes, workspace(family))
    model = Model(family, prior.seating(int(sizes.sum()), k), workspace(family))
    forest = empty_forest(family, k)
    for i in range(k):
        add_root(forest, add_leaf(model, forest, i, atoms.rows, i, int(sizes[i])))
    return _linkage(freeze(model, forest), k)


def _linkage(guide: Guide, k: int) -> NDArray[np.float64]:
    number = np.zeros(2 * k - 1, dtype=np.int64)
    height = np.zeros(2 * k - 1)
    linkage = np.zeros((k - 1, 4))
    made = 0
    # Children come after their parent in preorder.
    for v in range(2 * k - 2, -1, -1):
        if guide.n_leaves[v] == 1:
            number[v] = guide.atom[guide.first[v]]
            continue
        left, right = v + 1, v + 1 + int(guide.n_nodes[v + 1])
        apart = np.log10(1.0 + max(float(guide.log_dissimilarity[v]), 0.0))
        height[v] = max(apart, height[left], height[right])
        linkage[made] = number[left], number[right], height[v], guide.n_leaves[v]
        number[v] = k + made
        made += 1
    return linkage


def co_clustering(subject: Sampled, rng: np.random.Generator) -> CoClustering | None:
    """Compare a sample of the observations with each other; None where nothing was drawn."""
    t, m = subject.draws.shape
    if t < 2 or m < 2:
        return None
    rows = rng.choice(m, size=min(m, ROWS_IN_MATRIX), replace=False)
    rank = {cluster: place for place, cluster in enumerate(subject.largest)}
    ranks = np.array([rank.get(int(cluster), len(rank)) for cluster in subject.clusters[rows]])
    rows = rows[np.lexsort((rows, ranks))]
    drawn = subject.draws[:, rows]
    share = (drawn[:, :, None] == drawn[:, None, :]).mean(axis=0)
    return CoClustering(share, subject.clusters[rows])
