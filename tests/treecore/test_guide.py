"""The frozen guide: the specification's potentials, and how the forest's roots are joined."""

import json
from itertools import combinations
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.exact.posed import DATA
from tests.exact.trees import chain, guide_of, leaves_of, node_of, random_tree
from tests.treecore.forests import (
    Setting,
    clumps,
    gaussian,
    grown,
    play,
    roots_of,
    setting,
    written,
)
from tests.treecore.invariants import describe, forest_faults, guide_faults
from weald.mcmc.chain.growing import forest_arrays
from weald.treecore.family import FAMILIES
from weald.treecore.forest.forest import Forest, empty_forest, log_dissimilarity
from weald.treecore.forest.insertion import PREDICTIVE
from weald.treecore.guide.guide import (
    Guide,
    copy_topology,
    freeze,
    guide_of_atoms,
    guide_of_topology,
    measure_again,
    refresh_potentials,
)
from weald.treecore.partition.partition import Model
from weald.treecore.prior import build_prior

ORACLES = json.loads((Path(__file__).parent / "data" / "ibhc_oracles.json").read_text())
TOLERANCE = 1e-10
U = 2.0


def tree_of(text: str) -> Any:
    return _as_tuples(json.loads(text.replace("(", "[").replace(")", "]")))


def _as_tuples(tree: Any) -> Any:
    return tuple(map(_as_tuples, tree)) if isinstance(tree, list) else tree


def written_guide(guide: Guide, v: int = 0) -> str:
    if guide.n_leaves[v] == 1:
        return str(guide.atom[guide.first[v]])
    right = v + 1 + int(guide.n_nodes[v + 1])
    return f"({written_guide(guide, v + 1)},{written_guide(guide, right)})"


@pytest.mark.parametrize("name", ORACLES)
def test_potentials(name: str) -> None:
    data, _, sigma, _ = name.split()
    prior: tuple[str, dict[str, Any]] = ("dp", {})
    if sigma != "sigma=0.0":
        prior = "nggp", {"sigma": 0.5, "log_u": log(U)}
    family, parameters, values = DATA[data]
    posed = setting(FAMILIES[family].build(parameters, values), values[:5], prior)
    guide = guide_of(posed.model, posed.atoms, tree_of(ORACLES[name]["one_tree"]))
    for node in ORACLES[name]["one_tree_nodes"]:
        v = node_of(guide, leaves_of(tree_of(node["node"])))
        # Production drops a factor of 1 + u for each observation.
        scale = int(guide.size[v]) * log(1.0 + U)
        together = guide.log_potential[v] - np.logaddexp(0.0, guide.log_dissimilarity[v])
        assert together - scale == pytest.approx(node["log_phi_h"], abs=TOLERANCE)
        assert guide.log_dissimilarity[v] == pytest.approx(node["log_d"], abs=TOLERANCE)
        assert guide.log_potential[v] - scale == pytest.approx(node["log_phi"], abs=TOLERANCE)


def test_potential_is_the_sum_over_consistent_partitions(rng: np.random.Generator) -> None:
    values = clumps(rng, 7)
    posed = setting(gaussian(values), values)
    for tree in (chain(7), random_tree(7, rng)):
        guide = guide_of(posed.model, posed.atoms, tree)
        together = guide.log_potential - np.logaddexp(0.0, guide.log_dissimilarity)

        def consistent(v: int, guide: Guide = guide, together: Any = together) -> list[float]:
            found = [float(together[v])]
            if guide.n_leaves[v] > 1:
                right = v + 1 + int(guide.n_nodes[v + 1])
                found += [a + b for a in consistent(v + 1) for b in consistent(right)]
            return found

        total = np.logaddexp.reduce(consistent(0))
        assert guide.log_potential[0] == pytest.approx(total, abs=TOLERANCE)


def forest_of_singletons(posed: Setting, n: int) -> Forest:
    """Every atom a root of its own: no arrival is ever cheaper beside another."""
    forest = grown(posed, PREDICTIVE)
    assert forest.n_roots[0] == n
    return forest


def scattered(rng: np.random.Generator, n: int) -> Setting:
    values = rng.uniform(-9.0, 9.0, size=(n, 2))
    # A prior that finds a new block cheaper than any company.
    return setting(gaussian(values), values, ("dp", {"alpha": 1e12}))


def test_few_roots_are_joined_nearest_first(rng: np.random.Generator) -> None:
    """Bayesian hierarchical clustering, worked out the slow way."""
    n = 12
    posed = scattered(rng, n)
    guide = freeze(posed.model, forest_of_singletons(posed, n))
    trees: list[Any] = list(range(n))
    while len(trees) > 1:
        found = {}
        for a, b in combinations(trees, 2):
            # Other atoms don't matter to the dissimilarity of two trees.
            tried = guide_of(posed.model, posed.atoms, _with_others((a, b), n))
            found[a, b] = tried.log_dissimilarity[node_of(tried, leaves_of((a, b)))]
        nearest = min(found, key=lambda pair: found[pair])
        trees = [tree for tree in trees if tree not in nearest] + [nearest]
    expected = guide_of(posed.model, posed.atoms, trees[0])
    for v in range(2 * n - 1):
        first, end = expected.first[v], expected.first[v] + expected.n_leaves[v]
        node_of(guide, expected.atom[first:end].tolist())


