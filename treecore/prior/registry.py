"""Partition priors by name, built from plain values."""

from collections.abc import Mapping
from dataclasses import Field, fields
from math import isfinite
from typing import Any

from weald.treecore.errors import ParameterError

from .base import PartitionPrior
from .dirichlet_process import DirichletProcess
from .mixture_of_finite_mixtures import MixtureOfFiniteMixtures
from .normalized_generalized_gamma import NormalizedGeneralizedGamma
from .pitman_yor import PitmanYor
from .uniform_assignment import UniformAssignment

__all__ = ["PRIORS", "build_prior"]

Prior = (
    DirichletProcess
    | PitmanYor
    | NormalizedGeneralizedGamma
    | MixtureOfFiniteMixtures
    | UniformAssignment
)

PRIORS: dict[str, type[Prior]] = {
    DirichletProcess.name: DirichletProcess,
    PitmanYor.name: PitmanYor,
    NormalizedGeneralizedGamma.name: NormalizedGeneralizedGamma,
    MixtureOfFiniteMixtures.name: MixtureOfFiniteMixtures,
    UniformAssignment.name: UniformAssignment,
}


def build_prior(name: str, parameters: Mapping[str, object] | None = None) -> PartitionPrior:
    """Prior from its name and plain values, such as ``PartitionPrior.parameters`` gives.

    Parameters
    ----------
    name:
        A key of :data:`PRIORS`.
    parameters:
        Values by field name; what is missing takes the prior's default.

    Raises
    ------
    ParameterError
        For an unknown prior or parameter, or a value of the wrong kind or outside its range.

    Examples
    --------
    >>> build_prior("dp", {"alpha": 2}).parameters()["alpha"]
    2.0
    """
    kind = PRIORS.get(name)
    if kind is None:
        raise ParameterError(f"unknown partition prior {name!r}; known: {', '.join(PRIORS)}")
    known = {field.name: field for field in fields(kind)}
    values: dict[str, Any] = {}
    for key, value in (parameters or {}).items():
        if key not in known:
            raise ParameterError(f"{name}: unknown parameter {key!r}; known: {', '.join(known)}")
        values[key] = _checked(name, known[key], value)
    return kind(**values)


def _checked(prior: str, field: Field[Any], value: object) -> object:
    """The value as the field's default says it must be: a truth value, name, count or number."""
    default = field.default
    if default is None and value is None:
        return None
    if isinstance(default, bool):
        wanted, good = "true or false", isinstance(value, bool)
    elif isinstance(default, str):
        wanted, good = "a name", isinstance(value, str)
    elif isinstance(default, int):
        wanted, good = "a whole number", isinstance(value, int) and not isinstance(value, bool)
    else:
        wanted, good = "a finite number", False
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
            value, good = float(value), True
    if not good:
        raise ParameterError(f"{prior}: {field.name} must be {wanted}, got {value!r}")
    return value
