"""Bayesian hierarchical clustering in batch, against the slow way and against scipy."""

from itertools import combinations
from math import lgamma, log
from typing import Any

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, is_monotonic, is_valid_linkage

from tests.exact.enumeration import partitions
from tests.exact.posed import DATA
from tests.treecore.family.examples import marginal_of
from tests.treecore.forests import clumps, gaussian, setting
from weald.treecore.errors import ObservationError
from weald.treecore.family import FAMILIES
from weald.treecore.forest.hierarchical_clustering import Hierarchy, hierarchy

TOLERANCE = 1e-10
# Two pairs of the five points of gauss1 and the sum over all partitions, each of whose points the
# specification weighs by 1 / (1 + u) with u = 2, which we drop.
O8_POINT = -log(3.0)
O8_NODES = {(0, 1): -4.501904185769, (3, 4): -4.870318813293}
O8_EVIDENCE = -9.728959490281


def log_hypothesis(family: Any, values: np.ndarray, members: tuple[int, ...]) -> float:
    """S8 with a Dirichlet process and alpha one, from scratch."""
    return lgamma(len(members)) + marginal_of(family, values[list(members)])


def by_hand(family: Any, values: np.ndarray) -> dict[tuple[int, ...], tuple[float, float]]:
    """Log d and log phi of every node of the greedy tree, by its sorted members."""
    trees: dict[tuple[int, ...], tuple[float, float]] = {
        (i,): (-np.inf, log_hypothesis(family, values, (i,))) for i in range(len(values))
    }
    open_trees = list(trees)
    while len(open_trees) > 1:
        found = {}
        for a, b in combinations(open_trees, 2):
            apart = trees[a][1] + trees[b][1]
            found[a, b] = apart - log_hypothesis(family, values, tuple(sorted(a + b)))
        a, b = min(found, key=lambda pair: found[pair])
        union = tuple(sorted(a + b))
        apart = trees[a][1] + trees[b][1]
        together = log_hypothesis(family, values, union)
        trees[union] = (found[a, b], float(np.logaddexp(together, apart)))
        open_trees = [tree for tree in open_trees if tree not in (a, b)] + [union]
    return trees


def members_of(found: Hierarchy) -> list[tuple[int, ...]]:
    """Atoms under each node."""
    members: list[tuple[int, ...]] = [(i,) for i in range(found.children.shape[0] + 1)]
    for a, b in found.children:
        members.append(tuple(sorted(members[a] + members[b])))
    return members


@pytest.mark.parametrize("data", ["gauss1", "gauss2", "bern"])
def test_the_slow_way(data: str) -> None:
    name, parameters, values = DATA[data]
    family = FAMILIES[name].build(parameters, values)
    posed = setting(family, values)
    found = hierarchy(posed.model, posed.atoms)
    expected = by_hand(family, values)
    members = members_of(found)
    assert set(members) == set(expected)
    for v, under in enumerate(members):
        assert found.size[v] == len(under)
        assert found.log_dissimilarity[v] == pytest.approx(expected[under][0], abs=TOLERANCE)
        assert found.log_potential[v] == pytest.approx(expected[under][1], abs=TOLERANCE)


def test_numbers_of_the_specification() -> None:
    name, parameters, values = DATA["gauss1"]
    family = FAMILIES[name].build(parameters, values)
    posed = setting(family, values[:5])
    found = hierarchy(posed.model, posed.atoms)
    members = members_of(found)
    for under, log_potential in O8_NODES.items():
        if under in members:
            at = members.index(under)
            expected = log_potential - 2 * O8_POINT
            assert found.log_potential[at] == pytest.approx(expected, abs=TOLERANCE)
    assert any(under in members for under in O8_NODES)
    blocks = [
        sum(log_hypothesis(family, values, tuple(block)) for block in blocks_of(labels))
        for labels in partitions(5)
    ]
    evidence = O8_EVIDENCE - 5 * O8_POINT
    assert np.logaddexp.reduce(blocks) == pytest.approx(evidence, abs=TOLERANCE)
    assert found.log_potential[-1] < evidence


def blocks_of(labels: Any) -> list[list[int]]:
    """Members of each block."""
    return [[i for i, label in enumerate(labels) if label == k] for k in set(labels)]


def test_a_dendrogram_that_scipy_takes(rng: np.random.Generator) -> None:
    values = clumps(rng, 120, k=3) * [1.0, 3.0]
    posed = setting(gaussian(values), values)
    found = hierarchy(posed.model, posed.atoms)
    linkage = found.linkage()
    assert is_valid_linkage(linkage)
    assert is_monotonic(linkage)
    assert linkage[-1, 3] == 120
    cut = fcluster(linkage, log(2.0), criterion="distance")
    whole = [len(set(found.labels()[cut == c])) for c in np.unique(cut)]
    # Inside such a tree nothing is better apart, so it lies within one cluster.
    assert set(whole) == {1}


def test_clumps_that_nobody_could_confuse(rng: np.random.Generator) -> None:
    labels = np.arange(90) % 3
    values = np.array([[0.0, 0.0], [60.0, 0.0], [0.0, 60.0]])[labels] + rng.normal(size=(90, 2))
    posed = setting(gaussian(values), values)
    found = hierarchy(posed.model, posed.atoms).labels()
    assert len(set(zip(labels.tolist(), found.tolist(), strict=True))) == 3


@pytest.mark.parametrize("n", [0, 1])
def test_too_few(n: int) -> None:
    posed = setting(gaussian(np.zeros((4, 2))), np.zeros((n, 2)))
    with pytest.raises(ObservationError, match=f"got {n}"):
        hierarchy(posed.model, posed.atoms)
