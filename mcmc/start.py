"""Starting partitions of a batch of observations, and the forest they come from."""

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..treecore.compile import compiled
from ..treecore.consolidation import consolidate
from ..treecore.errors import ParameterError
from ..treecore.family.base import observe, statistics_width, workspace
from ..treecore.forest import Forest, add_leaf, empty_forest
from ..treecore.insertion import PREDICTIVE, insert_tree
from ..treecore.partition import Atoms, Model, make_atoms
from ..treecore.prior.base import PartitionPrior
from ..treecore.reference import by_reference

__all__ = ["STARTS", "atoms_of", "forest_labels", "grow_forest", "starting_labels"]

_BETWEEN_CONSOLIDATIONS = 500

STARTS = ("ibhc", "one", "singletons", "random:K")


@compiled
def _observe_all(family: Any, values: NDArray[np.float64], rows: Any) -> None:
    for r in range(values.shape[0]):
        observe(family, values, r, rows, r)


def atoms_of(family: Any, values: NDArray[np.float64]) -> Atoms:
    """One atom for each observation (n, d)."""
    n = values.shape[0]
    rows = np.zeros((n, statistics_width(family)))
    _observe_all(family, values, rows)
    return make_atoms(family, rows, np.ones(n, dtype=np.int64), workspace(family))


@compiled
def _insert_some(model: Model, forest: Forest, atoms: Atoms, first: int, stop: int) -> None:
    model, forest, atoms = by_reference(model), by_reference(forest), by_reference(atoms)
    for i in range(first, stop):
        leaf = add_leaf(model, forest, i, atoms.rows, i, atoms.size[i])
        insert_tree(model, forest, leaf, PREDICTIVE)


def grow_forest(family: Any, prior: PartitionPrior, atoms: Atoms) -> Forest:
    """Insert all atoms in order into a new forest."""
    n = int(atoms.size.shape[0])
    forest = empty_forest(family, n)
    model = Model(family, prior.seating(n, 2), workspace(family))
    for first in range(0, n, _BETWEEN_CONSOLIDATIONS):
        _insert_some(model, forest, atoms, first, min(n, first + _BETWEEN_CONSOLIDATIONS))
        consolidate(model, forest)
    return forest


@compiled
def _tree_of_atoms(forest: Forest, labels: NDArray[np.int32]) -> None:
    forest = by_reference(forest)
    for atom in range(labels.shape[0]):
        v = forest.leaf[atom]
        while forest.parent[v] != -1:
            v = forest.parent[v]
        labels[atom] = v


def forest_labels(forest: Forest, n: int) -> NDArray[np.int32]:
    """The root above each of the first n atoms: the partition that the trees are."""
    labels = np.empty(n, dtype=np.int32)
    _tree_of_atoms(forest, labels)
    return labels


def starting_labels(start: str, forest: Forest, n: int, rng: Generator) -> NDArray[np.int32]:
    """Labels (n) of a start named as in ``STARTS``; raises ParameterError for another name."""
    if start == "ibhc":
        return forest_labels(forest, n)
    if start == "one":
        return np.zeros(n, dtype=np.int32)
    if start == "singletons":
        return np.arange(n, dtype=np.int32)
    name, _, number = start.partition(":")
    if name == "random" and number.isdecimal() and int(number) > 0:
        return rng.integers(0, int(number), size=n, dtype=np.int32)
    raise ParameterError(f"there is no start {start!r}: choose among {', '.join(STARTS)}")
