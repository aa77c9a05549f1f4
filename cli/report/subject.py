"""What a report tells: read from a stream's database, or from a fit's trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ...stream.predictive import Predictive
    from ...treecore.prior import PartitionPrior

__all__ = ["Chains", "Shown", "Subject"]

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Shown:
    """The partition as one publication showed it.

    Parameters
    ----------
    title : str
    clusters : int64[n]
        Cluster of the subject's observations, in their order; -1 where it was not there yet.
    """

    title: str
    clusters: Labels


@dataclass(frozen=True)
class Chains:
    """Numbers that were followed while sampling.

    Parameters
    ----------
    step : str
        What the iterations are.
    values : mapping of str to float64[chains, iterations]
    burnt : int
        Iterations at the beginning that the diagnostics leave out.
    stationary : bool
        Whether the iterations are draws of one posterior, so that R-hat and the effective sample
        size mean something. A stream's publications are not: its posterior grows.
    """

    step: str
    values: Mapping[str, NDArray[np.float64]]
    burnt: int
    stationary: bool


@dataclass(frozen=True)
class Subject:
    """Everything that the pictures and the page are made of.

    Parameters
    ----------
    title, subtitle : str
    facts : mapping of str to str
        Headline numbers by name.
    names : sequence of str, length d
        The features.
    values : float64[n, d]
    keys : sequence of str, length n
        How people call the observations.
    clusters : int64[n]
    predictive : Predictive
        The clusters' statistics, largest first.
    prior : PartitionPrior
    draws : int64[t, m]
        Partitions that the chain drew, each of the same first m of these observations.
    history : sequence of Shown
        Publications, oldest first; empty for a fit.
    events : sequence of mapping
        Lineage, newest last, as ``weald lineage`` tells it; empty for a fit.
    chains : Chains
    moves : sequence of mapping
        ``move``, ``proposed``, ``accepted`` of each kind of move.
    """

    title: str
    subtitle: str
    facts: Mapping[str, str]
    names: Sequence[str]
    values: NDArray[np.float64]
    keys: Sequence[str]
    clusters: Labels
    predictive: Predictive
    prior: PartitionPrior
    draws: NDArray[np.int64]
    chains: Chains
    history: Sequence[Shown] = ()
    events: Sequence[Mapping[str, Any]] = ()
    moves: Sequence[Mapping[str, Any]] = field(default_factory=list)

    @property
    def largest(self) -> list[int]:
        """The clusters that exist, largest first."""
        ids: list[int] = self.predictive.clusters.tolist()
        return ids
