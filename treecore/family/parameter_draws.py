"""Drawn parameters of clusters, as rows against which statistics rows are simply multiplied.

Given its parameters, every family here is an exponential family: the log likelihood of observations
whose statistics are ``row`` is the inner product of that row and a row of natural parameters. A
sampler that draws parameters therefore needs one matrix product for the likelihoods of all atoms
under all clusters.
"""

from functools import singledispatch
from math import log, pi
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from weald.treecore.errors import ParameterError
from weald.treecore.family.interface.base import Family

from .discrete.beta_bernoulli import BetaBernoulli
from .discrete.dirichlet_categorical import DirichletCategorical
from .discrete.dirichlet_multinomial import DirichletMultinomial
from .discrete.gamma_poisson import GammaPoisson
from .gaussian.moments import lower_triangle
from .gaussian.normal_inverse_gamma import NormalInverseGamma
from .gaussian.normal_inverse_wishart import NormalInverseWishart
from .gaussian.posterior_draws import place_draws
from .gridded.gamma import GammaOfAnyShape
from .gridded.grid import chosen_on_grid
from .gridded.negative_binomial import NegativeBinomial
from .product import Product

__all__ = [
    "Drawn",
    "GaussianParameters",
    "divergence",
    "draw_gaussians",
    "draw_parameters",
    "joined",
    "log_gamma_draw",
]

Matrix = NDArray[np.float64]


class Drawn(NamedTuple):
    """Parameters of k clusters.

    Attributes
    ----------
    natural:
        (k, m): ``rows @ natural.T`` are log likelihoods.
    expected:
        (k, m): the statistics that one observation is expected to have under them.
    """

    natural: Matrix
    expected: Matrix


