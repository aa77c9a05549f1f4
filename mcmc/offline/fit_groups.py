"""Groups of the clusters that a fit shows: those that its draws agree on."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.estimate.groups import (
    CUT,
    evenly_chosen,
    group_tree,
    groups_of_draws,
    shared_groups,
)
from weald.treecore.family.interface.base import Family
from weald.treecore.statistics.observations import Observations

from .fit import ChainTrace, FitResult

__all__ = ["DrawnGroups", "FitGroups", "draws_of", "groups_of_fit"]

# One draw: of which of the runs, and which of its draws.
Place = tuple[int, int]


class DrawnGroups:
    """Groups that the draws of a fit make by themselves, each found once, when it is asked for.

    Parameters
    ----------
    result : FitResult
    values : ndarray or sparse matrix, shape (n, d)
        What was fitted.
    valley : float
        Of density, that parts groups in each draw.
    n_threads : int
        Draws that are looked at side by side.

    Attributes
    ----------
    runs :
        Family and partition (n) of each draw of each chain on which the fit rests.
    """

    def __init__(
        self, result: FitResult, values: Observations, valley: float = CUT, n_threads: int = 1
    ) -> None:
        self.runs = [draws_of(result.traces[at]) for at in result.trusted]
        self._values, self._valley, self._n_threads = values, valley, n_threads
        self._found: dict[Place, NDArray[np.int64]] = {}

    def of(self, places: Sequence[Place]) -> NDArray[np.int64]:
        """Groups (t, n) of 32 of these draws at most, evenly chosen."""
        chosen = [places[at] for at in evenly_chosen(len(places))]
        new = [place for place in chosen if place not in self._found]
        if new:
            drawn = [self.runs[run][draw] for run, draw in new]
            found = groups_of_draws(drawn, self._values, self._valley, self._n_threads)
            self._found |= dict(zip(new, found, strict=True))
        return np.stack([self._found[place] for place in chosen])

    def places(self) -> list[list[Place]]:
        """All draws of each run."""
        return [[(at, draw) for draw in range(len(run))] for at, run in enumerate(self.runs)]


class FitGroups(NamedTuple):
    """Groups of shown clusters.

    Attributes
    ----------
    group:
        Group of each cluster (k), int64, by first cluster.
    agree:
        Mean adjusted Rand index of the groups that are shown and those that draws make by
        themselves; None where there are no draws.
    drawn:
        The latter.
    """

    group: NDArray[np.int64]
    agree: float | None
    drawn: DrawnGroups


def draws_of(trace: ChainTrace) -> list[tuple[Family, NDArray[np.int64]]]:
    """Families and partitions (n) of a chain's draws, as the shown partition is told from them.

    Each row is where it is most probable, if that was found.
    """
    if trace.relabelled is None:
        return list(zip(trace.draw_families, trace.draws, strict=True))
    return [(trace.last[0], labels) for labels in trace.relabelled]


def groups_of_fit(
    result: FitResult, values: Observations, valley: float = CUT, n_threads: int = 1
) -> FitGroups:
    """The groups that draws of a fit of observations (n, d) agree on.

    ``valley`` of density is what parts groups in each draw, of which ``n_threads`` are looked at
    side by side. Where there are no draws, the shown partition's own tree is cut.
    """
    drawn = DrawnGroups(result, values, valley, n_threads)
    places = [place for run in drawn.places() for place in run]
    if not places:
        return FitGroups(group_tree(result.family, values, result.labels).cut(valley), None, drawn)
    return FitGroups(*shared_groups(result.labels, drawn.of(places)), drawn)
