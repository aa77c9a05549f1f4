"""IBHC insertion: the specification's numbers, cuts, removal, and balance."""

import json
from math import log, log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.exact.posed import DATA
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
from tests.treecore.invariants import describe, forest_faults
from weald.treecore.family import FAMILIES
from weald.treecore.forest import insertion
from weald.treecore.forest.forest import Forest, add_leaf, empty_forest, log_dissimilarity
from weald.treecore.forest.insertion import PREDICTIVE, PUBLISHED, insert_tree

ORACLES = json.loads((Path(__file__).parent / "data" / "ibhc_oracles.json").read_text())
TOLERANCE = 1e-10
U = 2.0
CUT = {"(2,(3,4))": ["2", "(3,4)"]}
N = 5


def oracle_setting(name: str) -> Setting:
    data, _, sigma, _ = name.split()
    prior: tuple[str, dict[str, Any]] = ("dp", {})
    if sigma != "sigma=0.0":
        prior = "nggp", {"sigma": 0.5, "log_u": log(U)}
    family, parameters, values = DATA[data]
    return setting(FAMILIES[family].build(parameters, values), values[:N], prior)


def trees(forest: Forest) -> dict[str, int]:
    """Every node of the forest by the tree below it."""
    used = range(int(forest.n_used[0]))
    return {written(forest, v): v for v in used if forest.atom[v] != -2}


@pytest.mark.parametrize("name", ORACLES)
def test_published_rule(name: str) -> None:
    """Every dissimilarity that an arriving point is compared by, and the trees at the end."""
    posed, oracle = oracle_setting(name), ORACLES[name]
    model, atoms = posed.model, posed.atoms
    forest = empty_forest(posed.family, N)
    for i in range(N):
        leaf = add_leaf(model, forest, i, atoms.rows, i, 1)
        if i > 0:
            step = oracle["steps"][i - 1]
            at = trees(forest)
            found = [log_dissimilarity(model, forest, at[root], leaf) for root in step["forest"]]
            assert found == pytest.approx(step["log_d"], abs=TOLERANCE)
        insert_tree(model, forest, leaf, PUBLISHED)
    # The oracle does not cut: in the first case (2,(3,4)) has log d 0.0164, and becomes two roots.
    expected = [tree for root in oracle["forest"] for tree in CUT.get(root, [root])]
    assert sorted(written(forest, v) for v in roots_of(forest)) == sorted(expected)


def above_zero(forest: Forest) -> list[int]:
    """Nodes that are better apart."""
    return [v for v in trees(forest).values() if forest.log_dissimilarity[v] > 0.0]


def test_cuts_leave_nothing_that_is_better_apart(rng: np.random.Generator) -> None:
    values = clumps(rng, 400, k=6)
    posed = setting(gaussian(values), values)
    for rule in (PUBLISHED, PREDICTIVE):
        forest = empty_forest(posed.family, 400)
        assert play(posed, forest, list(range(400)), rule) > 0
        # What a rebuild left below the path of an arrival is seen by a later one only.
        assert len(above_zero(forest)) <= (0 if rule == PUBLISHED else 2)


def test_budget_of_cuts(rng: np.random.Generator) -> None:
    values = clumps(rng, 300, k=8)
    posed = setting(gaussian(values), values)
    forest = empty_forest(posed.family, 300)
    cuts = [play(posed, forest, [i], PREDICTIVE) for i in range(300)]
    assert 0 < max(cuts) <= insertion.CUT_BUDGET


@pytest.mark.parametrize("rule", [PUBLISHED, PREDICTIVE])
def test_clumps_that_nobody_could_confuse(rule: int, rng: np.random.Generator) -> None:
    labels = np.arange(200) % 4
    values = np.array([[0.0, 0.0], [60.0, 0.0], [0.0, 60.0], [60.0, 60.0]])[labels]
    values += rng.normal(size=(200, 2))
    posed = setting(gaussian(values), values)
    forest = grown(posed, rule)
    for root in roots_of(forest):
        below = json.loads(f"[{written(forest, root)}]".replace("(", "").replace(")", ""))
        assert len(set(labels[below])) == 1
    assert len(roots_of(forest)) < 20


