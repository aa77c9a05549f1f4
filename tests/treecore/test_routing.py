"""Routing by outlines finds what weighing every tree finds."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.treecore.forests import clumps, gaussian, play, roots_of, setting
from tests.treecore.invariants import describe, forest_faults
from weald.treecore.compiled.compile import compiled
from weald.treecore.compiled.reference import by_reference
from weald.treecore.forest.forest import (
    Forest,
    add_leaf,
    empty_forest,
    free_node,
    log_dissimilarity,
)
from weald.treecore.forest.insertion import PREDICTIVE
from weald.treecore.forest.node_layout import LANES
from weald.treecore.forest.routing import nearest_root
from weald.treecore.partition.partition import Atoms, Model

N, HELD_OUT = 500, 100


@compiled
def _nearest(
    model: Model, forest: Forest, atoms: Atoms, first: int, found: NDArray[np.int64]
) -> None:
    """For each atom from the first on: the nearest root, and that by weighing them all."""
    model, forest, atoms = by_reference(model), by_reference(forest), by_reference(atoms)
    for i in range(found.shape[1]):
        x = add_leaf(model, forest, first + i, atoms.rows, first + i, 1)
        found[0, i], found[1, i] = nearest_root(model, forest, x), -1
        smallest = 0.0
        for at in range(forest.n_roots[0]):
            d = log_dissimilarity(model, forest, forest.roots[at], x)
            if d < smallest:
                found[1, i], smallest = forest.roots[at], d
        forest.leaf[first + i] = -1
        free_node(forest, x)


@pytest.mark.parametrize("d", [1, 2, 6])
@pytest.mark.parametrize("outlined", [1024, LANES])
def test_nearest(d: int, outlined: int, rng: np.random.Generator) -> None:
    """With more trees than lanes, and more than may have an outline."""
    values = 3.0 * clumps(rng, N + HELD_OUT, d, k=100)
    posed = setting(gaussian(values), values)
    forest = empty_forest(posed.family, N + HELD_OUT)
    forest = forest._replace(outlined=forest.outlined[:outlined])
    play(posed, forest, list(range(N)), PREDICTIVE)
    found = np.zeros((2, HELD_OUT), dtype=np.int64)
    _nearest(posed.model, forest, posed.atoms, N, found)
    assert (found[0] == found[1]).all()
    assert np.unique(found[0]).shape[0] > 5
    assert d < 6 or len(roots_of(forest)) > LANES
    assert describe(forest_faults(posed.model, forest)) == []
