"""A publication of all shards as rows of the stream that they are parts of."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.hyperparameters.learner import Hyperprior
from weald.storage.commit.commit import (
    Certainty,
    ClusterRow,
    LineageRow,
    PublicationRow,
    WholeShown,
)
from weald.treecore.family import spec_of
from weald.treecore.family.totals import log_marginals
from weald.treecore.prior import PartitionPrior

from .whole import WholePublication
from .whole_groups import WholeGroups

__all__ = ["rows_of_sums", "rows_of_whole"]

Ids = NDArray[np.int64]
Statistics = NDArray[np.float64]


def rows_of_whole(
    found: WholePublication,
    model: tuple[Any, PartitionPrior, Hyperprior | None],
    there: Mapping[int, ClusterRow],
    now: float,
) -> WholeShown:
    """Return what SQL is told of a publication.

    Parameters
    ----------
    found : WholePublication
    model : tuple
        The family and the prior, with the hyperparameters of the round, and what learns the
        family's; None where they stay.
    there : mapping of int to ClusterRow
        Clusters of the whole that the publication before shows.
    now : float
        Seconds since the epoch.
    """
    family, prior, learner = model
    publication = PublicationRow(
        number=found.number,
        seq=found.n_observations,
        time=now,
        # Known of no partition that is made of several draws' items.
        log_joint_before=math.nan,
        log_joint=math.nan,
        n_clusters=len(found.clusters),
        n_observations=found.n_observations,
        prior_params=prior.parameters(),
        base_measure={} if learner is None else learner.shown(family),
        family_params={} if learner is None else spec_of(family).parameters(family),
        n_atoms=found.n_observations,
        disruption=0.0,
    )
    sizes = dict(zip(found.clusters.tolist(), found.sizes.tolist(), strict=True))
    # One that is not known began in a shard since the publication before, or with this one.
    first = {event.cluster for event in found.events if event.kind in ("birth", "split")}

    def row(cluster: int, statistics: Statistics, ended: int | None) -> ClusterRow:
        born = found.number - (cluster not in first)
        return ClusterRow(
            cluster=cluster,
            n_observations=round(float(statistics[0])),
            log_marginal=_log_marginal(family, statistics),
            statistics=statistics,
            version=2 * found.number,
            born_publication=there[cluster].born_publication if cluster in there else born,
            retired_publication=ended,
        )

    rows = [row(each, np.array([float(size)]), None) for each, size in sizes.items()]
    # Of one whose observations had all left there is what was known of it.
    rows += [
        row(each, had if had.shape[0] > 1 else there[each].statistics, found.number)
        for each, had in found.ended.items()
    ]
    # Until all shards show them, clusters are in the groups that they were in.
    grouped = [
        (there[each].group or 0, there[each].group_born or 0) if each in there else (0, 0)
        for each in found.clusters.tolist()
    ]
    groups = np.array(grouped, dtype=np.int64).reshape(-1, 2).T
    sure = found.probability, found.stability
    certainty = replace(_certainty(found.clusters, sure, groups), means=found.means)
    lineage = [LineageRow(**vars(event)) for event in found.events]
    return WholeShown(rows, publication, lineage, certainty)


def rows_of_sums(
    told: WholeGroups, there: Mapping[int, ClusterRow], family: Any, publication: int
) -> WholeShown:
    """Return the clusters of the newest publication with what all shards have of them.

    Parameters
    ----------
    told : WholeGroups
    there : mapping of int to ClusterRow
        Clusters of the whole that are shown.
    family : NamedTuple
        With the hyperparameters of the publication.
    publication : int
        Its number.
    """
    columns = told.sums[:2]
    rows = zip(*(each.tolist() for each in columns), told.sums.rows, strict=True)
    known = [there[each] for each in told.sums.names.tolist()]
    # What is not known becomes not a number.
    probability = np.array([each.probability for each in known], dtype=np.float64)
    stability = np.array([each.stability for each in known], dtype=np.float64)
    groups = np.stack([told.group, told.born])
    return WholeShown(
        [
            replace(
                there[cluster],
                n_observations=size,
                log_marginal=_log_marginal(family, statistics),
                statistics=statistics,
                version=there[cluster].version + 1,
            )
            for cluster, size, statistics in rows
        ],
        certainty=_certainty(told.sums.names, (probability, stability), groups),
        judged=(publication, told.warnings),
    )


def _certainty(clusters: Ids, sure: tuple[Statistics, Statistics], groups: Ids) -> Certainty:
    """What is said of these clusters (k), in groups (2, k); of observations their shards say it."""
    nothing = np.empty(0, dtype=np.int64)
    of_none = np.empty((2, 0), dtype=np.uint8)
    return Certainty(nothing, of_none, clusters, *sure, group=groups[0], group_born=groups[1])


def _log_marginal(family: Any, statistics: Statistics) -> float:
    """That of a cluster; 0 where only the count is known."""
    if statistics.shape[0] == 1:
        return 0.0
    return float(log_marginals(family, statistics[np.newaxis])[0])
