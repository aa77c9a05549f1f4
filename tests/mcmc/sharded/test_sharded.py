"""The sub-cluster sampler over shards: its law by enumeration, its bits by comparison."""

from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.exact.cases import _VALUES, PRIOR_CASES
from tests.exact.enumeration import partitions
from tests.mcmc.sharded.in_shards import InProcess
from weald.mcmc.estimate.consensus import consensus_partition, expected_loss, membership
from weald.mcmc.hyperparameters.base_scale import log_likelihood_under
from weald.mcmc.sharded import launches, sharded_chain, shown
from weald.mcmc.sharded.counter import row_key, uniforms
from weald.mcmc.sharded.fixed_order import partial_sums, shares_of_rows, total
from weald.mcmc.sharded.shard import SHOWN
from weald.mcmc.sharded.sharded_chain import ShardedPlan, ShardedState, swept
from weald.treecore.errors import ParameterError
from weald.treecore.family import FAMILIES
from weald.treecore.family.totals import totals_of_groups
from weald.treecore.partition.partition import Model
from weald.treecore.prior import build_prior
from weald.treecore.prior.base import Seating
from weald.treecore.prior.sequential import canonical_labels

N_BATCHES = 16


def test_numbers_are_those_of_philox() -> None:
    """The known answers of its authors: two words of each, as 53 bits."""
    ones = 0xFFFFFFFF
    known = [
        ((0, 0, 0), 0, (0x6627E8D5, 0xE169C58D)),
        ((ones << 32 | ones, ones, ones), ones << 32 | ones, (0x408F276D, 0x41C83B0E)),
        (
            (0x299F31D0A4093822, 0x13198A2E, 0x03707344),
            0x85A308D3243F6A88,
            (0xD16CFE09, 0x94FDCCEB),
        ),
    ]
    for (seed, sweep, stage), row, (high, low) in known:
        out = np.empty(1)
        # Rows beyond 2**63 are no signed integers; their bits are what counts.
        at = row - (1 << 64) if row >= 1 << 63 else row
        uniforms(row_key(seed, sweep, stage), np.array([at]), out)
        assert out[0] == ((high >> 5) * 2**26 + (low >> 6)) / 2**53


def test_numbers_of_rows_are_uniform_and_unlike() -> None:
    """Mean, variance, and correlations with those of the next row, sweep, stage and seed."""
    n = 200_000
    own = np.empty(n)
    uniforms(row_key(1, 2, 3), np.arange(n), own)
    assert abs(own.mean() - 0.5) < 4.5 / np.sqrt(12 * n)
    assert abs(own.var() - 1 / 12) < 4.5 * np.sqrt(1 / 180 / n)
    for key, first in (((1, 2, 3), 1), ((1, 3, 3), 0), ((1, 2, 4), 0), ((2, 2, 3), 0)):
        other = np.empty(n)
        uniforms(row_key(*key), np.arange(first, first + n), other)
        assert abs(np.corrcoef(own, other)[0, 1]) < 4.5 / np.sqrt(n)


