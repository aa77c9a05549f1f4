"""Sub-cluster sampler, approximate: only for starts. Finds well separated blocks within seconds.

Every block has two sub-clusters, refreshed by the same parallel Gibbs steps as the blocks. After
``Plan.age`` sweeps a block may be split along them, judged by one labelling of the split (Chang and
Fisher's equation 21); blocks that emptied are dropped; pairs of a super-cluster are merged by the
random-split ratio. None of these three leaves the posterior invariant: the splits have no merges as
counterpart, and overlapping blocks are never split. Draws made while it is active are refused by
every summary.

Sources: Chang and Fisher (2013); ``split-merge-samplers.md`` section 2.10 (SUBC-A; errors E12 to
E16).
"""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import gammaln

from weald.mcmc.conditional.labels import (
    Labels,
    Matrix,
    block_sums,
    draw_labels,
    draw_log_weights,
    draw_sides,
    log_blocks_ratio,
    log_coin,
    log_coins,
    log_sizes,
    require_dense,
    super_clusters,
)
from weald.mcmc.contract import Entry, MixtureState
from weald.mcmc.sweeps import Sampler, Tally, sampler
from weald.treecore.family.parameter_draws import draw_parameters
from weald.treecore.partition.partition import Atoms, Model, finite_log_marginals

__all__ = [
    "SubClusters",
    "SubcBurninPlan",
    "begin",
    "keeping_sub_clusters",
    "kernel",
    "renumbered",
    "sweep",
]


class SubClusters(NamedTuple):
    """Blocks 0 to k - 1 with their sub-clusters.

    Attributes
    ----------
    labels, side:
        Block and sub-cluster (0 or 1) of each atom (n).
    age:
        Sweeps since each block's sub-clusters were begun (k).
    fit:
        Log likelihood of each block's sub-clusters in the last sweep (k).
    falling:
        1 where that has fallen once since they were begun (k).
    """

    labels: Labels
    side: Labels
    age: NDArray[np.int64]
    fit: Matrix
    falling: NDArray[np.int64]


class SubcBurninPlan(NamedTuple):
    """When a block may be split, and what may meet.

    Attributes
    ----------
    age:
        Sweeps after which it may; None: once the likelihood of its sub-clusters has fallen.
    grouped:
        Labels move and blocks merge within super-clusters only.
    """

    age: int | None = 15
    grouped: bool = True


def begin(rng: Generator, atoms: Atoms, labels: Labels, model: Model) -> SubClusters:
    """New sub-clusters for every block of the labels 0 to k - 1."""
    k = int(labels.max()) + 1
    side = np.zeros(labels.shape[0], dtype=np.int64)
    for block in range(k):
        _begin_sides(rng, atoms, labels, side, model, block)
    ages = np.zeros(k, dtype=np.int64)
    return SubClusters(labels, side, ages, np.full(k, -np.inf), ages.copy())


def renumbered(state: SubClusters, labels: Labels) -> SubClusters:
    """The same blocks under other numbers 0 to k - 1, which ``labels`` give."""
    old = np.empty_like(state.age)
    old[labels] = state.labels
    return SubClusters(labels, state.side, state.age[old], state.fit[old], state.falling[old])


def _begin_sides(
    rng: Generator, atoms: Atoms, labels: Labels, side: Labels, model: Model, block: int
) -> None:
    """Halve a block along a random direction: which of two of its atoms the others resemble."""
    rows = require_dense(atoms.rows)
    members = np.flatnonzero(labels == block)
    if members.size < 2:
        side[members] = 0
        return
    seeds = rows[rng.choice(members, size=2, replace=False)]
    natural = draw_parameters(model.family, seeds, rng).natural
    odds = rows[members] @ (natural[1] - natural[0])
    side[members] = odds > np.median(odds)


def sweep(
    rng: Generator, atoms: Atoms, state: SubClusters, model: Model, plan: SubcBurninPlan
) -> tuple[SubClusters, int]:
    """Parameters, labels, splits and merges; and how many of the last two."""
    state, groups = _gibbs(rng, atoms, state, model, grouped=plan.grouped)
    ready = state.falling == 1 if plan.age is None else state.age >= plan.age
    state, n_splits = _splits(rng, atoms, state, model, ready)
    state, n_merges = _merges(rng, atoms, state, model, groups)
    return state, n_splits + n_merges


