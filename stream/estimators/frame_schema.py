"""Data frames with their dtypes as rows of features, through one inferred schema.

Columns are judged as ``weald init`` judges the fields of a sample; what a dtype says of a column
is believed. pandas and Polars are never imported: a frame can only be of a library that its owner
has imported.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from weald.stream.errors import SchemaError
from weald.stream.record.fields.gaps import rows_with_gaps
from weald.stream.record.inference.field_inference import FieldProposal, as_category
from weald.stream.record.inference.proposal import named, proposed
from weald.stream.record.schema import Schema
from weald.stream.settings import SchemaSettings
from weald.treecore.errors import ObservationError

__all__ = ["FrameSchema", "MixedRows", "mixed_rows"]

# A column with more gaps than that is left out.
MOST_EMPTY = 0.9
# Of a pandas dtype's kind: whole numbers with and without sign, and broken ones.
_NUMBERS = "iuf"

Record = Mapping[str, Any]


class MixedRows(NamedTuple):
    """Rows of a data frame that is more than a matrix of numbers.

    Attributes
    ----------
    records:
        One mapping a row, from the column's name to a plain value, None where there is none.
    categories:
        Columns whose dtype says that they are categories.
    """

    records: Sequence[Record]
    categories: frozenset[str]


class FrameSchema(NamedTuple):
    """What the columns of a data frame are taken for.

    Attributes
    ----------
    settings:
        The schema, as ``[schema]`` in ``weald.toml`` has it.
    columns:
        For each column of the frame a few words: what it is taken for, or why it is left out.
    """

    settings: SchemaSettings
    columns: dict[str, str]

    @classmethod
    def inferred(cls, rows: MixedRows) -> Self:
        """Infer it from rows (n), and warn of columns that are left out.

        Raises
        ------
        ObservationError
            If no column holds anything to cluster by.
        """
        stated = {
            name: as_category([record[name] for record in rows.records]) for name in rows.categories
        }
        try:
            return cls._inferred(rows.records, stated)
        except (SchemaError, msgspec.ValidationError) as error:
            raise ObservationError(str(error)) from error

    @classmethod
    def _inferred(cls, records: Sequence[Record], stated: Mapping[str, FieldProposal]) -> Self:
        proposal = proposed(
            records, "the data frame", most_empty=MOST_EMPTY, stated=stated, moments="clustered"
        )
        fields = [named(each) for each in proposal.fields]
        settings = msgspec.convert({"fields": fields}, SchemaSettings)
        Schema.of(settings)
        columns = dict(proposal.reasons)
        used = {each["name"] for each in fields}
        for name in columns.keys() - used:
            warnings.warn(f"column {name!r} is not clustered by: {columns[name]}", stacklevel=2)
        return cls(settings, columns)

    @property
    def schema(self) -> Schema:
        """The schema, compiled."""
        return Schema.of(self.settings)

    def values(self, rows: MixedRows) -> NDArray[np.float64]:
        """Features (n, d) of rows, NaN where a value is missing or cannot be read."""
        return rows_with_gaps(self.schema, rows.records)


def mixed_rows(X: object, *, numbers: bool = False) -> MixedRows | None:
    """Return the rows of a data frame with more than numbers in it; None of anything else.

    Parameters
    ----------
    X : object
    numbers : bool
        Whether a data frame of numbers only is taken as well.

    Raises
    ------
    ObservationError
        If there are no rows, or columns have no names of their own.
    """
    pandas, polars = (sys.modules.get(library) for library in ("pandas", "polars"))
    if pandas is not None and isinstance(X, pandas.DataFrame):
        plain = all(dtype.kind in _NUMBERS for dtype in X.dtypes)
        return _from_pandas(X) if numbers or not plain else None
    if polars is not None and isinstance(X, polars.DataFrame):
        plain = all(dtype.is_numeric() for dtype in X.dtypes)
        return _from_polars(X) if numbers or not plain else None
    return None


def _from_pandas(frame: Any) -> MixedRows:
    whole = [frame.iloc[:, at] for at in range(frame.shape[1])]
    columns = [column.astype(object).where(column.notna(), None).tolist() for column in whole]
    stated = [str(column.dtype) == "category" for column in whole]
    return _rows(list(frame.columns), columns, stated)


def _from_polars(frame: Any) -> MixedRows:
    columns = [frame[name].to_list() for name in frame.columns]
    stated = [str(dtype).startswith(("Categorical", "Enum")) for dtype in frame.dtypes]
    return _rows(list(frame.columns), columns, stated)


def _rows(
    names: Sequence[Any], columns: Sequence[Sequence[Any]], stated: Sequence[bool]
) -> MixedRows:
    odd = next((name for name in names if not isinstance(name, str)), None)
    if odd is not None:
        raise ObservationError(f"the name of column {odd!r} is not text")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ObservationError(f"two columns of the data frame are called {twice[0]!r}")
    if not columns or not columns[0]:
        raise ObservationError("the data frame has no rows")
    plain = [
        [None if value is None else str(value) for value in column]
        if category
        else [_plain(value) for value in column]
        for column, category in zip(columns, stated, strict=True)
    ]
    records = [dict(zip(names, values, strict=True)) for values in zip(*plain, strict=True)]
    categories = {name for name, category in zip(names, stated, strict=True) if category}
    return MixedRows(records, frozenset(categories))


def _plain(value: Any) -> Any:
    """A cell as a file would have it: moments and dates in ISO 8601, a duration in seconds."""
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, date):  # and a datetime, which is one
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return float(value) if isinstance(value, Decimal) else value
