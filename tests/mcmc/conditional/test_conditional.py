"""Samplers with drawn parameters: their draws, and long runs against enumerated posteriors."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from tests.exact.cases import FAMILY_NAMES, Problem, problem
from weald.mcmc.conditional import fsd, gibbs_supc
from weald.mcmc.conditional import labels as conditional
from weald.mcmc.conditional import slice as slice_sampler
from weald.mcmc.conditional.labels import choose_each, compact
from weald.mcmc.split_merge import dm
from weald.mcmc.state.atom_state import make_state, make_tally
from weald.mcmc.sub_cluster import subc, subc_burnin, subc_published
from weald.mcmc.sub_cluster.allocation import AllocationPlan
from weald.mcmc.sub_cluster.summed_blocks import SummedBlocks
from weald.treecore.errors import ParameterError
from weald.treecore.family.interface.base import log_marginal, log_marginal_sum
from weald.treecore.family.parameter_draws import divergence, draw_parameters
from weald.treecore.partition.partition import Atoms, Model
from weald.treecore.prior.sequential import canonical_labels

Labels = NDArray[np.int64]
Step = Callable[[Generator, Atoms, Labels, Model], Labels]

N_BATCHES = 16


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_drawn_parameters_average_to_the_predictive_density(family: str) -> None:
    """The mean likelihood over posterior draws is the ratio of two marginals, for each atom."""
    posed = problem(family, "dp", 5, compacted=True)
    rows, work = posed.atoms.rows, posed.model.work
    block = rows[:2].sum(axis=0, keepdims=True)
    drawn = draw_parameters(
        posed.family, np.repeat(block, 200_000, axis=0), np.random.default_rng(1)
    )
    likelihood = np.exp(rows @ drawn.natural.T)
    for i in range(5):
        exact = np.exp(
            log_marginal_sum(posed.family, block, 0, rows, i, work)
            - log_marginal(posed.family, block, 0, work)
        )
        error = likelihood[i].std() / np.sqrt(likelihood.shape[1])
        assert abs(likelihood[i].mean() - exact) < 3.5 * error, i


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_expected_statistics_are_the_gradient_of_the_normaliser(family: str) -> None:
    """The divergence is zero on the diagonal, symmetric, and positive elsewhere."""
    posed = problem(family, "dp", 4)
    apart = divergence(draw_parameters(posed.family, posed.atoms.rows, np.random.default_rng(2)))
    assert np.abs(np.diagonal(apart)).max() < 1e-9
    assert np.allclose(apart, apart.T)
    assert (apart[~np.eye(4, dtype=bool)] > 0.0).all()


def test_gaussian_divergence() -> None:
    """Against the closed form in means and covariances."""
    posed = problem("gaussian", "dp", 4)
    drawn = draw_parameters(posed.family, posed.atoms.rows[:2], np.random.default_rng(3))
    means = drawn.expected[:, 2:4]
    seconds = np.zeros((2, 2, 2))
    for at, (a, b) in enumerate([(0, 0), (1, 0), (1, 1)]):
        seconds[:, a, b] = seconds[:, b, a] = drawn.expected[:, 4 + at]
    covariance = seconds - means[:, :, None] * means[:, None, :]
    inverse = np.linalg.inv(covariance)
    step = means[0] - means[1]
    closed = np.trace(inverse[0] @ covariance[1]) + np.trace(inverse[1] @ covariance[0]) - 4.0
    closed = 0.5 * (closed + step @ (inverse[0] + inverse[1]) @ step)
    assert abs(divergence(drawn)[0, 1] / closed - 1.0) < 1e-9


def test_choose_each_follows_its_probabilities() -> None:
    p = np.array([0.0, 0.1, 0.6, 0.0, 0.3])
    with np.errstate(divide="ignore"):
        log_p = np.tile(np.log(p), (100_000, 1))
    share = np.bincount(choose_each(np.random.default_rng(4), log_p), minlength=5) / 100_000
    assert (np.abs(share - p) <= 3.5 * np.sqrt(p * (1.0 - p) / 100_000)).all()


def test_unattached_jumps_have_the_intensity() -> None:
    """Counts above several levels are Poisson with the integral of the intensity as mean."""
    from scipy.integrate import quad
    from scipy.special import gamma

    rng = np.random.default_rng(5)
    for discount, floor in [(0.0, 0.01), (0.5, 0.02), (0.3, 1.7)]:
        runs = [slice_sampler.unattached_jumps(rng, 0.4, discount, floor) for _ in range(20_000)]
        for level in (floor, 2.0 * floor, 0.5 + floor):
            mean = quad(lambda w, s=discount: w ** (-1.0 - s) * np.exp(-w), level, np.inf)[0]
            mean *= np.exp(0.4) / gamma(1.0 - discount)
            counts = np.array([(jumps > level).sum() for jumps in runs])
            assert abs(counts.mean() - mean) < 3.5 * np.sqrt(mean / counts.size), (discount, level)


def _subc(rng: Generator, atoms: Atoms, labels: Labels, model: Model) -> Labels:
    few = AllocationPlan(2, 1, 2.0)
    return subc.sweep(rng, atoms, labels, model, subc.SubcPlan(2, 2, 2, few, few))[0]


def _subc_alone(rng: Generator, atoms: Atoms, labels: Labels, model: Model) -> Labels:
    """Splits and merges without the restricted sweep: irreducible by themselves."""
    blocks = SummedBlocks.of(atoms, labels, model)
    subc.split_merge(rng, blocks, AllocationPlan(3, 2, 1.0))
    return blocks.labels


def _gibbs_supc(rng: Generator, atoms: Atoms, labels: Labels, model: Model) -> Labels:
    return gibbs_supc.sweep(rng, atoms, labels, model, gibbs_supc.GibbsSupcPlan(2))


def _fsd(components: int) -> Step:
    def step(rng: Generator, atoms: Atoms, labels: Labels, model: Model) -> Labels:
        return fsd.sweep(rng, atoms, labels, model, fsd.FsdPlan(components))

    return step


STEPS: dict[str, Step] = {
    "subc": _subc,
    "subc-alone": _subc_alone,
    "slice": slice_sampler.sweep,
    "gibbs-supc": _gibbs_supc,
}


def visits(step: Step, posed: Problem, n_steps: int, seed: int) -> NDArray[np.float64]:
    """Share of each state's visits in each of the batches (batches, states)."""
    index = {state: at for at, state in enumerate(posed.states)}
    rng = np.random.default_rng(seed)
    labels = np.zeros(posed.atoms.size.shape[0], dtype=np.int64)
    counts = np.zeros((N_BATCHES, len(posed.states)))
    for batch in range(N_BATCHES):
        for _ in range(n_steps // N_BATCHES):
            labels = step(rng, posed.atoms, compact(labels), posed.model)
            counts[batch, index[tuple(canonical_labels(labels).tolist())]] += 1.0
    return counts / (n_steps // N_BATCHES)


def check(step: Step, posed: Problem, n_steps: int, seed: int) -> None:
    """Statistics of the partition within 4.5 standard errors, known well enough to say something.

    The statistics: how probable each number of blocks is, and each pair together.
    """
    shapes = np.array(posed.states)
    n = shapes.shape[1]
    statistics = [(shapes.max(axis=1) == k) for k in range(n)]
    statistics += [shapes[:, i] == shapes[:, j] for i in range(n) for j in range(i)]
    table = np.array(statistics, dtype=np.float64).T
    batches = visits(step, posed, n_steps, seed) @ table
    exact = posed.target @ table
    # What is seldom visited has hardly a spread to measure: no less than that of independent draws.
    independent = np.sqrt(exact * (1.0 - exact) / n_steps)
    error = np.maximum(batches.std(axis=0, ddof=1) / np.sqrt(N_BATCHES), independent)
    # What is certain has no standard error, but its shares are sums that are rounded.
    assert (np.abs(batches.mean(axis=0) - exact) <= 4.5 * error + 1e-9).all()
    assert error.max() < 0.03


CASES = [
    ("subc", "bernoulli", "dp", False),
    ("subc", "poisson", "emm-at-most-3", True),
    ("subc-alone", "bernoulli", "pitman-yor", True),
    ("slice", "poisson", "dp", True),
    ("slice", "gaussian", "nggp", False),
    ("gibbs-supc", "bernoulli", "dp", True),
    ("subc", "gamma", "dp", True),
    ("slice", "negative-binomial", "dp", True),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "family", "prior", "compacted"), CASES)
def test_long_runs_visit_the_posterior(
    name: str, family: str, prior: str, *, compacted: bool
) -> None:
    check(STEPS[name], problem(family, prior, 4, compacted=compacted), 4_000, seed=6)


@pytest.mark.parametrize("name", ["slice", "gibbs-supc"])
def test_refuses_a_prior_without_product_form(name: str) -> None:
    posed = problem("bernoulli", "mfm", 4)
    labels = np.zeros(4, dtype=np.int64)
    with pytest.raises(ParameterError, match="product form"):
        STEPS[name](np.random.default_rng(7), posed.atoms, labels, posed.model)


@cache
def _total_variation(which: str) -> float:
    """Distance of a baseline's visits from the posterior of bern5."""
    posed = problem("bernoulli", "dp", 5)
    if which.startswith("fsd"):
        step = _fsd(int(which[3:]))
    else:
        plan = subc_published.PLAN if which == "published" else subc_burnin.SubcBurninPlan(age=0)
        held: dict[str, subc_burnin.SubClusters] = {}

        def step(rng: Generator, atoms: Atoms, labels: Labels, model: Model) -> Labels:
            state = held.get("state") or subc_burnin.begin(rng, atoms, labels, model)
            held["state"], _ = subc_burnin.sweep(rng, atoms, state, model, plan)
            return held["state"].labels

    shares = visits(step, posed, 5_000, seed=8).mean(axis=0)
    return float(0.5 * np.abs(shares - posed.target).sum())


@pytest.mark.slow
def test_published_forms_miss_the_posterior() -> None:
    """A run this long is within 0.04 of the posterior it targets; these are not."""
    assert _total_variation("published") > 0.1
    assert _total_variation("burn-in") > 0.1


def _restricted(rng: Generator, atoms: Atoms, labels: Labels, model: Model) -> Labels:
    """Restricted Gibbs on all blocks at once, and a random split or merge beside it."""
    moved = compact(subc.restricted_gibbs(rng, atoms, labels, model))
    state = make_state(model.family, atoms, moved)
    live = np.arange(labels.size, dtype=np.int64)
    dm.sweep(rng, state, model, dm.DmPlan(), live, make_tally())
    return state.partition.label


def test_dropping_emptied_blocks_misses_the_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    """E12, by as much as an independent program found; with an atom held it is exact."""
    monkeypatch.setattr(subc, "within_reach", lambda _, drawn: np.zeros(len(drawn.natural), int))
    monkeypatch.setattr(subc, "_hold", lambda *_: None)
    monkeypatch.setattr(subc, "_log_share_kept", lambda *_: 0.0)
    posed = problem("bernoulli", "dp", 5)
    shares = visits(_restricted, posed, 3_200, seed=10)
    noise = 0.5 * np.sqrt(2.0 / np.pi) * shares.std(axis=0, ddof=1).sum() / np.sqrt(N_BATCHES)
    assert noise < 0.06
    assert abs(0.5 * np.abs(shares.mean(axis=0) - posed.target).sum() - 0.482) < 2.0 * noise


@pytest.mark.slow
@pytest.mark.parametrize(("components", "distance"), [(5, 0.216), (20, 0.050)])
def test_fsd_misses_by_what_the_truncation_costs(components: int, distance: float) -> None:
    assert abs(_total_variation(f"fsd{components}") - distance) < 0.03


def test_fsd_refuses_more_blocks_than_components() -> None:
    posed = problem("bernoulli", "dp", 5)
    with pytest.raises(ParameterError, match="3 components"):
        _fsd(3)(np.random.default_rng(9), posed.atoms, np.arange(5), posed.model)


def test_labels_do_not_depend_on_how_many_cores_draw_them(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(2)
    rows, natural = draw.normal(size=(5_000, 4)), draw.normal(size=(7, 4))
    sizes, log_weights = np.ones(5_000, dtype=np.int64), draw.normal(size=7)

    def labels(chunk: int, cores: int) -> Labels:
        monkeypatch.setattr(conditional, "_CHUNK", chunk)
        monkeypatch.setattr("os.cpu_count", lambda: cores)
        rng = np.random.default_rng(11)
        return conditional.draw_labels(rng, rows, sizes, log_weights, natural)

    alone = labels(10_000, 1)
    assert len(np.unique(alone)) == 7
    for chunk, cores in ((400, 1), (400, 4), (7, 3)):
        np.testing.assert_array_equal(labels(chunk, cores), alone)
