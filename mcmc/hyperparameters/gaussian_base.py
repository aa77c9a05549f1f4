"""The base measure of Gaussian clusters with full covariance, learned beside the partition.

Mean m, kappa, nu and psi of the normal-inverse-Wishart family are themselves unknown. With S the
covariance of what is clustered and c its location,

    m ~ N(c, S)    kappa ~ Gamma(1/2, rate 1/2)    log(nu - d + 1) ~ N(2, 1.5^2)
    psi = (nu - d + 1) phi    phi ~ Wishart(d + 2, S / (4 (d + 2)))

so that a change of units changes nothing, and clusters have a quarter of the variance within them
before the data speak. One exact update given the partition: nu by Metropolis with phi held, on the
blocks' marginal likelihoods; then each block's mean and precision from their posterior, and m,
kappa and phi from their conjugate conditionals; then means and precisions are forgotten. A nu that
is learned says how alike the shapes of clusters are: with d + 3 five rows in 13 dimensions are one.
(``answers.md`` section 3; Geweke's test and quadrature are in the tests.)
"""

from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import gammaln

from weald.treecore.family.gaussian.default_scale import sample_covariance
from weald.treecore.family.gaussian.normal_inverse_wishart import (
    NormalInverseWishart,
    normal_inverse_wishart,
    packed_scale,
)
from weald.treecore.family.gaussian.posterior_draws import log_determinants_of
from weald.treecore.family.gaussian.robust_spread import without_extremes
from weald.treecore.family.interface.base import workspace
from weald.treecore.family.parameter_draws import draw_gaussians

from .freedom import redraw_log_freedom

__all__ = ["GaussianBase", "gaussian_base"]

Values = NDArray[np.float64]

_WITHIN = 0.25
_KAPPA_SHAPE, _KAPPA_RATE = 0.5, 0.5


class GaussianBase(NamedTuple):
    """What does not change while the base measure is learned: location and covariance inverted.

    ``centre`` (d), ``precision`` (d, d) of the prior mean; ``phi_degrees`` and ``phi_rate`` (d, d),
    the inverse of the scale matrix, of phi's Wishart law.
    """

    centre: Values
    precision: Values
    phi_degrees: float
    phi_rate: Values

    def step(
        self, rng: Generator, family: NormalInverseWishart, rows: Values
    ) -> NormalInverseWishart:
        """One update given the blocks' statistics ``rows`` (k, m), which are left as they are."""
        d, k = self.centre.shape[0], rows.shape[0]
        phi = family.psi / (family.nu - d + 1.0)
        nu = _nu_step(rng, family, phi, rows)
        freedom = nu - d + 1.0
        # Enough of a family to draw parameters from: the tables that kernels need come at the end.
        psi = phi * freedom
        packed = packed_scale(psi, family.pull, family.kappa)
        family = family._replace(nu=nu, psi=psi, psi_packed=packed)
        drawn = draw_gaussians(family, rows, rng)
        mean = drawn.mean + family.origin
        # All roots side by side: the sum of the precisions is one product.
        roots = drawn.root.transpose(1, 0, 2).reshape(d, k * d)
        total = roots @ roots.T
        pulled = roots @ _seen(drawn.root, mean).ravel()
        root = np.linalg.cholesky(self.precision + family.kappa * total)
        target = self.precision @ self.centre + family.kappa * pulled
        whitened = np.linalg.solve(root, target) + rng.standard_normal(d)
        centre = np.linalg.solve(root.T, whitened).astype(np.float64)
        distance = float((_seen(drawn.root, mean - centre) ** 2).sum())
        kappa = rng.gamma(_KAPPA_SHAPE + 0.5 * k * d) / (_KAPPA_RATE + 0.5 * distance)
        phi = _wishart(rng, self.phi_degrees + k * family.nu, self.phi_rate + freedom * total)
        return _renewed(family, mean=centre, kappa=max(kappa, np.finfo(float).tiny), phi=phi)

    def middle(self, families: list[NormalInverseWishart]) -> NormalInverseWishart:
        """One family for many that were learned."""
        d = self.centre.shape[0]
        freedom = np.array([each.nu - d + 1.0 for each in families])
        return _renewed(
            families[-1],
            mean=np.mean([each.mean for each in families], axis=0),
            kappa=_log_mean([each.kappa for each in families]),
            nu=d - 1.0 + _log_mean(freedom),
            phi=np.mean([each.psi / f for each, f in zip(families, freedom, strict=True)], axis=0),
        )

    def shown(self, family: NormalInverseWishart) -> dict[str, float]:
        """Numbers for a trace; spread is the root of phi's determinant, of one feature."""
        d = family.mean.shape[0]
        log_det = float(np.linalg.slogdet(family.psi / (family.nu - d + 1.0))[1])
        spread = exp(log_det / (2.0 * d))
        return {"base_kappa": family.kappa, "base_nu": family.nu, "base_spread": spread}


def gaussian_base(values: Values) -> GaussianBase:
    """The hyperprior that a sample (n, d) sets."""
    d = values.shape[1]
    values = without_extremes(values)
    covariance = sample_covariance(values)
    precision: Values = np.linalg.inv(covariance).astype(np.float64)
    degrees = d + 2.0
    return GaussianBase(values.mean(axis=0), precision, degrees, precision * degrees / _WITHIN)


def _renewed(
    family: NormalInverseWishart,
    *,
    phi: Values,
    mean: Values | None = None,
    kappa: float | None = None,
    nu: float | None = None,
) -> NormalInverseWishart:
    nu = family.nu if nu is None else nu
    return normal_inverse_wishart(
        family.mean if mean is None else mean,
        family.kappa if kappa is None else kappa,
        nu,
        phi * (nu - phi.shape[0] + 1.0),
        family.origin,
    )


def _log_mean(values: Values | list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def _seen(roots: Values, vectors: Values) -> Values:
    """What the transposes of roots (k, d, d) make of vectors (k, d)."""
    return (vectors[:, None, :] @ roots)[:, 0, :]


def _nu_step(rng: Generator, family: NormalInverseWishart, phi: Values, rows: Values) -> float:
    """A few Metropolis steps of log(nu - d + 1), phi held, on the blocks' marginal likelihoods."""
    d, weight = family.mean.shape[0], rows[:, 1]
    i, work = np.arange(d), workspace(family)
    rows = np.ascontiguousarray(rows)
    log_det_phi = float(np.linalg.slogdet(phi)[1])

    def log_likelihood(log_freedom: float) -> float:
        freedom = exp(log_freedom)
        nu = d - 1.0 + freedom
        gammas = gammaln(0.5 * (nu + weight[:, None] - i)) - gammaln(0.5 * (nu - i))
        scale = packed_scale(phi * freedom, family.pull, family.kappa)
        log_dets = log_determinants_of(scale, family.pull, family.kappa, rows, work)
        grown = 0.5 * (nu + weight) * (log_dets - log_det_phi - d * log_freedom)
        return float(gammas.sum() - grown.sum() - 0.5 * d * log_freedom * weight.sum())

    present = log(family.nu - d + 1.0)
    return d - 1.0 + exp(redraw_log_freedom(rng, present, log_likelihood))


def _wishart(rng: Generator, degrees: float, rate: Values) -> Values:
    """A draw of Wishart(degrees, rate^-1), by Bartlett's factor."""
    d = rate.shape[0]
    factor = np.tril(rng.standard_normal((d, d)), -1)
    factor[np.diag_indices(d)] = np.sqrt(rng.chisquare(degrees - np.arange(d)))
    root = np.linalg.solve(np.linalg.cholesky(rate).T, factor)
    return np.asarray(root @ root.T)