@pytest.mark.parametrize("n_chunks", [1, 2, 3, 7, 8, 13])
def test_sums_do_not_depend_on_how_rows_are_dealt(n_chunks: int) -> None:
    rng = np.random.default_rng(n_chunks)
    values = rng.normal(size=(n_chunks, 2)) * 10.0 ** rng.integers(-8, 8, (n_chunks, 1))
    whole = total(partial_sums(n_chunks, (0, n_chunks), lambda at: values[at]))
    for n_shards in range(1, 6):
        dealt = shares_of_rows(10 * n_chunks - 3, n_shards, 10)
        assert dealt[0][0] == 0
        assert dealt[-1][1] == 10 * n_chunks - 3
        assert all(end == start for (_, end), (start, _) in pairwise(dealt))
        sent = [
            partial_sums(n_chunks, (start // 10, -(-end // 10)), lambda at: values[at])
            for start, end in dealt
        ]
        assert np.array_equal(total([node for each in sent for node in each]), whole)


def test_shards_are_nearly_equal_and_send_few_nodes() -> None:
    for n_chunks in (257, 1000, 2442):
        for n_shards in (1, 2, 3, 4, 6, 8):
            dealt = shares_of_rows(n_chunks, n_shards, 1)
            sizes = np.diff([start for start, _ in dealt] + [n_chunks])
            assert sizes.max() <= 1.14 * n_chunks / n_shards
            most = 1 if n_shards in (1, 2, 4, 8) else 8
            for share in dealt:
                assert len(partial_sums(n_chunks, share, lambda _: np.zeros(1))) <= most


class Posed(NamedTuple):
    """A few rows, their partitions, and how probable each is with all auxiliary variables gone."""

    family: Any
    values: NDArray[np.float64]
    start: ShardedState
    shapes: NDArray[np.int64]
    target: NDArray[np.float64]


def _posed(family: str, prior: str, n: int) -> Posed:
    given, parameters = _VALUES[family]
    values = np.asarray(given, dtype=np.float64)
    built = FAMILIES[family].build(parameters, values)
    values = values[:n]
    name, of_prior = PRIOR_CASES[prior]
    fixed = build_prior(name, {**of_prior, "learn": False})
    shapes = np.array(partitions(n))
    weights = []
    for labels in shapes:
        sums = totals_of_groups(built, values, labels, int(labels.max()) + 1)
        log_prior = fixed.log_probability(np.bincount(labels))
        weights.append(log_prior + log_likelihood_under(built, sums))
    target = np.exp(np.array(weights) - np.max(weights))
    one = totals_of_groups(built, values, np.zeros(n, dtype=np.int64), 1)
    start = ShardedState(n, 7, 0, one, built, fixed)
    return Posed(built, values, start, shapes, target / target.sum())


def _visits(
    posed: Posed, plan: ShardedPlan, n_steps: int, begin: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Share of each state's visits in each of the batches (batches, states), on two shards.

    ``begin`` are the labels (n) of the start, where not all are in one cluster.
    """
    index = {tuple(shape): at for at, shape in enumerate(posed.shapes.tolist())}
    shards = InProcess(posed.family, posed.values, 2, 2)
    assert len(shards.shares) == 2
    state = posed.start
    if begin is not None:
        for kept, (first, end) in zip(shards.kept, shards.shares, strict=True):
            kept.save(state.sweep, begin[first:end].astype(np.int32))
    counts = np.zeros((N_BATCHES, len(posed.shapes)))
    for step in range(n_steps):
        if step % 97 == 13:
            # One dies somewhere in this sweep, which is made again.
            shards.dies_at = shards.n_asked + 1 + step % 7
        try:
            state = swept(shards, state, plan, [state.sweep - 2])
        except ConnectionError:
            state = swept(shards, state, plan, [state.sweep - 2])
        labels = canonical_labels(shards.labels(state.sweep))
        counts[step * N_BATCHES // n_steps, index[tuple(labels.tolist())]] += 1.0
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _check(posed: Posed, visits: NDArray[np.float64], n_steps: int) -> None:
    """How many clusters, and who is with whom, within 4.5 standard errors of what is so."""
    shapes, n = posed.shapes, posed.shapes.shape[1]
    statistics = [(shapes.max(axis=1) == k) for k in range(n)]
    statistics += [shapes[:, i] == shapes[:, j] for i in range(n) for j in range(i)]
    table = np.array(statistics, dtype=np.float64).T
    batches, exact = visits @ table, posed.target @ table
    independent = np.sqrt(exact * (1.0 - exact) / n_steps)
    error = np.maximum(batches.std(axis=0, ddof=1) / np.sqrt(N_BATCHES), independent)
    # What is certain has no standard error, but its shares are sums that are rounded.
    assert (np.abs(batches.mean(axis=0) - exact) <= 4.5 * error + 1e-9).all()
    assert error.max() < 0.04


CASES = [
    ("gaussian", "dp", 5, ShardedPlan(2, 1)),
    ("gaussian", "dp", 4, ShardedPlan(3, 0)),
    ("bernoulli", "pitman-yor", 4, ShardedPlan(2, 2)),
    ("poisson", "emm-at-most-3", 4, ShardedPlan(2, 1)),
    ("gamma", "dp", 4, ShardedPlan(2, 1)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("family", "prior", "n", "plan"), CASES)
def test_two_shards_visit_the_posterior(family: str, prior: str, n: int, plan: ShardedPlan) -> None:
    """Also where one of them dies now and then in the middle of a sweep."""
    posed, n_steps = _posed(family, prior, n), 4_000
    _check(posed, _visits(posed, plan, n_steps), n_steps)


@pytest.mark.slow
def test_splits_judged_without_the_probability_of_their_launch_miss_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The test above notices: the distance is .4, where it is .08 with it."""
    right = launches.LaunchedMove.log_ratio

    def wrong(move: launches.LaunchedMove, model: Model, seating: Seating, k: int) -> float:
        return right(move._replace(log_q=0.0), model, seating, k)

    monkeypatch.setattr(launches.LaunchedMove, "log_ratio", wrong)
    posed, n_steps = _posed("bernoulli", "dp", 5), 2_000
    with pytest.raises(AssertionError):
        _check(posed, _visits(posed, ShardedPlan(2, 1), n_steps), n_steps)


def _of_two_clusters(posed: Posed) -> tuple[Posed, tuple[int, ...]]:
    """What is left of a posterior where there are two clusters, and a partition to begin with."""
    two = posed.shapes.max(axis=1) == 1
    left = posed.target[two]
    return posed._replace(shapes=posed.shapes[two], target=left / left.sum()), (0, 0, 1, 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("forgets_the_sizes", [False, True])
def test_labels_alone_visit_what_two_clusters_can_be(
    monkeypatch: pytest.MonkeyPatch, *, forgets_the_sizes: bool
) -> None:
    """No cluster comes or goes; the ratio of sizes makes up for the row that stays in each."""
    posed, begin = _of_two_clusters(_posed("bernoulli", "dp", 5))
    labels = np.array(begin)
    if forgets_the_sizes:
        monkeypatch.setattr(sharded_chain, "_log_shrinking", lambda old, _: np.zeros(len(old)))
    sums = totals_of_groups(posed.family, posed.values, labels, 2)
    n_steps = 6_000
    visits = _visits(
        posed._replace(start=replace(posed.start, sweep=1, sums=sums)),
        ShardedPlan(0),
        n_steps,
        labels,
    )
    if forgets_the_sizes:
        with pytest.raises(AssertionError):
            _check(posed, visits, n_steps)
    else:
        _check(posed, visits, n_steps)


def _drawn_labels(rng: np.random.Generator) -> NDArray[np.int64]:
    """Six draws (t, n) of three clusters and rows that are unsure, numbered as it happens."""
    truth = np.arange(300) % 3
    draws = np.where(rng.random((6, 300)) < 0.15, rng.integers(0, 3, (6, 300)), truth)
    return np.array([rng.permutation(3)[draw] for draw in draws])


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_the_shown_partition_is_that_of_all_rows(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, loss: str
) -> None:
    """With its probabilities and stabilities, as if the draws had been in one place."""
    posed, draws = _posed("gaussian", "dp", 5), _drawn_labels(rng)
    values = np.repeat(posed.values, 60, axis=0)
    shards = InProcess(posed.family, values, 3, 32)
    for sweep, draw in enumerate(draws, start=1):
        for kept, (first, end) in zip(shards.kept, shards.shares, strict=True):
            kept.save(sweep, draw[first:end].astype(np.int32))
    sweeps = [1, 2, 3, 4, 5, 6]
    found = shown.shown_partition(shards, sweeps, loss)
    cluster = found.cluster[shards.labels(SHOWN)]
    canonical = np.array([canonical_labels(draw) for draw in draws])
    assert np.array_equal(cluster, consensus_partition(canonical, loss))
    probability, stability = membership(canonical, cluster)
    assert np.allclose(found.probability[shards.labels(SHOWN)], probability)
    assert np.allclose(found.stability[shards.labels(SHOWN)], stability)
    assert found.weight.sum() == 300
    expected = totals_of_groups(posed.family, values, cluster, 3)
    assert np.allclose(shown.statistics_of_shown(shards, found), expected)
    # Seen by two hundred shares in place of three hundred rows it loses hardly more.
    monkeypatch.setattr(shown, "_FINEST", 200)
    coarse = shown.shown_partition(shards, sweeps, loss)
    clusters = canonical_labels(coarse.cluster[shards.labels(SHOWN)])
    least = expected_loss(canonical, canonical_labels(cluster), loss)
    assert least <= expected_loss(canonical, clusters, loss) < 1.05 * least


def test_draws_that_divide_too_much_are_left_out(rng: np.random.Generator) -> None:
    posed = _posed("gaussian", "dp", 5)
    shards = InProcess(posed.family, np.repeat(posed.values, 60, axis=0), 2, 32)
    for sweep, draw in enumerate(_drawn_labels(rng), start=1):
        for kept, (first, end) in zip(shards.kept, shards.shares, strict=True):
            kept.save(sweep, draw[first:end].astype(np.int32))
    assert shown.shown_partition(shards, [1, 2, 3, 4, 5, 6], "vi", 10).sweeps == [2, 6]
    assert shown.shown_partition(shards, [1, 2, 3, 4, 5, 6], "map").sweeps == [6]
    with pytest.raises(ParameterError, match="more than 2 clusters"):
        shown.shown_partition(shards, [1, 2], "vi", 2)