def joined(parts: list[Drawn]) -> Drawn:
    """The parameters of several sets of clusters as one set."""
    return Drawn(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def divergence(drawn: Drawn) -> Matrix:
    """Sum of both Kullback-Leibler divergences between all pairs (k, k), from their parameters.

    For an exponential family it is the inner product of the difference of natural parameters and
    the difference of expected statistics.
    """
    own = (drawn.natural * drawn.expected).sum(axis=1)
    cross = drawn.natural @ drawn.expected.T
    return np.maximum(own[:, None] + own[None, :] - cross - cross.T, 0.0)


@singledispatch
def draw_parameters(family: Family, rows: Matrix, rng: Generator) -> Drawn:  # noqa: ARG001  (the families use them)
    """Parameters drawn from the posterior of each of the statistics rows (k, m).

    A row of zeros draws from the prior. Raises ParameterError for a family without it.
    """
    raise ParameterError(f"parameters of {type(family).__name__} cannot be drawn")


def log_gamma_draw(rng: Generator, shape: Matrix) -> Matrix:
    """Logs of Gamma(shape, 1) draws, finite also where the draw itself would underflow."""
    boosted = np.log(rng.gamma(shape + 1.0))
    return np.asarray(boosted + np.log1p(-rng.random(shape.shape)) / shape)


def _log_shares(rng: Generator, weights: Matrix) -> Matrix:
    """Logs of Dirichlet draws along the last axis."""
    drawn = log_gamma_draw(rng, weights)
    return np.asarray(drawn - np.logaddexp.reduce(drawn, axis=-1, keepdims=True))


class GaussianParameters(NamedTuple):
    """Parameters of k Gaussian clusters.

    Attributes
    ----------
    mean:
        (k, d).
    root:
        (k, d, d), which times its transpose is the precision.
    half_log_det:
        (k), of the precision.
    """

    mean: Matrix
    root: Matrix
    half_log_det: Matrix


def draw_gaussians(
    family: NormalInverseWishart, rows: Matrix, rng: Generator
) -> GaussianParameters:
    """Parameters drawn from the posterior of each of the rows (k, m); means are off the origin."""
    d, k = family.mean.shape[0], rows.shape[0]
    bartlett = rng.standard_normal((k, d, d))
    chi_square = rng.chisquare((family.nu + rows[:, 1])[:, None] - np.arange(d))
    bartlett[:, np.arange(d), np.arange(d)] = np.sqrt(chi_square)
    off = rng.standard_normal((k, d))
    return GaussianParameters(*place_draws(family, np.ascontiguousarray(rows), bartlett, off))


@draw_parameters.register
def _gaussian(family: NormalInverseWishart, rows: Matrix, rng: Generator) -> Drawn:
    d = family.mean.shape[0]
    mean, root, half_log_det = draw_gaussians(family, rows, rng)
    precision, inverse_root = root @ root.transpose(0, 2, 1), np.linalg.inv(root)
    linear = (precision @ mean[:, :, None])[:, :, 0]
    natural, expected = np.zeros_like(rows), np.ones_like(rows)
    natural[:, 1] = half_log_det - 0.5 * d * log(2.0 * pi) - 0.5 * (linear * mean).sum(axis=1)
    natural[:, 2 : 2 + d] = linear
    # The packed triangle holds an entry off the diagonal once; the quadratic form has it twice.
    lower = lower_triangle(d)
    halved = np.where(lower[0] == lower[1], 0.5, 1.0)
    natural[:, 2 + d :] = -halved * precision[:, lower[0], lower[1]]
    second = inverse_root.transpose(0, 2, 1) @ inverse_root
    second += mean[:, :, None] * mean[:, None, :]
    expected[:, 2 : 2 + d] = mean
    expected[:, 2 + d :] = second[:, lower[0], lower[1]]
    return Drawn(natural, expected)


@draw_parameters.register
def _diagonal(family: NormalInverseGamma, rows: Matrix, rng: Generator) -> Drawn:
    weight, first, second = rows[:, 2::3], rows[:, 3::3], rows[:, 4::3]
    kappa = family.kappa + weight
    rate = family.rate + 0.5 * np.maximum(second - first**2 / kappa, 0.0)
    precision = rng.gamma(family.shape + 0.5 * weight) / rate
    mean = first / kappa + rng.standard_normal(first.shape) / np.sqrt(kappa * precision)
    natural, expected = np.zeros_like(rows), np.ones_like(rows)
    natural[:, 2::3] = 0.5 * (np.log(precision) - log(2.0 * pi) - precision * mean**2)
    natural[:, 3::3] = precision * mean
    natural[:, 4::3] = -0.5 * precision
    expected[:, 3::3] = mean
    expected[:, 4::3] = mean**2 + 1.0 / precision
    return Drawn(natural, expected)


@draw_parameters.register
def _bernoulli(family: BetaBernoulli, rows: Matrix, rng: Generator) -> Drawn:
    weights = np.stack([family.a + rows[:, 2::2], family.b + rows[:, 3::2]], axis=-1)
    shares = _log_shares(rng, weights).reshape(rows.shape[0], -1)
    natural, expected = np.zeros_like(rows), np.ones_like(rows)
    natural[:, 2:] = shares
    expected[:, 2:] = np.exp(shares)
    return Drawn(natural, expected)


@draw_parameters.register
def _categorical(family: DirichletCategorical, rows: Matrix, rng: Generator) -> Drawn:
    natural, expected = np.zeros_like(rows), np.ones_like(rows)
    for c, beta in enumerate(family.beta):
        levels = slice(int(family.start[c]) + 2, int(family.start[c + 1]))
        shares = _log_shares(rng, beta + rows[:, levels])
        natural[:, levels] = shares
        expected[:, levels] = np.exp(shares)
    return Drawn(natural, expected)


@draw_parameters.register
def _multinomial(family: DirichletMultinomial, rows: Matrix, rng: Generator) -> Drawn:
    shares = _log_shares(rng, family.beta + rows[:, 3:])
    natural, expected = np.zeros_like(rows), np.ones_like(rows)
    # A bag's length says nothing about its cluster: the divergence is that of one word.
    natural[:, 3:] = shares
    expected[:, 3:] = np.exp(shares)
    return Drawn(natural, expected)


@draw_parameters.register
def _poisson(family: GammaPoisson, rows: Matrix, rng: Generator) -> Drawn:
    log_rate = log_gamma_draw(rng, family.shape + rows[:, 4::2])
    log_rate -= np.log(family.rate + rows[:, 3::2])
    natural, expected = np.zeros_like(rows), np.ones_like(rows)
    natural[:, 2] = 1.0
    natural[:, 3::2] = -np.exp(log_rate)
    natural[:, 4::2] = log_rate
    expected[:, 4::2] = np.exp(log_rate)
    return Drawn(natural, expected)


@draw_parameters.register
def _gamma(family: GammaOfAnyShape, rows: Matrix, rng: Generator) -> Drawn:
    s = family.grid[chosen_on_grid(family, rows, rng)[0]]
    log_inverse_mean = log_gamma_draw(rng, family.shape + s * rows[:, 3::3])
    log_rate = np.log(s) + log_inverse_mean - np.log(family.rate + s * rows[:, 4::3])
    natural, expected = np.zeros_like(rows), np.ones_like(rows)
    natural[:, 2] = 1.0
    natural[:, 3::3] = s * log_rate - gammaln(s)
    natural[:, 4::3] = -np.exp(log_rate)
    natural[:, 5::3] = s
    expected[:, 4::3] = s * np.exp(-log_rate)
    expected[:, 5::3] = digamma(s) - log_rate
    return Drawn(natural, expected)


@draw_parameters.register
def _negative_binomial(family: NegativeBinomial, rows: Matrix, rng: Generator) -> Drawn:
    (k, d), grid = (rows.shape[0], family.shape.size), family.grid
    place = chosen_on_grid(family, rows, rng)[0]
    features = rows[:, 3:].reshape(k, d, -1)
    log_odds = log_gamma_draw(rng, family.shape + features[:, :, 1])
    log_odds -= log_gamma_draw(rng, 1.0 + grid[place] * (family.rate + features[:, :, 0]))
    log_failure = -np.logaddexp(0.0, log_odds)
    natural, expected = np.zeros_like(features), np.ones_like(features)
    natural[:, :, 0] = grid[place] * log_failure
    natural[:, :, 1] = log_odds + log_failure
    np.put_along_axis(natural, 2 + place[:, :, None], 1.0, axis=2)
    mean = grid[place] * np.exp(log_odds)
    expected[:, :, 1] = mean
    # What a log gamma is expected to be has no closed form: about the mean of it a spread away.
    off = np.sqrt(mean * (1.0 + np.exp(log_odds)))
    places = np.maximum(np.stack([mean - off, mean + off]), 0.0)[..., None]
    ways = gammaln(grid + places) - gammaln(grid) - gammaln(1.0 + places)
    expected[:, :, 2:] = ways.mean(axis=0)
    start = np.zeros((k, 3))
    return Drawn(
        np.concatenate([start, natural.reshape(k, -1)], axis=1),
        np.concatenate([start + 1.0, expected.reshape(k, -1)], axis=1),
    )


@draw_parameters.register
def _product(family: Product, rows: Matrix, rng: Generator) -> Drawn:
    split = family.row_split
    head = draw_parameters(family.head, rows[:, :split], rng)
    tail = draw_parameters(family.tail, rows[:, split:], rng)
    return Drawn(*(np.concatenate(each, axis=1) for each in zip(head, tail, strict=True)))
