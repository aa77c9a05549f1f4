"""Tree-guided kernels leave every posterior invariant, for every guide and every index alone."""

from collections.abc import Callable
from itertools import chain as chained
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.exact.cases import FAMILY_NAMES, Problem, problem
from tests.exact.enumeration import is_irreducible
from tests.exact.posed import PRIORS, posed
from tests.exact.trees import KERNELS, Step, chain, guide_of, random_tree, tree_problem
from weald.mcmc.offline.start import grow_forest
from weald.mcmc.state.pieces import Pieces
from weald.mcmc.tree_guided import (
    leaf_scan,
    subtree_gibbs,
    subtree_join,
    subtree_repartition,
    tree_split_merge,
)
from weald.mcmc.tree_guided.tgmcmc import Picks
from weald.treecore.guide.guide import Guide, freeze, guide_of_atoms
from weald.treecore.partition.partition import Model
from weald.treecore.prior import build_prior

TOLERANCE = 1e-12


def ibhc_guide(small: Problem) -> Guide:
    forest = grow_forest(small.family, build_prior("dp", {}), small.atoms)
    return freeze(small.model, forest)


GUIDES: dict[str, Callable[[Problem], Guide]] = {
    "ibhc": ibhc_guide,
    "top-down": lambda small: guide_of_atoms(small.family, small.model, small.atoms),
    "chain": lambda small: guide_of(small.model, small.atoms, chain(small.atoms.size.shape[0])),
    "random": lambda small: guide_of(
        small.model,
        small.atoms,
        random_tree(small.atoms.size.shape[0], np.random.default_rng(3)),
    ),
}


