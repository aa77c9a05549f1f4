"""How alike two partitions are."""

from itertools import permutations

import numpy as np
import pytest
from numpy.random import Generator

from weald.mcmc.estimate.agreement import share_alike


@pytest.mark.parametrize("moved", [0, 3, 40])
def test_share_alike_is_that_of_the_best_matching(moved: int, rng: Generator) -> None:
    """Also where parts of one want the same part of the other, and where there are fewer."""
    for parts in ((4, 4), (5, 3), (3, 5)):
        one = rng.integers(0, parts[0], 40)
        other = one % parts[1]
        places = rng.permutation(40)[:moved]
        other[places] = rng.integers(0, parts[1], moved)
        table = np.zeros((5, 5))
        np.add.at(table, (one, other), 1.0)
        best = max(table[np.arange(5), list(order)].sum() for order in permutations(range(5)))
        assert share_alike(one, other) == best / 40
        assert share_alike(other, one) == best / 40
