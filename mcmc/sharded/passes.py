"""What is done to the rows of one chunk, compiled: labels drawn, sides drawn, statistics summed.

Loops add in the order in which they are written: the same rows give the same bits on every machine
that rounds alike.
"""

from math import exp, log1p
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.family.interface.base import Family, observe

from .counter import RowKey, uniform_of_row

__all__ = [
    "Contest",
    "Counts",
    "Matrix",
    "Places",
    "RowChoices",
    "draw_labels_of_rows",
    "draw_sides_of_rows",
    "held_rows",
]

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]
Places = NDArray[np.int32]

# What is less probable than the most probable by so many nats is less than a uniform number of 53
# bits can be: its exponential is not worth its time.
_NEVER = -45.0


class RowChoices(NamedTuple):
    """Among which clusters the rows of a cluster choose.

    Attributes
    ----------
    start, stop:
        For each cluster (k) the columns that its rows choose among; start is -1 where they stay.
    owner:
        The cluster of each column (c).
    natural:
        Natural parameters (m, c), the log weights in row 0: that statistic is the count.
    held:
        For each cluster (k) the row that stays, or -1.
    """

    start: Counts
    stop: Counts
    owner: Counts
    natural: Matrix
    held: Counts


class Contest(NamedTuple):
    """Sides to be drawn within the clusters of p pairs of anchors.

    Attributes
    ----------
    pair:
        Pair of each cluster (k), or -1.
    side:
        The side that the cluster is now (k), where its pair is to be joined; else -1.
    anchors:
        Rows (p, 2): the first is always on side 0, the other on side 1.
    odds:
        (p, m): its product with a row's statistics are the log odds of side 1.
    """

    pair: Counts
    side: Counts
    anchors: Counts
    odds: Matrix


@inner
def _weigh(row: Matrix, natural: Matrix, start: int, stop: int, log_p: Matrix) -> None:
    """Log probabilities (c) of a row's statistics (m) in the columns from start to stop.

    Four statistics are added at a time, in their order: what was added before is fetched and put
    back less often. Places that begin at 0 are seen not to be negative, so that the processor does
    several at once.
    """
    m = natural.shape[0]
    log_p[:] = 0.0
    for four in range(m // 4):
        j = 4 * four
        s0, s1, s2, s3 = row[j], row[j + 1], row[j + 2], row[j + 3]
        n0, n1 = natural[j, start:stop], natural[j + 1, start:stop]
        n2, n3 = natural[j + 2, start:stop], natural[j + 3, start:stop]
        for c in range(log_p.shape[0]):
            log_p[c] = (((log_p[c] + s0 * n0[c]) + s1 * n1[c]) + s2 * n2[c]) + s3 * n3[c]
    for j in range(m - m % 4, m):
        left = natural[j, start:stop]
        for c in range(log_p.shape[0]):
            log_p[c] += row[j] * left[c]


@inner
def _pick(log_p: Matrix, uniform: float) -> int:
    """A column with probability proportional to exp(log_p), which is overwritten."""
    largest = log_p[0]
    for c in range(1, log_p.shape[0]):
        largest = max(largest, log_p[c])
    total = 0.0
    for c in range(log_p.shape[0]):
        below = log_p[c] - largest
        log_p[c] = exp(below) if below > _NEVER else 0.0
        total += log_p[c]
    threshold = uniform * total
    reached = 0.0
    last = 0
    for c in range(log_p.shape[0]):
        if log_p[c] > 0.0:
            last = c
            reached += log_p[c]
            if threshold < reached:
                return c
    return last


@compiled
def draw_labels_of_rows(
    family: Family,
    values: Matrix,
    first: int,
    labels: Places,
    choices: RowChoices,
    key: RowKey,
    drawn: Places,
    sums: Matrix,
) -> None:
    """Draw a cluster for each row; add up statistics (c, m) by column."""
    m, n_columns = choices.natural.shape
    row = np.zeros((1, m))
    log_p = np.zeros(n_columns)
    for r in range(labels.shape[0]):
        present = labels[r]
        drawn[r] = present
        start, stop = choices.start[present], choices.stop[present]
        # No other cluster is within reach: its rows stay.
        if start < 0:
            continue
        observe(family, values, r, row, 0)
        # The atom that holds its cluster stays, so that none is emptied (spec section 2.10, E12).
        if choices.held[present] == first + r:
            chosen = start
            while choices.owner[chosen] != present:
                chosen += 1
        else:
            own = log_p[: stop - start]
            _weigh(row[0], choices.natural, start, stop, own)
            # By the row's own number: the same draw on whatever shard the row is (section 6.1).
            chosen = start + _pick(own, uniform_of_row(key, first + r))
        drawn[r] = choices.owner[chosen]
        for j in range(m):
            sums[chosen, j] += row[0, j]


@compiled
def draw_sides_of_rows(
    family: Family,
    values: Matrix,
    first: int,
    labels: Places,
    contest: Contest,
    key: RowKey,
    side: NDArray[np.int8],
    sums: Matrix,
) -> None:
    """Draw a side for each row of a contested cluster, or take what it is on.

    ``sums`` (2p, m + 1) are the statistics of each pair's sides; the last column of side 0 has the
    log probability of all sides but the anchors'.
    """
    m = contest.odds.shape[1]
    row = np.zeros((1, m))
    for r in range(labels.shape[0]):
        p = contest.pair[labels[r]]
        if p < 0:
            continue
        observe(family, values, r, row, 0)
        # Anchors hold their sides, and no draw has put them there.
        at = first + r
        if at == contest.anchors[p, 0]:
            chosen = 0
        elif at == contest.anchors[p, 1]:
            chosen = 1
        else:
            odds = 0.0
            for j in range(m):
                odds += row[0, j] * contest.odds[p, j]
            # A merge is judged by the sides that lead back, which are the present clusters.
            chosen = contest.side[labels[r]]
            if chosen < 0:
                # By the smaller of the two, whose exponential does not overflow.
                likely = 1 if odds > 0.0 else 0
                other = exp(-abs(odds))
                unlikely = uniform_of_row(key, at) * (1.0 + other) < other
                chosen = 1 - likely if unlikely else likely
            # Log of 1 / (1 + e^-signed) without overflow, drawn or forced.
            signed = odds if chosen == 1 else -odds
            lost = log1p(exp(-abs(signed))) + (0.0 if signed > 0.0 else -signed)
            sums[2 * p, m] -= lost
        side[r] = chosen
        for j in range(m):
            sums[2 * p + chosen, j] += row[0, j]


@compiled
def held_rows(first: int, labels: Places, key: RowKey, least: Matrix, found: Counts) -> None:
    """For each cluster (k) the row with the smallest number, and that number: a uniform member."""
    for r in range(labels.shape[0]):
        drawn = uniform_of_row(key, first + r)
        k = labels[r]
        if found[k] < 0 or drawn < least[k]:
            least[k], found[k] = drawn, first + r
