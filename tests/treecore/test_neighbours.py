"""Trees of nearest neighbours: Ward's where all are neighbours, and far clumps are subtrees."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage

from weald.treecore.guide.ward_tree import ward_tree


def atoms_below(children: NDArray[np.int64]) -> set[frozenset[int]]:
    """The atoms under each inner node."""
    n = children.shape[0] + 1
    below = [frozenset([i]) for i in range(n)]
    for a, b in children:
        below.append(below[a] | below[b])
    return set(below[n:])


@pytest.mark.parametrize("seed", range(5))
def test_wards_tree_where_all_are_neighbours(seed: int) -> None:
    centres = np.random.default_rng(seed).normal(size=(6, 3))
    published = linkage(centres, "ward")[:, :2].astype(np.int64)
    assert atoms_below(ward_tree(centres, np.ones(6))) == atoms_below(published)


def test_a_weight_is_so_many_observations() -> None:
    centres = np.random.default_rng(0).normal(size=(4, 2))
    weight = np.array([1, 3, 1, 1])
    many = np.repeat(np.arange(4), weight)
    whole = atoms_below(linkage(centres[many], "ward")[:, :2].astype(np.int64))
    bundled = {frozenset(many[list(atoms)].tolist()) for atoms in whole}
    found = atoms_below(ward_tree(centres, weight.astype(float)))
    assert found == {atoms for atoms in bundled if len(atoms) > 1}


@pytest.mark.parametrize("n", [2, 30, 400])
def test_clumps_without_a_link_between_them_are_subtrees(n: int) -> None:
    rng = np.random.default_rng(1)
    clump = np.repeat(np.arange(7), n)
    angle = 2.0 * np.pi * clump / 7.0
    centres = 1e3 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    children = ward_tree(centres + rng.normal(size=centres.shape), np.ones(7 * n))
    assert sorted(children.ravel().tolist()) == list(range(14 * n - 2))
    found = atoms_below(children)
    assert len(found) == 7 * n - 1
    assert all(frozenset(np.flatnonzero(clump == k).tolist()) in found for k in range(7))


def test_atoms_at_one_place() -> None:
    assert frozenset(range(40)) in atoms_below(ward_tree(np.zeros((40, 2)), np.ones(40)))
