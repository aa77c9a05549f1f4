"""Starting partitions of a batch of observations, and the forest they come from."""

from collections.abc import Callable
from heapq import heappop, heappush

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.reference import by_reference
from weald.treecore.errors import ParameterError
from weald.treecore.family.discrete.sparse_multinomial import sparse_values
from weald.treecore.family.gaussian.default_scale import k_means
from weald.treecore.family.interface.base import Family, make_rows, observe, workspace
from weald.treecore.forest.consolidation import consolidate
from weald.treecore.forest.forest import Forest, add_leaf, empty_forest
from weald.treecore.forest.insertion import PREDICTIVE, insert_tree
from weald.treecore.guide.guide import Guide
from weald.treecore.partition.partition import Atoms, Model, make_atoms
from weald.treecore.prior.base import PartitionPrior
from weald.treecore.statistics.observations import Observations
from weald.treecore.statistics.rows import Rows

__all__ = [
    "STARTS",
    "atoms_of",
    "forest_labels",
    "grow_forest",
    "k_means_labels",
    "most_blocks",
    "plant_atoms",
    "possible_labels",
    "starting_labels",
]

# Trees are consolidated after so many arrivals, and later after so large a share of those before.
_BETWEEN_CONSOLIDATIONS = 500
_SHARE_BETWEEN_CONSOLIDATIONS = 4

STARTS = ("auto", "ibhc", "one", "singletons", "random:K")

# Clusters of k-means with which a chain starts, and rows for each at least.
_CENTRES, _ROWS_A_CENTRE = 20, 5


@compiled
def _observe_all(family: Family, values: object, rows: Rows, n: int) -> None:
    for r in range(n):
        observe(family, values, r, rows, r)


def atoms_of(family: Family, values: Observations) -> Atoms:
    """One atom for each observation (n, d); counts of words may be a sparse matrix of scipy."""
    n = values.shape[0]
    observed = values if isinstance(values, np.ndarray) else sparse_values(values)
    rows = make_rows(family, n, observed)
    _observe_all(family, observed, rows, n)
    return make_atoms(family, rows, np.ones(n, dtype=np.int64), workspace(family))


@inner
def _insert_each(model: Model, forest: Forest, atoms: Atoms, first: int, stop: int) -> None:
    # Apart from the entry below, which would count references to every array at each call.
    for i in range(first, stop):
        leaf = add_leaf(model, forest, i, atoms.rows, i, atoms.size[i])
        insert_tree(model, forest, leaf, PREDICTIVE)


@compiled
def _insert_some(model: Model, forest: Forest, atoms: Atoms, first: int, stop: int) -> None:
    model, forest, atoms = by_reference(model), by_reference(forest), by_reference(atoms)
    _insert_each(model, forest, atoms, first, stop)


def grow_forest(family: Family, prior: PartitionPrior, atoms: Atoms) -> Forest:
    """Insert all atoms in order into a new forest."""
    forest = empty_forest(family, int(atoms.size.shape[0]), atoms.rows)
    plant_atoms(family, prior, atoms, forest)
    return forest


def plant_atoms(family: Family, prior: PartitionPrior, atoms: Atoms, forest: Forest) -> None:
    """Insert all atoms in order into an empty forest with room for them."""
    n = int(atoms.size.shape[0])
    model = Model(family, prior.seating(n, 2), workspace(family))
    first = 0
    while first < n:
        more = max(_BETWEEN_CONSOLIDATIONS, first // _SHARE_BETWEEN_CONSOLIDATIONS)
        stop = min(n, first + more)
        _insert_some(model, forest, atoms, first, stop)
        consolidate(model, forest)
        first = stop


@compiled
def _tree_of_atoms(forest: Forest, labels: NDArray[np.int64]) -> None:
    forest = by_reference(forest)
    for atom in range(labels.shape[0]):
        v = forest.leaf[atom]
        while forest.parent[v] != -1:
            v = forest.parent[v]
        labels[atom] = v


def forest_labels(forest: Forest, n: int) -> NDArray[np.int64]:
    """The root above each of the first n atoms: the partition that the trees are."""
    labels = np.empty(n, dtype=np.int64)
    _tree_of_atoms(forest, labels)
    return labels


def starting_labels(start: str, forest: Forest, n: int, rng: Generator) -> NDArray[np.int64]:
    """Labels (n) of a start named as in ``STARTS``; raises ParameterError for another name."""
    if start == "ibhc":
        return forest_labels(forest, n)
    if start == "one":
        return np.zeros(n, dtype=np.int64)
    if start == "singletons":
        return np.arange(n, dtype=np.int64)
    name, _, number = start.partition(":")
    if name == "random" and number.isdecimal() and int(number) > 0:
        return rng.integers(0, int(number), size=n, dtype=np.int64)
    raise ParameterError(f"there is no start {start!r}: choose among {', '.join(STARTS)}")


def k_means_labels(
    values: NDArray[np.float64],
    most: int,
    rng: Generator,
    *,
    scaled: bool,
) -> NDArray[np.int64]:
    """Labels (n) of finite rows (n, d) by k-means of 20 clusters, and at most ``most``.

    Of few rows they are fewer. With ``scaled`` each column counts by its standard deviation. Sweeps
    do the rest, and join what is too many.
    """
    n_centres = max(min(_CENTRES, values.shape[0] // _ROWS_A_CENTRE, most), 1)
    seen = values - values.mean(axis=0)
    if scaled:
        deviation = seen.std(axis=0)
        seen /= np.where(deviation > 0.0, deviation, 1.0)
    return np.unique(k_means(seen, n_centres, rng), return_inverse=True)[1].astype(np.int64)


def most_blocks(prior: PartitionPrior, n: int) -> int:
    """The largest number of blocks that the prior allows n observations."""
    possible = np.isfinite(prior.seating(n, n).log_blocks[: n + 1])
    return int(np.flatnonzero(possible)[-1])


def possible_labels(
    labels: NDArray[np.int64], start: str, most: int, make_guide: Callable[[], Guide]
) -> NDArray[np.int64]:
    """The labels (n) of a start, or fewer of them where the prior allows ``most`` blocks only.

    IBHC's trees are then joined as they are in the guide; no other start says how it is to shrink,
    and ParameterError is raised.
    """
    n_blocks = np.unique(labels).shape[0]
    if n_blocks <= most:
        return labels
    if start != "ibhc":
        raise ParameterError(
            f"the start {start!r} has {n_blocks} clusters but the prior allows {most} at most: "
            f"choose ibhc, one or random:{most}"
        )
    return _top_of(make_guide(), most)


def _top_of(guide: Guide, n_parts: int) -> NDArray[np.int64]:
    """Labels of the atoms by the top of a guide, divided where it is most worth it."""
    waiting = [(-float(guide.log_dissimilarity[0]), 0)]
    parts: list[int] = []
    while waiting and len(waiting) + len(parts) < n_parts:
        _, v = heappop(waiting)
        if guide.n_leaves[v] == 1:
            parts.append(v)
            continue
        for child in (v + 1, v + 1 + int(guide.n_nodes[v + 1])):
            heappush(waiting, (-float(guide.log_dissimilarity[child]), child))
    labels = np.empty(guide.position.shape[0], dtype=np.int64)
    for v in parts + [v for _, v in waiting]:
        first = guide.first[v]
        labels[guide.atom[first : first + guide.n_leaves[v]]] = v
    return labels
