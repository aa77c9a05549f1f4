"""Guides are grown from nearest neighbours where, and only where, a forest is in many trees."""

import numpy as np
from weald.mcmc.mending import mended_guide, neighbour_guide
from weald.treecore.forest import Forest
from weald.treecore.guide import GREEDY_ROOTS, Guide, freeze
from weald.treecore.insertion import PREDICTIVE
from weald.treecore.invariants import describe, guide_faults

from tests.exact.posed import posed
from tests.treecore.forests import Setting, clumps, gaussian, grown, setting

N_CLUMPS, N_EACH = GREEDY_ROOTS + 12, 4


def in_many_trees() -> tuple[Setting, Forest]:
    """Small clumps that lie far apart, in turns."""
    rng = np.random.default_rng(2)
    centres = rng.normal(scale=30.0, size=(N_CLUMPS, 3))
    values = np.tile(centres, (N_EACH, 1)) + 0.01 * rng.normal(size=(N_CLUMPS * N_EACH, 3))
    small = setting(gaussian(values), values)
    return small, grown(small, PREDICTIVE)


def atoms_of_nodes(guide: Guide) -> set[frozenset[int]]:
    """The atoms under each node."""
    return {
        frozenset(guide.atom[first : first + n].tolist())
        for first, n in zip(guide.first, guide.n_leaves, strict=True)
    }


def test_small_clumps_are_nodes_where_the_forest_is_in_many_trees() -> None:
    small, forest = in_many_trees()
    assert forest.n_roots[0] > GREEDY_ROOTS
    guide = mended_guide(small.model, forest, small.atoms)
    assert describe(guide_faults(small.model, guide)) == []
    clump = [frozenset(range(k, N_CLUMPS * N_EACH, N_CLUMPS)) for k in range(N_CLUMPS)]
    assert atoms_of_nodes(guide).issuperset(clump)
    assert atoms_of_nodes(guide) != atoms_of_nodes(freeze(small.model, forest))


def test_a_forest_of_few_trees_is_the_guide_itself(rng: np.random.Generator) -> None:
    values = clumps(rng, 200)
    small = setting(gaussian(values), values)
    forest = grown(small, PREDICTIVE)
    assert 1 < forest.n_roots[0] <= GREEDY_ROOTS
    guide = mended_guide(small.model, forest, small.atoms)
    np.testing.assert_array_equal(guide.atom, freeze(small.model, forest).atom)


def test_without_distances_nobody_is_near(rng: np.random.Generator) -> None:
    small = posed("bern", "dp", 5)
    assert neighbour_guide(small.model, small.atoms) is None
    values = rng.normal(size=(20, 17))
    many = setting(gaussian(values), values)
    assert neighbour_guide(many.model, many.atoms) is None
