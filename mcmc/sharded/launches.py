"""Splits and merges of several clusters at once, by passes over the rows.

Pairs of anchor rows are drawn without a look at the partition. In their order a pair counts where
no earlier one that counts has one of its clusters. What it can do is to part or to join its own
clusters, so that whom it keeps out is the same before and after: given the pairs, the moves are
those of disjoint sets of rows, one after the other, and all are launched by the same passes.

Of the two sides of a pair shards sum one; the other is what is left of the pair's clusters, whose
sums are known. That which was smaller in the pass before is summed: what is left of large numbers
is large.

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

from weald.mcmc.conditional.labels import log_blocks_ratio, log_coin, log_split_ratio
from weald.mcmc.sub_cluster.near_anchors import CANDIDATES, gains_together
from weald.treecore.family.interface.base import Family
from weald.treecore.family.parameter_draws import draw_parameters
from weald.treecore.family.totals import single_rows
from weald.treecore.partition.partition import Model, finite_log_marginals
from weald.treecore.prior.base import Seating

from .counter import RowKey, uniforms
from .passes import Contest, Counts, Matrix

__all__ = [
    "LaunchedMove",
    "Launches",
    "draw_pairs",
    "first_odds",
    "gains",
    "next_odds",
    "open_launches",
]

# Of the sides' weights while a launch runs; any constant is exact.
_SIDE_SHAPE = 0.5
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

    def wholes(self, sums: Matrix) -> Matrix:
        """Statistics (p, m) of both sides of each pair, by those (k, m) of the clusters."""
        one, other = sums[self.clusters[:, 0]], sums[self.clusters[:, 1]]
        return np.where(self.is_split[:, None], one, one + other)

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
        worth = finite_log_marginals(model.family, both)
        sizes = np.rint(both[:, 0]).astype(np.int64)
        n_joined = k if self.is_split else k - 1
        split_ratio = log_split_ratio(seating, worth, sizes)
        split_ratio += log_blocks_ratio(seating, n_joined, n_joined + 1)
        return split_ratio - self.log_q if self.is_split else self.log_q - split_ratio

    def is_accepted(self, rng: Generator, ratio: float) -> bool:
        """By a coin, which is tossed in any case."""
        return log_coin(rng) < ratio


def draw_pairs(key: RowKey, n: int, n_pairs: int) -> list[Counts]:
    """For each pair a row of n > 1, and the others of which one will be the second.

    Whoever has the key draws the same ones. A row may be among the others twice.
    """
    sizes = [1 + CANDIDATES[at % len(CANDIDATES)] for at in range(n_pairs)]
    drawn = np.empty(sum(sizes))
    uniforms(key, np.arange(drawn.size), drawn)
    found = []
    for each in np.split(drawn, np.cumsum(sizes)[:-1]):
        first = min(int(each[0] * n), n - 1)
        others = np.minimum((each[1:] * (n - 1)).astype(np.int64), n - 2)
        found.append(np.append(first, others + (others >= first)))
    return found


def gains(family: Family, first: Matrix, others: Matrix) -> Matrix:
    """What each of some rows (r, d) gains by being in one cluster with the ``first`` (d)."""
    rows = single_rows(family, np.vstack([first, others]))
    return gains_together(family, rows[0], rows[1:], finite_log_marginals(family, rows[1:]))


def open_launches(anchors: Counts, labels: Counts) -> tuple[Launches, Counts]:
    """Which of some pairs with these rows (q, 2) and labels (q, 2) count, and their places (p)."""
    taken: set[int] = set()
    counting = []
    for at, ends in enumerate(labels.tolist()):
        if not taken.isdisjoint(ends):
            continue
        taken.update(ends)
        counting.append(at)
    which = np.array(counting)
    return Launches(anchors[which], labels[which].astype(np.int64)), which


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
