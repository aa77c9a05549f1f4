"""Frozen-guide tree-guided MCMC: the exact form of Lee and Choi (2015).

A sweep mixes kernels, each picked with weights that depend on data and guide only: windowed
subtree Gibbs (K1), tree-blocked split-merge (K2), subtree re-partition (K3), K1 at leaves, which
makes the mixture irreducible, subtree gather (K4), which undoes a start that cuts across the guide,
subtree join (K5), which makes one of many small clusters, and K1 at leaves in the whole tree, of
many leaves in a row. Exact for every guide and every partition prior of Gibbs type. The published
sampler is not (``tgmcmc-ibhc.md`` section 5). Weights and windows: section 6.7; the numbers of
moves, K4, K5 and the scan are ours.
"""

from math import ceil, exp, sqrt
from typing import NamedTuple, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.contract import Entry, PartitionState
from weald.mcmc.state.atom_state import NULL, Info, State, record_as
from weald.mcmc.state.pieces import Pieces
from weald.mcmc.sweeps import Sampler, sampler
from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.draw import below, coin, pick
from weald.treecore.compiled.reference import by_reference, held_by_reference
from weald.treecore.guide.guide import Guide, right_child
from weald.treecore.partition.partition import Model

from . import (
    leaf_scan,
    subtree_gather,
    subtree_gibbs,
    subtree_join,
    subtree_repartition,
    tree_split_merge,
)

__all__ = [
    "KERNELS",
    "MOVES",
    "Picks",
    "TreePosition",
    "TreeState",
    "beside_gibbs",
    "gather_step",
    "gibbs_step",
    "join_step",
    "kernel",
    "leaf_step",
    "make_picks",
    "moves_of_sweep",
    "repartition_step",
    "split_merge_step",
    "sweep",
]

# In the order of ``MOVES``, which are a sweep's.
KERNELS = (
    "subtree-gibbs",
    "tree-split-merge",
    "subtree-repartition",
    "leaf-gibbs",
    "subtree-gather",
    "subtree-join",
    "leaf-scan",
)
MOVES = (200, 25, 50, 200, 20, 20)
# The one that reaches every partition alone.
_LEAF_GIBBS = 3
# Of the atoms a scan visits this share, and no more than so many.
_SCANNED, _MOST_SCANNED = 0.1, 1000
_LARGEST_WINDOW = 16
_WHOLE_TREE, _WHOLE_TREE_LEAF = 0.05, 0.02
_LEAST_CLUSTER = 1e-3
# Of the split-merge steps.
_BY_ATOMS = 0.5
# Small blocks have at most 2, 4, 8 or 16 observations.
_SMALL_SIZES = 4


def moves_of_sweep(n_atoms: int) -> NDArray[np.int64]:
    """How many moves of each kernel (7) a sweep has for so many atoms."""
    scanned = min(ceil(_SCANNED * n_atoms), _MOST_SCANNED)
    return np.array([*MOVES, scanned], dtype=np.int64)


@held_by_reference
class Picks(NamedTuple):
    """Cumulative weights over nodes, frozen while the guide and its potentials are."""

    gibbs: NDArray[np.float64]
    split_merge: NDArray[np.float64]
    repartition: NDArray[np.float64]
    cluster: NDArray[np.float64]


class TreePosition(NamedTuple):
    """The guide, the partition as its pieces, and the frozen weights of its nodes."""

    guide: Guide
    pieces: Pieces
    picks: Picks


class TreeState(PartitionState[State], Protocol):
    """Where a chain that has a guide stands."""

    def tree(self) -> TreePosition:
        """The partition as pieces of the guide, for a kernel to change in place."""
        ...


def make_picks(guide: Guide) -> Picks:
    """Weights by size, and by how undecided the guide is about a node (section 6.7).

    Ours are ``cluster``, of nodes that the guide holds for one cluster and what is above them for
    several, and half of the weight of K1, which such nodes have.
    """
    n = guide.parent.shape[0]
    picks = Picks(np.empty(n), np.empty(n), np.empty(n), np.empty(n))
    _accumulate(guide, picks)
    picks.gibbs[:] /= picks.gibbs[-1]
    picks.gibbs[:] += picks.cluster / picks.cluster[-1]
    return picks


