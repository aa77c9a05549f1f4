"""The chain from start to shown partition; makes again what a lost shard broke.

The family's hyperparameters and the first partition come from a sample, which an ordinary chain in
this process clusters; nothing that is sampled afterwards is any less exact for it.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from weald.mcmc.hyperparameters.base_scale import log_likelihood_under
from weald.mcmc.hyperparameters.learner import learner_of, learns_by_default
from weald.mcmc.offline.fit import FitSettings, run_chain
from weald.mcmc.sharded.shard import SHOWN
from weald.mcmc.sharded.sharded_chain import ShardedPlan, ShardedState, begun, gathered, swept
from weald.mcmc.sharded.shown import ShownPartition, shown_partition, statistics_of_shown
from weald.treecore.errors import ObservationError, ParameterError
from weald.treecore.family import FAMILIES, spec_of
from weald.treecore.family.totals import totals_of_groups
from weald.treecore.prior import PartitionPrior, build_prior

from .engine import ShardEngine, ShardLostError

__all__ = ["MOST_SAMPLED", "ShardedFit", "ShardedTrace", "fit_in_shards", "items_of_rows"]

# Rows by which the base measure is set, and the first partition found.
MOST_SAMPLED = 5_000
_SAMPLE_SWEEPS = 40
# Clusters of a sample with fewer rows are not begun with.
_FEWEST = 5
# Rows by which groups of clusters are told apart, and of each cluster at least.
_LOOKED_AT, _OF_EACH = 20_000, 100
# Draws of which the shown partition is made, at most.
_DRAWS = 16
_SWEEPS = 100
# Rows whose clusters are told at a time.
_TOLD = 200_000
# A sweep in which a shard goes away so often is not made again.
_ATTEMPTS = 5

T = TypeVar("T")
Matrix = NDArray[np.float64]
# Told the sweeps made, how many there will be (None where time decides), and the clusters now.
Progress = Callable[[int, int | None, int], None]


@dataclass
class ShardedTrace:
    """What is followed, sweep by sweep; ``bytes`` are those sent and received."""

    log_joint: list[float] = field(default_factory=list)
    n_clusters: list[int] = field(default_factory=list)
    sum_of_squares: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    hyper: dict[str, list[float]] = field(default_factory=dict)
    tally: Matrix = field(default_factory=lambda: np.zeros((3, 3)))
    bytes: list[int] = field(default_factory=list)
    n_remade: int = 0


@dataclass(frozen=True)
class ShardedFit:
    """The shown partition, its clusters' statistics (k, m), and how it came about.

    ``looked_at`` are values and clusters of some rows, among them some of every cluster.
    """

    state: ShardedState
    trace: ShardedTrace
    shown: ShownPartition
    sums: Matrix
    looked_at: tuple[Matrix, NDArray[np.int64]]


class _Steady:
    """Shards that are asked again after one of them was lost."""

    def __init__(self, engine: ShardEngine) -> None:
        self._engine = engine
        self.n_remade = 0

    def made(self, step: Callable[[], T]) -> T:
        """What a step comes to that may be made any number of times."""
        attempts = 1
        while True:
            try:
                if attempts > 1:
                    self._engine.restart()
                return step()
            except ShardLostError:
                if attempts == _ATTEMPTS:
                    raise
                attempts += 1
                self.n_remade += 1


def fit_in_shards(
    engine: ShardEngine, n: int, settings: FitSettings, progress: Progress | None = None
) -> ShardedFit:
    """Cluster the n rows of an engine's shards.

    Of the settings family, prior, hyperparameters, ``iterations`` or ``seconds``, ``seed``,
    ``consensus`` and ``init`` ("ibhc" for a start from a sample, or "one") count.

    Raises ObservationError for a row that the family cannot take, ParameterError for settings.
    """
    steady = _Steady(engine)
    state, first = _begun(engine, steady, n, settings)
    trace, draws = _sampled(engine, steady, (state, first), settings, progress)
    shown = steady.made(lambda: shown_partition(engine, draws[1], settings.consensus))
    sums = steady.made(lambda: statistics_of_shown(engine, shown))
    looked_at = steady.made(lambda: _looked_at(engine, shown, n, settings.seed))
    trace.n_remade = steady.n_remade
    return ShardedFit(draws[0], trace, shown, sums, looked_at)


def items_of_rows(engine: ShardEngine, n: int) -> Iterator[NDArray[np.int32]]:
    """Place of each of n rows among the items of the shown partition, some rows at a time."""
    steady = _Steady(engine)
    for start in range(0, n, _TOLD):
        stop = min(start + _TOLD, n)
        yield np.concatenate(steady.made(lambda: engine.ask("marked", start, stop)))  # noqa: B023 - called at once


def _spread_rows(n: int, most: int, seed: int) -> NDArray[np.int64]:
    """Row numbers of a sample: a random one of each of equal stretches."""
    n_drawn = min(n, most)
    edges = np.arange(n_drawn + 1, dtype=np.int64) * n // n_drawn
    rng = Generator(PCG64(SeedSequence(seed, spawn_key=(2**32,))))
    return edges[:-1] + np.floor(rng.random(n_drawn) * np.diff(edges)).astype(np.int64)


def _begun(
    engine: ShardEngine, steady: _Steady, n: int, settings: FitSettings
) -> tuple[ShardedState, tuple[Any, PartitionPrior]]:
    """The first partition, with the family and the prior that log joints are told by."""
    rows = _spread_rows(n, MOST_SAMPLED, settings.seed)
    sample = _values(steady.made(lambda: engine.ask("sample", rows)), rows.size)
    family = FAMILIES[settings.family].build(settings.params, sample)
    prior = build_prior(settings.prior, {**settings.prior_params, "learn": settings.learn_hyper})
    engine.set_up("model", settings.family, spec_of(family).parameters(family))
    faults = [each for each in steady.made(lambda: engine.ask("fault")) if each is not None]
    if faults:
        raise ObservationError(f"row {faults[0][0]}: {faults[0][1]}")
    learns = settings.learn_base
    if learns is None:
        learns = learns_by_default(family) and not settings.params
    if learns and not learns_by_default(family):
        # Its learner remembers a step, and a sweep may have to be made again.
        raise ParameterError(f"{settings.family}: its base measure is not learned in shards")
    learner = learner_of(family, sample) if learns else None
    started, labels = family, np.zeros(rows.size, dtype=np.int64)
    if settings.init == "ibhc":
        few = FitSettings(
            family=settings.family,
            params=settings.params,
            prior=settings.prior,
            prior_params=settings.prior_params,
            learn_hyper=settings.learn_hyper,
            learn_base=settings.learn_base,
            iterations=_SAMPLE_SWEEPS,
            seed=settings.seed,
        )
        found = run_chain(sample, few, 0, time.perf_counter, family=family)
        started, prior = found.last
        labels = found.draws[-1]
    sums = totals_of_groups(family, sample, labels, int(labels.max()) + 1)
    # Small clusters are found more easily than they are lost again.
    sums = sums[sums[:, 0] >= min(_FEWEST, sums[:, 0].max())]
    state = ShardedState(n, settings.seed, 0, sums, started, prior, learner)
    state = steady.made(lambda: begun(engine, state, sums))
    return state, (family, prior)


def _values(answers: list[Any], n: int) -> Matrix:
    values = np.empty((n, answers[0][1].shape[1]))
    for inside, own in answers:
        values[inside] = own
    return values


class _Draws:
    """Which sweeps' labels are kept: the newest, and some of those before, evenly spaced."""

    def __init__(self) -> None:
        self.kept: list[int] = []
        self._stride = 1
        self._held: set[int] = set()

    def after(self, sweep: int) -> list[int]:
        """Enter a sweep that was made; returns those whose labels nobody needs any more."""
        if sweep % self._stride == 0:
            self.kept.append(sweep)
        if len(self.kept) == 4 * _DRAWS:
            del self.kept[::2]
            self._stride *= 2
        self._held.add(sweep)
        done = self._held - {*self.kept, sweep}
        self._held -= done
        return sorted(done)

    def second_half(self) -> list[int]:
        """Of those that are kept, as many as a shown partition is made of."""
        late = self.kept[len(self.kept) // 2 :]
        return [late[at] for at in np.unique(np.linspace(0, len(late) - 1, _DRAWS).astype(int))]


def _sampled(
    engine: ShardEngine,
    steady: _Steady,
    begin: tuple[ShardedState, tuple[Any, PartitionPrior]],
    settings: FitSettings,
    progress: Progress | None,
) -> tuple[ShardedTrace, tuple[ShardedState, list[int]]]:
    """All sweeps; the trace, the last state, and the sweeps whose draws are kept."""
    state, scale = begin
    trace, draws, plan = ShardedTrace(), _Draws(), ShardedPlan()
    began = time.perf_counter()
    most = settings.iterations
    if most is None and settings.seconds is None:
        most = _SWEEPS
    dropped = draws.after(state.sweep)
    draws.kept.clear()
    while True:
        sent = engine.traffic.total()
        before, unneeded = state, dropped
        state = steady.made(lambda: swept(engine, before, plan, unneeded))  # noqa: B023 - called at once
        dropped = draws.after(state.sweep)
        elapsed = time.perf_counter() - began
        _follow(trace, state, scale, elapsed, engine.traffic.total() - sent)
        done = len(trace.seconds)
        if progress is not None:
            progress(done, most, state.sums.shape[0])
        if done == most or (settings.seconds is not None and elapsed >= settings.seconds):
            return trace, (state, draws.second_half())


def _follow(
    trace: ShardedTrace,
    state: ShardedState,
    scale: tuple[Any, PartitionPrior],
    elapsed: float,
    n_bytes: int,
) -> None:
    family, prior = scale
    joint = log_likelihood_under(family, state.sums) + prior.log_probability(state.sizes)
    trace.log_joint.append(float(joint))
    trace.n_clusters.append(state.sums.shape[0])
    trace.sum_of_squares.append(float(((state.sizes / state.n) ** 2).sum()))
    trace.seconds.append(elapsed)
    trace.bytes.append(n_bytes)
    trace.tally += state.tally
    hyper = {k: v for k, v in state.prior.parameters().items() if isinstance(v, float)}
    if state.learner is not None:
        hyper |= state.learner.shown(state.family)
    for name, value in hyper.items():
        trace.hyper.setdefault(name, []).append(value)


def _looked_at(
    engine: ShardEngine, shown: ShownPartition, n: int, seed: int
) -> tuple[Matrix, NDArray[np.int64]]:
    """Values and clusters of rows: a sample of all, and the first of some items of each cluster."""
    order = np.argsort(shown.cluster, kind="stable")
    sizes = np.bincount(shown.cluster)
    place = np.arange(order.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    firsts = shown.first[order[place < _OF_EACH]]
    rows = np.unique(np.concatenate([_spread_rows(n, _LOOKED_AT, seed), firsts]))
    engine.ask("begin", SHOWN)
    values, items = gathered(engine, rows)
    return values, shown.cluster[items]
