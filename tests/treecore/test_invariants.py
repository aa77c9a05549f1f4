"""Every way to break a structure sets the bit that names it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.mcmc.piece_invariants import piece_faults
from tests.treecore.forests import Setting, clumps, gaussian, grown, roots_of, setting
from tests.treecore.invariants import (
    Broken,
    describe,
    forest_faults,
    guide_faults,
    partition_faults,
)
from weald.mcmc.state.atom_state import State, make_state
from weald.mcmc.state.pieces import Pieces, make_pieces
from weald.treecore.forest.forest import Forest
from weald.treecore.forest.insertion import PREDICTIVE, PUBLISHED
from weald.treecore.guide.guide import Guide, freeze
from weald.treecore.partition.partition import block_log_marginal

N = 40


@pytest.fixture
def posed(rng: np.random.Generator) -> Setting:
    values = clumps(rng, N)
    return setting(gaussian(values), values)


def inner_node(forest: Forest) -> int:
    """The root of the greatest tree."""
    return max(roots_of(forest), key=lambda v: int(forest.n_leaves[v]))


def _set(name: str, where: Callable[[Any], Any], value: Any) -> Callable[[Any], None]:
    def damage(structure: Any) -> None:
        getattr(structure, name)[where(structure)] = value

    return damage


def _add(name: str, where: Callable[[Any], Any], value: Any) -> Callable[[Any], None]:
    def damage(structure: Any) -> None:
        getattr(structure, name)[where(structure)] += value

    return damage


def left_child(forest: Forest) -> int:
    return int(forest.left[inner_node(forest)])


FOREST_DAMAGES: dict[str, tuple[Callable[[Forest], None], Broken]] = {
    "parent": (_set("parent", left_child, 0x7FFF), Broken.LINKS),
    "twice": (lambda f: f.left.__setitem__(inner_node(f), f.right[inner_node(f)]), Broken.LINKS),
    "half a node": (_set("right", inner_node, -1), Broken.LINKS),
    "root position": (_add("root_position", inner_node, 1), Broken.ROOTS),
    "parent of root": (_set("parent", inner_node, 3), Broken.ROOTS),
    "lost node": (_add("n_used", lambda _: 0, 1), Broken.FREE_NODES),
    "free in use": (_add("n_free", lambda _: 0, 1), Broken.FREE_NODES),
    "leaf": (_set("leaf", lambda _: 5, 0x7FFF), Broken.ATOMS),
    "atom": (lambda f: f.atom.__setitem__(f.leaf[5], 6), Broken.ATOMS),
    "inner atom": (_set("atom", inner_node, 5), Broken.ATOMS),
    "n_leaves": (_add("n_leaves", inner_node, 1), Broken.SIZES),
    "size": (_add("size", inner_node, 1), Broken.SIZES),
    "height": (_add("height", inner_node, 1), Broken.HEIGHTS),
    "row": (_add("rows", lambda f: (inner_node(f), 2), 1e-5), Broken.STATISTICS),
    "marginal": (_add("log_marginal", inner_node, 1e-5), Broken.LOG_MARGINALS),
    "potential": (_add("log_potential", left_child, 1e-6), Broken.POTENTIALS),
    "dissimilarity": (_add("log_dissimilarity", inner_node, 1e-6), Broken.POTENTIALS),
    "predictive": (_set("predictive", left_child, 1e3), Broken.PREDICTIVES),
    "outline": (
        _add("outlines", lambda _: slice(None), 1.0),
        Broken.OUTLINES,
    ),
    "stale below": (_set("stale", left_child, 1), Broken.STALE),
    "stale table": (_set("stale", inner_node, 2), Broken.STALE),
}


@pytest.mark.parametrize("name", FOREST_DAMAGES)
def test_forest(name: str, posed: Setting) -> None:
    forest = grown(posed, PREDICTIVE)
    assert forest_faults(posed.model, forest) == 0
    damage, expected = FOREST_DAMAGES[name]
    damage(forest)
    broken = forest_faults(posed.model, forest)
    assert broken & expected
    assert describe(expected)[0] in describe(broken)


def test_a_chain_is_out_of_balance(rng: np.random.Generator) -> None:
    values = rng.normal(size=(300, 2))
    posed = setting(gaussian(values), values)
    assert forest_faults(posed.model, grown(posed, PUBLISHED)) == Broken.BALANCE


GUIDE_DAMAGES: dict[str, tuple[Callable[[Guide], None], Broken]] = {
    "parent": (_add("parent", lambda _: 3, 1), Broken.PREORDER),
    "n_nodes": (_add("n_nodes", lambda _: 1, 2), Broken.PREORDER),
    "first": (_add("first", lambda _: 4, 1), Broken.PREORDER),
    "node": (_add("node", lambda _: 4, 1), Broken.ATOMS),
    "position": (_add("position", lambda _: 4, 1), Broken.ATOMS),
    "twice": (lambda g: g.atom.__setitem__(3, g.atom[4]), Broken.ATOMS),
    "n_leaves": (_add("n_leaves", lambda _: 0, 1), Broken.SIZES),
    "size": (_add("size", lambda _: 0, 1), Broken.SIZES),
    "row": (_add("rows", lambda _: (0, 2), 1e-5), Broken.STATISTICS),
    "marginal": (_add("log_marginal", lambda _: 0, 1e-5), Broken.LOG_MARGINALS),
    "potential": (_add("log_potential", lambda _: 1, 1e-6), Broken.POTENTIALS),
}


@pytest.mark.parametrize("name", GUIDE_DAMAGES)
def test_guide(name: str, posed: Setting) -> None:
    guide = freeze(posed.model, grown(posed, PREDICTIVE))
    assert guide_faults(posed.model, guide) == 0
    damage, expected = GUIDE_DAMAGES[name]
    damage(guide)
    assert guide_faults(posed.model, guide) & expected


PARTITION_DAMAGES: dict[str, tuple[Callable[[Any], None], Broken]] = {
    "slots": (lambda p: p.slots.__setitem__(0, p.slots[1]), Broken.SLOTS),
    "position": (_add("position", lambda p: p.slots[0], 1), Broken.SLOTS),
    "n_blocks": (_add("n_blocks", lambda _: 0, -1), Broken.SLOTS),
    "closed row": (_add("rows", lambda p: (p.slots[-1], 1), 1.0), Broken.SLOTS),
    "label": (_set("label", lambda p: p.head[p.slots[0]], -1), Broken.LISTS),
    "loop": (lambda p: p.following.__setitem__(p.head[0], p.head[0]), Broken.LISTS),
    "preceding": (_add("preceding", lambda p: p.head[p.slots[0]], 5), Broken.LISTS),
    "n_members": (_add("n_members", lambda p: p.slots[0], 1), Broken.SIZES),
    "size": (_add("size", lambda p: p.slots[0], 1), Broken.SIZES),
    "row": (_add("rows", lambda p: (p.slots[0], 2), 1e-5), Broken.STATISTICS),
    "marginal": (_add("log_marginal", lambda p: p.slots[0], 1e-4), Broken.LOG_MARGINALS),
    "predictive": (_set("stale", lambda p: p.slots[1], 1), Broken.PREDICTIVES),
}


def five_blocks(posed: Setting) -> State:
    return make_state(posed.family, posed.atoms, np.arange(N, dtype=np.int64) % 5)


@pytest.mark.parametrize("name", PARTITION_DAMAGES)
def test_partition(name: str, posed: Setting) -> None:
    state = five_blocks(posed)
    for k in state.partition.slots[:5]:
        block_log_marginal(posed.model, state.partition, int(k))
    assert partition_faults(posed.model, posed.atoms, state.partition) == 0
    damage, expected = PARTITION_DAMAGES[name]
    damage(state.partition)
    assert partition_faults(posed.model, posed.atoms, state.partition) & expected


def listed(pieces: Pieces) -> int:
    """A piece of more than one node, in a list."""
    found = np.flatnonzero(pieces.partition.label >= 0)
    inside = found[found + 1 < pieces.pure.shape[0]]
    return int(inside[pieces.pure[inside + 1] == pieces.pure[inside]][0])


PIECE_DAMAGES: dict[str, tuple[Callable[[Pieces], None], Broken]] = {
    "leaf of another block": (_add("pure", lambda p: listed(p) + 1, 1), Broken.PURITY),
    "not pure": (_set("pure", listed, -1), Broken.PURITY),
    "in no list": (lambda p: p.partition.label.__setitem__(listed(p), -1), Broken.PIECES),
    "stamp of the future": (_set("marked", lambda _: 0, 99), Broken.PIECES),
}


@pytest.mark.parametrize("name", PIECE_DAMAGES)
def test_pieces(name: str, posed: Setting) -> None:
    guide = freeze(posed.model, grown(posed, PREDICTIVE))
    pieces = make_pieces(posed.family, guide, np.arange(N, dtype=np.int64) // 20)
    assert piece_faults(posed.model, guide, pieces) == 0
    damage, expected = PIECE_DAMAGES[name]
    damage(pieces)
    assert piece_faults(posed.model, guide, pieces) & expected


def test_every_bit_has_words_of_its_own() -> None:
    sentences = [describe(flag) for flag in Broken]
    assert all(len(sentence) == 1 for sentence in sentences)
    assert len({sentence[0] for sentence in sentences}) == len(Broken)
    assert describe(0) == []