@compiled
def _accumulate(guide: Guide, picks: Picks) -> None:
    guide, picks = by_reference(guide), by_reference(picks)
    gibbs, split_merge, repartition, cluster = 0.0, 0.0, 0.0, 0.0
    # Of the atoms under each node, the guide's probability that they are one cluster.
    joined = np.empty(guide.parent.shape[0])
    for v in range(guide.parent.shape[0]):
        together = 1.0
        if guide.n_leaves[v] > 1:
            together = 1.0 / (1.0 + exp(guide.log_dissimilarity[v]))
        joined[v] = together
        undecided = together * (1.0 - together)
        above = joined[guide.parent[v]] if v > 0 else 0.0
        size = sqrt(guide.n_leaves[v])
        gibbs += size
        split_merge += undecided + 0.02 if guide.n_leaves[v] > 1 else 0.0
        repartition += size * (1.0 + undecided)
        cluster += size * (together * (1.0 - above) + _LEAST_CLUSTER)
        picks.gibbs[v], picks.split_merge[v] = gibbs, split_merge
        picks.repartition[v], picks.cluster[v] = repartition, cluster


@inner
def _window(rng: Generator, guide: Guide, v: int) -> int:
    """An ancestor of v, at a geometric number of fourfold steps in size, or the root."""
    is_leaf = guide.n_leaves[v] == 1
    if v == 0 or coin(rng, _WHOLE_TREE_LEAF if is_leaf else _WHOLE_TREE):
        return 0
    least = 4 * guide.n_leaves[v]
    doublings = 1
    while doublings < _LARGEST_WINDOW and least < guide.n_leaves[0] and coin(rng, 0.5):
        least *= 4
        doublings += 1
    w = guide.parent[v]
    while w != 0 and guide.n_leaves[w] < least:
        w = guide.parent[w]
    return w


@inner
def gibbs_step(rng: Generator, guide: Guide, pieces: Pieces, model: Model, picks: Picks) -> Info:
    """K1 at a node picked by size."""
    v = pick(rng, picks.gibbs)
    w = _window(rng, guide, v)
    leaf = guide.first[v] + below(rng, guide.n_leaves[v])
    return subtree_gibbs.step(rng, guide, pieces, model, v, w, leaf)


@inner
def leaf_step(rng: Generator, guide: Guide, pieces: Pieces, model: Model) -> Info:
    """K1 at a leaf."""
    leaf = below(rng, guide.n_leaves[0])
    v = guide.node[leaf]
    return subtree_gibbs.step(rng, guide, pieces, model, v, _window(rng, guide, v), leaf)


@inner
def split_merge_step(
    rng: Generator, guide: Guide, pieces: Pieces, model: Model, picks: Picks
) -> Info:
    """K2 between two leaves on different sides of a picked node, or by atoms in a window."""
    if coin(rng, _BY_ATOMS):
        leaf_i = below(rng, guide.n_leaves[0])
        w = _window(rng, guide, guide.node[leaf_i])
        leaf_j = guide.first[w] + below(rng, guide.n_leaves[w] - 1)
        leaf_j += leaf_j >= leaf_i
        return tree_split_merge.step(rng, guide, pieces, model, leaf_i, leaf_j, 0)
    v = pick(rng, picks.split_merge)
    left, right = v + 1, right_child(guide, v)
    leaf_i = guide.first[left] + below(rng, guide.n_leaves[left])
    leaf_j = guide.first[right] + below(rng, guide.n_leaves[right])
    cap = guide.size[0]
    if not coin(rng, 0.9):
        cap = 64 if coin(rng, 0.7) else (8 if coin(rng, 2.0 / 3.0) else 1)
    return tree_split_merge.step(rng, guide, pieces, model, leaf_i, leaf_j, cap)


@inner
def repartition_step(
    rng: Generator, guide: Guide, pieces: Pieces, model: Model, picks: Picks
) -> Info:
    """K3 at a picked node."""
    v = pick(rng, picks.repartition)
    return subtree_repartition.step(rng, guide, pieces, model, v)


