"""Deliberate faults in the tree-guided kernels, each of which must show."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.exact.cases import Problem
from tests.exact.enumeration import stationary
from tests.exact.posed import posed
from tests.exact.trees import KERNELS, Step, TreeProblem, guide_of, tree_problem
from weald.mcmc.state.pieces import Pieces
from weald.mcmc.tree_guided import subtree_gibbs, subtree_repartition, tree_split_merge
from weald.treecore.compiled.draw import choose
from weald.treecore.guide.guide import Guide, refresh_potentials
from weald.treecore.partition.partition import Model

# Deep enough on one side that parts of several sizes are allocated.
TREE = ((0, 4), (1, (2, 3)))


def on_tree(small: Problem) -> TreeProblem:
    return tree_problem(small, guide_of(small.model, small.atoms, TREE))


def distance(small: Problem, step: Step) -> float:
    """Total variation between what half a step and half a leaf move converge to and the target."""
    leaf_moves = on_tree(small).matrix(KERNELS["leaf-gibbs"])
    matrix = (on_tree(small).matrix(step) + leaf_moves) / 2.0
    return float(np.abs(stationary(matrix) - small.target).sum() / 2)


def test_the_right_forms_pass() -> None:
    small = posed("gauss1", "dp", 5)
    for kernel in ("subtree-gibbs", "subtree-repartition"):
        assert distance(small, KERNELS[kernel]) < 1e-12


def test_split_merge_without_its_allocation_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    allocate: Any = tree_split_merge._allocate
    monkeypatch.setattr(tree_split_merge, "_allocate", lambda *args: (0.0, *allocate(*args)[1:]))
    assert distance(posed("gauss1", "dp", 5), KERNELS["tree-split-merge"]) > 1e-3


def test_split_merge_with_parts_in_an_order_of_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of the first leaf's block before the others: the split doesn't know that order."""

    def by_label(pieces: Pieces, n: int) -> None:
        keys = pieces.part_label[pieces.order[:n]]
        pieces.order[:n] = pieces.order[:n][np.argsort(keys, kind="stable")]

    monkeypatch.setattr(tree_split_merge, "_sort_by_size", by_label)
    assert distance(posed("gauss1", "dp", 5), KERNELS["tree-split-merge"]) > 1e-4


def atoms_of_small_blocks(rng: Any, guide: Guide, pieces: Pieces, model: Model, *_: Any) -> None:
    """The published choice of leaves, in short: those in small blocks come up more often."""
    blocks = pieces.pure[guide.node]
    weights: NDArray[np.float64] = -np.log(pieces.partition.size[blocks].astype(np.float64))
    leaf = choose(rng, weights, weights.shape[0])
    subtree_gibbs.step(rng, guide, pieces, model, int(guide.node[leaf]), 0, leaf)


def test_leaf_moves_at_leaves_that_the_partition_chose() -> None:
    assert distance(posed("gauss1", "dp", 5), atoms_of_small_blocks) > 1e-2


def test_repartition_as_if_the_prior_were_a_product() -> None:
    small = posed("gauss1", "mfm", 5)
    seating = small.model.seating._replace(is_product=1)
    taken_for_product = small.model._replace(seating=seating)

    def step(rng: Any, guide: Guide, pieces: Pieces, _: Model, v: Any) -> None:
        KERNELS["subtree-repartition"](rng, guide, pieces, taken_for_product, v)

    assert distance(small, step) > 1e-3


def test_repartition_by_potentials_of_an_earlier_prior() -> None:
    small, earlier = posed("gauss1", "nggp", 5), posed("gauss1", "dp", 5)
    stale = guide_of(small.model, small.atoms, TREE)
    refresh_potentials(earlier.model, stale)

    def step(rng: Any, _: Guide, pieces: Pieces, model: Model, *rest: Any) -> None:
        KERNELS["subtree-repartition"](rng, stale, pieces, model, *rest)

    assert distance(small, step) > 1e-3


def test_subtree_gibbs_into_blocks_that_are_under_the_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such a move cannot be taken back: the part under the node has grown."""
    candidates: Any = subtree_gibbs._candidates

    def all_blocks(guide: Guide, pieces: Pieces, v: int, w: int, c: int) -> tuple[int, bool]:
        rest_in_window = candidates(guide, pieces, v, w, c)[1]
        slots = pieces.partition.slots[: pieces.partition.n_blocks[0]]
        others = slots[slots != c]
        pieces.order[: others.shape[0]] = others
        return others.shape[0], rest_in_window

    monkeypatch.setattr(subtree_gibbs, "_candidates", all_blocks)
    assert distance(posed("gauss1", "dp", 5), KERNELS["subtree-gibbs"]) > 1e-3


def test_repartition_that_ignores_how_the_blocks_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redrawing also where the present blocks are no nodes of the restricted guide."""
    restrict: Any = subtree_repartition._restrict

    def always(guide: Guide, pieces: Pieces, model: Model, v: int, inner: int) -> int:
        restrict(guide, pieces, model, v, inner)
        return int(guide.n_leaves[0])

    monkeypatch.setattr(subtree_repartition, "_restrict", always)
    assert distance(posed("gauss1", "dp", 5), KERNELS["subtree-repartition"]) > 1e-3