def test_predictive_descent_keeps_trees_shallow(rng: np.random.Generator) -> None:
    """One clump, for which the published rule makes a chain."""
    values = rng.normal(size=(800, 2))
    posed = setting(gaussian(values), values)
    heights = {}
    for rule in (PUBLISHED, PREDICTIVE):
        forest = grown(posed, rule)
        heights[rule] = max(int(forest.height[v]) for v in roots_of(forest))
    assert heights[PREDICTIVE] <= 3.0 * log2(800) < heights[PUBLISHED]


def test_sorted_arrivals_do_not_degenerate() -> None:
    """Each arrival beyond all others: the worst case for a tree that never rebuilds."""
    values = np.linspace(-2.0, 2.0, 500)[:, None]
    posed = setting(gaussian(values), values)
    assert describe(forest_faults(posed.model, grown(posed, PREDICTIVE))) == []


def test_equal_observations(rng: np.random.Generator) -> None:
    values = np.repeat(rng.normal(size=(3, 2)), 70, axis=0)
    posed = setting(gaussian(values), values)
    for rule in (PUBLISHED, PREDICTIVE):
        broken = forest_faults(posed.model, grown(posed, rule))
        assert [word for word in describe(broken) if "higher" not in word] == []
    assert describe(forest_faults(posed.model, grown(posed, PREDICTIVE))) == []


def test_heavy_atoms(rng: np.random.Generator) -> None:
    """Atoms of three observations, which no predictive table applies to."""
    values = clumps(rng, 120)
    posed = setting(gaussian(values), values, weight=3)
    forest = grown(posed, PREDICTIVE)
    assert describe(forest_faults(posed.model, forest)) == []
    assert sum(forest.size[v] for v in roots_of(forest)) == 360


@pytest.mark.parametrize("offset", [0.0, 300.0])
def test_tables_taken_further_by_each_arrival_do_not_drift(
    offset: float, rng: np.random.Generator
) -> None:
    """In standard deviations from the prior mean; among them some that are far from the others."""
    values = offset + rng.normal(size=(1500, 2)) * rng.choice([1.0, 20.0], 1500)[:, None]
    posed = setting(gaussian(values), values)
    forest = grown(posed, PREDICTIVE)
    assert forest.table_age.max() > 30
    assert describe(forest_faults(posed.model, forest)) == []


def test_removal_of_everything(rng: np.random.Generator) -> None:
    values = clumps(rng, 60)
    posed = setting(gaussian(values), values)
    forest = grown(posed, PREDICTIVE)
    for i in rng.permutation(60).tolist():
        play(posed, forest, [-1 - i], PREDICTIVE)
        assert forest.leaf[i] == -1
        assert describe(forest_faults(posed.model, forest)) == []
    assert forest.n_roots[0] == 0
    assert forest.n_free[0] == forest.n_used[0]
    play(posed, forest, list(range(60)), PREDICTIVE)
    assert describe(forest_faults(posed.model, forest)) == []


def test_removal_of_the_last_arrival_leaves_the_others_statistics() -> None:
    """Bit for bit: an inner node is the sum of its children, never a difference."""
    values = np.array([[0.1], [0.2], [0.15], [1e6]])
    posed = setting(gaussian(values), values)
    forest = grown(posed, PUBLISHED, [0, 1, 2])
    before = forest.rows[roots_of(forest)[0]].copy()
    play(posed, forest, [3, -4], PUBLISHED)
    assert (forest.rows[roots_of(forest)[0]] == before).all()


def test_neither_compiled_code_nor_its_source_differ(rng: np.random.Generator) -> None:
    values = clumps(rng, 80)
    posed = setting(gaussian(values), values)
    compiled, plain = grown(posed, PREDICTIVE), empty_forest(posed.family, 80)
    for i in range(80):
        leaf = add_leaf(posed.model, plain, i, posed.atoms.rows, i, 1)
        insert_tree(posed.model, plain, leaf, PREDICTIVE)
    assert sorted(trees(compiled)) == sorted(trees(plain))
