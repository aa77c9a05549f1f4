"""Groups of clusters: those between which density has no valley.

Kinds in real tables are rarely of the family's shape, so one kind becomes several clusters and a
few outliers. A tree joins the clusters by average linkage of 1 - valley, the average over pairs of
observations; where it is cut says how deep a valley has to be to part two groups.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster
from scipy.spatial.distance import cdist

from weald.treecore.family.totals import dense_rows, log_marginals, totals_of_groups
from weald.treecore.prior.sequential import canonical_labels

from .valleys import means_of, members_of, points_of, valleys, within_clusters

__all__ = ["CUT", "GroupTree", "average_linkage", "group_tree"]

# Fixed on twelve tables and judged on others, see ``benchmarks/real.py``: between .55 and .7 the
# mean index of the twelve changes by .02.
CUT = 0.65
# Clusters of fewer members are put to the large one that they are nearest to.
_FEWEST = 5


class GroupTree(NamedTuple):
    """Clusters joined by the valleys between them.

    Attributes
    ----------
    leaf:
        For each cluster (k) its leaf of the tree; a small cluster has that of a large one.
    joins:
        The tree, as ``scipy.cluster.hierarchy`` has it (leaves - 1, 4); a height is 1 - valley.
    """

    leaf: NDArray[np.int64]
    joins: NDArray[np.float64]

    def cut(self, valley: float = CUT) -> NDArray[np.int64]:
        """Group of each cluster (k), by first cluster, where valleys deeper than this part them."""
        if self.joins.shape[0] == 0:
            return canonical_labels(self.leaf)
        found = fcluster(self.joins, 1.0 - valley, criterion="distance")
        return canonical_labels(found[self.leaf].astype(np.int64))


def group_tree(family: Any, values: Any, labels: NDArray[np.int64]) -> GroupTree:
    """The tree over the clusters of a partition.

    ``values`` (n, d) are the observations, a sparse matrix of scipy for counts of words, and
    ``labels`` (n) their clusters from 0 on. A pair of clusters costs some hundred densities,
    whatever n.
    """
    sizes = np.bincount(labels)
    large, small = np.flatnonzero(sizes >= _FEWEST), np.flatnonzero(sizes < _FEWEST)
    if large.size == 0:
        return GroupTree(np.arange(sizes.size), np.empty((0, 4)))
    rows, owner = members_of(labels, np.concatenate([large, small]))
    observed = dense_rows(values, rows)
    leaf = np.empty(sizes.size, dtype=np.int64)
    leaf[large] = np.arange(large.size)
    if small.size > 0:
        leaf[small] = _nearest(family, observed, owner, large.size, sizes.size)
    if large.size == 1:
        return GroupTree(leaf, np.empty((0, 4)))
    inside = owner < large.size
    apart = 1.0 - valleys(family, observed[inside], owner[inside], large.size)
    return GroupTree(leaf, average_linkage(apart, sizes[large]))


def average_linkage(apart: NDArray[np.float64], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Tree of clusters that are so far ``apart`` (k, k), of so many observations (k).

    Groups are apart by the mean over pairs of observations. Returns what scipy's ``linkage`` does.
    """
    k = sizes.size
    apart, weight, name = apart.copy(), sizes.astype(np.float64), np.arange(k)
    members = np.ones(k)
    np.fill_diagonal(apart, np.inf)
    joins = np.empty((k - 1, 4))
    for at in range(k - 1):
        one, other = sorted(divmod(int(apart.argmin()), k))
        joins[at, :2] = sorted((name[one], name[other]))
        members[one] += members[other]
        joins[at, 2:] = apart[one, other], members[one]
        share = weight[one] / (weight[one] + weight[other])
        apart[one] = apart[:, one] = share * apart[one] + (1.0 - share) * apart[other]
        apart[other] = apart[:, other] = apart[one, one] = np.inf
        weight[one] += weight[other]
        name[one] = k + at
    return joins


def _nearest(
    family: Any, observed: NDArray[np.float64], owner: NDArray[np.int64], n_large: int, k: int
) -> NDArray[np.int64]:
    """For each small cluster, the large one that its mean is nearest to, or that it fits best.

    Nearest under the covariance within the large ones: by predictive density the widest of them
    would take most outliers.
    """
    points = points_of(family, observed)
    if points is None:
        totals = totals_of_groups(family, observed, owner, k)
        blocks, others = totals[:n_large], totals[n_large:]
        joined = (others[:, None, :] + blocks).reshape(-1, totals.shape[1])
        gain = log_marginals(family, joined).reshape(k - n_large, -1)
        return np.asarray((gain - log_marginals(family, blocks)).argmax(axis=1))
    means = means_of(points, owner, k)
    off = (points - means[owner])[owner < n_large]
    within = within_clusters(off.T @ off, off.shape[0] - n_large)
    scaled = np.linalg.solve(np.linalg.cholesky(within), means.T).T
    return np.asarray(cdist(scaled[n_large:], scaled[:n_large]).argmin(axis=1))
