"""The guide restricted to some atoms is the guide pruned to them."""

from typing import Any

import numpy as np
import pytest

from tests.exact.trees import guide_of
from tests.treecore.forests import clumps, gaussian, setting
from tests.treecore.invariants import describe, guide_faults
from weald.mcmc.leases.restricted_guide import guide_of_tree, regrow, restrict
from weald.treecore.guide.guide import Guide
from weald.treecore.partition.partition import make_atoms

N = 40


def random_tree(rng: np.random.Generator, atoms: list[int]) -> Any:
    """A binary tree over the atoms, as nested pairs."""
    if len(atoms) == 1:
        return atoms[0]
    cut = int(rng.integers(1, len(atoms)))
    return random_tree(rng, atoms[:cut]), random_tree(rng, atoms[cut:])


def pruned(tree: Any, place: dict[int, int]) -> Any:
    """The tree over the atoms of ``place`` alone, named by their places; None without any."""
    if not isinstance(tree, tuple):
        return place.get(tree)
    left, right = pruned(tree[0], place), pruned(tree[1], place)
    if left is None or right is None:
        return right if left is None else left
    return left, right


@pytest.mark.parametrize("n_taken", [1, 2, 7, 23, N])
def test_pruning(n_taken: int, rng: np.random.Generator) -> None:
    values = clumps(rng, N)
    posed = setting(gaussian(values), values)
    tree = random_tree(rng, rng.permutation(N).tolist())
    whole = guide_of(posed.model, posed.atoms, tree)
    taken = np.sort(rng.permutation(N)[:n_taken]).astype(np.int64)
    rows, size = posed.atoms.rows[taken], posed.atoms.size[taken]
    atoms = make_atoms(posed.family, rows, size, posed.model.work)
    found = regrow(posed.model, atoms, restrict(whole, taken))
    place = {int(atom): at for at, atom in enumerate(taken)}
    expected = guide_of(posed.model, atoms, pruned(tree, place))
    for name in Guide._fields:
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-12, err_msg=name
        )
    assert describe(guide_faults(posed.model, found)) == []


def test_a_trees_guide_is_in_preorder(rng: np.random.Generator) -> None:
    """Of atoms 0 and 3, and of 2 beside 1 and 4; nodes numbered as in a linkage matrix."""
    values = clumps(rng, 5)
    posed = setting(gaussian(values), values)
    children = np.array([[-1, -1]] * 5 + [[0, 3], [1, 4], [2, 6], [5, 7]])
    found = guide_of_tree(posed.model, posed.atoms, children, np.arange(5))
    assert found.n_leaves.tolist() == [5, 2, 1, 1, 3, 1, 2, 1, 1]
    assert found.atom.tolist() == [0, 3, 2, 1, 4]
