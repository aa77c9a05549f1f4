"""From whole records to rows of features, with a gap where a value is missing or cannot be read.

A stream sets such a record aside (`weald.stream.record.decode`); whoever looks at a file wants
to see what the rest of it says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.stream.record.decode import LARGEST
from weald.stream.record.refused import Refused, cut
from weald.stream.record.schema import Field, Schema

__all__ = ["rows_with_gaps"]


Odd = list[tuple[int, str]]


def rows_with_gaps(
    schema: Schema, records: Sequence[Mapping[str, Any]], odd: Odd | None = None
) -> NDArray[np.float64]:
    """Return observations (n, d) of records, whose nested fields are named by their dotted paths.

    A missing text has no words; every other missing value is NaN.

    Parameters
    ----------
    schema : Schema
    records : sequence of mapping
    odd : list of (int, str), optional
        Where values that cannot be read are told of: the record's place, and why.
    """
    odd = [] if odd is None else odd
    parts = [_columns(field, records, odd) for field in schema.fields]
    values = np.concatenate(parts, axis=1)
    values[~(np.abs(values) <= LARGEST)] = np.nan
    return values if schema.scaling is None else schema.scaling(values)


def _columns(field: Field, records: Sequence[Mapping[str, Any]], odd: Odd) -> NDArray[np.float64]:
    nothing = 0.0 if field.kind == "text" else np.nan
    path = ".".join(field.path)
    if field.read is None and field.size is None:
        cells = [record.get(path) for record in records]
        # All at once where all can be read; else one by one, to say which cannot.
        with suppress(TypeError, ValueError, OverflowError):
            told = [nothing if each is None or each == "" else float(each) for each in cells]
            return np.array(told).reshape(-1, 1)
    values = np.full((len(records), field.width), nothing)
    for at, (row, record) in enumerate(zip(values, records, strict=True)):
        value = record.get(path)
        if value is None or value == "":
            continue
        try:
            row[:] = _numbers(value, field) if field.read is None else field.read(value)
        except (Refused, TypeError, ValueError, OverflowError) as error:
            row[:] = nothing
            expected = "a number" if field.size is None else f"{field.size} numbers"
            detail = f"field {field.name!r} should be {expected}, is {cut(repr(value))}"
            odd.append((at, error.detail if isinstance(error, Refused) else detail))
    return values


def _numbers(value: Any, field: Field) -> Any:
    """Plain numbers of a field; a vector of another length is none."""
    if field.size is None:
        return float(value)
    if not isinstance(value, list) or len(value) != field.size:
        raise ValueError
    return value
