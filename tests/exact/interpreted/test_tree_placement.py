"""An arrival that moves what is in its tree and block leaves every posterior invariant."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.exact.cases import FAMILY_NAMES, Problem, problem
from tests.exact.enumeration import IdOrder, Shape, transition_matrix
from tests.exact.posed import PRIORS, posed
from weald.mcmc.chain.tree_placement import FEWEST, place_by_tree
from weald.mcmc.state.atom_state import make_state
from weald.treecore.forest.forest import (
    Forest,
    add_leaf,
    add_root,
    empty_forest,
    join,
    refresh_node,
)
from weald.treecore.prior.sequential import canonical_labels

TOLERANCE = 1e-12


def forest_of(small: Problem, n_leaves: int) -> Forest:
    """A tree of the first atoms, each beside all before, and one of each other atom."""
    atoms, model = small.atoms, small.model
    forest = empty_forest(small.family, atoms.size.shape[0])
    root = -1
    for i in range(atoms.size.shape[0]):
        leaf = add_leaf(model, forest, i, atoms.rows, i, int(atoms.size[i]))
        if i in (0, *range(n_leaves, atoms.size.shape[0])):
            add_root(forest, leaf)
            root = leaf if i == 0 else root
        else:
            root = join(forest, root, leaf)
            refresh_node(model, forest, root)
    return forest


def after(small: Problem, forest: Forest, i: int, rng: Any, state: Shape) -> Shape:
    """The partition that the step of atom i leads to; what it says of it holds."""
    before = np.array(state, dtype=np.int64)
    moving = make_state(small.family, small.atoms, before)
    partition = moving.partition
    slots = partition.label.copy()
    n, own, target = place_by_tree(rng, moving, small.model, forest, i)
    moved = np.flatnonzero(partition.label != slots)
    assert sorted(moving.members[:n].tolist()) == moved.tolist()
    assert (slots[moved] == own).all()
    assert (partition.label[moved] == target).all()
    for at in range(partition.n_blocks[0]):
        slot = partition.slots[at]
        inside = partition.label == slot
        assert partition.n_members[slot] == inside.sum() > 0
        assert partition.size[slot] == small.atoms.size[inside].sum()
        sums = small.atoms.rows[inside].sum(axis=0)
        np.testing.assert_allclose(partition.rows[slot], sums, atol=1e-12)
    return tuple(canonical_labels(partition.label).tolist())


def check(small: Problem, n_leaves: int = FEWEST) -> None:
    """Detailed balance of every atom's step, and that some of them moves something."""
    forest = forest_of(small, n_leaves)
    moves = 0.0
    for i in range(small.atoms.size.shape[0]):
        matrix = transition_matrix(small.states, partial(after, small, forest, i), IdOrder)
        assert np.abs(matrix.sum(axis=1) - 1.0).max() < TOLERANCE
        flow = small.target[:, None] * matrix
        np.testing.assert_allclose(flow, flow.T, rtol=1e-9, atol=1e-15)
        moves += 1.0 - float(np.diag(matrix).min())
    assert (moves > 1e-9) is (n_leaves == FEWEST)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("data", ["gauss1", "bern"])
def test_every_prior(data: str, prior: str) -> None:
    check(posed(data, prior, 5))


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_every_family(family: str) -> None:
    check(problem(family, "dp", 5))


def test_compacted_atoms() -> None:
    check(posed("gauss1", "dp", [0, 0, 1, 2, 3, 4]))


def test_other_sizes_of_a_tree_move_nothing() -> None:
    check(posed("gauss1", "dp", 5), n_leaves=5)
