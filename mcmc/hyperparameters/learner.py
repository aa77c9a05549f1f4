"""What learns a family's base measure beside the partition, and which family has what.

A learner takes one step that leaves the law of the base measure given the partition invariant. The
family's statistics do not depend on what is learned.
"""

from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.treecore.family.gaussian.normal_inverse_gamma import NormalInverseGamma
from weald.treecore.family.gaussian.normal_inverse_wishart import NormalInverseWishart
from weald.treecore.family.interface.base import Family

from .base_scale import BaseScale
from .diagonal_base import diagonal_base
from .gaussian_base import gaussian_base

__all__ = ["Learner", "learner_of", "learns_by_default"]

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


def learns_by_default(family: Family) -> bool:
    """Whether the family has a hyperprior of its own, rather than a factor of what was said."""
    return isinstance(family, NormalInverseWishart | NormalInverseGamma)


def learner_of(family: Family, values: NDArray[np.float64]) -> Learner[Any]:
    """The learner of a family whose observations are ``values`` (n, d).

    Raises ParameterError for a family that has nothing to learn.
    """
    if isinstance(family, NormalInverseWishart):
        return gaussian_base(values)
    if isinstance(family, NormalInverseGamma):
        return diagonal_base(values)
    return BaseScale(family)
