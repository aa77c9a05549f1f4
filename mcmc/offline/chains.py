"""How many chains a fit runs, and which of them its answer rests on.

A posterior of partition and base measure has several modes, and a chain of a hundred sweeps stays
in the one that it finds first. Chains that predict their own rows clearly worse than the best of
them are in a mode that holds little of the posterior; the others speak together. (Weighing chains
that do not mix by how they predict: Yao, Vehtari and Gelman 2022, Journal of Machine Learning
Research 23.)
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.estimate.evidence import gain_in_density, left_out_densities
from weald.treecore.family.interface.base import Family
from weald.treecore.statistics.observations import Observations

__all__ = ["POPULATION", "chains_for", "predicts_better", "trusted_chains"]

# Chains where they guide one another, as in the paper of adaptive reconfiguration.
POPULATION = 8

# Chains by the most values that there are for so many.
_BY_VALUES = ((25_000, 4), (100_000, 2))
# Nats a row that a chain has to lose.
_LEAST = 0.1


def chains_for(n: int, d: int) -> int:
    """Chains for n rows of d columns: four where that takes a second or two, two, or one."""
    return next((chains for most, chains in _BY_VALUES if n * d <= most), 1)


def trusted_chains(
    values: Observations, last: Sequence[tuple[Family, NDArray[np.int64]]]
) -> list[int]:
    """Indices of the chains that predict rows (n, d) no worse than the best of them does.

    ``last`` has the family and the partition (n) where each chain ended. A chain is worse when it
    loses a tenth of a nat a row, and more than two standard errors of the differences row by row:
    draws of the base measure in one mode differ by less.
    """
    if len(last) == 1:
        return [0]
    found = [left_out_densities(family, values, labels) for family, labels in last]
    best = max(found, key=lambda each: float(each.mean()))
    return [at for at, each in enumerate(found) if not predicts_better(best, each)]


def predicts_better(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    """Whether the one log density (q) of the same rows is greater by enough to matter."""
    gain = gain_in_density(one, other)
    return gain.is_clear and gain.nats > _LEAST
