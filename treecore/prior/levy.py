"""The generalised gamma measure behind the NGGP: its auxiliary u and the integral over it.

Levy intensity ``alpha / Gamma(1 - sigma) w^(-1 - sigma) e^(-w) dw``. Everything is a function of
``v = log u``, in which the auxiliary's density is log-concave (``tgmcmc-ibhc.md`` S1-S6; James,
Lijoi and Pruenster 2009, Scandinavian Journal of Statistics 36).
"""

from functools import lru_cache
from math import exp, lgamma, log, log1p, sqrt
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

__all__ = [
    "Levy",
    "Nodes",
    "laplace_exponent",
    "log_normaliser",
    "log_u_density",
    "log_u_mode",
    "log_u_width",
    "u_nodes",
]

# Beyond this power the density is zero by any measure; without a cap, exp would overflow.
_LARGEST_POWER = 600.0
# The mode only centres the quadrature and scales the slice sampler's steps.
_MODE_TOLERANCE = 1e-9
_MOST_STEPS = 200
# Parts of the integrand this far (in log) below its mode are left out.
_NEGLIGIBLE = 48.0
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_STEPS = 2.0 ** np.arange(-1, 64)

Real = TypeVar("Real", float, NDArray[np.float64])


class Levy(NamedTuple):
    """Parameters of the measure: ``alpha`` > 0 and ``sigma`` in [0, 1)."""

    alpha: float
    sigma: float


class Nodes(NamedTuple):
    """Quadrature points ``v`` and weights, normalised to sum to 1, for the law of v given (n, k).

    ``log_total`` is the log of the integral of ``exp(log_u_density)`` over the line.
    """

    v: NDArray[np.float64]
    weights: NDArray[np.float64]
    log_total: float


def laplace_exponent(levy: Levy, log1p_u: Real) -> Real:
    """Laplace exponent psi(u) of the total mass (S1), as a function of log(1 + u)."""
    if levy.sigma == 0.0:
        return levy.alpha * log1p_u
    power = np.minimum(levy.sigma * log1p_u, _LARGEST_POWER)
    value: Real = levy.alpha * np.expm1(power) / levy.sigma
    return value


def log_u_density(levy: Levy, n: int, k: int, v: Real) -> Real:
    """Log density of v = log u given n observations in k blocks (S6), not normalised."""
    tail = np.log1p(np.exp(-np.abs(v)))
    log1p_u = np.maximum(v, 0.0) + tail
    log1p_inverse = np.maximum(-v, 0.0) + tail
    # n v - n log(1 + u), written so that n = 10^7 cancels nothing.
    value: Real = levy.sigma * k * log1p_u - n * log1p_inverse - laplace_exponent(levy, log1p_u)
    return value


def log_u_mode(levy: Levy, n: int, k: int) -> float:
    """Where the density of v is largest, for n of 1 or more.

    Its derivative vanishes where ``alpha u (1 + u)^sigma = n + sigma k u``.
    """
    alpha, sigma = levy
    start = log(n / alpha)
    if sigma == 0.0:
        return start

    # Below, the left side is at most n; above, half of it exceeds n and half sigma k u.
    below = min(0.0, start - sigma * log(2.0))
    above = max(start + log(2.0), log(2.0 * sigma * k / alpha) / sigma)
    log_pull = log(sigma * k)
    v = min(max(start, below), above)
    for _ in range(_MOST_STEPS):
        log1p_u = max(v, 0.0) + log1p(exp(-abs(v)))
        right = float(np.logaddexp(log(n), log_pull + v))
        excess = log(alpha) + v + sigma * log1p_u - right
        below, above = (below, v) if excess > 0.0 else (v, above)
        growth = 1.0 + sigma * exp(v - log1p_u) - exp(log_pull + v - right)
        step = excess / growth
        if abs(step) < _MODE_TOLERANCE:
            break
        # Newton's step on the logs of both sides, or half the bracket where that leaves it.
        v = v - step if below < v - step < above else 0.5 * (below + above)
    return v


def log_u_width(levy: Levy, n: int, k: int, v: float) -> float:
    """Standard deviation of the normal density with the curvature that v's has at ``v``."""
    alpha, sigma = levy
    share = float(expit(v))
    log1p_u = max(v, 0.0) + log1p(exp(-abs(v)))
    growth = alpha * share * exp(min(sigma * log1p_u, _LARGEST_POWER))
    curvature = share * (1.0 - share) * (n - sigma * k) + growth * (1.0 - share + sigma * share)
    return 1.0 / sqrt(curvature)


def _panels(levy: Levy, n: int, k: int, mode: float) -> NDArray[np.float64]:
    """Edges of panels within each of which the integrand is smooth.

    Its only scales are the curvature at the mode and, where that is wide, the bend of width 1 at
    u = n: the edges get denser towards both.
    """
    scale = log_u_width(levy, n, k, mode)
    around_mode = np.concatenate((-_STEPS[::-1], [0.0], _STEPS)) * scale + mode
    around_bend = np.concatenate((-_STEPS[::-1], [0.0], _STEPS)) + log(n)
    heights = log_u_density(levy, n, k, around_mode)
    kept = np.flatnonzero(heights > heights[_STEPS.shape[0]] - _NEGLIGIBLE)
    lower, upper = around_mode[kept[0] - 1], around_mode[kept[-1] + 1]
    edges = np.sort(np.concatenate((around_mode, around_bend)))
    return edges[(edges >= lower) & (edges <= upper)]


@lru_cache(maxsize=32)
def u_nodes(levy: Levy, n: int, k: int) -> Nodes:
    """Gauss-Legendre quadrature for the law of v given n of 1 or more observations in k blocks."""
    edges = _panels(levy, n, k, log_u_mode(levy, n, k))
    half = 0.5 * np.diff(edges)
    v = ((edges[:-1] + half)[:, None] + half[:, None] * _POINTS).ravel()
    heights = log_u_density(levy, n, k, v)
    top = float(heights.max())
    weights = (half[:, None] * _WEIGHTS).ravel() * np.exp(heights - top)
    total = float(weights.sum())
    return Nodes(v, weights / total, top + log(total))


def log_normaliser(levy: Levy, n: int, k: int) -> float:
    """Log V(n, k) of S4: the weight of having k blocks, sizes and powers of alpha apart."""
    if levy.sigma == 0.0:
        return lgamma(levy.alpha) - lgamma(levy.alpha + n)
    return u_nodes(levy, n, k).log_total - lgamma(n)
