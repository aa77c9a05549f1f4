"""A network: vertices, the edges between them, and the pairs that nobody has observed.

An edge that is not there is an observation too, except on hidden pairs. The edges lie vertex by
vertex (compressed sparse rows), hidden pairs among them, so that a vertex's neighbours are read in
one run. Loops are no observations of this model.
"""

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from weald.treecore.compiled.reference import held_by_reference
from weald.treecore.errors import ObservationError

__all__ = ["HIDDEN", "HIDDEN_BACK", "RECEIVED", "SENT", "Links", "Network", "make_network"]

# Columns of what lies between a vertex and its neighbour. The last two are for directed networks.
SENT, HIDDEN, RECEIVED, HIDDEN_BACK = 0, 1, 2, 3

Vertices = NDArray[np.int64]


class Links(NamedTuple):
    """Pairs of vertices with a number each: ``source``, ``target`` int64 (m), ``weight`` (m)."""

    source: Vertices
    target: Vertices
    weight: NDArray[np.float64]


@held_by_reference
class Network(NamedTuple):
    """Compressed sparse rows; made by :func:`make_network`.

    Attributes
    ----------
    start:
        Entries ``start[v]`` to ``start[v + 1]`` belong to vertex v, int64 (n + 1).
    neighbour:
        The other vertex of each entry, int64 (e).
    between:
        float64 (e, 2), directed (e, 4): weight of the edge (from v, where it has a direction), 1
        where the pair is hidden; then the same for the other direction.
    directed:
        int64 (1): 1 where edges have a direction.
    log_constant:
        float64 (1): what counts add to the log likelihood whatever the blocks are,
        ``- sum log w!``; 0 for binary networks.
    """

    start: Vertices
    neighbour: Vertices
    between: NDArray[np.float64]
    directed: Vertices
    log_constant: NDArray[np.float64]

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return int(self.start.shape[0]) - 1


def make_network(
    n: int,
    links: Links,
    *,
    directed: bool = False,
    counts: bool = False,
    faded: bool = False,
    hidden: tuple[Vertices, Vertices] | None = None,
) -> Network:
    """Put a network of n vertices together.

    Parameters
    ----------
    n:
        Number of vertices.
    links:
        Edges. Repeated ones are added where they are ``counts``, and one edge otherwise; in an
        undirected network both orders of a pair are one edge. Loops and zeros are left out.
    directed, counts:
        Whether edges have a direction, and whether weights count; without, any positive weight is
        an edge.
    faded:
        Counts need not be whole: time has shrunk them.
    hidden:
        Pairs (source, target) that are not observed; edges on them are left out.

    Raises
    ------
    ObservationError
        For a vertex outside 0 to n - 1 or a weight that is no count; it names the link.
    """
    _check(n, links, whole=counts and not faded)
    real = (links.source != links.target) & (links.weight > 0)
    source, target, weight = (each[real] for each in links)
    key, total = _summed(n, source, target, weight, directed=directed)
    if not counts:
        total = np.ones_like(total)
    concealed = np.empty(0, dtype=np.int64)
    if hidden is not None:
        apart = hidden[0] != hidden[1]
        one = np.ones(int(apart.sum()))
        concealed, _ = _summed(n, hidden[0][apart], hidden[1][apart], one, directed=directed)
        seen = ~np.isin(key, concealed)
        key, total = key[seen], total[seen]
    log_constant = -float(gammaln(total + 1.0).sum()) if counts else 0.0
    columns = [(key, total), (concealed, np.ones(concealed.shape[0]))]
    return Network(
        *_rows(n, columns, directed=directed),
        np.array([int(directed)], dtype=np.int64),
        np.array([log_constant]),
    )


def _check(n: int, links: Links, *, whole: bool) -> None:
    for name, ends in (("source", links.source), ("target", links.target)):
        outside = np.flatnonzero((ends < 0) | (ends >= n))
        if outside.size:
            at = int(outside[0])
            raise ObservationError(f"link {at}: {name} {ends[at]} is no vertex of {n}")
    weight = links.weight
    good = (weight >= 0) & (weight < inf)
    if whole:
        good &= weight == np.floor(weight)
    wrong = np.flatnonzero(~good)
    if wrong.size:
        at, wanted = int(wrong[0]), "a count" if whole else "a number from 0"
        raise ObservationError(f"link {at}: the weight {weight[at]!r} is not {wanted}")


def _summed(
    n: int, source: Vertices, target: Vertices, weight: NDArray[np.float64], *, directed: bool
) -> tuple[Vertices, NDArray[np.float64]]:
    """Distinct pairs as ``source * n + target`` in order, and the sum of the weights of each."""
    if not directed:
        source, target = np.minimum(source, target), np.maximum(source, target)
    key, inverse = np.unique(source * n + target, return_inverse=True)
    return key, np.bincount(inverse, weights=weight, minlength=key.shape[0]).astype(np.float64)


def _rows(
    n: int, columns: list[tuple[Vertices, NDArray[np.float64]]], *, directed: bool
) -> tuple[Vertices, Vertices, NDArray[np.float64]]:
    """Start, neighbour and what lies between, from keys and values of both columns."""
    keys = [key for key, _ in columns]
    both = [*keys, *((key % n) * n + key // n for key in keys)]
    entries, at = np.unique(np.concatenate(both), return_inverse=True)
    between = np.zeros((entries.shape[0], 4 if directed else 2))
    columns_there = (SENT, HIDDEN)
    columns_back = (RECEIVED, HIDDEN_BACK) if directed else columns_there
    done = 0
    for column, (_, values) in zip(
        (*columns_there, *columns_back), (*columns, *columns), strict=True
    ):
        between[at[done : done + values.shape[0]], column] = values
        done += values.shape[0]
    start = np.searchsorted(entries, np.arange(n + 1) * n).astype(np.int64)
    return start, entries % n, between
