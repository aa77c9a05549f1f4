"""Groups of the clusters that all shards show, and what speaks against their publication.

Once a shard shows what was published it tells some members of each of its clusters, how these were
drawn in the last rounds, and some observations that are asked how well their clusters predict them.
Of these, and of the sums of all shards, groups and judgement are made as those of a stream in one
piece are.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.sharded.round_messages import BlockSums, ShownSums, added
from weald.storage.commit.commit import ClusterRow
from weald.stream.tables.contingency import places_in

from .groups import PublishedGroups
from .judgement import reasons_against

__all__ = ["WholeGroups", "groups_of_whole"]

Ids = NDArray[np.int64]
Rows = NDArray[np.float64]


class WholeGroups(NamedTuple):
    """Groups of the clusters that all shards show.

    Attributes
    ----------
    sums:
        Of these clusters, of all shards.
    group, born:
        Group of each (k), and the first publication that told of it.
    next_group:
        What the next new one is called.
    warnings:
        Reasons not to believe the publication.
    """

    sums: BlockSums
    group: Ids
    born: Ids
    next_group: int
    warnings: list[str]


class _Sample(NamedTuple):
    """Members of clusters, each for a share of its cluster's observations."""

    present: Ids
    cluster: Ids
    size: Ids


def groups_of_whole(
    shown: Sequence[ShownSums],
    there: Mapping[int, ClusterRow],
    family: Any,
    publication: int,
    next_group: int,
) -> WholeGroups:
    """Return the groups of the newest publication's clusters, and what speaks against it.

    Parameters
    ----------
    shown : sequence of ShownSums
        Of all shards, in order.
    there : mapping of int to ClusterRow
        Clusters of the whole that are shown, with the groups that they were in.
    family : NamedTuple
        With the hyperparameters of the publication.
    publication, next_group : int
        Its number, and what the next new group is called.
    """
    # What began in a shard since is in no publication yet.
    whole = added([each.sums for each in shown], shown[0].sums.rows.shape[1])
    whole = whole.of(np.array(sorted(there), dtype=np.int64))
    cluster = np.concatenate([each.cluster for each in shown])
    rows = np.concatenate([each.rows for each in shown])
    known = np.isin(cluster, whole.names)
    draws = [draw[known] for draw in _shared_draws(shown)]
    sample = _sample(cluster[known], whole)
    groups = PublishedGroups()
    groups.adopt(list(there.values()), next_group)
    members = rows[known]
    nothing = np.empty(0, dtype=np.int64)
    groups.publish(publication, family, sample, lambda at: members[at], nothing)
    agree = groups.agreement(family, sample, lambda at: members[at], draws)
    own = places_in(whole.names, np.concatenate([each.asked_cluster for each in shown]))
    single = np.concatenate([each.asked_rows for each in shown])
    asked = single[own >= 0], own[own >= 0]
    warnings = reasons_against(family, whole.size, asked, whole.rows, agree)
    return WholeGroups(whole, groups.group, groups.born, groups.next_group, warnings)


def _sample(cluster: Ids, whole: BlockSums) -> _Sample:
    """Members (q) of these clusters as stand-ins for all observations of each."""
    place = np.searchsorted(whole.names, cluster)
    order = np.argsort(place, kind="stable")
    n = np.bincount(place, minlength=whole.names.shape[0])
    rank = np.empty_like(place)
    rank[order] = np.arange(place.shape[0]) - np.repeat(np.cumsum(n) - n, n)
    share, rest = np.divmod(whole.size, np.maximum(n, 1))
    size = share[place] + (rank < rest[place])
    return _Sample(np.arange(place.shape[0]), cluster, size)


def _shared_draws(shown: Sequence[ShownSums]) -> list[NDArray[np.int32]]:
    """Block of each member (q), numbered from 0, in the draws that all shards have; -1 for none."""
    rounds = reduce(np.intersect1d, [each.rounds for each in shown])
    found = []
    for number in rounds.tolist():
        names = np.concatenate(
            [each.names[int(np.searchsorted(each.rounds, number))] for each in shown]
        )
        kinds, place = np.unique(names, return_inverse=True)
        found.append((place - np.count_nonzero(kinds < 0)).astype(np.int32))
    return found