def _with_others(tree: Any, n: int) -> Any:
    for atom in set(range(n)) - set(leaves_of(tree)):
        tree = (tree, atom)
    return tree


@pytest.mark.parametrize("n", [1, 2, 3, 40, 48, 49, 150])
def test_any_number_of_roots(n: int, rng: np.random.Generator) -> None:
    posed = scattered(rng, n)
    forest = forest_of_singletons(posed, n)
    before = forest_arrays(posed.family, forest)
    guide = freeze(posed.model, forest)
    assert describe(guide_faults(posed.model, guide)) == []
    assert guide.atom.shape[0] == n
    assert describe(forest_faults(posed.model, forest)) == []
    after = forest_arrays(posed.family, forest)
    assert all((after[name] == value).all() for name, value in before.items())


def test_freezing_does_not_change_what_comes_later(rng: np.random.Generator) -> None:
    """How often a chain refines must not decide which trees arrivals make."""
    values = clumps(rng, 150, k=12)
    posed = setting(gaussian(values), values)
    watched, alone = empty_forest(posed.family, 150), empty_forest(posed.family, 150)
    for i in range(150):
        for forest in (watched, alone):
            play(posed, forest, [i], PREDICTIVE)
        freeze(posed.model, watched)
    assert [written(watched, v) for v in roots_of(watched)] == [
        written(alone, v) for v in roots_of(alone)
    ]
    assert written_guide(freeze(posed.model, watched)) == written_guide(freeze(posed.model, alone))


def test_made_elsewhere_from_its_topology_it_is_the_same(rng: np.random.Generator) -> None:
    """Most arrivals were deferred, and later ones change nothing of what was copied."""
    values = clumps(rng, 900, k=2)
    posed = setting(gaussian(values), values)
    forest, frozen = empty_forest(posed.family, 900), empty_forest(posed.family, 900)
    for each in (forest, frozen):
        play(posed, each, list(range(600)), PREDICTIVE)
    before = forest_arrays(posed.family, forest)
    topology = copy_topology(posed.model, forest)
    after = forest_arrays(posed.family, forest)
    # What lags behind in the forest still does.
    assert all(np.array_equal(before[name], after[name]) for name in before)
    play(posed, forest, list(range(600, 900)), PREDICTIVE)
    made = guide_of_topology(topology, posed.atoms)
    measure_again(posed.model, made)
    refresh_potentials(posed.model, made)
    expected = freeze(posed.model, frozen)
    assert made.rows.tobytes() == expected.rows.tobytes()
    for name in Guide._fields:
        np.testing.assert_allclose(getattr(made, name), getattr(expected, name), rtol=1e-10)


def test_trees_of_the_forest_are_subtrees_of_the_guide(rng: np.random.Generator) -> None:
    values = clumps(rng, 200)
    posed = setting(gaussian(values), values)
    forest = grown(posed, PREDICTIVE)
    text = written_guide(freeze(posed.model, forest))
    assert len(roots_of(forest)) > 1
    assert all(written(forest, v) in text for v in roots_of(forest))


def test_guide_without_a_forest(rng: np.random.Generator) -> None:
    values = clumps(rng, 200)
    posed = setting(gaussian(values), values)
    guide = guide_of_atoms(posed.family, posed.model, posed.atoms)
    assert describe(guide_faults(posed.model, guide)) == []
    assert guide.n_leaves[0] == 200


def test_potentials_follow_the_prior(rng: np.random.Generator) -> None:
    values = clumps(rng, 60)
    posed = setting(gaussian(values), values)
    guide = freeze(posed.model, grown(posed, PREDICTIVE))
    before = guide.log_potential.copy()
    for name in ("nggp", "mfm"):
        seating = build_prior(name, {}).seating(60, 60)
        other = Model(posed.family, seating, posed.model.work)
        refresh_potentials(other, guide)
        assert describe(guide_faults(other, guide)) == []
        assert guide_faults(posed.model, guide)
    refresh_potentials(posed.model, guide)
    assert (guide.log_potential == before).all()


def test_an_empty_forest_has_none(rng: np.random.Generator) -> None:
    posed = scattered(rng, 3)
    with pytest.raises(ValueError, match="empty forest"):
        freeze(posed.model, empty_forest(posed.family, 3))


def test_removed_atoms_are_not_in_it(rng: np.random.Generator) -> None:
    values = clumps(rng, 50)
    posed = setting(gaussian(values), values)
    forest = grown(posed, PREDICTIVE)
    play(posed, forest, [-1 - i for i in range(0, 50, 2)], PREDICTIVE)
    guide = freeze(posed.model, forest)
    assert sorted(guide.atom.tolist()) == list(range(1, 50, 2))
    assert (guide.position[::2] == -1).all()
    assert describe(guide_faults(posed.model, guide)) == []


def test_dissimilarity_of_two_roots_is_that_of_their_join(rng: np.random.Generator) -> None:
    posed = scattered(rng, 2)
    forest = forest_of_singletons(posed, 2)
    d = log_dissimilarity(posed.model, forest, *roots_of(forest))
    assert freeze(posed.model, forest).log_dissimilarity[0] == pytest.approx(d, abs=TOLERANCE)
