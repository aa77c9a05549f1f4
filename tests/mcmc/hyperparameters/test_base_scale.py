"""The scale of the base measure, learned beside the partition."""

import numpy as np
import pytest
from numpy.random import Generator

from tests.batch_means import batch_means
from tests.exact.posed import log_posterior, pose
from tests.mcmc.chains import clumps
from tests.mcmc.piece_invariants import piece_faults
from tests.treecore.invariants import describe, guide_faults, partition_faults
from weald.mcmc.chain.position import Position
from weald.mcmc.hyperparameters.base_scale import BaseScale, scaled, step
from weald.mcmc.offline.fit import FitSettings, run_chain
from weald.mcmc.offline.start import grow_forest
from weald.mcmc.schedule.kernels import KERNELS
from weald.mcmc.tree_guided import tgmcmc
from weald.treecore.errors import ParameterError
from weald.treecore.family import FAMILIES
from weald.treecore.family.interface.base import spec_of
from weald.treecore.guide.guide import freeze
from weald.treecore.prior import build_prior

N, N_RECORDS, N_BATCHES = 5, 2_000, 25


def learning(values_of: str = "gauss1") -> Position:
    family, atoms = pose(values_of, np.arange(N))
    prior = build_prior("dp", {"alpha": 1.0, "learn": False})
    forest = grow_forest(family, prior, atoms)
    labels = np.zeros(N, dtype=np.int64)
    return Position(
        family, atoms, labels, prior, lambda model: freeze(model, forest), learner=BaseScale(family)
    )


def scale_of(position: Position) -> float:
    assert isinstance(position.learner, BaseScale)
    return position.learner.log_scale


def sweep(position: Position, rng: Generator) -> None:
    """A step of the scale, then a few moves of each kind."""
    position.resample(rng)
    tree = position.tree()
    moves, tally = np.array([2, 2, 2, 1, 2, 2, 1]), np.zeros((7, 3))
    tgmcmc.sweep(rng, tree.guide, tree.pieces, position.model, tree.picks, moves, tally)
    KERNELS["gibbs"].sweep(rng, position)


def test_long_run(rng: Generator) -> None:
    """Against the posterior of partition and scale, the scale on a grid."""
    position = learning()
    found = np.zeros((N_RECORDS, 4))
    for at in range(N_RECORDS):
        sweep(position, rng)
        labels, log_scale = position.labels(), scale_of(position)
        found[at] = labels.max() + 1, labels[0] == labels[1], log_scale, log_scale**2
    grid = np.linspace(-4.5, 4.5, 91)
    family, atoms = pose("gauss1", np.arange(N))
    prior = build_prior("dp", {"alpha": 1.0})
    given = [log_posterior(scaled(family, each), atoms, prior) for each in grid]
    log_p = np.array([list(each.values()) for each in given]) - 0.5 * grid[:, None] ** 2
    p = np.exp(log_p - np.logaddexp.reduce(log_p, axis=None))
    shapes = np.array(list(given[0]))
    by_shape, by_scale = p.sum(axis=0), p.sum(axis=1)
    expected = [
        by_shape @ (shapes.max(axis=1) + 1),
        by_shape @ (shapes[:, 0] == shapes[:, 1]),
        by_scale @ grid,
        by_scale @ grid**2,
    ]
    mean, error = batch_means(found, N_BATCHES)
    assert (np.abs(mean - expected) < 3.5 * error).all()
    assert (error < 0.1).all()


def test_everything_measured_follows_the_scale(rng: Generator) -> None:
    position = learning()
    moved = 0
    for _ in range(20):
        before = scale_of(position)
        sweep(position, rng)
        moved += scale_of(position) != before
        flat = position.flat()
        assert describe(partition_faults(position.model, flat.atoms, flat.partition)) == []
        tree = position.tree()
        assert describe(guide_faults(position.model, tree.guide)) == []
        assert describe(piece_faults(position.model, tree.guide, tree.pieces)) == []
    assert 0 < moved < 20


@pytest.mark.parametrize("name", [name for name, spec in FAMILIES.items() if spec.scale])
def test_every_scale_is_a_factor_of_its_parameters(name: str) -> None:
    values = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 2.0]])
    family = FAMILIES[name].build({}, values[:, :2] if name == "bernoulli" else values)
    wider = scaled(family, np.log(2.0))
    given, found = (spec_of(each).parameters(each) for each in (family, wider))
    for key, value in given.items():
        factor = 2.0 if key in FAMILIES[name].scale else 1.0
        np.testing.assert_allclose(found[key], factor * np.asarray(value), rtol=1e-12)
    back = scaled(wider, -np.log(2.0))
    np.testing.assert_allclose(spec_of(back).parameters(back)[key], given[key], rtol=1e-12)


def test_a_family_without_a_scale() -> None:
    values = np.array([[1.0, 0.4], [0.0, 1.9], [1.0, 0.1]])
    with pytest.raises(ParameterError, match="mixed family has no scale"):
        scaled(FAMILIES["mixed"].build({}, values), 0.0)


def test_a_step_that_nothing_speaks_against(rng: Generator) -> None:
    """Without data the law of log s is its prior."""
    family, atoms = pose("gauss1", np.arange(N))
    nothing = np.zeros((1, atoms.rows.shape[1]))
    present, at, found = family, 0.0, []
    for _ in range(4_000):
        present, at = step(rng, (family, present), at, nothing)
        found.append(at)
    batches = np.array(found).reshape(20, -1)
    for power, expected in ((1, 0.0), (2, 1.0)):
        means = (batches**power).mean(axis=1)
        assert abs(means.mean() - expected) < 3.5 * means.std(ddof=1) / np.sqrt(20)


def test_in_a_fit() -> None:
    """Clusters that were said to be far wider than they are."""
    given = {"mean": 0.0, "kappa": 0.05, "psi": 25.0}
    settings = FitSettings(params=given, learn_base=True, kernels=("gibbs",), iterations=60)
    trace = run_chain(clumps(2, 60), settings, 0, lambda: 0.0)
    assert np.mean(trace.hyper["base_spread"][30:]) < 3.0
    assert len(trace.draw_families) == len(trace.draws)
    assert [each.kappa for each in trace.draw_families] == trace.hyper["base_kappa"][30:]
