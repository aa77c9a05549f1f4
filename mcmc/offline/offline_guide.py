"""The guide of an offline chain: a tree of nearest neighbours where observations have distances.

A forest has been grown arrival by arrival, and which small clusters are nodes of it depends on
their order: 10,000 observations, a third with labels of fewer than seven, come in 35 to 620 trees,
and few of the clusters of 7 to 24 are nodes. Subtree Gibbs then has nothing to move, and the chain
finds such clusters atom by atom. A tree of nearest neighbours has nearly all of them, in any order.
A stream cannot grow one anew at each refinement; an offline chain needs it once.
"""

from typing import Final

import numpy as np

from weald.mcmc.leases.restricted_guide import guide_of_tree
from weald.treecore.family import spec_of
from weald.treecore.forest.forest import Forest
from weald.treecore.guide.guide import Guide, freeze
from weald.treecore.guide.ward_tree import ward_tree
from weald.treecore.partition.partition import Atoms, Model

__all__ = ["offline_guide"]

# Of more features a k-d tree finds neighbours no faster than by looking at everybody.
_MOST_FEATURES: Final = 16


def offline_guide(model: Model, forest: Forest, atoms: Atoms) -> Guide:
    """Guide over ``atoms``: that of nearest neighbours, or else the one of their ``forest``.

    The latter where the family's observations have no distances, or too many features.
    """
    centres_of = spec_of(model.family).centres
    if centres_of is None:
        return freeze(model, forest)
    centres = centres_of(model.family, atoms.rows)
    n, d = centres.shape
    if d > _MOST_FEATURES:
        return freeze(model, forest)
    leaves = np.full((n, 2), -1, dtype=np.int64)
    children = np.concatenate([leaves, ward_tree(centres, atoms.size.astype(float))])
    return guide_of_tree(model, atoms, children, np.arange(n))
