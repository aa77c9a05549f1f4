"""One sweep over rows in shards, decided on statistics alone.

Hyperparameters first: their laws look at sizes and statistics only. Then all labels at once, given
drawn weights and parameters, each row within its super-cluster: one member of each cluster, drawn
uniformly, stays where it is, so that none is emptied, and a super-cluster takes the new labels with
probability min(1, prod of old sizes / prod of new sizes). Then launched splits and merges. Exact,
and irreducible by the launches.

What is drawn here comes from a generator of the sweep's own, what is drawn for a row from the
row's own counter; sums have a fixed order. So a sweep is a function of seed, sweep and the labels
before it, bit for bit, however the rows are dealt out, and may be made again at will.

Sources: Chang and Fisher (2013), sections 4 and 5; ``split-merge-samplers.md`` section 2.10
(anchors, super-clusters, SUBC-X).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence

from weald.mcmc.conditional.labels import draw_log_weights, log_coins, within_reach
from weald.mcmc.hyperparameters.learner import Learner
from weald.treecore.family.interface.base import workspace
from weald.treecore.family.parameter_draws import draw_parameters
from weald.treecore.family.totals import single_rows
from weald.treecore.partition.partition import Model
from weald.treecore.prior.base import PartitionPrior

from .counter import RowKey, row_key, uniforms
from .fixed_order import total
from .launches import (
    LaunchedMove,
    Launches,
    draw_pairs,
    first_odds,
    next_odds,
    open_launches,
)
from .passes import Counts, Matrix
from .shard import Shards

__all__ = ["MOVES", "ShardedPlan", "ShardedState", "begun", "gathered", "swept"]

MOVES = ("labels", "split", "merge")

# Stages of a sweep, each with numbers of its own for a row.
_HELD, _LABELS, _PAIRS, _SIDES = 0, 1, 2, 3
# Clusters that one sweep may add, for which priors are tabulated.
_ROOM = 64


class ShardedPlan(NamedTuple):
    """``pairs`` of anchors are drawn in a sweep, each with ``launch`` launching sweeps."""

    pairs: int = 8
    launch: int = 3


@dataclass(frozen=True)
class ShardedState:
    """Where a chain stands after a sweep: statistics, and what is learned of the model.

    Attributes
    ----------
    sweep:
        Sweeps made, the start included.
    sums:
        Statistics (k, m) of the clusters, whose first column is the number of rows.
    family, prior:
        As they are learned; statistics do not depend on them.
    tally:
        For each of ``MOVES`` proposals, acceptances and the sum of log ratios (3, 3), of the last
        sweep: labels that were redrawn are counted by super-cluster.
    """

    n: int
    seed: int
    sweep: int
    sums: Matrix
    family: Any
    prior: PartitionPrior
    learner: Learner[Any] | None = None
    tally: Matrix = field(default_factory=lambda: np.zeros((3, 3)))

    @property
    def sizes(self) -> Counts:
        """Rows of each cluster (k)."""
        return np.rint(self.sums[:, 0]).astype(np.int64)

    def model(self) -> Model:
        """What kernels need; the prior is tabulated for all clusters that a sweep can make."""
        seating = self.prior.seating(self.n, min(self.n, self.sums.shape[0] + _ROOM))
        return Model(self.family, seating, workspace(self.family))


def _generator(seed: int, sweep: int) -> Generator:
    return Generator(PCG64(SeedSequence(seed, spawn_key=(sweep,))))


def gathered(shards: Shards, rows: Counts) -> tuple[Matrix, Counts]:
    """Values (r, d) and labels (r) of some rows."""
    answers = shards.ask("gather", rows)
    width = max(values.shape[1] for _, values, _ in answers)
    values, labels = np.empty((rows.size, width)), np.empty(rows.size, dtype=np.int64)
    for inside, own, label in answers:
        values[inside], labels[inside] = own, label
    return values, labels


def begun(shards: Shards, state: ShardedState, sample: Matrix) -> ShardedState:
    """The first partition: each row in a cluster drawn by those of a sample.

    ``sample`` (k, m) are the statistics of its clusters; of one cluster all rows are. The result
    depends on nothing else than the state's seed and the rows.
    """
    rng = _generator(state.seed, 0)
    k = sample.shape[0]
    shards.ask("begin", 0)
    log_weights = np.log(rng.gamma(sample[:, 0]))
    natural = draw_parameters(state.family, sample, rng).natural
    natural[:, 0] += log_weights
    # Of the one cluster that there is nobody is held.
    choices = (np.arange(k), np.array([k]), natural, np.array([-1]))
    sums = _drawn_labels(shards, choices, row_key(state.seed, 0, _LABELS))
    shards.ask("settle", np.array([True]))
    kept = np.flatnonzero(sums[:, 0] > 0.0)
    target = np.zeros((k, 2), dtype=np.int32)
    target[kept] = np.arange(kept.size)[:, None]
    shards.ask("finish", 1, target, [])
    return replace(state, sweep=1, sums=sums[kept])


def _joined(answers: Sequence[Any]) -> list[Any]:
    return [part for answer in answers for part in answer]


def swept(
    shards: Shards, state: ShardedState, plan: ShardedPlan, dropped: Sequence[int] = ()
) -> ShardedState:
    """One sweep further; ``dropped`` are sweeps whose labels are forgotten.

    Where a shard fails on the way, the same call makes the same sweep again.
    """
    rng = _generator(state.seed, state.sweep)
    state = _resampled(rng, state)
    model = state.model()
    shards.ask("begin", state.sweep)
    tally = np.zeros((3, 3))
    sums = _labels(rng, shards, state, model, tally)
    target = np.repeat(np.arange(sums.shape[0])[:, None], 2, axis=1)
    if plan.pairs > 0 and state.n > 1:
        sums, target = _splits_and_merges(rng, shards, replace(state, sums=sums), plan, tally)
    shards.ask("finish", state.sweep + 1, target.astype(np.int32), list(dropped))
    return replace(state, sweep=state.sweep + 1, sums=sums, tally=tally)


def _resampled(rng: Generator, state: ShardedState) -> ShardedState:
    state = replace(state, prior=state.prior.resample(rng, state.sizes))
    if state.learner is None:
        return state
    return replace(state, family=state.learner.step(rng, state.family, state.sums))


def _labels(
    rng: Generator, shards: Shards, state: ShardedState, model: Model, tally: Matrix
) -> Matrix:
    """Redraw all labels within super-clusters; returns the statistics of the clusters."""
    k = state.sums.shape[0]
    log_weights = draw_log_weights(rng, model.seating, state.sizes)
    drawn = draw_parameters(model.family, state.sums, rng)
    group = within_reach(rng, drawn)
    # Clusters that are alone in theirs need no pass.
    shared = np.flatnonzero(np.bincount(group)[group] > 1)
    owner = shared[np.argsort(group[shared], kind="stable")]
    if owner.size == 0:
        return state.sums
    ends = np.append(np.flatnonzero(np.diff(group[owner])) + 1, owner.size)
    groups = np.repeat(np.arange(ends.size), np.diff(ends, prepend=0))
    natural = drawn.natural[owner]
    natural[:, 0] += log_weights[owner]
    held = _held(shards, k, row_key(state.seed, state.sweep, _HELD))
    key = row_key(state.seed, state.sweep, _LABELS)
    found = _drawn_labels(shards, (owner, ends, natural, held), key)
    return _accepted(rng, shards, state, (owner, groups, found), tally)


def _drawn_labels(
    shards: Shards, choices: tuple[Counts, Counts, Matrix, Counts], key: RowKey
) -> Matrix:
    """Statistics (c, m) of labels drawn by owner (c), ends (g), natural (c, m) and held (k)."""
    owner, ends, natural, held = choices
    columns = np.ascontiguousarray(natural.T)
    sent = (owner.astype(np.int32), ends.astype(np.int32), columns, held)
    return total(_joined(shards.ask("draw_labels", *sent, key)))


def _held(shards: Shards, k: int, key: RowKey) -> Counts:
    """The row of each cluster with the smallest number, which anybody can draw again."""
    rows = np.stack(shards.ask("held", k, key))
    drawn = np.empty(rows.size)
    uniforms(key, rows.reshape(-1), drawn)
    # A number is below 1, so that no row comes after every row.
    least = np.argmin(np.where(rows >= 0, drawn.reshape(rows.shape), 1.0), axis=0)
    return np.asarray(rows[least, np.arange(k)])


def _accepted(
    rng: Generator,
    shards: Shards,
    state: ShardedState,
    found: tuple[Counts, Counts, Matrix],
    tally: Matrix,
) -> Matrix:
    """Let super-clusters take their new labels, or not; returns the clusters' statistics."""
    owner, groups, new = found
    ratio = np.bincount(groups, weights=_log_shrinking(state.sums[owner, 0], new[:, 0]))
    accepted = log_coins(rng, ratio.size) < ratio
    tally[0] += ratio.size, accepted.sum(), ratio.sum()
    moved = np.zeros(state.sums.shape[0], dtype=np.bool_)
    moved[owner] = accepted[groups]
    shards.ask("settle", moved)
    sums = state.sums.copy()
    sums[owner[accepted[groups]]] = new[accepted[groups]]
    return sums


