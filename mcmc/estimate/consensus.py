"""One partition told from many draws, and how sure it is of each observation.

Losses: Binder (pairs that one partition joins and the other does not) and variation of information
(Meila 2007). The search for the partition of least expected loss never looks at the posterior
itself, only at the draws, which are best relabelled before
(:mod:`~weald.mcmc.estimate.relabelling`). The partition of highest log joint is no such estimate: a
hard labelling is compared without the number of labellings near it, and it has too few clusters
where they overlap.
"""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from weald.treecore.compiled.compile import allocating, compiled, inner
from weald.treecore.errors import ParameterError
from weald.treecore.prior.sequential import canonical_labels

__all__ = ["LOSSES", "Draws", "consensus_partition", "expected_loss", "membership"]

Draws = NDArray[np.int64]
LOSSES = ("binder", "vi")
_SEED = 0
_STARTS = 3
_SWEEPS = 20
_LEAST_SWEEPS = 2
_FEWEST_DRAWS = 16
# Labels compared when every draw is scored against every other; counts in a search's table; and
# counts looked up while one start is improved. Each is below a second of work.
_MOST_COMPARED = 2e8
_MOST_COUNTS = 2e7
_MOST_WORK = 500_000_000
# In units of the loss summed over draws, so that rounding moves nothing.
_LEAST_CHANGE = 1e-9


@inner
def _log2_sum(x: float) -> float:
    return x * np.log2(x) if x > 0.0 else 0.0


@inner
def _n_labels(labels: NDArray[np.int64]) -> int:
    """One more than the greatest label."""
    n = 0
    for i in range(labels.shape[0]):
        n = max(n, labels[i] + 1)
    return n


@compiled
def _loss(draws: Draws, labels: NDArray[np.int64], weight: NDArray[np.int64], is_vi: bool) -> float:
    """Mean loss of ``labels`` (m) against each draw (t, m), all canonical, of items that weigh."""
    t, m = draws.shape
    k = _n_labels(labels)
    total, n = 0.0, weight.sum()
    sizes = np.zeros(k)
    for i in range(m):
        sizes[labels[i]] += weight[i]
    for s in range(t):
        b = _n_labels(draws[s])
        table = np.zeros((k, b))
        theirs = np.zeros(b)
        for i in range(m):
            table[labels[i], draws[s, i]] += weight[i]
            theirs[draws[s, i]] += weight[i]
        value = 0.0
        for c in range(k):
            value += _log2_sum(sizes[c]) if is_vi else sizes[c] ** 2
            for d in range(b):
                value -= 2.0 * (_log2_sum(table[c, d]) if is_vi else table[c, d] ** 2)
        for d in range(b):
            value += _log2_sum(theirs[d]) if is_vi else theirs[d] ** 2
        total += value / n if is_vi else value / (n * n)
    return total / t


def expected_loss(
    draws: Draws,
    labels: NDArray[np.int64],
    loss: str,
    weight: NDArray[np.int64] | None = None,
) -> float:
    """Mean loss over the draws (t, n) of a partition with canonical labels (n).

    ``vi`` is in bits, ``binder`` the share of ordered pairs; ``weight`` (n) is how many
    observations each stands for. Raises ParameterError for another name.
    """
    if loss not in LOSSES:
        raise ParameterError(f"there is no loss {loss!r}: choose among {', '.join(LOSSES)}")
    weight = np.ones(labels.shape[0], dtype=np.int64) if weight is None else weight
    return float(_loss(draws, labels, weight, loss == "vi"))


class _Search(NamedTuple):
    """Where a search stands: weighted items, their labels, and how clusters meet drawn blocks.

    ``blocks`` (t, m) are the items' drawn blocks, ``weight`` (m) the observations of an item,
    ``label`` (m); ``size`` (k), ``table`` (k, t, b) count observations; ``term`` (n + 1) is the
    loss's convex function of a count.
    """

    blocks: NDArray[np.int64]
    weight: NDArray[np.int64]
    label: NDArray[np.int64]
    size: NDArray[np.int64]
    table: NDArray[np.int64]
    term: NDArray[np.float64]


@compiled
def _fill(search: _Search) -> None:
    for i in range(search.label.shape[0]):
        _count(search, i, search.label[i], search.weight[i])


@inner
def _count(search: _Search, i: int, c: int, weight: int) -> None:
    search.size[c] += weight
    for s in range(search.blocks.shape[0]):
        search.table[c, s, search.blocks[s, i]] += weight


@inner
def _change(search: _Search, i: int, c: int) -> float:
    """What the loss, but for a factor, grows by when item i joins cluster c."""
    weight, term, t = search.weight[i], search.term, search.blocks.shape[0]
    size = search.size[c]
    change = (term[size + weight] - term[size]) * t
    for s in range(t):
        met = search.table[c, s, search.blocks[s, i]]
        change -= 2.0 * (term[met + weight] - term[met])
    return change


