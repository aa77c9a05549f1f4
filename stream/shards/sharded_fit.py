"""The chain from start to shown partition; makes again what a lost shard broke.

The family's hyperparameters and the first partition come from a sample, which an ordinary chain in
this process clusters; nothing that is sampled afterwards is any less exact for it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from weald.mcmc.hyperparameters.base_scale import log_likelihood_under
from weald.mcmc.hyperparameters.learner import Learner, learner_of, learns_by_default
from weald.mcmc.offline.fit import FitSettings, ground_of, run_chain
from weald.mcmc.sharded.shard import SHOWN
from weald.mcmc.sharded.sharded_chain import ShardedPlan, ShardedState, begun, gathered, swept
from weald.mcmc.sharded.shown import ShownPartition, shown_partition, statistics_of_shown
from weald.treecore.errors import ObservationError, ParameterError
from weald.treecore.family import FAMILIES, spec_of
from weald.treecore.family.totals import totals_of_groups
from weald.treecore.prior import PartitionPrior, build_prior

from .engine import ShardEngine, ShardLostError
from .fit_snapshots import FitSnapshots
from .row_files import RowFiles
from .standing import FitStanding, ShardedTrace

__all__ = ["MOST_SAMPLED", "ShardedFit", "fit_in_shards", "fit_terms", "items_of_rows"]

# Rows by which the base measure is set, and the first partition found.
MOST_SAMPLED = 5_000
_SAMPLE_SWEEPS = 40
# Clusters of a sample with fewer rows are not begun with.
_FEWEST = 5
# Rows by which groups of clusters are told apart, and of each cluster at least.
_LOOKED_AT, _OF_EACH = 20_000, 100
_SWEEPS = 100
# Rows whose clusters are told at a time.
_TOLD = 200_000
# A sweep in which a shard goes away so often is not made again.
_ATTEMPTS = 5

T = TypeVar("T")
Matrix = NDArray[np.float64]
# Told the sweeps made, how many there will be (None where time decides), and the clusters now.
Progress = Callable[[int, int | None, int], None]


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

    def __init__(self, engine: ShardEngine, n_remade: int = 0) -> None:
        self._engine = engine
        self.n_remade = n_remade

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
    engine: ShardEngine,
    n: int,
    settings: FitSettings,
    progress: Progress | None = None,
    snapshots: FitSnapshots | None = None,
) -> ShardedFit:
    """Cluster the n rows of an engine's shards.

    Of the settings family, prior, hyperparameters, ``iterations`` or ``seconds``, ``seed``,
    ``consensus`` and ``init`` ("auto" or "ibhc" for a start from a sample, or "one") count. Where
    there is a snapshot the fit goes on from it; it may be given more sweeps than it was begun with.

    Raises ObservationError for a row that the family cannot take, ParameterError for settings.
    """
    steady = _Steady(engine)
    family, standing = _standing(engine, steady, n, settings, snapshots)
    steady.n_remade = standing.trace.n_remade
    _sampled(engine, steady, standing, (family, settings, snapshots), progress)
    draws = standing.draws.second_half()
    shown = steady.made(lambda: shown_partition(engine, draws, settings.consensus))
    sums = steady.made(lambda: statistics_of_shown(engine, shown))
    looked_at = steady.made(lambda: _looked_at(engine, shown, n, settings.seed))
    standing.trace.n_remade = steady.n_remade
    return ShardedFit(standing.state, standing.trace, shown, sums, looked_at)


def fit_terms(
    files: RowFiles, shares: Sequence[tuple[int, int]], settings: FitSettings
) -> dict[str, Any]:
    """All that a fit depends on but how long it lasts, by the names that people know."""
    seen = [Path(path).stat() for path in files.paths]
    return {
        "files": [
            [path, each.st_size, each.st_mtime_ns]
            for path, each in zip(files.paths, seen, strict=True)
        ],
        "columns": files.columns,
        "shards": len(shares),
        "shares": [list(share) for share in shares],
        "family": settings.family,
        "parameters": dict(settings.params),
        "prior": [settings.prior, dict(settings.prior_params)],
        "learning": [settings.learn_hyper, settings.learn_base],
        "init": settings.init,
        "seed": settings.seed,
    }


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


def _standing(
    engine: ShardEngine,
    steady: _Steady,
    n: int,
    settings: FitSettings,
    snapshots: FitSnapshots | None,
) -> tuple[Any, FitStanding]:
    """The family by which log joints are told, and where the fit stands: at its start, or later."""
    rows = _spread_rows(n, MOST_SAMPLED, settings.seed)
    sample = _values(steady.made(lambda: engine.ask("sample", rows)), rows.size)
    family = FAMILIES[settings.family].build(settings.params, sample)
    learner = _learner(family, sample, settings)
    engine.set_up("model", settings.family, spec_of(family).parameters(family))
    standing = None if snapshots is None else snapshots.load(sample.shape[1])
    if standing is None:
        faults = [each for each in steady.made(lambda: engine.ask("fault")) if each is not None]
        if faults:
            raise ObservationError(f"row {faults[0][0]}: {faults[0][1]}")
        begin = _first_state(sample, family, n, settings)
        sums = begin.sums
        state = steady.made(lambda: begun(engine, begin, sums))
        standing = FitStanding(state, state.prior)
        standing.draws.begin(state.sweep)
    standing.state = replace(standing.state, learner=learner)
    return family, standing


def _learner(family: Any, sample: Matrix, settings: FitSettings) -> Learner[Any] | None:
    learns = settings.learn_base
    if learns is None:
        learns = learns_by_default(family) and not settings.params
    if learns and not learns_by_default(family):
        # Its learner remembers a step, and a sweep may have to be made again.
        raise ParameterError(f"{settings.family}: its base measure is not learned in shards")
    return learner_of(family, sample) if learns else None


def _first_state(sample: Matrix, family: Any, n: int, settings: FitSettings) -> ShardedState:
    """Clusters of a sample, and what was learned by them; all n rows are still in one."""
    prior = build_prior(settings.prior, {**settings.prior_params, "learn": settings.learn_hyper})
    started, labels = family, np.zeros(sample.shape[0], dtype=np.int64)
    if settings.init != "one":
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
        ground = ground_of(sample, few, family)
        found = run_chain(sample, few, 0, time.perf_counter, ground=ground)
        started, prior = found.last
        labels = found.draws[-1]
    sums = totals_of_groups(family, sample, labels, int(labels.max()) + 1)
    # Small clusters are found more easily than they are lost again.
    sums = sums[sums[:, 0] >= min(_FEWEST, sums[:, 0].max())]
    return ShardedState(n, settings.seed, 0, sums, started, prior)


def _values(answers: list[Any], n: int) -> Matrix:
    values = np.empty((n, answers[0][1].shape[1]))
    for inside, own in answers:
        values[inside] = own
    return values


def _sampled(
    engine: ShardEngine,
    steady: _Steady,
    standing: FitStanding,
    followed: tuple[Any, FitSettings, FitSnapshots | None],
    progress: Progress | None,
) -> None:
    """All sweeps that are still to be made.

    ``followed`` are the family by which log joints are told, the settings, and where snapshots go.
    """
    scale, settings, snapshots = followed
    trace, draws, plan = standing.trace, standing.draws, ShardedPlan()
    earlier = trace.seconds[-1] if trace.seconds else 0.0
    began = time.perf_counter() - earlier
    most = settings.iterations
    if most is None and settings.seconds is None:
        most = _SWEEPS
    while not _is_done(trace, most, settings.seconds):
        sent = engine.traffic.total()
        before = standing.state
        state = steady.made(lambda: swept(engine, before, plan, draws.unneeded))  # noqa: B023 - called at once
        draws.after(state.sweep)
        _follow(trace, state, (scale, standing.first_prior))
        trace.seconds.append(time.perf_counter() - began)
        trace.bytes.append(engine.traffic.total() - sent)
        trace.n_remade = steady.n_remade
        standing.state = state
        if snapshots is not None:
            snapshots.save(standing)
        if progress is not None:
            progress(len(trace.seconds), most, state.sums.shape[0])


def _is_done(trace: ShardedTrace, most: int | None, seconds: float | None) -> bool:
    done = len(trace.seconds)
    if done == 0:
        return False
    return (most is not None and done >= most) or (
        seconds is not None and trace.seconds[-1] >= seconds
    )


def _follow(trace: ShardedTrace, state: ShardedState, scale: tuple[Any, PartitionPrior]) -> None:
    family, prior = scale
    joint = log_likelihood_under(family, state.sums) + prior.log_probability(state.sizes)
    trace.log_joint.append(float(joint))
    trace.n_clusters.append(state.sums.shape[0])
    trace.sum_of_squares.append(float(((state.sizes / state.n) ** 2).sum()))
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
