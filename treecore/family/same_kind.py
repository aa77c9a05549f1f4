"""A family with other hyperparameters than one that is there."""

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from .interface.base import Family, spec_of, statistics_width

__all__ = ["n_features_of", "with_parameters"]

F = TypeVar("F", bound=Family)


def n_features_of(family: Family) -> int:
    """Values of an observation."""
    # One number a feature; and what is learned may be wider than there are numbers to draw.
    mean: NDArray[np.float64] | None = getattr(family, "mean", None)
    if mean is not None:
        return int(mean.size)
    nothing = np.zeros(statistics_width(family))
    return int(spec_of(family).draw(family, nothing, Generator(PCG64(0)), 1).shape[1])


def with_parameters(family: F, parameters: Mapping[str, Any]) -> F:
    """The family of the same kind and as many features with these hyperparameters.

    They are what the kind's specification says of a family. It is the very same object where they
    are its own.
    """
    spec = spec_of(family)
    if spec.parameters(family) == parameters:
        return family
    return spec.build(parameters, np.empty((0, n_features_of(family))))
