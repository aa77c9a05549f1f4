"""Groups of clusters whose members together lie on one hump are one.

A tree of clusters cannot see this. Where rows are spread evenly, clusters that touch at a corner
alone have a valley between their own members, and by the average of such pairs the groups are
apart, though density between the groups, told from all their members, has none. A hump is of
density that is nearly even: a swarm amid few others is not joined with them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.family.interface.base import Family
from weald.treecore.prior.sequential import canonical_labels

from .valleys import Scale, valleys

__all__ = ["HUMP", "Humps", "Members", "joined_on_humps"]

Labels = NDArray[np.int64]
Values = NDArray[np.float64]
# Valleys between groups, by which large clusters are in the one (1), the other (2) and neither.
Humps = dict[bytes, float]

# All three were set on four samples of an even cube (2,000 x 5) and two of log-normal rows (2,000 x
# 8), whose fits had 13 to 55 groups and have one, on breast cancer, which has its two (at .85 and
# without a level it is one on three seeds of six), and on the demo, where swarms stay apart.
HUMP = 0.9
# In density groups weigh by this power of their sizes. Counted alike (0), a corner of a cube of
# even density beside the rest of it is a hump of its own; by their rows (1), a wide kind beside a
# dense one is none.
_POWER = 0.5
# Valleys are told by the lower of their ends, which is held to be this share of the higher: a swarm
# within a wide kind is no part of it, though density falls all the way.
_LEVEL = 0.5
# Members of a group that are looked at, in two halves.
_MEMBERS = 400
# Fewer than these say nothing of a group that consists of clusters with more.
_FEWEST = 5


class Members(NamedTuple):
    """Members of clusters that are looked at.

    Attributes
    ----------
    rows:
        Their statistics (n, m).
    owner:
        The cluster of each (n), rising from 0.
    sizes:
        Of how many observations a cluster is (k).
    """

    rows: Values
    owner: Labels
    sizes: Labels


def joined_on_humps(
    family: Family,
    members: Members,
    group: Labels,
    near: NDArray[np.bool_],
    hump: float = HUMP,
    known: Humps | None = None,
) -> tuple[Labels, Humps]:
    """Group of each cluster (k), by first cluster, once those on one hump are joined.

    Pairs of groups are joined, the shallowest valley first and each group once, and the valleys of
    what came of it are looked for, until all are below ``hump``. ``group`` (k) are the groups to
    begin with, by first cluster. Only pairs are looked at of which two clusters are ``near`` (k, k)
    one another. Of valleys between the same clusters those that are ``known`` hold. Also returns
    all that were asked for.
    """
    told: Humps = {}
    known = known or {}
    while (k := int(group.max()) + 1) > 1:
        size = np.bincount(group, weights=members.sizes)
        pairs = _near_pairs(group, near, k)
        # Small clusters are near none, and what they are does not change a valley.
        told_apart = np.where(near.diagonal(), group, -1)
        found = np.zeros((k, k))
        keys = [_key(told_apart, a, b) for a, b in pairs]
        for (a, b), key in zip(pairs, keys, strict=True):
            found[a, b] = found[b, a] = known.get(key, told.get(key, np.nan))
        if np.isnan(found).any():
            rows, owner = _members_of_groups(members, group)
            scale = Scale((size**_POWER).astype(np.float64), _LEVEL)
            found = valleys(family, rows, owner, k, found, scale)
        told |= {key: float(found[pair]) for pair, key in zip(pairs, keys, strict=True)}
        # Of pairs alike, the largest first, however clusters are numbered.
        pairs = [pair for pair in pairs if found[pair] > hump]
        pairs.sort(key=lambda pair: (-found[pair], -size[pair[0]] - size[pair[1]]))
        if not pairs:
            break
        group = canonical_labels(_each_once(pairs, k)[group])
    return group, told


def _near_pairs(group: Labels, near: NDArray[np.bool_], k: int) -> list[tuple[int, int]]:
    """Pairs of groups, the one with the first cluster first, of which two clusters are near."""
    clusters = np.nonzero(near)
    found = np.zeros((k, k), dtype=np.bool_)
    found[group[clusters[0]], group[clusters[1]]] = True
    one, other = np.nonzero(np.triu(found | found.T, 1))
    return list(zip(one.tolist(), other.tolist(), strict=True))


def _key(group: Labels, one: int, other: int) -> bytes:
    """Which clusters are in either of two groups, for a name."""
    sides = (group == one) + 2 * (group == other)
    return sides.astype(np.uint8).tobytes()


def _each_once(pairs: list[tuple[int, int]], k: int) -> Labels:
    """What each of so many groups becomes, where pairs are joined in turn, each group once."""
    to, free = np.arange(k), np.ones(k, dtype=np.bool_)
    for one, other in pairs:
        if free[one] and free[other]:
            to[other] = one
            free[one] = free[other] = False
    return to


def _members_of_groups(members: Members, group: Labels) -> tuple[Values, Labels]:
    """Rows (n, m) of groups and whose they are (n): of each cluster as many as is its share."""
    seen = np.bincount(members.owner, minlength=group.size)
    first = np.cumsum(seen) - seen
    chosen = []
    for each in range(int(group.max()) + 1):
        own = np.flatnonzero(group == each)
        counts, sizes = seen[own], members.sizes[own]
        end = np.cumsum(sizes)
        # No more than there are of the cluster of which least was seen.
        most = min(_MEMBERS, int((end[-1] * counts / sizes).min()))
        places = np.linspace(0, end[-1] - 1, most).astype(np.int64)
        of = np.searchsorted(end, places, side="right")
        within = (places - (end - sizes)[of]) * counts[of] // sizes[of]
        found = np.unique(first[own[of]] + within)
        chosen.append(
            found if found.size >= _FEWEST else np.flatnonzero(group[members.owner] == each)
        )
    owner = np.repeat(np.arange(len(chosen)), [each.size for each in chosen])
    return members.rows[np.concatenate(chosen)], owner