@inner
def _move_items(search: _Search, order: NDArray[np.int64], most: int) -> bool:
    """Each item to the cluster where the loss is least; a new one only below ``most`` clusters."""
    n_open = 0
    for c in range(search.size.shape[0]):
        n_open += search.size[c] > 0
    moved = False
    for at in range(order.shape[0]):
        i = order[at]
        old = search.label[i]
        # Taken out first, so that going back is weighed as any other place is.
        _count(search, i, old, -search.weight[i])
        n_open -= search.size[old] == 0
        best, least = old, _change(search, i, old)
        # Empty clusters are all alike: one is tried, where another is allowed.
        tried_empty = search.size[old] == 0 or n_open >= most
        for c in range(search.size.shape[0]):
            if search.size[c] == 0:
                if tried_empty:
                    continue
                tried_empty = True
            change = _change(search, i, c)
            if change < least - _LEAST_CHANGE:
                best, least = c, change
        n_open += search.size[best] == 0
        search.label[i] = best
        _count(search, i, best, search.weight[i])
        moved = moved or best != old
    return moved


@inner
def _merge_change(search: _Search, a: int, b: int) -> float:
    term, size, table = search.term, search.size, search.table
    change = (term[size[a] + size[b]] - term[size[a]] - term[size[b]]) * table.shape[1]
    for s in range(table.shape[1]):
        for d in range(table.shape[2]):
            one, other = table[a, s, d], table[b, s, d]
            if one > 0 and other > 0:
                change -= 2.0 * (term[one + other] - term[one] - term[other])
    return change


@inner
def _mark_neighbours(search: _Search, a: int, met: NDArray[np.bool_]) -> None:
    """Clusters before ``a`` that a drawn block joins to it: the loss falls by no other join."""
    table = search.table
    met[:] = False
    for s in range(table.shape[1]):
        for d in range(table.shape[2]):
            if table[a, s, d] > 0:
                for b in range(a):
                    met[b] = met[b] or table[b, s, d] > 0


@inner
def _move_counts(search: _Search, a: int, b: int) -> None:
    table = search.table
    for s in range(table.shape[1]):
        for d in range(table.shape[2]):
            table[b, s, d] += table[a, s, d]
            table[a, s, d] = 0


@allocating
def _merge_clusters(search: _Search) -> bool:
    """Join whole clusters, first found first, wherever the loss falls."""
    k, merged = search.size.shape[0], False
    into, met = np.arange(k), np.zeros(k, dtype=np.bool_)
    for a in range(k):
        if search.size[a] > 0:
            _mark_neighbours(search, a, met)
        for b in range(a):
            if search.size[a] == 0 or not met[b]:
                continue
            if _merge_change(search, a, b) < -_LEAST_CHANGE:
                search.size[b] += search.size[a]
                _move_counts(search, a, b)
                search.size[a] = 0
                into[a] = b
                merged = True
    if merged:
        # Upwards, so that a cluster which took others and was itself taken is followed.
        for a in range(k):
            into[a] = into[into[a]]
        for i in range(search.label.shape[0]):
            search.label[i] = into[search.label[i]]
    return merged


@compiled
def _improve(rng: Generator, search: _Search, most: int, sweeps: int) -> None:
    """Move items and join clusters where the expected loss falls, until neither helps."""
    _fill(search)
    order = np.arange(search.label.shape[0])
    for _ in range(sweeps):
        for at in range(order.shape[0] - 1, 0, -1):
            other = int(rng.random() * (at + 1))
            order[at], order[other] = order[other], order[at]
        moved = _move_items(search, order, most)
        merged = _merge_clusters(search)
        if not (moved or merged):
            return


