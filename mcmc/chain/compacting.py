"""The choice of what a chain makes one atom of, by the rule of ``tgmcmc-ibhc.md`` section 7.

Subtrees whose atoms are all in one block come first. Where they are too few, as where clusters
overlap, leaves of one block that are no neighbours are joined in pairs, as far as the budget needs
it: any number down to one atom for each block can be had.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from weald.mcmc.state.atom_state import State
from weald.treecore.forest.compaction import (
    Judgement,
    collapse,
    forest_order,
    judge_nodes,
    measure_nodes,
    restore,
)
from weald.treecore.forest.forest import Forest
from weald.treecore.forest.joining import (
    disjoint_pairs,
    join_leaves,
    leaves_in_order,
    log_dissimilarities,
)
from weald.treecore.partition.partition import Model

__all__ = ["CERTAIN", "Compacted", "Compaction", "choose_nodes", "compact", "numbered_pairs"]

Ids = NDArray[np.int64]

# Collapsed without hesitation where 1 - P(h) is at most this at every inner node.
CERTAIN = 1e-6


class Compacted(NamedTuple):
    """Atoms that have become one.

    Attributes
    ----------
    atom:
        The id of the one that stands for all, the largest of them.
    members:
        What they were, int64 (n), that one first.
    doubt:
        Estimated probability that the observations in it are not all in one cluster; may exceed 1.
    """

    atom: int
    members: Ids
    doubt: float


class Compaction(NamedTuple):
    """What a compaction did.

    Attributes
    ----------
    compacted:
        In an order that depends on the trees only.
    n_early:
        Of the atoms that were saved, those that the rule would have had wait: not yet together for
        long enough, or not certain enough.
    """

    compacted: list[Compacted]
    n_early: int


def numbered_pairs(first: Ids, second: Ids) -> Ids:
    """Number equal pairs alike."""
    _, a = np.unique(first, return_inverse=True)
    _, b = np.unique(second, return_inverse=True)
    _, numbers = np.unique(a * (int(b.max(initial=0)) + 1) + b, return_inverse=True)
    return numbers.astype(np.int64)


def choose_nodes(forest: Forest, order: Ids, judged: Judgement, n_saved: int) -> tuple[Ids, int]:
    """Inner nodes to make leaves of, so that there are ``n_saved`` atoms fewer if that can be.

    First those that the rule allows, the most certain first; then those that are certain but have
    not been together for long enough; then the others that are together now. A node comes after
    all that are below it.

    Returns
    -------
    ndarray of int64
        The topmost nodes, none below another.
    int
        Atoms saved beyond what the rule allows.
    """
    inner = order[forest.left[order] >= 0]
    whole = inner[judged.together[inner] >= 0]
    worst = judged.worst[whole]
    level = np.where(worst > CERTAIN, 2, np.where(judged.steady[whole] >= 0, 0, 1))
    ranked = np.lexsort((whole, forest.n_leaves[whole], worst, level))[:n_saved]
    chosen = np.zeros(int(forest.n_used[0]), dtype=bool)
    chosen[whole[ranked]] = True
    above = forest.parent[whole]
    topmost = chosen[whole] & ~((above >= 0) & chosen[np.maximum(above, 0)])
    return whole[topmost], int((level[ranked] > 0).sum())


def compact(
    models: tuple[Model, Model],
    forest: Forest,
    state: State,
    groups: Ids,
    doubt: NDArray[np.float64],
    fewer: tuple[int, int],
) -> Compaction:
    """Make fewer atoms of a forest and its partition.

    Parameters
    ----------
    models:
        Under which the forest's potentials are computed, and that of the present prior.
    groups:
        By atom id, int64 (2, n): which atoms may become one, and which of them have been together
        for long enough.
    doubt:
        By atom id: estimated probability that an atom's observations are not in one cluster;
        brought up to date.
    fewer:
        How many atoms fewer there should be, and must be: beyond the subtrees, leaves are joined
        only as far as they must.
    """
    first_model, model = models
    # Which subtrees may go is asked of the partition's own model, their potentials of the first.
    order = forest_order(forest)
    measure_nodes(first_model, forest, order)
    judged = judge_nodes(model, forest, order, groups)
    nodes, n_early = choose_nodes(forest, order, judged, fewer[0])
    members = np.empty(order.shape[0], dtype=np.int64)
    before = state.atoms.size.copy()
    start = collapse(forest, state.atoms, state.partition, nodes, members)
    restore(first_model, forest, forest_order(forest))
    # Errors add up: an atom may be wrong where one of its parts was, or by being one.
    stands = np.arange(groups.shape[1])
    made = [members[start[:-1]]]
    for v, low, high in zip(nodes.tolist(), start[:-1].tolist(), start[1:].tolist(), strict=True):
        parts = members[low:high]
        total = float(judged.total[v] + doubt[parts].sum())
        doubt[parts] = 0.0
        doubt[parts[0]] = total
        stands[parts] = parts[0]
    # Where subtrees were not enough, leaves next to each other are joined, the surest first.
    missing = fewer[1] - int(start[-1]) + nodes.shape[0]
    while missing > 0:
        kept, gone, pair_doubt = _nearest_pairs(model, forest, before, groups[0], missing)
        if kept.size == 0:
            break
        join_leaves(first_model, forest, state.atoms, state.partition, kept, gone)
        doubt[kept] += pair_doubt + doubt[gone]
        doubt[gone] = 0.0
        stands[gone] = kept
        made.append(kept)
        missing -= kept.size
        n_early += kept.size
    return Compaction(_gathered(stands, np.concatenate(made), doubt), n_early)


def _nearest_pairs(
    model: Model, forest: Forest, size: Ids, group: Ids, most: int
) -> tuple[Ids, Ids, NDArray[np.float64]]:
    """Up to ``most`` pairs of atoms that follow each other in one group, the surest first.

    Of each pair the atom of the larger ``size`` stays. Returns those that stay, those that go, and
    ``1 - P(h)`` of each pair.
    """
    leaves = leaves_in_order(forest)
    leaves = leaves[np.argsort(group[forest.atom[leaves]], kind="stable")]
    group = group[forest.atom[leaves]]
    alike = np.flatnonzero((group[1:] == group[:-1]) & (group[1:] >= 0))
    first, second = leaves[alike], leaves[alike + 1]
    log_d = log_dissimilarities(model, forest, first, second)
    ranked = np.argsort(log_d, kind="stable")
    chosen = disjoint_pairs(first, second, ranked, most)
    a, b = forest.atom[first[chosen]], forest.atom[second[chosen]]
    swap = (size[b] > size[a]) | ((size[b] == size[a]) & (b < a))
    return np.where(swap, b, a), np.where(swap, a, b), expit(log_d[chosen])


def _gathered(stands: Ids, made: Ids, doubt: NDArray[np.float64]) -> list[Compacted]:
    """What became one atom, from the atom that each was added to, in the order they were made."""
    while True:
        above = stands[stands]
        if (above == stands).all():
            break
        stands = above
    moved = np.flatnonzero(stands != np.arange(stands.size))
    moved = moved[np.argsort(stands[moved], kind="stable")]
    kept, start = np.unique(stands[moved], return_index=True)
    parts = dict(zip(kept.tolist(), np.split(moved, start[1:]), strict=False))
    return [
        Compacted(atom, np.concatenate([[atom], parts[atom]]), float(doubt[atom]))
        for atom in dict.fromkeys(made.tolist())
        if atom in parts
    ]