def _gibbs(
    rng: Generator, atoms: Atoms, state: SubClusters, model: Model, *, grouped: bool
) -> tuple[SubClusters, Labels]:
    """All blocks' and sub-clusters' parameters, then all labels, then all sides."""
    rows, k = require_dense(atoms.rows), state.age.shape[0]
    labels, side = state.labels, state.side
    halves = block_sums(rows, 2 * labels + side, 2 * k)
    half_counts = np.bincount(2 * labels + side, weights=atoms.size, minlength=2 * k)
    counts = half_counts.reshape(k, 2).sum(axis=1).astype(np.int64)
    log_weights = draw_log_weights(rng, model.seating, counts)
    drawn = draw_parameters(model.family, halves.reshape(k, 2, -1).sum(axis=1), rng)
    groups = super_clusters(rng, drawn) if grouped else np.zeros(k, dtype=np.int64)
    half_weights = np.log(rng.gamma(half_counts + 0.5)).reshape(k, 2)
    half_natural = draw_parameters(model.family, halves, rng).natural.reshape(k, 2, -1)
    moved = labels.copy()
    for g in np.flatnonzero(np.bincount(groups) > 1):
        blocks = np.flatnonzero(groups == g)
        inside = np.flatnonzero(groups[labels] == g)
        chosen = draw_labels(
            rng, rows[inside], atoms.size[inside], log_weights[blocks], drawn.natural[blocks]
        )
        moved[inside] = blocks[chosen]
    direction = half_natural[:, 1] - half_natural[:, 0]
    balance = half_weights[:, 1] - half_weights[:, 0]
    odds = np.einsum("ij,ij->i", rows, direction[moved]) + atoms.size * balance[moved]
    side = draw_sides(rng, odds)
    fit = np.einsum("kij,kij->k", halves.reshape(k, 2, -1), half_natural)
    falling = state.falling | (fit < state.fit)
    return _without_empty(state._replace(labels=moved, side=side, fit=fit, falling=falling), groups)


def _without_empty(state: SubClusters, groups: Labels) -> tuple[SubClusters, Labels]:
    kept, labels = np.unique(state.labels, return_inverse=True)
    compacted = SubClusters(
        labels.astype(np.int64),
        state.side,
        state.age[kept] + 1,
        state.fit[kept],
        state.falling[kept],
    )
    return compacted, groups[kept]


def _split_log_ratios(model: Model, sums: Matrix, counts: NDArray[np.int64]) -> Matrix:
    """Equation 21 for (k, 2, m) sides with counts (k, 2), which must not be empty."""
    k = counts.shape[0]
    rows = np.concatenate([sums.reshape(2 * k, -1), sums.sum(axis=1)])
    sizes = np.concatenate([counts.reshape(-1), counts.sum(axis=1)])
    weight = finite_log_marginals(model.family, rows) + log_sizes(model.seating, sizes)
    one_more = log_blocks_ratio(model.seating, 1, 2)
    return np.asarray(weight[: 2 * k].reshape(k, 2).sum(axis=1) - weight[2 * k :] + one_more)


def _splits(
    rng: Generator,
    atoms: Atoms,
    state: SubClusters,
    model: Model,
    ready: NDArray[np.bool_],
) -> tuple[SubClusters, int]:
    rows, k = require_dense(atoms.rows), state.age.shape[0]
    halves = block_sums(rows, 2 * state.labels + state.side, 2 * k).reshape(k, 2, -1)
    half = 2 * state.labels + state.side
    counts = np.bincount(half, weights=atoms.size, minlength=2 * k).reshape(k, 2).astype(np.int64)
    labels, side = state.labels.copy(), state.side.copy()
    age, fit, falling = (list(each) for each in (state.age, state.fit, state.falling))
    one_sided = (counts == 0).any(axis=1)
    chosen = np.flatnonzero(ready & ~one_sided)
    ratios = np.empty(0)
    if chosen.size:
        ratios = _split_log_ratios(model, halves[chosen], counts[chosen])
    accepted = chosen[log_coins(rng, chosen.size) < ratios]
    for block in accepted:
        labels[(labels == block) & (side == 1)] = len(age)
        age.append(0)
        fit.append(-np.inf)
        falling.append(0)
    fresh = [*accepted, *range(k, len(age)), *np.flatnonzero(ready & one_sided)]
    for block in fresh:
        _begin_sides(rng, atoms, labels, side, model, int(block))
        age[block], fit[block], falling[block] = 0, -np.inf, 0
    return SubClusters(labels, side, np.array(age), np.array(fit), np.array(falling)), len(accepted)


