"""A Metropolis step for the scale of the base measure.

The parameters that a family names as its scale (``psi`` of the gaussian, the pseudo-counts of the
discrete ones, ...) are those that it was given times a factor s, with log s standard normal a
priori: the data choose how wide clusters are, within a few times what was said. Given the partition
the target is ``exp(-log(s)^2 / 2) prod_k m_s(X_k)``, and a symmetric step of log s is accepted by
its ratio; clusters stay as they are. Exact, beside any exact kernel: each acts given the present
scale. Source: Neal (2000), Journal of Computational and Graphical Statistics 9, section 7.
"""

from math import exp, log
from typing import Generic, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.treecore.errors import ParameterError
from weald.treecore.family.interface.base import Family, spec_of
from weald.treecore.family.same_kind import n_features_of
from weald.treecore.partition.partition import (
    Model,
    Partition,
    finite_log_marginals,
    log_likelihood,
)

__all__ = ["SCALE", "BaseScale", "log_likelihood_of", "log_likelihood_under", "scaled", "step"]

F = TypeVar("F", bound=Family)

# Its name among the hyperparameters of a trace.
SCALE = "base_scale"
# Standard deviation of a step of log s: wide enough for a few clusters, which leave s uncertain.
_STEP = 0.4


def scaled(family: F, log_scale: float) -> F:
    """The family with the scale of its base measure multiplied by ``exp(log_scale)``.

    Raises ParameterError for a family that names no scale.
    """
    spec = spec_of(family)
    if not spec.scale:
        raise ParameterError(f"the {spec.name} family has no scale to learn")
    given = spec.parameters(family)
    factor = exp(log_scale)
    given |= {name: (factor * np.asarray(given[name])).tolist() for name in spec.scale}
    return spec.build(given, np.empty((0, n_features_of(family))))


def log_likelihood_under(family: Family, rows: NDArray[np.float64]) -> float:
    """Sum of the log marginal likelihoods of blocks with these statistics (k, m)."""
    return float(finite_log_marginals(family, rows).sum())


def log_likelihood_of(model: Model, partition: Partition, family: Family) -> float:
    """Sum of the blocks' log marginal likelihoods, under the model's family or one of its kind."""
    if family is model.family:
        return float(log_likelihood(model, partition))
    slots = partition.slots[: int(partition.n_blocks[0])]
    return log_likelihood_under(family, partition.rows[slots])


def step(
    rng: Generator, families: tuple[F, F], log_scale: float, rows: NDArray[np.float64]
) -> tuple[F, float]:
    """One step from ``log_scale``; returns the family and the log scale where it ends.

    ``families`` are the one of scale one and the present one, ``rows`` the blocks' statistics
    (k, m). The family is the very same object where the step was rejected.
    """
    proposed = log_scale + _STEP * float(rng.standard_normal())
    other = scaled(families[0], proposed)
    ratio = 0.5 * (log_scale**2 - proposed**2) + log_likelihood_under(other, rows)
    ratio -= log_likelihood_under(families[1], rows)
    accepted = log(1.0 - rng.random()) < ratio
    return (other, proposed) if accepted else (families[1], log_scale)


class BaseScale(Generic[F]):
    """The scale of one chain's base measure: :func:`step` with what it needs to know.

    Raises ParameterError for a family that names no scale.
    """

    def __init__(self, family: F) -> None:
        self._first = scaled(family, 0.0)
        self.log_scale = 0.0

    def step(self, rng: Generator, family: F, rows: NDArray[np.float64]) -> F:
        """The family after one step; the very same object where it was rejected."""
        families = self._first, family
        family, self.log_scale = step(rng, families, self.log_scale, rows)
        return family

    def middle(self, families: list[F]) -> F:
        """The newest: factors of what a person has said are not averaged."""
        return families[-1]

    def shown(self, _family: F) -> dict[str, float]:
        """The factor by its name in a trace."""
        return {SCALE: exp(self.log_scale)}
