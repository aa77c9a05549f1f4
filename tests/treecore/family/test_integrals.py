"""Log marginals of tiny cases against numerical integration of prior times likelihood."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp

from tests.treecore.family.examples import Array, marginal_of
from weald.treecore.family import FAMILIES

GAP = np.nan
WEIGHTS = np.array([1.0, 0.4, 2.5])


def weighted(log_densities: Array, values: Array, weights: Array) -> float:
    """Likelihood of one feature with each observation's density raised to its weight."""
    return float(np.exp(np.where(np.isnan(values), 0.0, weights * log_densities).sum()))


@pytest.mark.parametrize("weights", [np.ones(3), WEIGHTS])
@pytest.mark.parametrize("values", [[1.0, 0.0, 1.0], [1.0, GAP, 0.0]])
def test_flags(values: list[float], weights: Array) -> None:
    family = FAMILIES["bernoulli"].build({"a": 0.6, "b": 1.9}, np.zeros((1, 1)))
    column = np.array(values)

    def integrand(share: float) -> float:
        log_densities = column * np.log(share) + (1.0 - column) * np.log1p(-share)
        density = float(stats.beta.pdf(share, 0.6, 1.9))
        return density * weighted(log_densities, column, weights)

    expected = integrate.quad(integrand, 0.0, 1.0, epsabs=0.0)[0]
    found = marginal_of(family, column[:, None], weights)
    assert found == pytest.approx(np.log(expected), abs=1e-7)


@pytest.mark.parametrize("weights", [np.ones(3), WEIGHTS])
@pytest.mark.parametrize("values", [[3.0, 0.0, 11.0], [4.0, GAP, 1.0]])
def test_counts(values: list[float], weights: Array) -> None:
    family = FAMILIES["poisson"].build({"shape": 1.3, "rate": 0.4}, np.zeros((1, 1)))
    column = np.array(values)

    def integrand(mean: float) -> float:
        log_densities = np.asarray(stats.poisson.logpmf(np.nan_to_num(column), mean))
        density = float(stats.gamma.pdf(mean, 1.3, scale=1.0 / 0.4))
        return density * weighted(log_densities, column, weights)

    expected = integrate.quad(integrand, 0.0, 60.0, epsabs=0.0, limit=200)[0]
    found = marginal_of(family, column[:, None], weights)
    assert found == pytest.approx(np.log(expected), abs=1e-7)


@pytest.mark.parametrize("weights", [np.ones(3), WEIGHTS])
@pytest.mark.parametrize("values", [[0.2, 0.9, 4.0], [1.4, GAP, 0.01]])
def test_amounts(values: list[float], weights: Array) -> None:
    grid = np.array([0.7, 5.0, 80.0])
    family = FAMILIES["gamma"].build({"shape": 1.3, "rate": 0.4, "grid": grid}, np.ones((1, 1)))
    column = np.array(values)

    def integrand(log_mean: float, shape: float) -> float:
        mean = np.exp(log_mean)
        log_densities = stats.gamma.logpdf(column, shape, scale=mean / shape)
        density = float(stats.invgamma.pdf(mean, 1.3, scale=0.4)) * mean
        return float(density * weighted(np.nan_to_num(log_densities), column, weights))

    each = [integrate.quad(integrand, -6.0, 9.0, (s,), epsabs=0.0, limit=200)[0] for s in grid]
    found = marginal_of(family, column[:, None], weights)
    assert found == pytest.approx(np.log(np.mean(each)), abs=1e-7)


@pytest.mark.parametrize("weights", [np.ones(3), WEIGHTS])
@pytest.mark.parametrize("values", [[3.0, 0.0, 31.0], [4.0, GAP, 1.0]])
def test_spread_counts(values: list[float], weights: Array) -> None:
    grid = np.array([0.3, 4.0, 90.0])
    parameters = {"shape": 1.3, "rate": 0.4, "grid": grid}
    family = FAMILIES["negative-binomial"].build(parameters, np.ones((1, 1)))
    column = np.array(values)

    def integrand(log_odds: float, r: float) -> float:
        odds = np.exp(log_odds)
        log_densities = stats.nbinom.logpmf(np.nan_to_num(column), r, 1.0 / (1.0 + odds))
        density = float(stats.betaprime.pdf(odds, 1.3, 1.0 + 0.4 * r)) * odds
        return float(density * weighted(log_densities, column, weights))

    each = [integrate.quad(integrand, -25.0, 15.0, (r,), epsabs=0.0, limit=400)[0] for r in grid]
    found = marginal_of(family, column[:, None], weights)
    assert found == pytest.approx(np.log(np.mean(each)), abs=1e-7)


