"""Chains on a handful of observations, and the posterior that they should sample."""

from math import pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.exact.enumeration import Shape, partitions
from weald.mcmc.chain.chain import MixtureChain
from weald.treecore.family import FAMILIES
from weald.treecore.family.interface.base import log_marginal, observe, statistics_width
from weald.treecore.prior import build_prior
from weald.treecore.prior.sequential import canonical_labels
from weald.treecore.statistics.rows import fade_row

Values = NDArray[np.float64]

# The spec's example (``tgmcmc-ibhc.md`` section 10), n = 5.
GAUSS_1 = np.array([[-1.3], [-1.0], [0.2], [0.9], [1.6]])


def small_chain(values: Values, prior: tuple[str, dict[str, Any]] | None = None) -> MixtureChain:
    """An empty chain under the spec's example's family, by default of a Dirichlet process."""
    parameters = {"mean": [0.0], "kappa": 0.5, "nu": 3.0, "psi": [[1.0]]}
    family = FAMILIES["gaussian"].build(parameters, values)
    name, values_of_prior = prior or ("dp", {"alpha": 1.0, "learn": False})
    return MixtureChain.start(family, build_prior(name, values_of_prior), seed=5)


def posterior(
    chain: MixtureChain, values: Values, weights: Values | None = None
) -> dict[Shape, float]:
    """Probability of every partition of observations (n, d) that weigh so much (n)."""
    shapes = partitions(values.shape[0])
    weigh = np.ones(values.shape[0]) if weights is None else weights
    log_p = np.array([_log_joint(chain, values, weigh, np.array(shape)) for shape in shapes])
    p = np.exp(log_p - np.logaddexp.reduce(log_p))
    return dict(zip(shapes, p.tolist(), strict=True))


def _log_joint(
    chain: MixtureChain, values: Values, weights: Values, shape: NDArray[np.int64]
) -> float:
    total = chain.prior.log_probability(np.bincount(shape))
    rows = np.zeros((2, statistics_width(chain.family)))
    for block in range(int(shape.max()) + 1):
        rows[1] = 0.0
        for r in np.flatnonzero(shape == block).tolist():
            observe(chain.family, values, r, rows, 0)
            fade_row(rows, 0, float(weights[r]))
            rows[1] += rows[0]
        total += log_marginal(chain.family, rows, 1, chain._work)
    return float(total)


def total_variation(
    chain: MixtureChain, places: list[int], expected: dict[Shape, float], n: int
) -> tuple[float, float]:
    """How far n refinements' partitions are from what is expected, and what chance alone makes.

    ``places`` is the atom of each observation. Some 300 moves of five observations between two
    records leave next to no correlation.
    """
    counts = dict.fromkeys(expected, 0)
    for _ in range(n):
        chain.refine()
        counts[tuple(canonical_labels(chain.labels[places]).tolist())] += 1
    p = np.array(list(expected.values()))
    found = np.array(list(counts.values())) / n
    noise = 0.5 * sqrt(2.0 / pi) * np.sqrt(p * (1.0 - p) / n).sum()
    return float(0.5 * np.abs(found - p).sum()), float(noise)
