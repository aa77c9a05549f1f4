"""A growing chain: the same however the stream is cut, across a restart, and always consistent."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mcmc.chains import PRIORS, chain_faults, clumps, same, started
from tests.treecore.invariants import describe
from weald.mcmc.chain.chain import MixtureChain
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.offline.fit import FitSettings, run_chain
from weald.treecore.errors import ObservationError
from weald.treecore.family import FAMILIES
from weald.treecore.family.interface.base import log_marginal, observe, statistics_width
from weald.treecore.family.totals import log_marginals, totals_of_groups
from weald.treecore.prior import build_prior
from weald.treecore.prior.sequential import canonical_labels

N = 90
# Observations after which the chain is refined: part of the schedule, unlike the cuts.
REFINED = (30, 60)

cuts = st.lists(st.integers(1, N - 1), max_size=8, unique=True).map(sorted)


def run(chain: MixtureChain, values: np.ndarray, cut_at: list[int], first: int = 0) -> MixtureChain:
    """Insert the observations from ``first`` on, in batches that end at the cuts."""
    n = values.shape[0]
    for end in (end for end in sorted({*cut_at, *REFINED, n}) if first < end <= n):
        # What trees move is as much the same as the rest.
        chain.insert(values[first:end], by_trees=True)
        if end in REFINED:
            chain.refine()
        first = end
    return chain


@pytest.mark.slow
@pytest.mark.parametrize("prior", PRIORS)
@settings(max_examples=6)
@given(cut_at=cuts, seed=st.integers(0, 2**32 - 1))
def test_batches_cut_otherwise(prior: str, cut_at: list[int], seed: int) -> None:
    values = clumps(seed, N)
    whole = run(started(prior, values), values, [])
    parts = run(started(prior, values), values, cut_at)
    assert same(whole, parts)
    assert describe(chain_faults(parts)) == []


@pytest.mark.parametrize("prior", PRIORS)
@settings(max_examples=6)
@given(at=st.integers(0, N), seed=st.integers(0, 2**32 - 1))
def test_restored_anywhere(prior: str, at: int, seed: int) -> None:
    values = clumps(seed, N)
    whole = run(started(prior, values), values, [at] if at else [])
    stopped = run(started(prior, values), values[:at], []) if at else started(prior, values)
    # A refinement that was due at the very end has been made before the snapshot.
    restored = MixtureChain.restore(stopped.state())
    assert same(stopped, restored)
    assert describe(chain_faults(restored)) == []
    assert same(whole, run(restored, values, [], at))


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.lists(st.one_of(st.integers(1, 40), st.just(0)), max_size=12),
)
def test_any_sequence_of_inserts_and_refinements(seed: int, steps: list[int]) -> None:
    values = clumps(seed, sum(steps) + 1)
    chain = started("dp", values)
    for step in steps:
        if step:
            ids = chain.insert(values[chain.n_atoms : chain.n_atoms + step])
            assert ids.tolist() == list(range(chain.n_atoms - step, chain.n_atoms))
        else:
            before = chain.log_joint()
            done = chain.refine()
            assert done.log_joint_before == pytest.approx(before, abs=1e-8)
            assert done.log_joint_after == pytest.approx(chain.log_joint(), abs=1e-8)
            assert done.n_blocks == chain.n_blocks
        assert describe(chain_faults(chain)) == []
    assert chain.labels.shape == (sum(steps),)


def test_more_than_the_first_room() -> None:
    """Arrays are enlarged on the way; one batch and many must not differ."""
    values = clumps(7, 2500)
    whole, parts = started("dp", values), started("dp", values)
    whole.insert(values)
    for first in range(0, 2500, 100):
        parts.insert(values[first : first + 100])
    assert same(whole, parts)
    for chain in (whole, parts):
        chain.refine()
    assert same(whole, parts)
    assert describe(chain_faults(parts)) == []


def test_seeds() -> None:
    values = clumps(5, 200)
    chains = [started("dp", values, seed=seed) for seed in (1, 1, 2)]
    for chain in chains:
        chain.insert(values)
        chain.refine()
    assert same(chains[0], chains[1])
    assert not same(chains[0], chains[2])


def test_a_bad_observation_leaves_the_chain_as_it_was() -> None:
    values = clumps(5, 50)
    chain, other = started("dp", values), started("dp", values)
    for each in (chain, other):
        each.insert(values[:40])
    bad = values[40:].copy()
    bad[3, 1] = np.nan
    with pytest.raises(ObservationError, match="observation 3"):
        chain.insert(bad)
    assert same(chain, other)


def test_a_density_that_is_no_number_reaches_no_kernel() -> None:
    """The family takes such values by their scale, but their squares are beyond float64."""
    values = clumps(5, 8) * 1e155
    parameters = {"mean": 0.0, "kappa": 0.5, "psi": 1e307}
    family = FAMILIES["gaussian"].build(parameters, values)
    chain, other = (MixtureChain.start(family, build_prior("dp", {}), seed=1) for _ in range(2))
    with pytest.raises(ObservationError, match=r"observation 0: its log density .* is (nan|-?inf)"):
        chain.insert(values)
    assert same(chain, other)
    with pytest.raises(ObservationError, match="observation 0: its log density"):
        run_chain(values, FitSettings(params=parameters), 0, lambda: 0.0)


def test_an_empty_chain() -> None:
    values = clumps(5, 50)
    chain = started("dp", values)
    assert chain.refine().n_blocks == 0
    assert chain.insert(values[:0]).shape == (0,)
    assert (chain.n_atoms, chain.n_blocks, chain.log_joint()) == (0, 0, 0.0)
    slots, weights = chain.log_weights(values[:2])
    assert (slots.shape, weights.shape) == ((0,), (2, 1))
    assert same(chain, MixtureChain.restore(chain.state()))


def test_one_observation() -> None:
    values = clumps(5, 50)
    chain = started("dp", values)
    chain.insert(values[:1])
    assert chain.refine(rounds=2).n_blocks == 1
    assert (chain.labels >= 0).tolist() == [True]


@pytest.mark.parametrize("prior", PRIORS)
def test_log_weights(prior: str) -> None:
    """Prior times predictive, as the prior itself predicts given its auxiliary variables."""
    values = clumps(5, 60)
    chain = started(prior, values)
    chain.insert(values)
    chain.refine()
    before = chain.state()
    slots, weights = chain.log_weights(values[:5] + 0.1)
    sizes = np.array([(chain.labels == slot).sum() for slot in slots])
    family = chain.family
    rows = np.zeros((2, statistics_width(family)))
    for q in range(5):
        observe(family, values[:5] + 0.1, q, rows, 0)
        alone = log_marginal(family, rows, 0, chain._work)
        likelihood = []
        for row in chain.block_statistics()[1]:
            rows[1] = row + rows[0]
            joined = log_marginal(family, rows, 1, chain._work)
            rows[1] = row
            likelihood.append(joined - log_marginal(family, rows, 1, chain._work))
        prior_weights = weights[q] - np.append(likelihood, alone)
        prior_weights -= np.logaddexp.reduce(prior_weights)
        if prior in {"dp", "mfm", "emm"}:
            # These have no auxiliary variable to be given.
            expected = chain.prior.log_predictive(sizes)
            assert prior_weights == pytest.approx(expected, abs=1e-8)
        assert np.exp(prior_weights).sum() == pytest.approx(1.0)
    assert all(np.array_equal(before[key], value) for key, value in chain.state().items())


def test_no_more_blocks_than_the_prior_allows() -> None:
    values = clumps(3, 120, k=8)
    chain = started("emm", values)
    chain.insert(values)
    assert chain.refine(rounds=3).n_blocks <= 3
    assert np.isfinite(chain.log_joint())


def test_the_log_joint_is_the_partition_s_and_looks_at_blocks_alone() -> None:
    values, peaks = clumps(3, 20_000), []
    for n in (2_000, 20_000):
        chain = started("dp", values)
        chain.insert(values[:n])
        chain.remove(np.arange(0, n, 7))
        left = np.delete(np.arange(n), np.arange(0, n, 7))
        blocks = canonical_labels(chain.labels[left])
        totals = totals_of_groups(chain.family, values[left], blocks, chain.n_blocks)
        expected = log_marginals(chain.family, totals).sum()
        expected += chain.prior.log_probability(np.bincount(blocks))
        assert chain.log_joint() == pytest.approx(expected, rel=1e-12)
        tracemalloc.start()
        chain.log_joint()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Less than a byte for each of the atoms that there are more.
    assert peaks[1] < peaks[0] + 10_000


def test_block_statistics_are_those_of_the_members() -> None:
    values = clumps(5, 150)
    chain = started("dp", values)
    chain.insert(values)
    chain.refine()
    slots, rows = chain.block_statistics()
    assert sorted(slots.tolist()) == sorted(set(chain.labels.tolist()))
    for slot, row in zip(slots, rows, strict=True):
        members = values[chain.labels == slot] - chain.family.mean
        assert row[0] == members.shape[0]
        np.testing.assert_allclose(row[2:4], members.sum(axis=0), atol=1e-9)


def test_an_observation_moves_when_others_come() -> None:
    """Two groups that look like one until there is enough of both."""
    rng = np.random.default_rng(2)
    values = rng.normal(size=(80, 2)) + np.outer(np.arange(80) % 2, [6.0, 0.0])
    values = values[rng.permutation(80)]
    chain = MixtureChain.start(
        FAMILIES["gaussian"].build({}, values), build_prior("dp", {"alpha": 0.5}), seed=3
    )
    chain.insert(values)
    chain.refine(rounds=10)
    groups = (values[:, 0] > 3.0).astype(np.int64)
    assert adjusted_rand_index(chain.labels, groups) > 0.9


def test_each_round_tells_its_draw() -> None:
    values = clumps(4, 60)
    chain = started("dp", values)
    chain.insert(values)
    chain.remove(np.array([5]))
    told: list[np.ndarray] = []
    chain.refine(3, told.append)
    assert len(told) == 3
    assert all(np.flatnonzero(draw < 0).tolist() == [5] for draw in told)
    assert adjusted_rand_index(told[-1], chain.labels) == 1.0


def test_reports_name_every_move() -> None:
    values = clumps(5, 150)
    chain = started("dp", values)
    chain.insert(values)
    done = chain.refine(rounds=2)
    names = [report.name for report in done.kernels]
    assert names == [
        "subtree-gibbs",
        "tree-split-merge",
        "subtree-repartition",
        "leaf-gibbs",
        "subtree-gather",
        "subtree-join",
        "sams",
        "gibbs",
    ]
    assert all(report.flag == "exact" for report in done.kernels)
    assert all(0 <= report.accepted <= report.proposed for report in done.kernels)
    gain = sum(report.log_joint_gain for report in done.kernels)
    assert gain == pytest.approx(done.log_joint_after - done.log_joint_before, abs=1e-6)