def _log_shrinking(old: Matrix, new: Matrix) -> Matrix:
    """How much smaller clusters of so many rows become, which makes up for the rows that stay."""
    return np.log(old) - np.log(new)


def _splits_and_merges(
    rng: Generator, shards: Shards, state: ShardedState, plan: ShardedPlan, tally: Matrix
) -> tuple[Matrix, Counts]:
    """Launch, propose and decide; returns statistics, and the label of both sides of clusters."""
    model = state.model()
    launches, anchors = _launched(shards, state, plan)
    k = state.sums.shape[0]
    shards.ask("launch", k, launches.anchors, launches.clusters.astype(np.int32))
    odds = first_odds(rng, model, anchors)
    asked = np.ones(launches.clusters.shape[0], dtype=np.int64)
    for stage in range(plan.launch + 1):
        sides, _ = _sides(shards, state, launches, (odds, asked, stage), last=False)
        odds = next_odds(rng, model, sides)
        asked = np.argmin(sides[:, 0].reshape(-1, 2), axis=1)
    proposed = _sides(shards, state, launches, (odds, asked, plan.launch + 1), last=True)
    return _decided(rng, state, model, launches, proposed, tally)


def _launched(shards: Shards, state: ShardedState, plan: ShardedPlan) -> tuple[Launches, Matrix]:
    """The pairs that count, and the statistics (p, 2, m) of their anchors.

    Of the candidates for a second row each shard says which it has that is best, and that one only.
    """
    key = row_key(state.seed, state.sweep, _PAIRS)
    drawn = draw_pairs(key, state.n, plan.pairs)
    values, labels = gathered(shards, np.array([rows[0] for rows in drawn]))
    best = [(-np.inf, 0)] * plan.pairs
    seconds, second_labels = np.empty_like(values), np.empty_like(labels)
    for pairs, places, gained, own, label in shards.ask("seconds", key, values):
        for at, pair in enumerate(pairs.tolist()):
            # Of those that are alike the first counts, whoever has it.
            candidate = (float(gained[at]), -int(places[at]))
            if candidate > best[pair]:
                best[pair] = candidate
                seconds[pair], second_labels[pair] = own[at], label[at]
    anchors = np.array([[rows[0], rows[1 - at]] for rows, (_, at) in zip(drawn, best, strict=True)])
    launches, counting = open_launches(anchors, np.stack([labels, second_labels], axis=1))
    both = np.stack([values[counting], seconds[counting]], axis=1)
    statistics = single_rows(state.family, both.reshape(-1, values.shape[1]))
    return launches, statistics.reshape(counting.size, 2, -1)


