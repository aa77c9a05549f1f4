"""Clusters of mixed records: independent parts, each a family over some of the columns.

A product of several parts is nested to the right: ``Product(a, Product(b, c))``. Compiled code
therefore meets one pair at a time and chooses each part's implementation by its type. Row: the row
of the head, then the row of the tail; every part keeps its own count and weight in front.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.treecore.compiled.compile import implements
from weald.treecore.errors import ParameterError
from weald.treecore.statistics.rows import Rows

from .interface.base import (
    FAMILIES,
    FamilySpec,
    FeatureSummary,
    fill_predictive,
    log_marginal,
    log_predictive,
    observe,
    predictive_width,
    spec_of,
    statistics_width,
    workspace,
)
from .interface.checks import refuse_unknown, renumbered, shape_fault
from .interface.defaults import register_dense

__all__ = ["Product", "ProductPart", "parts_of", "product"]


class Product(NamedTuple):
    """Two families side by side, the second perhaps a product itself.

    Attributes
    ----------
    head, tail:
        The families.
    columns:
        Columns of an observation in the order in which head and tail take them, int64 (d); empty
        where that is their own order.
    n_features, head_features:
        Number of columns of both, and of the head.
    row_split, table_split, work_split:
        Width of the head's row, predictive table and workspace.
    """

    head: Any
    tail: Any
    columns: NDArray[np.int64]
    n_features: int
    head_features: int
    row_split: int
    table_split: int
    work_split: int


def product(parts: Sequence[tuple[Any, Sequence[int]]]) -> Product:
    """Nest at least two families, each with the columns that it takes, one for each feature.

    Together the columns must be 0 to d - 1, each once. Raises ParameterError.
    """
    if len(parts) < 2:
        raise ParameterError("mixed needs at least two parts; use a single family by its own name")
    order = np.array([column for _, columns in parts for column in columns], dtype=np.int64)
    counts = np.bincount(order, minlength=order.size) if order.min(initial=0) >= 0 else order
    if counts.size != order.size or not (counts == 1).all():
        raise ParameterError(
            f"the columns of mixed's parts must be 0 to {order.size - 1}, each once: "
            f"got {order.tolist()}"
        )
    sizes = [len(columns) for _, columns in parts]
    nested = parts[-1][0]
    for at in range(len(parts) - 2, -1, -1):
        head = parts[at][0]
        ordered = at > 0 or bool((order == np.arange(order.size)).all())
        nested = Product(
            head,
            nested,
            np.empty(0, dtype=np.int64) if ordered else order,
            sum(sizes[at:]),
            sizes[at],
            int(statistics_width(head)),
            int(predictive_width(head)),
            int(workspace(head).shape[1]),
        )
    return nested


@implements(statistics_width, Product)
def _statistics_width(family: Product) -> int:
    return family.row_split + statistics_width(family.tail)


@implements(predictive_width, Product)
def _predictive_width(family: Product) -> int:
    return family.table_split + predictive_width(family.tail)


@implements(workspace, Product)
def _workspace(family: Product) -> Rows:
    # Row 0 is the sum of two whole rows; from row 1 on, the parts' workspaces lie side by side.
    head, tail = workspace(family.head), workspace(family.tail)
    width = max(statistics_width(family), head.shape[1] + tail.shape[1])
    return np.zeros((1 + max(head.shape[0], tail.shape[0]), width))


@implements(observe, Product)
def _observe(family: Product, values: NDArray[np.float64], r: int, rows: Rows, i: int) -> None:
    features, split = family.head_features, family.row_split
    if family.columns.size == 0:
        observe(family.head, values[:, :features], r, rows[:, :split], i)
        observe(family.tail, values[:, features:], r, rows[:, split:], i)
        return
    ordered = np.empty((1, family.n_features))
    for c in range(family.n_features):
        ordered[0, c] = values[r, family.columns[c]]
    observe(family.head, ordered[:, :features], 0, rows[:, :split], i)
    observe(family.tail, ordered[:, features:], 0, rows[:, split:], i)


@implements(log_marginal, Product)
def _log_marginal(family: Product, rows: Rows, i: int, work: Rows) -> float:
    split, scratch = family.row_split, family.work_split
    head = log_marginal(family.head, rows[:, :split], i, work[1:, :scratch])
    return head + log_marginal(family.tail, rows[:, split:], i, work[1:, scratch:])


@implements(fill_predictive, Product)
def _fill_predictive(family: Product, rows: Rows, i: int, table: Rows, k: int, work: Rows) -> None:
    row, column, scratch = family.row_split, family.table_split, family.work_split
    fill_predictive(family.head, rows[:, :row], i, table[:, :column], k, work[1:, :scratch])
    fill_predictive(family.tail, rows[:, row:], i, table[:, column:], k, work[1:, scratch:])


@implements(log_predictive, Product)
def _log_predictive(family: Product, table: Rows, k: int, rows: Rows, i: int) -> float:
    row, column = family.row_split, family.table_split
    head = log_predictive(family.head, table[:, :column], k, rows[:, :row], i)
    return head + log_predictive(family.tail, table[:, column:], k, rows[:, row:], i)


register_dense(Product)


class ProductPart(NamedTuple):
    """A family that is no product, its columns, and its range of a row."""

    family: Any
    columns: NDArray[np.int64]
    start: int
    stop: int


def parts_of(family: Product) -> Iterator[ProductPart]:
    """The families that are no products, in order."""
    columns = family.columns if family.columns.size else np.arange(family.n_features)
    at = start = 0
    rest: Any = family
    while isinstance(rest, Product):
        stop = start + rest.row_split
        yield ProductPart(rest.head, columns[at : at + rest.head_features], start, stop)
        at, start, rest = at + rest.head_features, stop, rest.tail
    yield ProductPart(rest, columns[at:], start, start + int(statistics_width(rest)))


def _part_row(part: ProductPart, row: NDArray[np.float64]) -> NDArray[np.float64]:
    """Its piece of a row, with the count of observations of the whole."""
    piece = row[part.start : part.stop].copy()
    piece[0] = row[0]
    return piece


def _build(parameters: Mapping[str, object], sample: NDArray[np.float64]) -> Product:
    """Parts as given, each a mapping with family, columns and params, or guessed from the sample.

    The guess takes columns of 0 and 1 for flags, other whole numbers from 0 for counts, and the
    rest for independent numbers; only ``parts`` can say that numbers are codes of categories.
    """
    refuse_unknown("mixed", parameters, ("parts",))
    parts = parameters.get("parts", None)
    if parts is None:
        parts = _guess(sample)
    if not isinstance(parts, list | tuple):
        raise ParameterError(f"parts of mixed are a list, got {parts!r}")
    families = []
    for part in parts:
        if not isinstance(part, Mapping) or not {"family", "columns"} <= set(part):
            raise ParameterError(f"a part of mixed needs family and columns, got {part!r}")
        refuse_unknown("a part of mixed", part, ("family", "columns", "params"))
        name, columns = part["family"], [int(column) for column in part["columns"]]
        if name not in FAMILIES or name == "mixed":
            raise ParameterError(f"a part of mixed cannot be of family {name!r}")
        if not columns or min(columns) < 0 or max(columns) >= sample.shape[1]:
            raise ParameterError(f"columns of mixed's {name} part are not in the data: {columns}")
        families.append((FAMILIES[name].build(part.get("params", {}), sample[:, columns]), columns))
    mixed = product(families)
    if mixed.n_features != sample.shape[1]:
        raise ParameterError(
            f"mixed's parts have {mixed.n_features} columns, the data {sample.shape[1]}"
        )
    return mixed


def _guess(sample: NDArray[np.float64]) -> list[dict[str, object]]:
    kinds: dict[str, list[int]] = {}
    for c in range(sample.shape[1]):
        seen = sample[np.isfinite(sample[:, c]), c]
        whole = bool(((seen >= 0.0) & (seen == np.floor(seen))).all())
        kind = "diagonal" if not whole else "bernoulli" if (seen <= 1.0).all() else "poisson"
        kinds.setdefault(kind, []).append(c)
    parts: list[dict[str, object]] = [
        {"family": kind, "columns": columns} for kind, columns in kinds.items()
    ]
    if len(parts) == 1 and sample.shape[1] > 1:
        # Features are independent in every kind, so a cut between them changes nothing.
        kind, columns = next(iter(kinds.items()))
        parts = [{"family": kind, "columns": part} for part in (columns[:1], columns[1:])]
    return parts


def _parameters(family: Product) -> dict[str, object]:
    parts = []
    for part in parts_of(family):
        spec = spec_of(part.family)
        parameters = spec.parameters(part.family)
        parts.append({"family": spec.name, "columns": part.columns.tolist(), "params": parameters})
    return {"parts": parts}


def _validate(family: Product, values: NDArray[np.float64]) -> tuple[int, str] | None:
    fault = shape_fault(values, family.n_features)
    if fault is not None:
        return fault
    first: tuple[int, str] | None = None
    for part in parts_of(family):
        fault = spec_of(part.family).validate(part.family, values[:, part.columns])
        if fault is not None and (first is None or fault[0] < first[0]):
            first = fault[0], renumbered(fault[1], part.columns)
    return first


def _describe(
    family: Product, row: NDArray[np.float64], names: Sequence[str]
) -> list[FeatureSummary]:
    summaries: dict[int, FeatureSummary] = {}
    for part in parts_of(family):
        columns = part.columns.tolist()
        piece = _part_row(part, row)
        own = spec_of(part.family).describe(part.family, piece, [names[c] for c in columns])
        summaries.update(zip(columns, own, strict=True))
    return [summaries[c] for c in sorted(summaries)]


def _draw(
    family: Product, row: NDArray[np.float64], rng: Generator, size: int
) -> NDArray[np.float64]:
    values = np.empty((size, family.n_features))
    for part in parts_of(family):
        piece = _part_row(part, row)
        values[:, part.columns] = spec_of(part.family).draw(part.family, piece, rng, size)
    return values


FAMILIES["mixed"] = FamilySpec(
    name="mixed",
    family=Product,
    build=_build,
    parameters=_parameters,
    validate=_validate,
    describe=_describe,
    draw=_draw,
)
