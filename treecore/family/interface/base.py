"""What every family provides, as functions dispatched on the family's type.

A family is a ``NamedTuple`` of hyperparameters. Its compiled part works on statistics rows
(:mod:`weald.treecore.statistics.rows`); its Python part (:class:`FamilySpec`) builds it from
parameters or a sample, and describes clusters in the data's own units.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.treecore.compiled.compile import generic
from weald.treecore.errors import ObservationError, ParameterError
from weald.treecore.statistics.rows import Rows

from .batched_predictive import BatchedPredictives

__all__ = [
    "FAMILIES",
    "Family",
    "FamilySpec",
    "FeatureSummary",
    "extend_predictive",
    "extends_cheaply",
    "fill_predictive",
    "log_marginal",
    "log_marginal_sum",
    "log_marginal_sums",
    "log_predictive",
    "log_predictive_above",
    "log_predictive_of_member",
    "make_batched",
    "make_predictive",
    "make_rows",
    "n_observed",
    "nearer_centre",
    "observe",
    "outline",
    "outline_bounds",
    "outline_width",
    "predictive_width",
    "spec_of",
    "statistics_width",
    "weigh",
    "workspace",
]

Parameters = dict[str, Any]


class Family(Protocol):
    """Hyperparameters of a likelihood with its base measure: a ``NamedTuple``.

    What a family can do are the generic functions, which know it by its type.
    """

    def _asdict(self) -> Parameters: ...


F = TypeVar("F", bound=Family)


@generic
def statistics_width(family: Family) -> int:
    """Number m of columns of a statistics row."""
    raise NotImplementedError


@generic
def predictive_width(family: Family) -> int:
    """Number of columns of a row of the predictive table."""
    raise NotImplementedError


@generic
def make_rows(family: Family, capacity: int, values: object) -> Rows:
    """Empty statistics rows for any partition of ``values`` (what ``observe`` takes). Python only.

    Sparse rows have room for each observation in one row at a time; dense rows have no such bound.
    """
    raise NotImplementedError


@generic
def make_predictive(family: Family, capacity: int, rows: Rows) -> Rows:
    """Predictive tables of ``capacity`` blocks whose statistics are in ``rows``. Python only."""
    raise NotImplementedError


@generic
def workspace(family: Family) -> Rows:
    """Scratch array for one thread: row 0 holds a sum of rows, the others belong to the family."""
    raise NotImplementedError


@generic
def observe(family: Family, values: object, r: int, rows: Rows, i: int) -> None:
    """Write the statistics of the single observation ``values[r]`` into ``rows[i]``."""
    raise NotImplementedError


@generic
def log_marginal(family: Family, rows: Rows, i: int, work: Rows) -> float:
    """Log marginal likelihood of the observations summed in ``rows[i]``; 0 for an empty row."""
    raise NotImplementedError


@generic
def log_marginal_sum(family: Family, rows: Rows, i: int, other: Rows, j: int, work: Rows) -> float:
    """Log marginal likelihood of ``rows[i] + other[j]``, both left as they are."""
    raise NotImplementedError


@generic
def log_marginal_sums(  # noqa: PLR0913 - three arrays and two places in them
    family: Family,
    rows: Rows,
    places: NDArray[np.int64],
    other: Rows,
    j: int,
    out: NDArray[np.float64],
    work: Rows,
) -> None:
    """Write :func:`log_marginal_sum` of each of ``rows[places]`` with ``other[j]`` to ``out``."""
    raise NotImplementedError


@generic
def fill_predictive(family: Family, rows: Rows, i: int, table: Rows, k: int, work: Rows) -> None:
    """Prepare ``table[k]`` so that :func:`log_predictive` answers for the block ``rows[i]``."""
    raise NotImplementedError


@generic
def extends_cheaply(family: Family) -> bool:
    """Whether :func:`extend_predictive` costs much less than :func:`log_marginal`."""
    raise NotImplementedError


@generic
def extend_predictive(  # noqa: PLR0913 - two arrays and five places in them
    family: Family, rows: Rows, i: int, x: int, table: Rows, k: int, source: int, work: Rows
) -> float:
    """Take one more observation into a predictive table; returns its log density before.

    ``table[source]`` is right for a block, ``rows[x]`` a single, unweighted observation that is not
    in it, ``rows[i]`` their sum; ``table[k]`` (it may be ``table[source]``) becomes right for that.
    """
    raise NotImplementedError


@generic
def nearer_centre(family: Family, rows: Rows, a: int, b: int, x: int) -> bool:
    """Whether the centre of ``rows[x]`` is as near to that of ``rows[a]`` as of ``rows[b]``.

    At a fraction of the cost of two predictives, for the inside of clusters that are whole by far;
    only families that extend cheaply are asked.
    """
    raise NotImplementedError


@generic
def log_predictive(family: Family, table: Rows, k: int, rows: Rows, i: int) -> float:
    """Log predictive density of the single, unweighted observation ``rows[i]`` under block k."""
    raise NotImplementedError


@generic
def log_predictive_of_member(
    family: Family, table: Rows, k: int, weight: float, rows: Rows, i: int
) -> float:
    """:func:`log_predictive` of ``rows[i]``, a member of block k, given the block's others.

    ``table[k]`` is right for the whole block, which has that weight. NaN where the table does not
    tell, or not to the last digits: :func:`fill_predictive` does, of the others.
    """
    raise NotImplementedError


@generic
def log_predictive_above(
    family: Family, table: Rows, k: int, rows: Rows, i: int, least: float
) -> float:
    """:func:`log_predictive`, or minus infinity where it is below ``least``.

    For searches that only want the best of many blocks, which a family may give up on early.
    """
    raise NotImplementedError


@generic
def outline_width(family: Family) -> int:
    """Numbers in the outline of a predictive table; only families that extend cheaply have any."""
    raise NotImplementedError


@generic
def outline(
    family: Family, table: Rows, k: int, outlines: NDArray[np.float64], group: int, lane: int
) -> None:
    """Write the outline of ``table[k]`` into ``outlines[group, :, lane]``.

    Entry 0 is a constant that is added to what :func:`outline_bounds` finds.
    """
    raise NotImplementedError


@generic
def outline_bounds(  # noqa: PLR0913 - two arrays and the places in them
    family: Family,
    outlines: NDArray[np.float64],
    group: int,
    n: int,
    rows: Rows,
    x: int,
    work: Rows,
    bounds: NDArray[np.float64],
) -> None:
    """Write into the first n ``bounds`` what no :func:`log_predictive` of ``rows[x]`` exceeds.

    One for each of the first n lanes of ``outlines[group]``.
    """
    raise NotImplementedError


@generic
def make_batched(family: Family, width: int) -> Any:
    """Room for the predictive tables of blocks in slots below ``width``, side by side.

    ``OneByOne`` for a family that asks blocks one after another.
    """
    raise NotImplementedError


@generic
def weigh(  # noqa: PLR0913 - tables, a row, and where its weights go
    family: Family,
    batched: BatchedPredictives,
    n: int,
    slots: NDArray[np.int64],
    rows: Rows,
    i: int,
    largest: float,
    weights: NDArray[np.float64],
) -> None:
    """Write to ``weights`` what the prior and ``rows[i]`` itself say for each of the blocks.

    These are ``slots``, all below n, and the log density is :func:`log_predictive`. Minus infinity
    may stand for what falls ``NEGLIGIBLE`` below another weight or ``largest``, which is some
    weight that is known. Only families whose tables are side by side are asked.
    """
    raise NotImplementedError


@dataclass(frozen=True)
class FeatureSummary:
    """One feature of one cluster, in the data's own units.

    ``kind`` is ``"number"``, ``"share"`` (of a flag), ``"category"`` or ``"count"``; ``centre`` is
    the typical value, ``spread`` its within-cluster standard deviation (None where there is none),
    ``n`` the number of observed values (0: ``centre`` is what the prior expects).
    """

    name: str
    kind: str
    centre: float | str
    spread: float | None
    n: int


def n_observed(row: NDArray[np.float64], weight: float) -> int:
    """Number of values behind a feature's weight in a statistics row; exact without weights."""
    return round(float(row[0] * weight / row[1])) if row[1] > 0.0 else 0


