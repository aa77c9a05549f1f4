"""Offline guides are grown from nearest neighbours wherever observations have distances."""

import numpy as np
from numpy.typing import NDArray

from tests.treecore.forests import Setting, gaussian, grown, setting
from tests.treecore.invariants import describe, guide_faults
from weald.mcmc.offline.offline_guide import offline_guide
from weald.treecore.family import FAMILIES
from weald.treecore.forest.insertion import PREDICTIVE
from weald.treecore.guide.guide import Guide, freeze

Values = NDArray[np.float64]
N_CLUMPS, N_EACH = 60, 4


def small_clumps() -> Values:
    """Small clumps that lie far apart, in turns."""
    rng = np.random.default_rng(2)
    centres = rng.normal(scale=30.0, size=(N_CLUMPS, 3))
    return np.tile(centres, (N_EACH, 1)) + 0.01 * rng.normal(size=(N_CLUMPS * N_EACH, 3))


def guide_over(small: Setting) -> Guide:
    """The offline guide over atoms that arrived in order."""
    guide = offline_guide(small.model, grown(small, PREDICTIVE), small.atoms)
    assert describe(guide_faults(small.model, guide)) == []
    return guide


def atoms_of_nodes(guide: Guide) -> set[frozenset[int]]:
    """The atoms under each node."""
    return {
        frozenset(guide.atom[first : first + n].tolist())
        for first, n in zip(guide.first, guide.n_leaves, strict=True)
    }


def test_small_clumps_are_nodes_in_any_order(rng: np.random.Generator) -> None:
    values = small_clumps()
    family, order = gaussian(values), rng.permutation(N_CLUMPS * N_EACH)
    found = atoms_of_nodes(guide_over(setting(family, values)))
    clump = [frozenset(range(k, N_CLUMPS * N_EACH, N_CLUMPS)) for k in range(N_CLUMPS)]
    assert found.issuperset(clump)
    other = atoms_of_nodes(guide_over(setting(family, np.ascontiguousarray(values[order]))))
    assert {frozenset(order[list(atoms)].tolist()) for atoms in other} == found


def test_one_observation() -> None:
    values = np.ones((1, 2))
    assert guide_over(setting(gaussian(values), values)).atom.tolist() == [0]


def test_where_nobody_is_near_the_forest_is_the_guide(rng: np.random.Generator) -> None:
    """Of 17 features a k-d tree finds nobody; flags have no distances."""
    many, flags = rng.normal(size=(20, 17)), rng.integers(0, 2, size=(20, 3)).astype(float)
    for small in (
        setting(gaussian(many), many),
        setting(FAMILIES["bernoulli"].build({}, flags), flags),
    ):
        forest = grown(small, PREDICTIVE)
        guide = offline_guide(small.model, forest, small.atoms)
        np.testing.assert_array_equal(guide.atom, freeze(small.model, forest).atom)
