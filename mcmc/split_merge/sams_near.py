"""Sequentially allocated merge-split between neighbours: :mod:`weald.mcmc.split_merge.sams`.

Half of its proposals have anchors near each other in the order of the guide's leaves, which comes
from the data alone. Exact and irreducible alone, at the same cost.
"""

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.contract import Entry, MixtureState
from weald.mcmc.sweeps import Sampler, proposals

from .sams import SamsPlan, sweep

__all__ = ["kernel"]

# As many as of sams.
_PROPOSALS = 20


def kernel(entry: Entry) -> Sampler[MixtureState]:
    """The kernel, as the registry names it."""

    def leaves(at: MixtureState) -> NDArray[np.int64]:
        return at.in_guide_order()

    return proposals(entry, sweep, SamsPlan(_PROPOSALS, 0.5), SamsPlan(1, 0.5), leaves)