def test_counts_without_dispersion_are_poisson() -> None:
    values, parameters = np.array([[3.0], [0.0], [11.0]]), {"shape": 1.3, "rate": 0.4}
    poisson = FAMILIES["poisson"].build(parameters, values)
    spread = FAMILIES["negative-binomial"].build(parameters | {"grid": [1e7]}, values)
    assert marginal_of(spread, values) == pytest.approx(marginal_of(poisson, values), abs=1e-4)


def simplex_integral(beta: float, counts: Array) -> float:
    """Integral of a symmetric Dirichlet density times shares to the power of three counts."""

    def integrand(second: float, first: float) -> float:
        shares = np.array([first, second, 1.0 - first - second])
        return float(np.prod(shares ** (counts + beta - 1.0)))

    def uniform(second: float, first: float) -> float:
        return float(np.prod(np.array([first, second, 1.0 - first - second]) ** (beta - 1.0)))

    above = [integrate.dblquad(f, 0, 1, 0, lambda x: 1.0 - x)[0] for f in (integrand, uniform)]
    return above[0] / above[1]


@pytest.mark.parametrize("weights", [np.ones(3), WEIGHTS])
def test_categories(weights: Array) -> None:
    family = FAMILIES["categorical"].build({"levels": 3, "beta": 1.5}, np.zeros((1, 1)))
    column = np.array([2.0, 0.0, 2.0])
    counts = np.array([weights[1], 0.0, weights[0] + weights[2]])
    found = marginal_of(family, column[:, None], weights)
    assert found == pytest.approx(np.log(simplex_integral(1.5, counts)), abs=1e-7)


@pytest.mark.parametrize("weights", [np.ones(2), WEIGHTS[1:]])
def test_bags_of_words(weights: Array) -> None:
    family = FAMILIES["multinomial"].build({"beta": 2.0}, np.zeros((1, 3)))
    values = np.array([[2.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    found = marginal_of(family, values, weights)
    expected = simplex_integral(2.0, weights @ values)
    assert found == pytest.approx(np.log(expected), abs=1e-7)


@pytest.mark.parametrize("weights", [np.ones(3), WEIGHTS])
@pytest.mark.parametrize("values", [[-0.8, 0.3, 1.9], [0.4, GAP, 1.1]])
def test_numbers(values: list[float], weights: Array) -> None:
    mean, kappa, shape, rate = 0.3, 0.7, 1.8, 0.9
    family = FAMILIES["diagonal"].build(
        {"mean": mean, "kappa": kappa, "shape": shape, "rate": rate}, np.zeros((1, 1))
    )
    column = np.array(values)

    # A trapezoid sum over log precision and over the centre in units of its prior deviation: both
    # tails vanish so fast that it is exact to rounding.
    log_precision = np.arange(-14.0, 7.0, 0.05)[:, None]
    precision = np.exp(log_precision)
    units = np.arange(-30.0, 30.0, 0.05)[None, :]
    centre = mean + units / np.sqrt(kappa * precision)
    total = stats.gamma.logpdf(precision, shape, scale=1.0 / rate) + log_precision
    total = total + stats.norm.logpdf(units)
    for value, weight in zip(column, weights, strict=True):
        if not np.isnan(value):
            total = total + weight * stats.norm.logpdf(value, centre, precision**-0.5)
    expected = logsumexp(total) + 2.0 * np.log(0.05)
    found = marginal_of(family, column[:, None], weights)
    assert found == pytest.approx(expected, abs=1e-9)


def test_one_dimension_of_the_gaussian_is_the_diagonal() -> None:
    # Wishart(1/psi, nu) in one dimension is Gamma(nu / 2, psi / 2).
    values = np.array([[0.2], [-1.3], [2.2], [0.9]])
    gaussian = FAMILIES["gaussian"].build(
        {"mean": [0.1], "kappa": 0.4, "nu": 2.6, "psi": 1.4}, values
    )
    diagonal = FAMILIES["diagonal"].build(
        {"mean": 0.1, "kappa": 0.4, "shape": 1.3, "rate": 0.7}, values
    )
    assert marginal_of(gaussian, values) == pytest.approx(marginal_of(diagonal, values), abs=1e-12)
