"""What a report tells: read from a stream's database, or from a fit's trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.stream.record.fields.originals import original_names, original_summaries, originals_of
from weald.treecore.family import spec_of

if TYPE_CHECKING:
    from weald.mcmc.estimate.predictive import Predictive
    from weald.stream.record.schema import Schema
    from weald.treecore.family import FeatureSummary
    from weald.treecore.prior import PartitionPrior

    from .timeline import Timeline

__all__ = [
    "Birth",
    "Chains",
    "KnownCluster",
    "NetworkSubject",
    "PublishedPartition",
    "Sampled",
    "Subject",
    "headline",
]

Labels = NDArray[np.int64]


def headline(n_groups: int, n_clusters: int, n_rows: int) -> str:
    """Title of a page: of so many rows the groups that its list has, or clusters without groups."""
    n, what = (n_groups, "group") if n_groups else (n_clusters, "cluster")
    return f"{n:,} {what}{'' if n == 1 else 's'} of {n_rows:,} {'row' if n_rows == 1 else 'rows'}"


class Birth(NamedTuple):
    """With which publication something came, and when, where that is known (epoch seconds).

    ``time`` is by the clock, ``reached`` the newest time that the records until then told. Of a
    group ``grouped`` is the publication that first told of it, later perhaps than of its clusters.
    """

    publication: int
    time: float | None
    reached: float | None = None
    grouped: int | None = None


class KnownCluster(NamedTuple):
    """What is said of a stream's cluster: size, mean probability of its members, its birth."""

    size: int
    sure: float | None
    born: Birth


@dataclass(frozen=True)
class PublishedPartition:
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


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """What every report has: a partition, and the draws and moves that led to it.

    Parameters
    ----------
    title, subtitle : str
    facts : mapping of str to str
        Headline numbers by name.
    keys : sequence of str, length n
        How people call the observations, or the vertices of a network.
    clusters : int64[n]
    draws : int64[t, m]
        Partitions that the chain drew, each of the same first m of these observations.
    chains : Chains
    moves : sequence of mapping
        ``move``, ``proposed``, ``accepted`` of each kind of move.
    """

    title: str
    subtitle: str
    facts: Mapping[str, str]
    keys: Sequence[str]
    clusters: Labels
    draws: NDArray[np.int64]
    chains: Chains
    moves: Sequence[Mapping[str, Any]] = field(default_factory=list)

    @property
    def largest(self) -> list[int]:
        """The clusters that exist, largest first."""
        ids, sizes = np.unique(self.clusters, return_counts=True)
        order: list[int] = ids[np.argsort(-sizes, kind="stable")].tolist()
        return order


@dataclass(frozen=True, kw_only=True)
class Subject(Sampled):
    """Everything that the pictures and the page of observations are made of.

    Parameters
    ----------
    names : sequence of str, length d
        The features.
    texts : sequence of str, length n or none
        What was hashed to counts, where observations have such.
    descriptions : mapping of int to str
        Of the largest clusters, what sets each apart.
    values : float64[n, d]
    predictive : Predictive
        The clusters' statistics, largest first.
    prior : PartitionPrior
    history : sequence of Shown
        Publications, oldest first; empty for a fit.
    events : sequence of mapping
        Lineage, newest last, as ``weald lineage`` tells it; empty for a fit.
    schema : Schema, optional
        What records look like, where the features are made of something else.
    groups : mapping of int to int
        Group of each cluster, where clusters are grouped.
    timeline : Timeline, optional
        Of a stream, how its clusters came to be.
    known : mapping of int to KnownCluster
        Of a stream, what is known of each cluster.
    group_births : mapping of int to Birth
        Of a stream, since when each group is there, by its oldest cluster, where that is known.
    warnings : sequence of str, optional
        Reasons to doubt a stream's newest publication; None where there is none.
    stayed : float
        Share of the observations that this publication left in their cluster.
    """

    names: Sequence[str]
    texts: Sequence[str] = ()
    descriptions: Mapping[int, str] = field(default_factory=dict)
    values: NDArray[np.float64]
    predictive: Predictive
    prior: PartitionPrior
    history: Sequence[PublishedPartition] = ()
    events: Sequence[Mapping[str, Any]] = ()
    schema: Schema | None = None
    groups: Mapping[int, int] = field(default_factory=dict)
    timeline: Timeline | None = None
    known: Mapping[int, KnownCluster] = field(default_factory=dict)
    group_births: Mapping[int, Birth] = field(default_factory=dict)
    warnings: Sequence[str] | None = None
    stayed: float = 1.0

    @property
    def largest(self) -> list[int]:
        """The clusters that exist, largest first."""
        ids: list[int] = self.predictive.clusters.tolist()
        return ids

    @cached_property
    def log_density(self) -> NDArray[np.float64]:
        """Log predictive density of each observation under the clusters: low where nothing fits."""
        return self.predictive.log_density(self.values)

    @property
    def told(self) -> list[str]:
        """The features that mean something by themselves: not the counts of a hashed text."""
        return list(self.names if self.schema is None else original_names(self.schema))

    def summaries(self, row: NDArray[np.float64]) -> list[FeatureSummary]:
        """Return what there is to be told of a cluster with this statistics row."""
        family, learned = self.predictive.family, self.predictive.transformation
        describe = spec_of(family).describe if learned is None else learned.describe
        found = describe(family, row, self.names)
        return found if self.schema is None else original_summaries(self.schema, found)

    def values_at(self, at: int) -> dict[str, Any]:
        """Return one observation's values as people are shown them, by name."""
        if self.schema is None:
            return dict(zip(self.names, self.values[at].tolist(), strict=True))
        columns = originals_of(self.schema, self.values[at : at + 1])
        return {each.name: each.plain()[0] for each in columns}


@dataclass(frozen=True, kw_only=True)
class NetworkSubject(Sampled):
    """A network whose vertices were clustered; clusters are numbered from 0, largest first.

    Parameters
    ----------
    edges : int64[m], int64[m]
        Sources and targets.
    directed : bool
    mean : float64[k, k]
        Expected edge from a vertex of one block to one of another.
    ids : sequence of int, length k or none
        What the stream calls the clusters.
    """

    edges: tuple[Labels, Labels]
    directed: bool
    mean: NDArray[np.float64]
    ids: Sequence[int] = ()
