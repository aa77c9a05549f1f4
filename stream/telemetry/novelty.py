"""How new the newest observations are: their surprise against that of those before them.

The *surprise* of an observation is minus the log predictive density that the published clusters
give it, before it is inserted; it needs one marginal likelihood a cluster, so only a sample of the
arrivals is scored. An arrival is an *anomaly* when it surprises more than all but
`ANOMALOUS_SHARE` of those scored before it: where nothing changes, that is their share. *Drift* is
the largest difference between the distribution functions of the surprise of the newest scored and
of those before (Kolmogorov and Smirnov's statistic): 0 where they agree, 1 where they do not
overlap. Ranks alone count, so both mean the same for every family and every unit.

Nothing here changes the model.
"""

from collections import deque
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.estimate.predictive import Predictive
from weald.stream.model.shard import Shard

__all__ = ["ANOMALOUS_SHARE", "Novelty", "Scores", "kolmogorov_smirnov"]

Surprise = NDArray[np.float64]

ANOMALOUS_SHARE = 0.01
# One arrival in so many is scored, at most so many of a batch, and at most so many marginal
# likelihoods are computed for them: a few per cent of what inserting the batch costs.
SCORED_EVERY, SCORED_AT_ONCE, MARGINALS_AT_ONCE = 8, 16, 2048
# Scored arrivals that are remembered, of them the newest, and how many judge the next one.
REMEMBERED, NEWEST = 1024, 128
JUDGES = 128


class Scores(NamedTuple):
    """What scoring a batch told.

    Parameters
    ----------
    n_scored : int
        Arrivals that were judged by those before them.
    n_anomalies : int
        Of them, those that surprise more than all but `ANOMALOUS_SHARE`.
    drift : float or None
        None until enough were scored.
    """

    n_scored: int
    n_anomalies: int
    drift: float | None


class Novelty:
    """Remembers the surprise of the newest scored arrivals, oldest first."""

    def __init__(self) -> None:
        self._unscored = 0
        self._surprise: deque[float] = deque(maxlen=REMEMBERED)

    def score(self, shard: Shard, values: Surprise) -> Scores | None:
        """Score some of the observations that are about to be inserted.

        Parameters
        ----------
        shard : Shard
        values : ndarray of float64, shape (n, d)
            Observations that the family takes.

        Returns
        -------
        Scores or None
            None where none of them was judged.
        """
        rows = self._turn(len(values), len(shard.table))
        if not rows:
            return None
        chosen = values[np.linspace(0, len(values) - 1, rows).astype(np.int64)]
        return self.judge(surprise(shard, chosen))

    def judge(self, arrived: Surprise) -> Scores | None:
        """Judge surprises (n,) by those before them, and remember them."""
        before = np.array(self._surprise)
        self._surprise.extend(arrived.tolist())
        if len(before) < JUDGES:
            return None
        limit = np.quantile(before, 1.0 - ANOMALOUS_SHARE)
        drift = None
        if len(self._surprise) >= 2 * NEWEST:
            now = np.array(self._surprise)
            drift = kolmogorov_smirnov(now[-NEWEST:], now[:-NEWEST])
        return Scores(len(arrived), int((arrived > limit).sum()), drift)

    def _turn(self, n: int, n_clusters: int) -> int:
        """How many of a batch's `n` are scored."""
        self._unscored += n
        if not n_clusters or not n:
            return 0
        most = max(MARGINALS_AT_ONCE // n_clusters, 1)
        rows = min(self._unscored // SCORED_EVERY, SCORED_AT_ONCE, most, n)
        if rows:
            self._unscored = 0
        return rows


def surprise(shard: Shard, values: Surprise) -> Surprise:
    """Minus the log predictive density (n,) of observations (n, d) under what is published."""
    table = shard.table.state()
    # In a stream that an earlier Weald let fade, a cluster may weigh less than half an observation.
    with np.errstate(divide="ignore"):
        predictive = Predictive.of(
            shard.chain.family,
            shard.chain.prior,
            table["ids"],
            table["totals"],
            shard.transformation,
        )
    # What has come was taken before.
    predictive = replace(predictive, takes=shard.first_family)
    return -predictive.log_density(np.ascontiguousarray(values))


def kolmogorov_smirnov(one: Surprise, other: Surprise) -> float:
    """Largest difference of two samples' empirical distribution functions."""
    one, other = np.sort(one), np.sort(other)
    at = np.concatenate([one, other])
    below = [np.searchsorted(each, at, side="right") / len(each) for each in (one, other)]
    return float(np.abs(below[0] - below[1]).max())
