"""How many entities there are, those without a mention included, by the draws of a fit."""

from collections.abc import Sequence
from math import sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from weald.treecore.prior import PartitionPrior, UniformAssignment

__all__ = ["number_of_entities"]


class _DrawnPartitions(Protocol):
    """Partitions (n) of one chain, each with the prior of the time."""

    draws: list[NDArray[np.int64]]
    draw_priors: list[PartitionPrior]


def number_of_entities(traces: Sequence[_DrawnPartitions]) -> tuple[float, float] | None:
    """Posterior mean and standard deviation of K; None without a draw under the prior ``emm``.

    The mixture, over the draws, of the laws of K given a partition: no K needs to be drawn.
    """
    means, squares = [], []
    for trace in traces:
        for labels, prior in zip(trace.draws, trace.draw_priors, strict=True):
            if isinstance(prior, UniformAssignment):
                n_blocks = int(labels.max()) + 1
                law = np.exp(prior.log_entities_given(n_blocks, labels.size))
                K = np.arange(n_blocks, prior.kmax + 1)
                means.append(float(law @ K))
                squares.append(float(law @ K**2))
    if not means:
        return None
    mean = float(np.mean(means))
    return mean, sqrt(max(float(np.mean(squares)) - mean * mean, 0.0))
