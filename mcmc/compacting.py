"""The choice of what a chain makes one atom of, by the rule of ``tgmcmc-ibhc.md`` section 7."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..treecore.compaction import (
    Judgement,
    collapse,
    forest_order,
    judge_nodes,
    restore,
)
from ..treecore.forest import Forest
from ..treecore.partition import Model
from .state import State

__all__ = ["CERTAIN", "Compacted", "Compaction", "choose_nodes", "compact", "numbered_pairs"]

Ids = NDArray[np.int64]

# Collapsed without hesitation where 1 - P(h) is at most this at every inner node.
CERTAIN = 1e-6


class Compacted(NamedTuple):
    """Atoms that have become one.

    Attributes
    ----------
    atom:
        The id of the one that stands for all.
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
    n_saved: int,
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
    n_saved:
        How many atoms fewer there should be.
    """
    first_model, model = models
    order = forest_order(forest)
    judged = judge_nodes(model, forest, order, groups)
    nodes, n_early = choose_nodes(forest, order, judged, n_saved)
    members = np.empty(order.shape[0], dtype=np.int64)
    start = collapse(forest, state.atoms, state.partition, nodes, members)
    restore(first_model, forest, forest_order(forest))
    compacted = []
    bounds = zip(nodes.tolist(), start[:-1].tolist(), start[1:].tolist(), strict=True)
    for v, low, high in bounds:
        parts = members[low:high]
        total = float(judged.total[v] + doubt[parts].sum())
        doubt[parts] = 0.0
        doubt[parts[0]] = total
        compacted.append(Compacted(int(parts[0]), parts, total))
    return Compaction(compacted, n_early)
