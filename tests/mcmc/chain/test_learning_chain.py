"""A growing chain whose base measure is learned beside its partition."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator

from tests.batch_means import batch_means
from tests.mcmc.chains import chain_faults, clumps, same
from tests.mcmc.hyperparameters.test_gaussian_base import (
    VALUES,
    about,
    begin,
    expected_by_quadrature,
)
from tests.treecore.invariants import describe
from weald.mcmc.chain.chain import MixtureChain
from weald.mcmc.hyperparameters.diagonal_base import diagonal_base
from weald.mcmc.hyperparameters.gaussian_base import gaussian_base
from weald.mcmc.leases.lease_work import work
from weald.mcmc.leases.leases import Budget
from weald.treecore.family import FAMILIES
from weald.treecore.family.gaussian.normal_inverse_wishart import normal_inverse_wishart
from weald.treecore.family.interface.base import workspace
from weald.treecore.partition.partition import make_atoms
from weald.treecore.prior import build_prior

N_RECORDS, N_BATCHES = 1_800, 30
BUDGETS = [Budget("tgmcmc,gibbs", 1, 0)] * 2


def of_four(seed: int) -> MixtureChain:
    """On the four points whose posterior quadrature knows."""
    base = gaussian_base(VALUES)
    prior = build_prior("dp", {"alpha": 1.0, "learn": False})
    chain = MixtureChain.start(begin(base), prior, seed=seed, learner=base)
    chain.insert(VALUES)
    return chain


def lend_and_adopt(chain: MixtureChain, rng: Generator) -> None:
    lent = chain.lend(rng, BUDGETS)
    chain.adopt([(each.atoms, work(each.lease).labels) for each in lent])


@pytest.mark.parametrize("way", ["refined", "lent"])
def test_long_run(way: str, rng: Generator) -> None:
    """Whole rounds and windows in turn, or leases: against quadrature over every partition."""
    chain = of_four(int(rng.integers(2**31)))
    found = np.zeros((N_RECORDS, 7))
    for at in range(N_RECORDS):
        if way == "lent":
            lend_and_adopt(chain, rng)
        elif at % 2:
            chain.refine_in_windows(1, lambda *_: None)
        else:
            chain.refine()
        labels = chain.labels
        pairs = [chain.n_blocks, labels[0] == labels[1], labels[1] == labels[2]]
        found[at] = [*pairs, *about(chain.family)]
    mean, error = batch_means(found, N_BATCHES)
    assert (error < 0.3).all()
    # Of 14 numbers of both ways one is off by chance in a hundred runs.
    assert (np.abs(mean - expected_by_quadrature()) < 3.9 * error).all()


def grown(family: str, n: int = 240) -> MixtureChain:
    values = clumps(1, n)
    base = gaussian_base(values) if family == "gaussian" else diagonal_base(values)
    start = FAMILIES[family].build({}, values)
    chain = MixtureChain.start(start, build_prior("dp", {}), seed=5, learner=base)
    chain.insert(values[: n // 2])
    chain.refine(2)
    chain.insert(values[n // 2 :])
    return chain


@pytest.mark.parametrize("family", ["gaussian", "diagonal"])
def test_everything_is_told_under_what_is_learned(family: str, rng: Generator) -> None:
    """After each thing that may happen to a chain; a chain restored from then on does the same."""
    chain = grown(family)
    steps: list[Callable[[MixtureChain], object]] = [
        lambda each: each.refine(1),
        lambda each: each.remove(np.arange(20)),
        lambda each: each.refine_in_windows(1, lambda *_: None),
        lambda each: each.compact(60, np.zeros(240, dtype=np.int64), 40),
        lambda each: each.insert(clumps(2, 10)),
        lambda each: each.refine(1),
    ]
    for step in steps:
        other, before = MixtureChain.restore(chain.state()), chain.family
        step(chain)
        step(other)
        assert describe(chain_faults(chain)) == []
        assert same(chain, other)
        assert other.family is not other.first_family
        assert chain.first_family is not before
    lent = chain.lend(rng, BUDGETS)
    came = chain.insert(clumps(3, 5))
    other, before = MixtureChain.restore(chain.state()), chain.family
    assert all(each.lease.family is before for each in lent)
    returns = [(each.atoms, work(each.lease).labels) for each in lent]
    for each in (chain, other):
        each.adopt(returns)
        assert describe(chain_faults(each)) == []
    assert same(chain, other)
    assert chain.family is not before
    assert (chain.labels[came] >= 0).all()


def test_what_is_taken_apart_is_weighed_under_what_is_learned() -> None:
    values = clumps(1, 240)
    chain = grown("gaussian")
    done = chain.compact(60, np.zeros(240, dtype=np.int64), 60)
    atom, members, _ = done.compacted[0]
    chain.expand(atom, values[members])
    assert describe(chain_faults(chain)) == []


@pytest.mark.parametrize("family", ["gaussian", "diagonal"])
def test_what_a_refinement_beside_it_measured_is_as_measured_afresh(family: str) -> None:
    """Of atoms that stayed; the others are measured when it is taken over."""
    chain = grown(family)
    refinement, before = chain.begin_concurrent(1, 2, 1), chain.family
    chain.remove(np.arange(20))
    chain.insert(clumps(2, 30))
    refinement.run()
    chain.adopt_concurrent(refinement)
    assert chain.family is refinement.family
    assert chain.family is not before
    assert describe(chain_faults(chain)) == []
    atoms, ids = chain._state.atoms, np.flatnonzero(chain._forest.leaf >= 0)
    afresh = make_atoms(chain.family, atoms.rows[ids], atoms.size[ids], workspace(chain.family))
    assert len(ids) == 250
    np.testing.assert_array_equal(atoms.log_marginal[ids], afresh.log_marginal)


def test_the_forest_does_not_follow_what_is_learned() -> None:
    """It is what it would be if nothing were learned: its trees may guide every kernel."""
    values = clumps(4, 300)
    start, base = FAMILIES["gaussian"].build({}, values[:100]), gaussian_base(values[:100])
    forests, families = [], []
    for learner in (base, None):
        chain = MixtureChain.start(start, build_prior("dp", {}), seed=9, learner=learner)
        for at in range(0, 300, 100):
            chain.insert(values[at : at + 100])
            chain.refine(2)
        found = chain.state()
        forests.append({name: found[name] for name in found if name.startswith("forest_")})
        families.append(chain.family)
    assert families[0] is not start
    assert families[1] is start
    assert forests[0]
    for name, array in forests[0].items():
        np.testing.assert_array_equal(array, forests[1][name], err_msg=name)


def test_a_base_measure_too_wide_to_draw_from_is_saved_and_restored() -> None:
    """Its draws would divide by what is less than the least number."""
    chain = grown("gaussian")
    chain.family = normal_inverse_wishart(np.zeros(2), 0.01, 1.001, np.eye(2) * 1e-6)
    assert same(MixtureChain.restore(chain.state()), chain)


def test_it_moves_towards_the_truth(rng: Generator) -> None:
    """Clusters of spread one, far wider ones said at the start."""
    centres = rng.normal(scale=8.0, size=(30, 2))
    values = centres[rng.integers(30, size=1500)] + rng.normal(size=(1500, 2))
    family = FAMILIES["gaussian"].build({"psi": 30.0, "nu": 6.0}, values[:100])
    base = gaussian_base(values[:100])
    chain = MixtureChain.start(family, build_prior("dp", {}), seed=2, learner=base)
    first = base.shown(family)["base_spread"]
    for at in range(0, 1500, 300):
        chain.insert(values[at : at + 300])
        chain.refine(5)
    assert first > 2.0
    # Centres that are near each other share a block, which is wider.
    assert base.shown(chain.family)["base_spread"] == pytest.approx(1.1, abs=0.2)
