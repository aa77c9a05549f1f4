"""Groups of clusters: those between which density has no valley.

Kinds in real tables are rarely of the family's shape, so one kind becomes several clusters and a
few outliers. A tree joins the clusters by average linkage of 1 - valley, the average over pairs of
observations. Where it is cut says how deep a valley has to be to part two groups: the deeper, the
more groups there are, as people want few, and a tree of many clusters has many shallow ones.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster
from scipy.spatial.distance import cdist

from weald.treecore.family.interface.base import Family
from weald.treecore.family.totals import (
    add_rows,
    dense_rows,
    empty_totals,
    log_marginals,
    single_rows,
)
from weald.treecore.prior.sequential import canonical_labels
from weald.treecore.statistics.observations import Observations

from .agreement import adjusted_rand_index
from .valleys import means_of, members_of, points_of, valleys, within_clusters

__all__ = [
    "CUT",
    "FEWEST",
    "GroupTree",
    "average_linkage",
    "evenly_chosen",
    "group_tree",
    "group_tree_of_rows",
    "groups_of_draws",
    "shared_groups",
]

# Valleys below this part two groups; one of K groups is parted from others below
# CUT (2 / K)^_MORE. Fixed on twelve tables and judged on others, see ``benchmarks/real.py``: with
# .55 to .65 and .1 to .2 the mean index of the twelve changes by .02, and without _MORE it falls
# by .01, or by .03 where there are many rows.
CUT = 0.575
_MORE = 0.15
# Clusters of fewer members are put to the large one that they are nearest to.
FEWEST = 5
# Members of a cluster that are looked at, in two halves.
_MEMBERS = 400
# Draws whose groups are asked, and the share of them that have apart what is shown apart.
_DRAWS = 32
_MOST_APART = 0.5


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
        """Group of each cluster (k), by first cluster, where valleys deeper than this part them.

        ``valley`` is what parts two groups; each of more is parted by a deeper one.
        """
        heights = self.joins[:, 2]
        groups = np.arange(heights.size + 1, 1, -1)
        parts = np.flatnonzero(1.0 - heights < valley * (2.0 / groups) ** _MORE)
        n_joins = parts[0] if parts.size > 0 else heights.size
        if n_joins == 0:
            return canonical_labels(self.leaf)
        found = fcluster(self.joins, heights[n_joins - 1], criterion="distance")
        return canonical_labels(found[self.leaf].astype(np.int64))


def group_tree(family: Family, values: Observations, labels: NDArray[np.int64]) -> GroupTree:
    """The tree over the clusters of a partition.

    ``values`` (n, d) are the observations, a sparse matrix of scipy for counts of words, and
    ``labels`` (n) their clusters from 0 on. A pair of clusters costs some hundred densities,
    whatever n.
    """
    sizes = np.bincount(labels)
    members, owner = members_of(labels, np.arange(sizes.size), _MEMBERS)
    rows = single_rows(family, dense_rows(values, members))
    return group_tree_of_rows(family, rows, owner, sizes)[0]


def evenly_chosen(n: int) -> list[int]:
    """Which of n draws are asked for groups: 32 at most."""
    chosen: list[int] = np.unique(np.linspace(0, n - 1, _DRAWS).astype(int)).tolist()
    return chosen


def groups_of_draws(
    drawn: Sequence[tuple[Family, NDArray[np.int64]]],
    values: Observations,
    valley: float = CUT,
    n_threads: int = 1,
) -> NDArray[np.int64]:
    """Groups (t, n) that draws make by themselves, each by its own tree.

    ``drawn`` are family and partition (n) of draws of observations ``values`` (n, d);
    ``n_threads`` of them are looked at side by side.
    """

    def one(draw: tuple[Family, NDArray[np.int64]]) -> NDArray[np.int64]:
        family, labels = draw
        return group_tree(family, values, labels).cut(valley)[labels]

    # Draws of clusters that are well apart are the same partition again and again.
    kinds = [(id(family), labels.tobytes()) for family, labels in drawn]
    different = dict(zip(kinds, drawn, strict=True))
    with ThreadPoolExecutor(n_threads) as pool:
        found = dict(zip(different, pool.map(one, different.values()), strict=True))
    return np.stack([found[kind] for kind in kinds])


def shared_groups(
    labels: NDArray[np.int64], grouped: NDArray[np.int64]
) -> tuple[NDArray[np.int64], float]:
    """Group of each cluster (k): those whose observations most draws have in one group.

    One partition's valleys are those of clusters that were drawn once: the border of a cluster may
    hide a valley or make one. Draws have other borders, so that what they agree on is what the data
    say. ``labels`` (n) are clusters from 0 on, ``grouped`` (t, n) the groups of draws. Clusters are
    joined by average linkage of the share of pairs, one observation of each, that draws have apart,
    up to a half. Also returns the mean adjusted Rand index of these groups and those of the draws:
    low where the data do not part them.
    """
    sizes = np.bincount(labels)
    together = np.zeros((sizes.size, sizes.size))
    for groups in grouped:
        share = np.zeros((sizes.size, int(groups.max(initial=0)) + 1))
        np.add.at(share, (labels, groups), 1.0)
        share /= sizes[:, None]
        together += share @ share.T / len(grouped)
    large, small = np.flatnonzero(sizes >= FEWEST), np.flatnonzero(sizes < FEWEST)
    found = np.arange(sizes.size)
    if large.size > 1:
        # A sum of shares may be above 1 by its rounding.
        apart = np.maximum(1.0 - together[np.ix_(large, large)], 0.0)
        joins = average_linkage(apart, sizes[large])
        found[large] = fcluster(joins, _MOST_APART, criterion="distance")
    if large.size > 0:
        found[small] = found[large[together[np.ix_(small, large)].argmax(axis=1)]]
    group = canonical_labels(found)
    shown = group[labels]
    return group, float(np.mean([adjusted_rand_index(each, shown) for each in grouped]))


def group_tree_of_rows(
    family: Family,
    rows: NDArray[np.float64],
    owner: NDArray[np.int64],
    sizes: NDArray[np.int64],
    known: NDArray[np.float64] | None = None,
) -> tuple[GroupTree, NDArray[np.float64]]:
    """The tree over clusters of so many observations (k), and the valleys between them (k, k).

    ``rows`` (n, m) are the statistics of some observations of each cluster and ``owner`` (n,
    rising) is whose they are. ``known`` (k, k) has valleys that need not be looked for again, NaN
    for the others; those of a small cluster are never looked for.
    """
    k = sizes.size
    seen = np.bincount(owner, minlength=k)
    is_large = (sizes >= FEWEST) & (seen >= FEWEST)
    large, small = np.flatnonzero(is_large), np.flatnonzero(~is_large)
    found = np.full((k, k), np.nan)
    if large.size == 0:
        return GroupTree(np.arange(k), np.empty((0, 4))), found
    place = np.empty(k, dtype=np.int64)
    place[np.concatenate([large, small])] = np.arange(k)
    leaf = place.copy()
    if small.size > 0:
        leaf[small] = _nearest(family, rows, place[owner], large.size, k)
    if large.size == 1:
        return GroupTree(leaf, np.empty((0, 4))), found
    inside = is_large[owner]
    among = np.ix_(large, large)
    found[among] = valleys(
        family,
        rows[inside],
        place[owner[inside]],
        large.size,
        None if known is None else known[among],
    )
    return GroupTree(leaf, average_linkage(1.0 - found[among], sizes[large])), found


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
    family: Family, rows: NDArray[np.float64], owner: NDArray[np.int64], n_large: int, k: int
) -> NDArray[np.int64]:
    """For each small cluster, the large one that its mean is nearest to, or that it fits best.

    Nearest under the covariance within the large ones: by predictive density the widest of them
    would take most outliers.
    """
    points = points_of(family, rows)
    if points is None:
        totals = empty_totals(family, k)
        add_rows(rows, owner, totals)
        blocks, others = totals[:n_large], totals[n_large:]
        joined = (others[:, None, :] + blocks).reshape(-1, totals.shape[1])
        gain = log_marginals(family, joined).reshape(k - n_large, -1)
        return np.asarray((gain - log_marginals(family, blocks)).argmax(axis=1))
    means = means_of(points, owner, k)
    off = (points - means[owner])[owner < n_large]
    within = within_clusters(off.T @ off, off.shape[0] - n_large)
    scaled = np.linalg.solve(np.linalg.cholesky(within), means.T).T
    return np.asarray(cdist(scaled[n_large:], scaled[:n_large]).argmin(axis=1))
