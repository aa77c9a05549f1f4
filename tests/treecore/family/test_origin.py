"""Rows relative to another point than the prior mean say the same."""

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from tests.exact.posed import log_posterior
from weald.mcmc.offline.start import atoms_of
from weald.treecore.family import FAMILIES
from weald.treecore.family.gaussian.normal_inverse_wishart import normal_inverse_wishart
from weald.treecore.family.interface.base import spec_of, workspace
from weald.treecore.family.parameter_draws import draw_parameters
from weald.treecore.partition.partition import make_atoms
from weald.treecore.prior import build_prior

D, N = 3, 5
MEAN, ORIGIN = np.array([0.5, -1.0, 2.0]), np.array([-3.0, 0.25, 1.5])
PSI = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 0.5]])
TWICE = (
    normal_inverse_wishart(MEAN, 0.3, 6.5, PSI),
    normal_inverse_wishart(MEAN, 0.3, 6.5, PSI, ORIGIN),
)


def test_every_partition_has_the_same_probability(rng: Generator) -> None:
    values = rng.normal(size=(N, D)) * [1.0, 2.0, 0.5] + MEAN
    prior = build_prior("dp", {"alpha": 1.0})
    here, there = (log_posterior(each, atoms_of(each, values), prior) for each in TWICE)
    assert list(here) == list(there)
    np.testing.assert_allclose(list(here.values()), list(there.values()), atol=1e-11)


@pytest.mark.parametrize("n", [0, 1, 7])
def test_descriptions_and_draws_are_the_same(n: int, rng: Generator) -> None:
    values = rng.normal(size=(n, D)) + MEAN
    found = []
    for family in TWICE:
        rows = atoms_of(family, values).rows if n else np.zeros((1, 2 + D + D * (D + 1) // 2))
        row, spec = rows.sum(axis=0), spec_of(family)
        drawn = draw_parameters(family, row[None, :], Generator(PCG64(5)))
        about = spec.describe(family, row, ("a", "b", "c"))
        means = drawn.expected[0, 2 : 2 + D] + family.origin
        precision = drawn.natural[0, 2 + D :]
        predicted = spec.draw(family, row, Generator(PCG64(4)), 6)
        found.append((means, precision, predicted, [each.centre for each in about]))
    for here, there in zip(*found, strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-9)


def test_parameters_come_back_with_their_origin(rng: Generator) -> None:
    values = rng.normal(size=(N, D))
    for family in TWICE:
        spec = spec_of(family)
        again = spec.build(spec.parameters(family), np.empty((0, D)))
        atoms = atoms_of(family, values)
        alike = make_atoms(again, atoms.rows, atoms.size, workspace(again))
        np.testing.assert_array_equal(atoms.log_marginal, alike.log_marginal)
    assert "origin" not in spec_of(TWICE[0]).parameters(TWICE[0])


@pytest.mark.parametrize("name", ["gaussian", "diagonal"])
def test_rounding_is_not_described(name: str, rng: Generator) -> None:
    values = np.column_stack([np.zeros(60), np.full(60, 0.1), rng.normal(size=60)])
    values[30:] += [3.1, 3.1, 0.0]
    spec = FAMILIES[name]
    family = spec.build({}, values)
    row = atoms_of(family, values[:30]).rows.sum(axis=0)
    zero, constant, other = spec.describe(family, row, ("a", "b", "c"))
    assert (zero.centre, zero.spread, constant.spread) == (0.0, 0.0, 0.0)
    assert constant.centre == pytest.approx(0.1)
    assert other.spread == pytest.approx(values[:30, 2].std())
