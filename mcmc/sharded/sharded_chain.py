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
from numpy.typing import NDArray

from weald.mcmc.conditional.labels import draw_log_weights, within_reach
from weald.mcmc.hyperparameters.learner import Learner
from weald.treecore.family.interface.base import workspace
from weald.treecore.family.parameter_draws import draw_parameters
from weald.treecore.partition.partition import Model
from weald.treecore.prior.base import PartitionPrior

from .counter import row_key
from .fixed_order import total
from .launches import LaunchedMove, Launches, draw_pairs, first_odds, next_odds, open_launches
from .passes import Counts, Matrix, RowChoices
from .shard import Shards

__all__ = ["MOVES", "ShardedPlan", "ShardedState", "begun", "gathered", "swept"]

MOVES = ("labels", "split", "merge")

# Stages of a sweep, each with numbers of its own for a row.
_HELD, _LABELS, _SIDES = 0, 1, 2
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
    every = np.arange(k)
    one, end = np.zeros(1, dtype=np.int64), np.array([k])
    columns = np.ascontiguousarray(natural.T)
    choices = RowChoices(one, end, every, columns, np.array([-1]))
    sums = total(_joined(shards.ask("draw_labels", choices, row_key(state.seed, 0, _LABELS))))
    shards.ask("settle", np.array([True]))
    kept = np.flatnonzero(sums[:, 0] > 0.0)
    target = np.zeros((k, 2), dtype=np.int64)
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
    shards.ask("finish", state.sweep + 1, target, list(dropped))
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
    groups, begins, ends = _runs(group[owner])
    start, stop = np.full(k, -1, dtype=np.int64), np.full(k, -1, dtype=np.int64)
    start[owner], stop[owner] = begins[groups], ends[groups]
    natural = drawn.natural[owner]
    natural[:, 0] += log_weights[owner]
    held = _held(shards, k, row_key(state.seed, state.sweep, _HELD))
    columns = np.ascontiguousarray(natural.T)
    choices = RowChoices(start, stop, owner, columns, held)
    key = row_key(state.seed, state.sweep, _LABELS)
    found = total(_joined(shards.ask("draw_labels", choices, key)))
    return _accepted(rng, shards, state, (owner, groups, found), tally)


def _runs(values: NDArray[np.int64]) -> tuple[Counts, Counts, Counts]:
    """For each of sorted values the number of its run; where the runs begin and end."""
    begins = np.flatnonzero(np.diff(values, prepend=-1))
    ends = np.append(begins[1:], values.size)
    return np.repeat(np.arange(begins.size), ends - begins), begins, ends


def _held(shards: Shards, k: int, key: NDArray[np.uint64]) -> Counts:
    least, rows = zip(*shards.ask("held", k, key), strict=True)
    every = np.stack(rows)
    return np.asarray(every[np.argmin(np.stack(least), axis=0), np.arange(k)])


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
    accepted = np.log(np.maximum(rng.random(ratio.size), 1e-300)) < ratio
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
    drawn = draw_pairs(rng, state.n, plan.pairs)
    values, labels = gathered(shards, np.concatenate(drawn))
    ends = np.cumsum([rows.size for rows in drawn])[:-1]
    launches, anchors = open_launches(model, drawn, np.split(values, ends), np.split(labels, ends))
    odds = first_odds(rng, model, anchors)
    for stage in range(plan.launch + 1):
        sides = _sides(shards, state, launches, odds, stage, last=False)
        odds = next_odds(rng, model, sides[:, :-1])
    sides = _sides(shards, state, launches, odds, plan.launch + 1, last=True)
    return _decided(rng, state, model, launches, sides, tally)


def _sides(
    shards: Shards,
    state: ShardedState,
    launches: Launches,
    odds: Matrix,
    stage: int,
    *,
    last: bool,
) -> Matrix:
    contest = launches.contest(state.sums.shape[0], odds, last=last)
    key = row_key(state.seed, state.sweep, _SIDES + stage)
    return total(_joined(shards.ask("draw_sides", contest, key)))


def _decided(
    rng: Generator,
    state: ShardedState,
    model: Model,
    launches: Launches,
    sides: Matrix,
    tally: Matrix,
) -> tuple[Matrix, Counts]:
    """Accept or not, one pair after the other, and number the clusters that there are then."""
    k = n_clusters = state.sums.shape[0]
    sums, joined = list(state.sums), np.arange(k)
    target = np.repeat(np.arange(k)[:, None], 2, axis=1)
    for at, (one, other) in enumerate(launches.clusters.tolist()):
        both = sides[2 * at : 2 * at + 2]
        move = LaunchedMove(one == other, both[:, :-1], float(both[0, -1]))
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