def _items(
    labellings: Draws, weight: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Observations that no labelling (t, n) parts are one item: its first row, weight, whose.

    ``weight`` (n) is that of the observations. Returns arrays (m), (m), and the item (n) of each.
    """
    rng = Generator(PCG64(_SEED))
    odd = np.uint64(1)
    keys = np.bitwise_or(rng.integers(1, 2**63, size=len(labellings), dtype=np.uint64), odd)
    hashed = np.zeros(labellings.shape[1], dtype=np.uint64)
    for at, labels in enumerate(labellings):
        hashed = (hashed ^ labels.astype(np.uint64)) * keys[at]
        hashed ^= hashed >> np.uint64(29)
    _, first, item = np.unique(hashed, return_index=True, return_inverse=True)
    if not all((labels == labels[first[item]]).all() for labels in labellings):
        # Two rows with one hash: every observation for itself is right, too.
        every = np.arange(labellings.shape[1])
        return every, weight, every
    return first, np.bincount(item, weights=weight).astype(np.int64), item.astype(np.int64)


def _spread(draws: Draws) -> Draws:
    """As many of the draws (t, n), evenly spaced, as a search has room and time for."""
    blocks = int(draws.max()) + 1
    most = min(sqrt(_MOST_COMPARED / draws.shape[1]), _MOST_COUNTS / blocks**2)
    most = min(draws.shape[0], max(int(most), _FEWEST_DRAWS))
    return draws[np.unique(np.linspace(0, draws.shape[0] - 1, most).astype(int))]


def consensus_partition(
    draws: Draws,
    loss: str,
    candidates: Sequence[NDArray[np.int64]] = (),
    *,
    weight: NDArray[np.int64] | None = None,
    starts: int = _STARTS,
    most_work: float = _MOST_WORK,
) -> NDArray[np.int64]:
    """Canonical labels (n) of a partition of small expected loss over the draws (t, n).

    The draws and ``candidates`` (canonical labels (n) each: yesterday's answer) are compared, and
    the best of them improved by moves of what no draw divides and by joining whole clusters. It has
    no more clusters than draws have in the median, unless a draw or candidate with more is better,
    so that uncertain observations are no clusters. For very many observations the loss is that over
    evenly spaced draws. Raises ParameterError for an unknown loss.

    ``weight`` (n) is how many observations each row stands for, ``starts`` how many of the best
    are improved, each for ``most_work`` counts looked up or two sweeps.

    Source: Rastelli and Friel (2018), Statistics and Computing 28; Dahl, Johnson and Mueller
    (2022), Journal of Computational and Graphical Statistics 31.
    """
    compared = _spread(draws)
    every = [*compared, *(canonical_labels(each) for each in candidates)]
    weight = np.ones(draws.shape[1], dtype=np.int64) if weight is None else weight
    first, weight, item = _items(np.stack(every), weight)
    blocks, every = np.ascontiguousarray(compared[:, first]), [each[first] for each in every]
    scores = np.array([expected_loss(blocks, labels, loss, weight) for labels in every])
    chosen = [every[at] for at in np.argsort(scores, kind="stable")[:starts]]
    most = max(int(np.median(compared.max(axis=1))) + 1, 1)
    count = np.arange(int(weight.sum()) + 1, dtype=np.float64)
    term = count * np.log2(np.maximum(count, 1.0)) if loss == "vi" else count**2
    best, least = chosen[0], float(scores.min())
    rng = Generator(PCG64(_SEED))
    for start in chosen:
        k = max(int(start.max()) + 1, most)
        search = _Search(
            blocks,
            weight,
            start.copy(),
            np.zeros(k, dtype=np.int64),
            np.zeros((k, compared.shape[0], int(compared.max()) + 1), dtype=np.int64),
            term,
        )
        work = first.shape[0] * k * compared.shape[0]
        _improve(rng, search, most, max(_LEAST_SWEEPS, min(_SWEEPS, int(most_work // work))))
        labels = canonical_labels(search.label)
        found = expected_loss(blocks, labels, loss, weight)
        if found < least - 1e-12:
            best, least = labels, found
    return canonical_labels(best[item])


@compiled
def _membership(
    draws: Draws,
    labels: NDArray[np.int64],
    weight: NDArray[np.int64],
    probability: NDArray[np.float64],
    stability: NDArray[np.float64],
) -> None:
    t, n = draws.shape
    k = _n_labels(labels)
    sizes = np.zeros(k)
    for i in range(n):
        sizes[labels[i]] += weight[i]
    for s in range(t):
        table = np.zeros((k, _n_labels(draws[s])))
        theirs = np.zeros(table.shape[1])
        for i in range(n):
            table[labels[i], draws[s, i]] += weight[i]
            theirs[draws[s, i]] += weight[i]
        for i in range(n):
            c, b = labels[i], draws[s, i]
            probability[i] += table[c, b] / theirs[b]
            others = sizes[c] - 1.0
            stability[i] += (table[c, b] - 1.0) / others if others > 0.0 else theirs[b] == 1.0


def membership(
    draws: Draws, labels: NDArray[np.int64], weight: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How sure a partition (n) is of each observation, by the draws (t, n).

    ``weight`` (n) says how many observations each stands for that no draw divides, by default one.

    Returns the mean share of the observation's drawn block that lies in its cluster, which is soft
    where a block covers two clusters, and the mean share of its cluster's other members that it is
    with; of one that is alone, the share of draws in which it is.
    """
    probability, stability = np.zeros(labels.shape[0]), np.zeros(labels.shape[0])
    counts = np.ones(labels.shape[0], dtype=np.int64) if weight is None else weight
    _membership(draws, labels, counts, probability, stability)
    return probability / len(draws), stability / len(draws)
