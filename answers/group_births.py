"""How old a group is: as its oldest cluster, whatever it was called.

The name of a group is that of the group that most of it was in. Where two old groups are joined, or
one is parted, there is a new name for what was there before, and no new kind of thing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from weald.storage.queries.base import ClusterRow

__all__ = ["GroupBirth", "births_of_groups"]


class GroupBirth(NamedTuple):
    """The first publications that told of a group, and of it or one of its clusters."""

    named: int
    told: int


def births_of_groups(
    clusters: Sequence[ClusterRow], born: Mapping[int, float], times: Mapping[int, float]
) -> dict[int, GroupBirth]:
    """Return how old each group is of which that is known.

    Parameters
    ----------
    clusters : sequence of ClusterRow
        Those that are alive.
    born : mapping of int to float
        When each cluster was first told of, epoch seconds.
    times : mapping of int to float
        When each publication was made, of those that are kept.
    """
    found: dict[int, GroupBirth] = {}
    for each in clusters:
        if each.group is None or each.group_born is None:
            continue
        first = found.get(each.group, GroupBirth(each.group_born, each.group_born))
        told = min(first.told, _first_told(each, born, times))
        found[each.group] = first._replace(told=told)
    return found


def _first_told(cluster: ClusterRow, born: Mapping[int, float], times: Mapping[int, float]) -> int:
    """The first publication that told of a cluster.

    One that a publication made is told by it; one that began with an observation, after a
    publication, by the next.
    """
    number = cluster.born_publication
    began, made = born.get(cluster.cluster), times.get(number)
    is_made_by_it = began is None or (made is not None and began <= made)
    return max(number if is_made_by_it else number + 1, 1)
