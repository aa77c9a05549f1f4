"""Groups of the clusters that a fit shows: those that its draws agree on."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.estimate.groups import CUT, group_tree, groups_of_draws, shared_groups
from weald.treecore.family.interface.base import Family
from weald.treecore.statistics.observations import Observations

from .fit import ChainTrace, FitResult

__all__ = ["FitGroups", "draws_of", "groups_of_fit"]


class FitGroups(NamedTuple):
    """Groups of shown clusters.

    Attributes
    ----------
    group:
        Group of each cluster (k), int64, by first cluster.
    agree:
        Mean adjusted Rand index of the groups that are shown and those that draws make by
        themselves; None where there are no draws.
    """

    group: NDArray[np.int64]
    agree: float | None


def draws_of(trace: ChainTrace) -> list[tuple[Family, NDArray[np.int64]]]:
    """Families and partitions (n) of a chain's draws, as the shown partition is told from them.

    Each row is where it is most probable, if that was found.
    """
    if trace.relabelled is None:
        return list(zip(trace.draw_families, trace.draws, strict=True))
    return [(trace.last[0], labels) for labels in trace.relabelled]


def groups_of_fit(result: FitResult, values: Observations, valley: float = CUT) -> FitGroups:
    """The groups that draws of a fit of observations (n, d) agree on.

    ``valley`` of density is what parts groups in each draw. Where there are no draws, the shown
    partition's own tree is cut.
    """
    drawn = [each for at in result.trusted for each in draws_of(result.traces[at])]
    if not drawn:
        return FitGroups(group_tree(result.family, values, result.labels).cut(valley), None)
    return FitGroups(*shared_groups(result.labels, groups_of_draws(drawn, values, valley)))