@dataclass(frozen=True)
class FamilySpec(Generic[F]):
    """The Python side of a family of this type.

    Attributes
    ----------
    name:
        What people write after ``--family``.
    family:
        Its ``NamedTuple`` type.
    build:
        ``build(parameters, sample)`` with sample float64 (n, d): the family; what ``parameters``
        does not give comes from the sample. Raises ParameterError.
    parameters:
        ``parameters(family)``: JSON-able hyperparameters from which ``build`` makes it again.
    validate:
        ``validate(family, values)`` with values float64 (n, d): index of the first row it cannot
        take and the reason, or None.
    describe:
        ``describe(family, row, names)``: summaries of a cluster's statistics row, one a feature.
    draw:
        ``draw(family, row, rng, size)``: float64 (size, d) new observations from the posterior
        predictive of the cluster; from the prior predictive for a row of zeros.
    scale:
        Names of the parameters that one factor multiplies where the base measure's scale is
        learned; none where it cannot be.
    centres:
        ``centres(family, rows)`` with statistics rows (n, m): where each row's observations are in
        the middle, float64 (n, d), in units in which the base measure is as wide everywhere; None
        where there are no distances.
    rows_of_sums:
        ``rows_of_sums(sums)``: statistics rows (n, m) of single observations of weight one from the
        columns that sum their features, float64 (n, d), behind the first two; None where the others
        do not follow from these.
    observations:
        ``observations(family, rows)`` with statistics rows (n, m) of single observations of weight
        one: their values up to rounding, float64 (n, d), nan for gaps; None where nobody asks.
    """

    name: str
    family: type[F]
    build: Callable[[Mapping[str, Any], NDArray[np.float64]], F]
    parameters: Callable[[F], Parameters]
    validate: Callable[[F, NDArray[np.float64]], tuple[int, str] | None]
    describe: Callable[[F, NDArray[np.float64], Sequence[str]], list[FeatureSummary]]
    draw: Callable[[F, NDArray[np.float64], Generator, int], NDArray[np.float64]]
    scale: tuple[str, ...] = ()
    centres: Callable[[F, NDArray[np.float64]], NDArray[np.float64]] | None = None
    rows_of_sums: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None
    observations: Callable[[F, NDArray[np.float64]], NDArray[np.float64]] | None = None


FAMILIES: dict[str, FamilySpec[Any]] = {}


def spec_of(family: Family) -> FamilySpec[Any]:
    """The registered specification of a family value."""
    for spec in FAMILIES.values():
        if isinstance(family, spec.family):
            return spec
    raise ParameterError(f"{type(family).__name__} is not a registered family")


def refuse_impossible(family: Family, values: NDArray[np.float64]) -> None:
    """Raise ObservationError, which names the row, where a family cannot take one of (n, d)."""
    refused = spec_of(family).validate(family, values)
    if refused is not None:
        raise ObservationError(f"row {refused[0]}: {refused[1]}")