def check(small: Problem, matrix: NDArray[np.float64]) -> None:
    """A stochastic matrix in detailed balance with the target, also where that is small."""
    assert np.abs(matrix.sum(axis=1) - 1.0).max() < TOLERANCE
    assert np.abs(small.target @ matrix - small.target).max() < TOLERANCE
    flow = small.target[:, None] * matrix
    np.testing.assert_allclose(flow, flow.T, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("guide", GUIDES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("data", ["gauss1", "gauss2", "bern"])
def test_four_atoms(data: str, prior: str, kernel: str, guide: str) -> None:
    small = posed(data, prior, 4)
    matrix = tree_problem(small, GUIDES[guide](small)).matrix(KERNELS[kernel])
    check(small, matrix)
    # Under emm the slope that stands for the prior is too steep for draws this small to move.
    assert (prior, kernel) == ("emm", "subtree-repartition") or (np.diag(matrix) < 0.999).any()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_every_family(family: str, kernel: str) -> None:
    small = problem(family, "dp", 4)
    check(small, tree_problem(small, ibhc_guide(small)).matrix(KERNELS[kernel]))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("data", "guide"), [*(("gauss1", guide) for guide in GUIDES), ("bern", "random")]
)
def test_five_atoms(data: str, guide: str, kernel: str) -> None:
    small = posed(data, "dp", 5)
    check(small, tree_problem(small, GUIDES[guide](small)).matrix(KERNELS[kernel]))


@pytest.mark.parametrize("guide", GUIDES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("prior", PRIORS)
def test_compacted_atoms(prior: str, kernel: str, guide: str) -> None:
    """Observations 0 and 1 move as one, and so do 2 and 3 of six."""
    small = posed("gauss1", prior, [0, 0, 1, 1, 2, 3])
    check(small, tree_problem(small, GUIDES[guide](small)).matrix(KERNELS[kernel]))


def test_leaf_moves_are_irreducible_and_repartition_is_not() -> None:
    small = posed("gauss1", "dp", 5)
    on_tree = tree_problem(small, ibhc_guide(small))
    assert is_irreducible(on_tree.matrix(KERNELS["leaf-gibbs"]))
    assert not is_irreducible(on_tree.matrix(KERNELS["subtree-repartition"]))


def ancestors(guide: Guide, v: int) -> list[int]:
    """The root, and every node above v."""
    found = [0]
    while v > 0:
        v = int(guide.parent[v])
        found.append(v)
    return sorted(set(found))


def leaves(guide: Guide) -> list[tuple[int, int]]:
    """Each leaf's position and node."""
    return list(enumerate(guide.node.tolist()))


def at(step: Any, *index: int) -> Step:
    """The step at a given index."""

    def fixed(rng: Any, guide: Guide, pieces: Pieces, model: Model, _: Picks) -> None:
        step(rng, guide, pieces, model, *index)

    return fixed


@pytest.mark.parametrize("guide", GUIDES)
@pytest.mark.parametrize(("prior", "n"), [("dp", 5), ("nggp", 4), ("mfm", 4), ("emm", 4)])
def test_every_index_of_subtree_gibbs(prior: str, n: int, guide: str) -> None:
    small = posed("gauss1", prior, n)
    on_tree = tree_problem(small, GUIDES[guide](small))
    tree = on_tree.guide
    for v in range(2 * n - 1):
        for w in ancestors(tree, v):
            for leaf in range(tree.first[v], tree.first[v] + tree.n_leaves[v]):
                check(small, on_tree.matrix(at(subtree_gibbs.step, v, w, leaf)))


@pytest.mark.parametrize("guide", GUIDES)
@pytest.mark.parametrize(("prior", "n"), [("dp", 5), ("nggp", 5), ("mfm", 4), ("emm", 4)])
def test_every_index_of_repartition(prior: str, n: int, guide: str) -> None:
    small = posed("gauss1", prior, n)
    on_tree = tree_problem(small, GUIDES[guide](small))
    for v in range(2 * n - 1):
        check(small, on_tree.matrix(at(subtree_repartition.step, v)))


@pytest.mark.parametrize(
    ("data", "prior", "n"),
    [("gauss1", "dp", 4), ("bern", "nggp", 4), ("gauss1", "mfm", 4), ("gauss1", "emm", 4)],
)
def test_every_index_of_join(data: str, prior: str, n: int) -> None:
    """A node, a leaf under it, and blocks of one, of two or of any size."""
    small = posed(data, prior, n)
    on_tree = tree_problem(small, GUIDES["random"](small))
    tree = on_tree.guide
    moved = 0
    for v in np.flatnonzero(tree.n_leaves > 2):
        for leaf in range(tree.first[v], tree.first[v] + tree.n_leaves[v]):
            for most in (1, 2, 9):
                matrix = on_tree.matrix(at(subtree_join.step, int(v), leaf, most))
                check(small, matrix)
                moved += int(np.diag(matrix).min() < 0.99)
    assert moved > 0


def test_join_among_five_atoms() -> None:
    """Two of them compacted: sizes and numbers of atoms are not the same."""
    small = posed("gauss1", "nggp", [0, 0, 1, 2, 3, 4])
    on_tree = tree_problem(small, GUIDES["random"](small))
    check(small, on_tree.matrix(at(subtree_join.step, 0, 1, 2)))


@pytest.mark.parametrize("data", ["gauss1", "gauss2", "bern"])
@pytest.mark.parametrize(("prior", "blocks"), [("nggp", [0, 1, 2]), ("mfm", [0, 0, 1, 2])])
def test_scan_of_several_leaves(data: str, prior: str, blocks: list[int]) -> None:
    """One of them twice: tables that are kept from visit to visit are those of the partition."""
    small = posed(data, prior, blocks)
    on_tree = tree_problem(small, GUIDES["random"](small))
    n = len(set(blocks)) + 1
    matrix = on_tree.matrix(
        lambda rng, guide, pieces, model, _: leaf_scan.scan(rng, guide, pieces, model, n)
    )
    assert np.abs(matrix.sum(axis=1) - 1.0).max() < TOLERANCE
    assert np.abs(small.target @ matrix - small.target).max() < TOLERANCE
    assert is_irreducible(matrix)


def test_scan_is_gibbs_sampling() -> None:
    """One leaf of all, with no window: the matrix of a visit to a random atom."""
    small = posed("gauss1", "nggp", 4)
    on_tree = tree_problem(small, GUIDES["random"](small))
    root = [on_tree.matrix(at(subtree_gibbs.step, int(v), 0, i)) for i, v in leaves(on_tree.guide)]
    scanned = on_tree.matrix(KERNELS["leaf-scan"])
    np.testing.assert_allclose(scanned, np.mean(root, axis=0), atol=TOLERANCE)


@pytest.mark.parametrize("prior", ["dp", "mfm"])
def test_every_pair_of_split_merge_by_atoms(prior: str) -> None:
    for blocks in ([0, 1, 2, 3], [0, 0, 1, 2, 3]):
        small = posed("gauss1", prior, blocks)
        on_tree = tree_problem(small, GUIDES["random"](small))
        for i, j in permutations(range(4), 2):
            check(small, on_tree.matrix(at(tree_split_merge.step, i, j, 0)))


@pytest.mark.parametrize("guide", GUIDES)
@pytest.mark.parametrize("prior", ["dp", "mfm"])
def test_every_index_of_split_merge(
    prior: str, guide: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two leaves, and any set of closed inner nodes."""
    small = posed("gauss1", prior, 4)
    on_tree = tree_problem(small, GUIDES[guide](small))
    inner = [v for v in range(1, 7) if on_tree.guide.n_leaves[v] > 1]
    for closed in chained.from_iterable(combinations(inner, k) for k in range(len(inner) + 1)):
        monkeypatch.setattr(
            tree_split_merge,
            "_is_closed",
            lambda _, guide, v, __, closed=closed: guide.n_leaves[v] == 1 or v in closed,
        )
        for i, j in permutations(range(4), 2):
            check(small, on_tree.matrix(at(tree_split_merge.step, i, j, 4)))
