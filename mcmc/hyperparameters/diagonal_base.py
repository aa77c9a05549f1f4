"""The base measure of Gaussian clusters with independent features, learned beside the partition.

Kappa and shape, which features share, and the rate of each are themselves unknown; the mean stays
at the location of what is clustered. With S_c a feature's variance,

    kappa ~ Gamma(1/2, rate 1/2)    log(2 shape) ~ N(2, 1.5^2)
    rate_c = shape phi_c    phi_c ~ Gamma(3/2, rate 6 / S_c)

which is the hyperprior of :mod:`~weald.mcmc.hyperparameters.gaussian_base` for one feature: a
change of units changes nothing. One exact update given the partition: shape by Metropolis with phi
held, on the blocks' marginal likelihoods; then each block's means and precisions from their
posterior, and kappa and phi from their conjugate conditionals; then means and precisions are
forgotten. (``answers.md`` section 3; Geweke's test and quadrature are in the tests.)
"""

from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import gammaln

from weald.treecore.family.gaussian.normal_inverse_gamma import (
    NormalInverseGamma,
    normal_inverse_gamma,
)
from weald.treecore.family.gaussian.robust_spread import without_extremes

from .freedom import redraw_log_freedom

__all__ = ["DiagonalBase", "diagonal_base"]

Values = NDArray[np.float64]

_WITHIN = 0.25
_KAPPA_SHAPE, _KAPPA_RATE = 0.5, 0.5
_PHI_SHAPE = 1.5


class DiagonalBase(NamedTuple):
    """What does not change while the base measure is learned: ``phi_rate`` (d) of phi's law."""

    phi_rate: Values

    def step(self, rng: Generator, family: NormalInverseGamma, rows: Values) -> NormalInverseGamma:
        """One update given the blocks' statistics ``rows`` (k, m), which are left as they are."""
        features = rows[:, 2:].reshape(rows.shape[0], family.mean.size, 3)
        weight, first = features[..., 0], features[..., 1]
        kappa = float(family.kappa[0])
        scatter = np.maximum(features[..., 2] - first**2 / (kappa + weight), 0.0)
        phi = family.rate / family.shape
        shape = _shape_step(rng, float(family.shape[0]), phi, weight, scatter)
        precision = rng.gamma(shape + 0.5 * weight) / (shape * phi + 0.5 * scatter)
        off = first / (kappa + weight)
        off += rng.standard_normal(off.shape) / np.sqrt((kappa + weight) * precision)
        kappa_rate = _KAPPA_RATE + 0.5 * float((precision * off**2).sum())
        kappa = rng.gamma(_KAPPA_SHAPE + 0.5 * off.size) / kappa_rate
        phi = rng.gamma(_PHI_SHAPE + rows.shape[0] * shape, size=phi.size)
        phi /= self.phi_rate + shape * precision.sum(axis=0)
        tiny = np.finfo(float).tiny
        return normal_inverse_gamma(family.mean, max(kappa, tiny), shape, shape * phi)

    def middle(self, families: list[NormalInverseGamma]) -> NormalInverseGamma:
        """One family for many that were learned."""
        kappa, shape = (
            float(np.exp(np.mean([np.log(getattr(each, name)[0]) for each in families])))
            for name in ("kappa", "shape")
        )
        phi = np.mean([each.rate / each.shape for each in families], axis=0)
        return normal_inverse_gamma(families[-1].mean, kappa, shape, shape * phi)

    def shown(self, family: NormalInverseGamma) -> dict[str, float]:
        """Numbers for a trace; spread is the geometric mean over the features."""
        spread = exp(0.5 * float(np.log(family.rate / family.shape).mean()))
        return {
            "base_kappa": float(family.kappa[0]),
            "base_shape": float(family.shape[0]),
            "base_spread": spread,
        }


def diagonal_base(values: Values) -> DiagonalBase:
    """The hyperprior that a sample (n, d), which may have missing values, sets."""
    variance = np.ones(values.shape[1])
    for c, column in enumerate(values.T):
        seen = without_extremes(column[np.isfinite(column), None])
        if seen.size > 1 and seen.var() > 0.0:
            variance[c] = seen.var(ddof=1)
    return DiagonalBase(_PHI_SHAPE / (_WITHIN * variance))


def _shape_step(
    rng: Generator, shape: float, phi: Values, weight: Values, scatter: Values
) -> float:
    """A few Metropolis steps of log(2 shape), phi held, on the blocks' marginal likelihoods.

    ``weight`` and ``scatter`` (k, d) are those of the blocks, feature by feature.
    """
    ratio = 0.5 * scatter / phi

    def log_likelihood(log_freedom: float) -> float:
        a = 0.5 * exp(log_freedom)
        gammas = gammaln(a + 0.5 * weight) - gammaln(a)
        grown = (a + 0.5 * weight) * np.log1p(ratio / a)
        return float((gammas - grown).sum()) - 0.5 * float(weight.sum()) * log(a)

    return 0.5 * exp(redraw_log_freedom(rng, log(2.0 * shape), log_likelihood))