def _sides(
    shards: Shards,
    state: ShardedState,
    launches: Launches,
    drawing: tuple[Matrix, Counts, int],
    *,
    last: bool,
) -> tuple[Matrix, Matrix]:
    """Statistics (2p, m) of both sides, and in the ``last`` pass the log probability of each (p).

    ``drawing`` are the odds, the side of each pair that is summed, and the stage. Clusters that the
    last pass forces to be sides have the sums that they have.
    """
    odds, asked, stage = drawing
    m = state.sums.shape[1]
    found = state.sums[launches.clusters]
    pairs = np.flatnonzero(launches.is_split) if last else np.arange(asked.size)
    wanted = (2 * pairs + asked[pairs]).astype(np.int32)
    key = row_key(state.seed, state.sweep, _SIDES + stage)
    command = "propose_sides" if last else "draw_sides"
    sent = total(_joined(shards.ask(command, odds, key, wanted)))
    summed, log_q = sent[: pairs.size * m].reshape(-1, m), sent[pairs.size * m :]
    found[pairs, asked[pairs]] = summed
    found[pairs, 1 - asked[pairs]] = launches.wholes(state.sums)[pairs] - summed
    return found.reshape(-1, m), log_q


def _decided(
    rng: Generator,
    state: ShardedState,
    model: Model,
    launches: Launches,
    proposed: tuple[Matrix, Matrix],
    tally: Matrix,
) -> tuple[Matrix, Counts]:
    """Accept or not, one pair after the other, and number the clusters that there are then."""
    k = n_clusters = state.sums.shape[0]
    sides, log_q = proposed
    sums, joined = list(state.sums), np.arange(k)
    target = np.repeat(np.arange(k)[:, None], 2, axis=1)
    for at, (one, other) in enumerate(launches.clusters.tolist()):
        move = LaunchedMove(one == other, sides[2 * at : 2 * at + 2], float(log_q[at]))
        ratio = move.log_ratio(model, model.seating, n_clusters)
        accepted = move.is_accepted(rng, ratio)
        tally[1 if move.is_split else 2] += 1.0, float(accepted), ratio
        if not accepted:
            continue
        n_clusters += 1 if move.is_split else -1
        if move.is_split:
            sums[one] = move.sums[0]
            target[one, 1] = len(sums)
            sums.append(move.sums[1])
        else:
            sums[one] = move.sums[0] + move.sums[1]
            joined[other] = one
            target[other] = one
    kept = np.array([at for at in range(len(sums)) if at >= k or joined[at] == at])
    number = np.full(len(sums), -1, dtype=np.int64)
    number[kept] = np.arange(kept.size)
    return np.stack([sums[at] for at in kept.tolist()]), number[target]
