"""A guide that is mended where the forest is in pieces, for reasons of the data alone.

Of a forest in many trees, joined from the top down, few nodes are the small clusters of the data:
10,000 observations, a third with labels of fewer than seven, came in 621 trees, and of the clusters
of 7 to 24 no tenth was a node. Subtree Gibbs then has nothing to move, and the chain finds such
clusters atom by atom. A tree of nearest neighbours has nearly all of them.
"""

from typing import Final

import numpy as np

from ..treecore.family import spec_of
from ..treecore.forest import Forest
from ..treecore.guide import GREEDY_ROOTS, Guide, freeze
from ..treecore.neighbours import ward_tree
from ..treecore.partition import Atoms, Model
from .restriction import guide_of_tree

__all__ = ["mended_guide", "neighbour_guide"]

# Of more features a k-d tree finds neighbours no faster than by looking at everybody.
_MOST_FEATURES: Final = 16


def neighbour_guide(model: Model, atoms: Atoms) -> Guide | None:
    """The guide that nearest neighbours make of two atoms or more; None where nobody is near.

    That is so for a family whose observations have no distances, or too many features.
    """
    centres_of = spec_of(model.family).centres
    if centres_of is None:
        return None
    centres = centres_of(model.family, atoms.rows)
    if centres.shape[1] > _MOST_FEATURES:
        return None
    n = centres.shape[0]
    leaves = np.full((n, 2), -1, dtype=np.int64)
    children = np.concatenate([leaves, ward_tree(centres, atoms.size.astype(float))])
    return guide_of_tree(model.family, model, atoms, children, np.arange(n))


def mended_guide(model: Model, forest: Forest, atoms: Atoms) -> Guide:
    """The forest's guide over ``atoms``, or one of nearest neighbours where it has many trees."""
    guide = None
    if forest.n_roots[0] > GREEDY_ROOTS:
        guide = neighbour_guide(model, atoms)
    return freeze(model, forest) if guide is None else guide
