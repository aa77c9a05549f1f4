"""The base measure of independent features, learned beside the partition."""

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from tests.batch_means import batch_means
from tests.exact.enumeration import partitions
from tests.mcmc.chains import clumps
from weald.mcmc.chain.position import Position
from weald.mcmc.hyperparameters.diagonal_base import DiagonalBase, diagonal_base
from weald.mcmc.offline.fit import FitSettings, run_chain
from weald.mcmc.offline.start import atoms_of, grow_forest
from weald.mcmc.schedule.kernels import KERNELS
from weald.treecore.family.gaussian.normal_inverse_gamma import (
    NormalInverseGamma,
    normal_inverse_gamma,
)
from weald.treecore.guide.guide import freeze
from weald.treecore.prior import build_prior

VALUES = np.array([[-1.3], [-1.0], [0.9], [1.6]])
N_RECORDS, N_BATCHES = 6_000, 30


def begin(d: int, centre: float = 0.0) -> NormalInverseGamma:
    return normal_inverse_gamma(np.full(d, centre), 0.5, 1.5, np.ones(d))


def about(family: NormalInverseGamma) -> list[float]:
    shape = float(family.shape[0])
    phi = float(family.rate[0]) / shape
    return [float(np.log(family.kappa[0])), float(np.log(2.0 * shape)), float(np.log(phi))]


def expected_by_quadrature() -> NDArray[np.float64]:
    """Blocks, two pairs, and means of :func:`about`, over partitions and a grid of the rest."""
    log_kappa, log_freedom = np.linspace(-16.0, 3.0, 77), np.linspace(-5.5, 9.5, 61)
    rate = float(diagonal_base(VALUES).phi_rate[0])
    log_phi = np.linspace(-11.0, 4.0, 61) - np.log(rate)
    weights = [
        0.5 * log_kappa - 0.5 * np.exp(log_kappa),
        -0.5 * ((log_freedom - 2.0) / 1.5) ** 2,
        1.5 * log_phi - rate * np.exp(log_phi),
    ]
    grids = np.meshgrid(log_kappa, log_freedom, log_phi, indexing="ij")
    at_kappa, at_freedom, at_phi = (each.ravel() for each in grids)
    weight = sum(each.ravel() for each in np.meshgrid(*weights, indexing="ij"))
    kappa, shape = np.exp(at_kappa), 0.5 * np.exp(at_freedom)
    rate_of = shape * np.exp(at_phi)
    x = VALUES[:, 0] - VALUES.mean()
    log_p, seen = [], []
    for labels in partitions(4):
        blocks = [np.flatnonzero(np.array(labels) == b) for b in range(max(labels) + 1)]
        found = weight + sum(gammaln(len(block)) for block in blocks)
        for block in blocks:
            n = block.size
            scatter = (x[block] ** 2).sum() - x[block].sum() ** 2 / (kappa + n)
            found = found + 0.5 * (np.log(kappa) - np.log(kappa + n)) - 0.5 * n * np.log(2 * np.pi)
            found = found + gammaln(shape + 0.5 * n) - gammaln(shape)
            found = found + shape * np.log(rate_of)
            found = found - (shape + 0.5 * n) * np.log(rate_of + 0.5 * scatter)
        log_p.append(found)
        seen.append([len(blocks), labels[0] == labels[1], labels[1] == labels[2]])
    p = np.exp(np.array(log_p) - logsumexp(log_p))
    total = p.sum(axis=0)
    rest = [total @ each for each in (at_kappa, at_freedom, at_phi)]
    return np.concatenate([p.sum(axis=1) @ np.array(seen, dtype=float), rest])


def test_long_run(rng: Generator) -> None:
    """Against quadrature over the base measure and every partition of four points."""
    family = begin(1, VALUES.mean())
    atoms = atoms_of(family, VALUES)
    prior = build_prior("dp", {"alpha": 1.0, "learn": False})
    forest = grow_forest(family, prior, atoms)
    position = Position(
        family,
        atoms,
        np.zeros(4, dtype=np.int64),
        prior,
        lambda model: freeze(model, forest),
        learner=diagonal_base(VALUES),
    )
    found = np.zeros((N_RECORDS, 6))
    for at in range(N_RECORDS):
        position.resample(rng)
        KERNELS["gibbs"].sweep(rng, position)
        labels = position.labels()
        pairs = [labels.max() + 1, labels[0] == labels[1], labels[1] == labels[2]]
        found[at] = [*pairs, *about(position.family)]
    mean, error = batch_means(found, N_BATCHES)
    assert (error < 0.15).all()
    assert (np.abs(mean - expected_by_quadrature()) < 3.5 * error).all()


