"""What learns a family's base measure beside the partition, and which family has what.

A learner takes one step that leaves the law of the base measure given the partition invariant. The
family's statistics do not depend on what is learned.
"""

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.treecore.errors import ObservationError, ParameterError
from weald.treecore.family.gaussian.normal_inverse_gamma import NormalInverseGamma
from weald.treecore.family.gaussian.normal_inverse_wishart import NormalInverseWishart
from weald.treecore.family.interface.base import Family

from .base_scale import BaseScale, log_likelihood_under
from .diagonal_base import DiagonalBase, diagonal_base
from .gaussian_base import GaussianBase, gaussian_base

__all__ = [
    "Hyperprior",
    "Learner",
    "hyperprior_of",
    "learner_of",
    "learner_of_hyperprior",
    "learns_by_default",
    "stepped",
]

# Learners that hold nothing but a hyperprior.
Hyperprior = GaussianBase | DiagonalBase

F = TypeVar("F", bound=Family)


class Learner(Protocol[F]):
    """One exact step of a family's base measure, and what a trace shows of it."""

    def step(self, rng: Generator, family: F, rows: NDArray[np.float64]) -> F:
        """The family after one step, given blocks with statistics ``rows`` (k, m).

        It is the very same object where nothing changed.
        """
        ...

    def middle(self, families: list[F]) -> F:
        """One family for many that were learned: the mean of each parameter, or of its log."""
        ...

    def shown(self, family: F) -> dict[str, float]:
        """The learned numbers by name."""
        ...


def stepped(learner: Learner[F], rng: Generator, family: F, rows: NDArray[np.float64]) -> F:
    """One step of a learner, none where numbers fail.

    Sums of values at the edge of what there are lose what tells them from none; then the base
    measure stays, whatever it is.
    """
    try:
        with np.errstate(all="ignore"):
            found = learner.step(rng, family, rows)
        log_likelihood_under(found, rows)
    except (np.linalg.LinAlgError, ParameterError, ObservationError):
        return family
    return found


def learns_by_default(family: Family) -> bool:
    """Whether the family has a hyperprior of its own, rather than a factor of what was said."""
    return isinstance(family, NormalInverseWishart | NormalInverseGamma)


def hyperprior_of(learner: Hyperprior) -> dict[str, Any]:
    """JSON-able numbers of which :func:`learner_of_hyperprior` makes it again, bit for bit."""
    return {name: np.asarray(each).tolist() for name, each in learner._asdict().items()}


def learner_of_hyperprior(family: Family, hyperprior: Mapping[str, Any] | None) -> Any:
    """Undo :func:`hyperprior_of` for a family of the same kind; None of None."""
    if hyperprior is None:
        return None
    kind: Any = GaussianBase if isinstance(family, NormalInverseWishart) else DiagonalBase
    arrays = {name: np.array(each, dtype=np.float64) for name, each in hyperprior.items()}
    return kind(**{name: each if each.ndim else float(each) for name, each in arrays.items()})


def learner_of(family: Family, values: NDArray[np.float64]) -> Learner[Any]:
    """The learner of a family whose observations are ``values`` (n, d).

    Raises ParameterError for a family that has nothing to learn.
    """
    if isinstance(family, NormalInverseWishart):
        return gaussian_base(values)
    if isinstance(family, NormalInverseGamma):
        return diagonal_base(values)
    return BaseScale(family)
