"""The second anchor of a split or merge: of some random rows, the best with the first.

Rows that are alike part a cluster in two or bring one together; rows that are not join two. Only
the data decide, so that the choice is the same on the way back.
"""

import numpy as np
from numpy.typing import NDArray

from weald.treecore.family.interface.base import Family
from weald.treecore.partition.partition import finite_log_marginals

__all__ = ["CANDIDATES", "gains_together"]

Matrix = NDArray[np.float64]

# Among so many random rows the second is chosen, by turns: the more, the nearer.
CANDIDATES = (1, 4, 16, 64)


def gains_together(family: Family, first: Matrix, others: Matrix, alone: Matrix) -> Matrix:
    """What each of the others (r, m) gains by being in one cluster with its first, in nats.

    ``first`` are statistics, of each (r, m) or of all (m); ``alone`` (r) are the others' log
    marginals.
    """
    return np.asarray(finite_log_marginals(family, others + first) - alone)
