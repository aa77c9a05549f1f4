"""Means and precisions drawn from the posterior of Gaussian clusters, compiled.

With psi_n = F F' the posterior's scale matrix, Bartlett's precision is R R' with R = F^-T A and a
lower triangle A; R^-T is a root of the covariance.
"""

from math import log

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled

from .normal_inverse_wishart import NormalInverseWishart
from .packed_cholesky import factor_scatter, log_determinants

__all__ = ["log_determinants_of", "place_draws"]

Values = NDArray[np.float64]


@compiled
def log_determinants_of(
    scale: Values, pull: Values, kappa: float, rows: Values, work: Values
) -> Values:
    """Log determinants (k) of :func:`~.packed_cholesky.factor_scatter`'s matrices for rows (k, m).

    ``work`` is the family's workspace.
    """
    found = np.empty(rows.shape[0])
    places = np.arange(rows.shape[0])
    nothing = np.zeros((1, rows.shape[1]))
    d = pull.shape[0]
    log_determinants(scale, pull, kappa, rows, places, nothing, 0, d, found, work)
    return found


@compiled
def place_draws(
    family: NormalInverseWishart, rows: Values, bartlett: Values, off: Values
) -> tuple[Values, Values, Values]:
    """Turn standard draws into those of the clusters with these statistics (k, m).

    ``bartlett`` (k, d, d) holds A, of which the lower triangle is looked at, ``off`` (k, d)
    standard normals, which are used up. Returns the means off the origin (k, d), R (k, d, d), and
    half the log determinants of the precisions (k).
    """
    scale, pull, kappa = family.psi_packed, family.pull, family.kappa
    mean, root, half_log_det = np.empty(off.shape), np.empty(bartlett.shape), np.zeros(len(rows))
    d = pull.shape[0]
    work = np.empty((2, rows.shape[1]))
    for k in range(rows.shape[0]):
        weight = kappa + rows[k, 1]
        factor_scatter(scale, pull, rows, k, 1.0 / weight, work)
        start = d * (d + 1) // 2
        for a in range(d - 1, -1, -1):
            # Column a of F from its pivot down.
            start -= d - a
            pivot = work[1, start]
            half_log_det[k] += log(bartlett[k, a, a]) - log(pivot)
            for b in range(d):
                root[k, a, b] = bartlett[k, a, b] if b <= a else 0.0
            for c in range(a + 1, d):
                for b in range(d):
                    root[k, a, b] -= work[1, start + c - a] * root[k, c, b]
            for b in range(d):
                root[k, a, b] /= pivot
            # A' y = off, from the last place up.
            for c in range(a + 1, d):
                off[k, a] -= bartlett[k, c, a] * off[k, c]
            off[k, a] /= bartlett[k, a, a]
        for a in range(d):
            step, at = 0.0, a
            for b in range(a + 1):
                step += work[1, at] * off[k, b]
                at += d - b - 1
            mean[k, a] = (rows[k, 2 + a] + pull[a]) / weight + step / np.sqrt(weight)
    return mean, root, half_log_det
