"""The infinite relational model of a stream: what its settings say, what its records may be.

It is no member of ``FAMILIES``: its clusters are not judged one by one, and what arrives are edges.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.treecore.compiled.compile import implements
from weald.treecore.errors import ParameterError
from weald.treecore.family.interface.base import (
    FamilySpec,
    FeatureSummary,
    log_marginal,
    statistics_width,
    workspace,
)
from weald.treecore.statistics.rows import Rows

from .edges import BetaEdges, GammaEdges, beta_edges, edge_numbers, gamma_edges, positive_number

__all__ = ["DEGREE", "IRM", "Relational", "VertexTotals"]

# Columns of a vertex's statistics row, and of a cluster's: vertices, their weight, their edges.
DEGREE = 2
_N_COLUMNS = 3
# Of an edge's record: the places of its ends, and its weight where the schema declares one.
_WEIGHT = 2
_FLAGS = ("directed", "counts", "learn")


class Relational(NamedTuple):
    """Likelihood of the edges, whether they have a direction, and whether it is learned."""

    edges: BetaEdges | GammaEdges
    directed: bool
    learn: bool = False

    @property
    def counts(self) -> bool:
        """Whether edges are counts."""
        return isinstance(self.edges, GammaEdges)


class VertexTotals(NamedTuple):
    """What is summed over the vertices of a cluster: how many, and the edges that they have.

    Takes a family's place where clusters are tabulated. The likelihood is of pairs of clusters, so
    none of them has one of its own.
    """

    n_columns: int = _N_COLUMNS


@implements(statistics_width, VertexTotals)
def _width(_family: VertexTotals) -> int:
    return _N_COLUMNS


@implements(workspace, VertexTotals)
def _workspace(_family: VertexTotals) -> Rows:
    return np.zeros((1, _N_COLUMNS))


@implements(log_marginal, VertexTotals)
def _no_marginal(_family: VertexTotals, _rows: Rows, _i: int, _work: Rows) -> float:
    return 0.0


def _flag(params: dict[str, object], name: str) -> bool:
    value = params.pop(name, False)
    if not isinstance(value, bool):
        raise ParameterError(f"irm: {name} must be true or false, got {value!r}")
    return value


def _build(parameters: Mapping[str, object], _sample: NDArray[np.float64]) -> Relational:
    params = dict(parameters)
    directed, counts, learn = (_flag(params, name) for name in _FLAGS)
    known = {"shape", "rate"} if counts else {"a", "b"}
    unknown = sorted(params.keys() - known)
    if unknown:
        names = ", ".join(sorted(known | set(_FLAGS)))
        raise ParameterError(
            f"irm: a stream has no parameter {unknown[0]!r} "
            f"{'with' if counts else 'without'} counts = true: {names}"
        )
    given = {name: positive_number(name, value) for name, value in params.items()}
    return Relational(gamma_edges(**given) if counts else beta_edges(**given), directed, learn)


def _parameters(family: Relational) -> dict[str, object]:
    # Streams that began before anything was learned say nothing of it.
    learned = {"learn": True} if family.learn else {}
    flags = {"directed": family.directed, "counts": family.counts, **learned}
    return {**flags, **edge_numbers(family.edges)}


def _validate(family: Relational, values: NDArray[np.float64]) -> tuple[int, str] | None:
    if values.shape[1] <= _WEIGHT:
        return None
    weight = values[:, _WEIGHT]
    good = weight > 0
    if family.counts:
        good &= weight == np.floor(weight)
    wrong = np.flatnonzero(~good)
    if not len(wrong):
        return None
    wanted = "a whole number from 1" if family.counts else "above 0"
    return int(wrong[0]), f"the weight {float(weight[wrong[0]])!r} of an edge is not {wanted}"


def _describe(
    family: Relational, row: NDArray[np.float64], _names: Sequence[str]
) -> list[FeatureSummary]:
    mean = float(row[DEGREE] / row[0]) if row[0] > 0 else 0.0
    kind = "count" if family.counts else "number"
    return [FeatureSummary("edges", kind, mean, None, round(float(row[0])))]


def _draw(
    _family: Relational, _row: NDArray[np.float64], _rng: Generator, _size: int
) -> NDArray[np.float64]:
    raise ParameterError("irm: a single vertex has no distribution: its edges depend on all others")


IRM = FamilySpec("irm", Relational, _build, _parameters, _validate, _describe, _draw)
