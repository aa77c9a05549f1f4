"""Checks of what people give to a family: hyperparameters and observations."""

import re
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from weald.treecore.errors import ParameterError

__all__ = [
    "count_fault",
    "feature_fault",
    "first_true",
    "numbers",
    "per_feature",
    "positive",
    "refuse_unknown",
    "renumbered",
    "shape_fault",
]

Vector = NDArray[np.float64]


def refuse_unknown(family: str, parameters: Mapping[str, object], known: Iterable[str]) -> None:
    """Raise ParameterError when ``parameters`` has a name that the family does not take."""
    names = list(known)
    unknown = sorted(set(parameters) - set(names))
    if unknown:
        takes = ", ".join(names)
        raise ParameterError(f"{family} has no parameter {unknown[0]!r}: it takes {takes}")


def numbers(name: str, value: object) -> Vector:
    """The finite numbers in ``value``, in its own shape."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be numeric, got {value!r}") from None
    if not np.isfinite(array).all():
        raise ParameterError(f"{name} must be finite, got {value!r}")
    return array


def per_feature(name: str, value: object, d: int) -> Vector:
    """A finite number for each of d features from one number or d of them."""
    array = numbers(name, value)
    if array.shape not in {(), (1,), (d,)}:
        raise ParameterError(f"{name} must be a number or {d} numbers, got shape {array.shape}")
    # A copy: a read-only array is another type, for which every kernel would be compiled again.
    return np.array(np.broadcast_to(array, (d,)))


def positive(name: str, value: object, d: int) -> Vector:
    """As :func:`per_feature`, above zero."""
    array = per_feature(name, value, d)
    if not (array > 0.0).all():
        raise ParameterError(f"{name} must be positive, got {array[array <= 0.0][0]:g}")
    return array


def shape_fault(values: Vector, d: int) -> tuple[int, str] | None:
    """Row 0 and the reason when ``values`` is not an n x d array."""
    if values.ndim == 2 and values.shape[1] == d:
        return None
    return 0, f"needs {d} numbers, got shape {values.shape[1:]}"


def feature_fault(at: tuple[int, int], values: Vector, reason: str) -> tuple[int, str]:
    """Row and reason for the entry of ``values`` that a family cannot take."""
    return at[0], f"feature {at[1]} is {values[at]:g}: {reason}"


def count_fault(values: Vector, d: int, largest: float) -> tuple[int, str] | None:
    """Row and reason where ``values`` are not n x d counts, with NaN for a missing one."""
    fault = shape_fault(values, d)
    if fault is not None:
        return fault
    counts = (values == np.floor(values)) & (values >= 0.0) & (values <= largest)
    at = first_true(~(counts | np.isnan(values)))
    if at is None:
        return None
    return feature_fault(at, values, f"a count is whole, from 0 to {largest:g}")


def renumbered(reason: str, columns: NDArray[np.int64]) -> str:
    """Rewrite the reason of a part, whose feature c is column ``columns[c]`` of the whole."""
    return re.sub(r"^feature (\d+)", lambda match: f"feature {columns[int(match[1])]}", reason)


def first_true(mask: NDArray[np.bool_]) -> tuple[int, int] | None:
    """Row and column of the first true entry in row order, or None."""
    if not mask.any():
        return None
    row, column = np.unravel_index(int(mask.argmax()), mask.shape)
    return int(row), int(column)