def _merges(
    rng: Generator, atoms: Atoms, state: SubClusters, model: Model, groups: Labels
) -> tuple[SubClusters, int]:
    """Consider pairs of a super-cluster in a random order, each block merging once at most."""
    rows, k = require_dense(atoms.rows), state.age.shape[0]
    # Only clusters of one super-cluster are near enough to be worth a ratio.
    first, second = np.triu_indices(groups.shape[0], 1)
    near = groups[first] == groups[second]
    first, second = first[near], second[near]
    if first.size == 0:
        return state, 0
    sums = block_sums(rows, state.labels, k)
    counts = np.bincount(state.labels, weights=atoms.size, minlength=k).astype(np.int64)
    pair_sums = np.stack([sums[first], sums[second]], axis=1)
    pair_counts = np.stack([counts[first], counts[second]], axis=1)
    # Section 5.5: what would lead back is a random split by a share u ~ Beta(alpha/2, alpha/2),
    # which is integrated out; its choice of a block and a pair is left out, as published.
    a = 0.5 * float(np.exp(model.seating.slope))
    log_random_split = gammaln(2.0 * a) - gammaln(2.0 * a + pair_counts.sum(axis=1))
    log_random_split += (gammaln(a + pair_counts) - gammaln(a)).sum(axis=1)
    ratios = log_random_split - _split_log_ratios(model, pair_sums, pair_counts)
    # All ratios are of the state before: a block that has merged has another one now.
    gone: dict[int, int] = {}
    busy = np.zeros(k, dtype=bool)
    for at in rng.permutation(first.size):
        one, other = int(first[at]), int(second[at])
        if busy[one] or busy[other] or log_coin(rng) >= ratios[at]:
            continue
        busy[[one, other]] = True
        gone[other] = one
    if not gone:
        return state, 0
    labels, side = state.labels.copy(), state.side.copy()
    age, fit, falling = state.age.copy(), state.fit.copy(), state.falling.copy()
    for other, one in gone.items():
        # A merged block's parts are its first sub-clusters.
        side[labels == one], side[labels == other] = 0, 1
        labels[labels == other] = one
        age[one], fit[one], falling[one] = 0, -np.inf, 0
    # What is empty leaves; a sweep of merges is no sweep of its sub-clusters.
    merged, _ = _without_empty(SubClusters(labels, side, age - 1, fit, falling), np.zeros(k, int))
    return merged, len(gone)


def kernel(entry: Entry) -> Sampler[MixtureState]:
    """The kernel, as the registry names it."""
    return keeping_sub_clusters(entry, SubcBurninPlan())


def keeping_sub_clusters(entry: Entry, plan: SubcBurninPlan) -> Sampler[MixtureState]:
    """Kernel that keeps sub-clusters as long as nobody else moves the blocks."""

    def run(rng: Generator, at: MixtureState) -> Tally:
        labels, atoms, model = at.labels(), at.atoms, at.model
        state = at.kept.get(entry.name)
        if not isinstance(state, SubClusters) or not np.array_equal(state.labels, labels):
            state = begin(rng, atoms, labels, model)
        state, n_accepted = sweep(rng, atoms, state, model, plan)
        at.set_labels(state.labels)
        at.kept[entry.name] = renumbered(state, at.labels())
        return np.array([[float(at.n_atoms), float(n_accepted), 0.0]])

    return sampler(entry, run)
