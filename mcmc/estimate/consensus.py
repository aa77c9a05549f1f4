"""One partition told from many draws, and how sure it is of each observation.

Losses: Binder (pairs that one partition joins and the other does not) and variation of information
(Meila 2007). The partition of least expected loss is searched among the draws and then improved by
moving one observation at a time, which never looks at the posterior itself, only at the draws.
"""

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.errors import ParameterError
from weald.treecore.prior.sequential import canonical_labels

__all__ = ["LOSSES", "Draws", "consensus_partition", "expected_loss", "membership"]

Draws = NDArray[np.int64]
LOSSES = ("binder", "vi")
_CANDIDATES = 50
_SWEEPS = 20


@inner
def _log2_sum(x: float) -> float:
    return x * np.log2(x) if x > 0.0 else 0.0


@compiled
def _loss(draws: Draws, labels: NDArray[np.int64], is_vi: bool) -> float:
    """Mean loss of ``labels`` (n) against each draw (t, n), all canonical."""
    t, n = draws.shape
    k = labels.max() + 1
    total = 0.0
    sizes = np.zeros(k)
    for i in range(n):
        sizes[labels[i]] += 1.0
    for s in range(t):
        b = draws[s].max() + 1
        table = np.zeros((k, b))
        theirs = np.zeros(b)
        for i in range(n):
            table[labels[i], draws[s, i]] += 1.0
            theirs[draws[s, i]] += 1.0
        value = 0.0
        for c in range(k):
            value += _log2_sum(sizes[c]) if is_vi else sizes[c] ** 2
            for d in range(b):
                value -= 2.0 * (_log2_sum(table[c, d]) if is_vi else table[c, d] ** 2)
        for d in range(b):
            value += _log2_sum(theirs[d]) if is_vi else theirs[d] ** 2
        total += value / n if is_vi else value / (n * n)
    return total / t


def expected_loss(draws: Draws, labels: NDArray[np.int64], loss: str) -> float:
    """Mean loss over the draws (t, n) of a partition with canonical labels (n).

    ``vi`` is in bits, ``binder`` the share of ordered pairs. Raises ParameterError for another
    name.
    """
    if loss not in LOSSES:
        raise ParameterError(f"there is no loss {loss!r}: choose among {', '.join(LOSSES)}")
    return float(_loss(draws, labels, loss == "vi"))


@compiled
def _improve(draws: Draws, labels: NDArray[np.int64], is_vi: bool, sweeps: int) -> None:
    """Move single observations to where the expected loss falls, until none does."""
    t, n = draws.shape
    b = draws.max() + 1
    k = labels.max() + 2
    # One empty cluster is on offer until it is taken, and whatever empties after that.
    table = np.zeros((k, t, b), dtype=np.int64)
    sizes = np.zeros(k, dtype=np.int64)
    for i in range(n):
        sizes[labels[i]] += 1
        for s in range(t):
            table[labels[i], s, draws[s, i]] += 1
    for _ in range(sweeps):
        moved = False
        for i in range(n):
            old = labels[i]
            sizes[old] -= 1
            for s in range(t):
                table[old, s, draws[s, i]] -= 1
            best, least = old, np.inf
            tried_empty = False
            for c in range(k):
                if sizes[c] == 0:
                    if tried_empty and c != old:
                        continue
                    tried_empty = True
                change = _gain(float(sizes[c]), is_vi) * t
                for s in range(t):
                    change -= 2.0 * _gain(float(table[c, s, draws[s, i]]), is_vi)
                if change < least - 1e-12 or (change < least + 1e-12 and c == old):
                    best, least = c, change
            moved = moved or best != old
            labels[i] = best
            sizes[best] += 1
            for s in range(t):
                table[best, s, draws[s, i]] += 1
        if not moved:
            return


@inner
def _gain(x: float, is_vi: bool) -> float:
    """What a term of the loss grows by when its count goes from x to x + 1."""
    if is_vi:
        return _log2_sum(x + 1.0) - _log2_sum(x)
    return 2.0 * x + 1.0


def consensus_partition(draws: Draws, loss: str) -> NDArray[np.int64]:
    """Canonical labels (n) of a partition of small expected loss over the draws (t, n).

    Raises ParameterError for an unknown loss.
    """
    spread = np.unique(np.linspace(0, len(draws) - 1, _CANDIDATES).astype(int))
    scores = [expected_loss(draws, draws[at], loss) for at in spread]
    labels = canonical_labels(draws[spread[int(np.argmin(scores))]])
    n_clusters = 0
    # Whenever the empty cluster on offer has been taken, another one may be worth taking too.
    while labels.max() >= n_clusters:
        n_clusters = int(labels.max()) + 1
        _improve(draws, labels, loss == "vi", _SWEEPS)
        labels = canonical_labels(labels)
    return labels


@compiled
def _membership(
    draws: Draws,
    labels: NDArray[np.int64],
    probability: NDArray[np.float64],
    stability: NDArray[np.float64],
) -> None:
    t, n = draws.shape
    k = labels.max() + 1
    sizes = np.zeros(k)
    for i in range(n):
        sizes[labels[i]] += 1.0
    for s in range(t):
        table = np.zeros((k, draws[s].max() + 1))
        for i in range(n):
            table[labels[i], draws[s, i]] += 1.0
        for i in range(n):
            c, b = labels[i], draws[s, i]
            probability[i] += b == np.argmax(table[c])
            others = sizes[c] - 1.0
            stability[i] += (table[c, b] - 1.0) / others if others > 0.0 else 1.0


def membership(
    draws: Draws, labels: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How sure a partition (n) is of each observation, by the draws (t, n).

    Returns the share of draws in which the observation is in the drawn block that holds most of its
    cluster, and the mean share of its cluster's other members that it is with.
    """
    probability, stability = np.zeros(labels.shape[0]), np.zeros(labels.shape[0])
    _membership(draws, labels, probability, stability)
    return probability / len(draws), stability / len(draws)
