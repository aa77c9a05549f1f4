"""Checks of what people give to a family: hyperparameters and observations."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError

__all__ = ["first_true", "per_feature", "positive", "refuse_unknown", "shape_fault"]

Vector = NDArray[np.float64]


def refuse_unknown(family: str, parameters: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise ParameterError when ``parameters`` has a name that the family does not take."""
    names = list(known)
    unknown = sorted(set(parameters) - set(names))
    if unknown:
        takes = ", ".join(names)
        raise ParameterError(f"{family} has no parameter {unknown[0]!r}: it takes {takes}")


def per_feature(name: str, value: Any, d: int) -> Vector:
    """A finite number for each of d features from one number or d of them."""
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a number or {d} numbers, got {value!r}") from None
    if numbers.shape not in {(), (1,), (d,)}:
        raise ParameterError(f"{name} must be a number or {d} numbers, got shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        raise ParameterError(f"{name} must be finite, got {value!r}")
    return np.ascontiguousarray(np.broadcast_to(numbers, (d,)))


def positive(name: str, value: Any, d: int) -> Vector:
    """As :func:`per_feature`, above zero."""
    numbers = per_feature(name, value, d)
    if not (numbers > 0.0).all():
        raise ParameterError(f"{name} must be positive, got {numbers[numbers <= 0.0][0]:g}")
    return numbers


def shape_fault(values: Vector, d: int) -> tuple[int, str] | None:
    """Row 0 and the reason when ``values`` is not an n x d array."""
    if values.ndim == 2 and values.shape[1] == d:
        return None
    return 0, f"needs {d} numbers, got shape {values.shape[1:]}"


def first_true(mask: NDArray[np.bool_]) -> tuple[int, int] | None:
    """Row and column of the first true entry in row order, or None."""
    if not mask.any():
        return None
    row, column = np.unravel_index(int(mask.argmax()), mask.shape)
    return int(row), int(column)
