"""A publication of all shards as rows of the stream that they are parts of."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.hyperparameters.learner import Hyperprior
from weald.mcmc.sharded.round_messages import ShownSums, added
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

__all__ = ["rows_of_sums", "rows_of_whole"]

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
    nothing = np.empty(0, dtype=np.int64)
    certainty = Certainty(
        nothing,
        np.empty((2, 0), dtype=np.uint8),
        found.clusters,
        found.probability,
        found.stability,
        found.means,
    )
    lineage = [LineageRow(**vars(event)) for event in found.events]
    return WholeShown(rows, publication, lineage, certainty)


def rows_of_sums(
    shown: Sequence[ShownSums], there: Mapping[int, ClusterRow], family: Any
) -> WholeShown:
    """Return the clusters of the newest publication with what all shards have of them.

    Parameters
    ----------
    shown : sequence of ShownSums
        Of all shards, in order.
    there : mapping of int to ClusterRow
        Clusters of the whole that are shown.
    family : NamedTuple
        With the hyperparameters of the publication.
    """
    whole = added([each.sums for each in shown], shown[0].sums.rows.shape[1])
    return WholeShown(
        [
            replace(
                there[cluster],
                n_observations=size,
                log_marginal=_log_marginal(family, rows),
                statistics=rows,
                version=there[cluster].version + 1,
            )
            for cluster, size, rows in zip(
                whole.names.tolist(), whole.size.tolist(), whole.rows, strict=True
            )
            # One that began in a shard since is in no publication yet.
            if cluster in there
        ]
    )


def _log_marginal(family: Any, statistics: Statistics) -> float:
    """That of a cluster; 0 where only the count is known."""
    if statistics.shape[0] == 1:
        return 0.0
    return float(log_marginals(family, statistics[np.newaxis])[0])