@inner
def gather_step(rng: Generator, guide: Guide, pieces: Pieces, model: Model, picks: Picks) -> Info:
    """K4 at a node that is picked as one cluster."""
    return subtree_gather.step(rng, guide, pieces, model, pick(rng, picks.cluster))


@inner
def join_step(rng: Generator, guide: Guide, pieces: Pieces, model: Model, picks: Picks) -> Info:
    """K5 at a node that is picked as one cluster, or of small blocks around it."""
    v = pick(rng, picks.cluster)
    leaf = guide.first[v] + below(rng, guide.n_leaves[v])
    most = guide.size[0]
    if coin(rng, 0.5):
        v = _window(rng, guide, v)
        most = 2 << below(rng, _SMALL_SIZES)
    return subtree_join.step(rng, guide, pieces, model, v, leaf, most)


@inner
def _count(tally: NDArray[np.float64], kernel: int, info: Info) -> None:
    if info.move != NULL:
        record_as(tally, kernel, info)


@compiled
def sweep(
    rng: Generator,
    guide: Guide,
    pieces: Pieces,
    model: Model,
    picks: Picks,
    n_moves: NDArray[np.int64],
    tally: NDArray[np.float64],
) -> None:
    """``n_moves`` (int64, 7) steps of each kernel in turn, K4 and K5 first.

    ``tally`` float64 (7, 3) gains, for each of ``KERNELS``, the moves proposed (null moves apart)
    and accepted, and the sum of their log acceptance ratios. The model's prior must be the one that
    the guide's potentials were computed for.
    """
    guide, pieces, model, picks = (
        by_reference(guide),
        by_reference(pieces),
        by_reference(model),
        by_reference(picks),
    )
    # Their order is fixed and each leaves the posterior invariant, so that the cycle does, too.
    for _ in range(n_moves[4]):
        _count(tally, 4, gather_step(rng, guide, pieces, model, picks))
    for _ in range(n_moves[5]):
        _count(tally, 5, join_step(rng, guide, pieces, model, picks))
    for _ in range(n_moves[0]):
        _count(tally, 0, gibbs_step(rng, guide, pieces, model, picks))
    # A pair of anchors takes two leaves (section 6.2).
    if guide.n_leaves[0] > 1:
        for _ in range(n_moves[1]):
            _count(tally, 1, split_merge_step(rng, guide, pieces, model, picks))
    for _ in range(n_moves[2]):
        _count(tally, 2, repartition_step(rng, guide, pieces, model, picks))
    for _ in range(n_moves[3]):
        _count(tally, 3, leaf_step(rng, guide, pieces, model))
    n_scanned = leaf_scan.scan(rng, guide, pieces, model, n_moves[6]) if n_moves[6] > 0 else 0
    tally[6, 0] += n_scanned
    tally[6, 1] += n_scanned


def _sweep_of(rng: Generator, at: TreeState, moves: NDArray[np.int64]) -> NDArray[np.float64]:
    guide, pieces, picks = at.tree()
    tally = np.zeros((len(KERNELS), 3))
    sweep(rng, guide, pieces, at.model, picks, moves, tally)
    return tally


def kernel(entry: Entry) -> Sampler[TreeState]:
    """The kernel, as the registry names it."""

    def run(rng: Generator, at: TreeState) -> NDArray[np.float64]:
        return _sweep_of(rng, at, moves_of_sweep(at.n_atoms))

    def least(rng: Generator, at: TreeState) -> NDArray[np.float64]:
        return _sweep_of(rng, at, np.eye(len(KERNELS), dtype=np.int64)[_LEAF_GIBBS])

    return sampler(entry, run, KERNELS, least=least)


def beside_gibbs(entry: Entry) -> Sampler[TreeState]:
    """The kernel for schedules with Gibbs sampling, which is what a scan of leaves does."""

    def run(rng: Generator, at: TreeState) -> NDArray[np.float64]:
        return _sweep_of(rng, at, np.array([*MOVES, 0], dtype=np.int64))[:-1]

    return sampler(entry, run, KERNELS[:-1])