def test_without_data_the_law_is_the_hyperprior(rng: Generator) -> None:
    base = diagonal_base(rng.normal(size=(30, 2)) * [2.0, 0.3])
    family, nothing, found = begin(2), np.zeros((0, 2 + 6)), []
    for _ in range(6_000):
        family = base.step(rng, family, nothing)
        phi = family.rate / family.shape
        found.append([family.kappa[0], np.log(2.0 * family.shape[0]), *phi])
    mean, error = batch_means(np.array(found), N_BATCHES)
    expected = [1.0, 2.0, *(1.5 / base.phi_rate)]
    assert (np.abs(mean - expected) < 3.5 * error).all()


@pytest.mark.parametrize("share_missing", [0.0, 0.3])
def test_data_drawn_anew_leave_the_hyperprior(
    share_missing: float, rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Geweke's joint distribution test in two features, whose values may be missing."""
    learned = "weald.mcmc.hyperparameters.diagonal_base."
    monkeypatch.setattr(learned + "_KAPPA_SHAPE", 4.0)
    monkeypatch.setattr(learned + "_KAPPA_RATE", 4.0)
    monkeypatch.setattr("weald.mcmc.hyperparameters.freedom._SPREAD", 0.5)
    base = DiagonalBase(np.array([6.0, 2.0]))
    family, found = begin(2), []
    for _ in range(8_000):
        rows = np.array([_block(family, n, share_missing, rng) for n in (1, 1, 3, 12)])
        family = base.step(rng, family, rows)
        log_phi = np.log(family.rate / family.shape * base.phi_rate)
        found.append([np.log(family.kappa[0]), np.log(2.0 * family.shape[0]), *log_phi])
    kappa, phi = rng.gamma(4.0, 0.25, 8_000), rng.gamma(1.5, size=(2, 8_000))
    drawn = np.stack([np.log(kappa), rng.normal(2.0, 0.5, 8_000), *np.log(phi)], axis=1)
    mean, error = batch_means(np.array(found), 20)
    error = np.hypot(error, drawn.std(axis=0) / np.sqrt(drawn.shape[0]))
    assert (np.abs(mean - drawn.mean(axis=0)) < 3.5 * error).all()


def _block(
    family: NormalInverseGamma, size: int, share_missing: float, rng: Generator
) -> NDArray[np.float64]:
    """Statistics of a block drawn from the family's marginal law."""
    precision = rng.gamma(family.shape) / family.rate
    centre = rng.standard_normal(2) / np.sqrt(family.kappa * precision)
    values = centre + rng.standard_normal((size, 2)) / np.sqrt(precision)
    seen = rng.random((size, 2)) >= share_missing
    values = values * seen
    features = np.stack([seen.sum(axis=0), values.sum(axis=0), (values**2).sum(axis=0)], axis=1)
    return np.concatenate([[size, size], features.ravel()])


def test_units_do_not_matter() -> None:
    """Factors of two change no rounding: the partitions are the very same."""
    values = clumps(2, 60)
    found = []
    for factors in ([1.0, 1.0], [2.0**-14, 2.0**20]):
        settings = FitSettings(family="diagonal", iterations=20)
        found.append(run_chain(values * factors, settings, 0, lambda: 0.0).draws)
    np.testing.assert_array_equal(found[0], found[1])


def test_a_middle_is_between(rng: Generator) -> None:
    base = diagonal_base(rng.normal(size=(30, 2)))
    low = normal_inverse_gamma(np.zeros(2), 0.1, 1.0, np.array([1.0, 2.0]))
    high = normal_inverse_gamma(np.zeros(2), 0.4, 4.0, np.array([12.0, 16.0]))
    middle = base.middle([low, high])
    assert (middle.kappa[0], middle.shape[0]) == pytest.approx((0.2, 2.0))
    np.testing.assert_allclose(middle.rate, [4.0, 6.0])
