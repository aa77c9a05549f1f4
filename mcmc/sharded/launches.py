"""Splits and merges of several clusters at once, by passes over the rows.

Pairs of anchor rows are drawn without a look at the partition. In their order a pair counts where
no earlier one that counts has one of its clusters. What it can do is to part or to join its own
clusters, so that whom it keeps out is the same before and after: given the pairs, the moves are
those of disjoint sets of rows, one after the other, and all are launched by the same passes.

Each is the launched split-merge of :mod:`~weald.mcmc.sub_cluster.subc`. The sides begin from how
well either anchor predicts a row; sweeps of [weights, parameters, all sides at once] follow; the
last sides are the proposal, and their probability given the last parameters enters the ratio. A
merge is judged by the same launch, its last sides forced to the present ones.

Sources: Chang and Fisher (2013), section 5; ``split-merge-samplers.md`` section 2.10 (SUBC-X).
"""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.conditional.labels import log_coin, log_marginals
from weald.mcmc.sub_cluster.launched_sides import log_launched_ratio
from weald.treecore.family.parameter_draws import draw_parameters
from weald.treecore.family.totals import add_observations, empty_totals
from weald.treecore.partition.partition import Model
from weald.treecore.prior.base import Seating

from .passes import Contest, Counts, Matrix

__all__ = ["LaunchedMove", "Launches", "draw_pairs", "first_odds", "next_odds", "open_launches"]

# Of the sides' weights while a launch runs; any constant is exact.
_SIDE_SHAPE = 0.5
# Of a pair the second row is, of so many random ones, the one that goes best with the first: rows
# that are close part a cluster in two, rows that are not join two.
_CANDIDATES = (1, 4, 16, 64)
# Draws over which the parameters of a cluster of one anchor are averaged.
_AVERAGED = 64


class Launches(NamedTuple):
    """Pairs that count (p), and where they stand.

    Attributes
    ----------
    anchors:
        Rows (p, 2).
    clusters:
        The cluster of each anchor (p, 2): the same one where it is to be split.
    """

    anchors: Counts
    clusters: Counts

    @property
    def is_split(self) -> NDArray[np.bool_]:
        """Whether a pair's cluster is to be split (p)."""
        return np.asarray(self.clusters[:, 0] == self.clusters[:, 1])

    def contest(self, k: int, odds: Matrix, *, last: bool) -> Contest:
        """What the rows of k clusters need to draw their sides; the ``last`` may be forced."""
        pair, side = np.full(k, -1, dtype=np.int64), np.full(k, -1, dtype=np.int64)
        for at, (one, other) in enumerate(self.clusters.tolist()):
            pair[one] = pair[other] = at
            if last and one != other:
                side[one], side[other] = 0, 1
        return Contest(pair, side, self.anchors, odds)


class LaunchedMove(NamedTuple):
    """A pair's proposal: statistics (2, m) of its sides, and the log probability of these sides."""

    is_split: bool
    sums: Matrix
    log_q: float

    def log_ratio(self, model: Model, seating: Seating, k: int) -> float:
        """Log acceptance ratio, given k clusters now."""
        both = np.concatenate([self.sums, self.sums.sum(axis=0, keepdims=True)])
        worth = log_marginals(model, both)
        sizes = np.rint(both[:, 0]).astype(np.int64)
        return log_launched_ratio(seating, k, (worth, sizes), self.log_q, is_split=self.is_split)

    def is_accepted(self, rng: Generator, ratio: float) -> bool:
        """By a coin, which is tossed in any case."""
        return log_coin(rng) < ratio


def draw_pairs(rng: Generator, n: int, n_pairs: int) -> list[Counts]:
    """For each pair a row of n and the others of which one will be the second, all different."""
    found = []
    for at in range(n_pairs):
        n_candidates = min(_CANDIDATES[at % len(_CANDIDATES)], n - 1)
        found.append(rng.choice(n, size=n_candidates + 1, replace=False, shuffle=True))
    return found


def open_launches(
    model: Model, drawn: list[Counts], values: list[Matrix], labels: list[Counts]
) -> tuple[Launches, Matrix]:
    """The pairs that count, with statistics (p, 2, m) of their anchors, of what was drawn.

    ``values`` and ``labels`` are those of the drawn rows.
    """
    taken: set[int] = set()
    anchors, clusters, statistics = [], [], []
    for rows, own, label in zip(drawn, values, labels, strict=True):
        observed = _statistics(model, own)
        second = 1 + _most_alike(model, observed)
        ends = {int(label[0]), int(label[second])}
        if taken & ends:
            continue
        taken |= ends
        anchors.append(rows[[0, second]])
        clusters.append(label[[0, second]])
        statistics.append(observed[[0, second]])
    return Launches(np.array(anchors), np.array(clusters, np.int64)), np.array(statistics)


def _statistics(model: Model, values: Matrix) -> Matrix:
    rows: Matrix = empty_totals(model.family, values.shape[0])
    add_observations(model.family, values, np.arange(values.shape[0]), rows)
    return rows


def _most_alike(model: Model, observed: Matrix) -> int:
    """Which of the rows but the first gains most by being in one cluster with it."""
    together = log_marginals(model, observed[1:] + observed[0])
    return int(np.argmax(together - log_marginals(model, observed[1:])))


def first_odds(rng: Generator, model: Model, statistics: Matrix) -> Matrix:
    """Odds (p, m) by clusters of one anchor each, their parameters averaged over draws."""
    p, _, m = statistics.shape
    repeated = np.repeat(statistics.reshape(2 * p, m), _AVERAGED, axis=0)
    natural = draw_parameters(model.family, repeated, rng).natural
    mean = natural.reshape(p, 2, _AVERAGED, m).mean(axis=2)
    return np.asarray(mean[:, 1] - mean[:, 0])


def next_odds(rng: Generator, model: Model, sums: Matrix) -> Matrix:
    """Odds (p, m) under weights and parameters drawn for the sides with statistics (2p, m)."""
    weights = np.log(rng.gamma(sums[:, 0] + _SIDE_SHAPE))
    natural = draw_parameters(model.family, sums, rng).natural
    # The first statistic is the count.
    natural[:, 0] += weights
    return np.asarray(natural[1::2] - natural[::2])
