"""Learning the edge likelihood's two hyperparameters from the pairs of blocks.

Each has a Gamma(1, 1) prior and is updated by slice sampling of its logarithm (Neal
2003), which leaves the posterior invariant given the partition.
"""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

from weald.mcmc.state.vertex_state import VertexState
from weald.treecore.prior.slice_sampler import slice_bounded
from weald.treecore.relational.edges import BetaEdges, EdgeFamily, beta_edges, gamma_edges

__all__ = ["pair_counts", "resample_edges"]

# Bounds of the logarithms: what lies beyond them has no weight in the prior.
_LEAST, _MOST = -7.0, 9.0

Matrix = NDArray[np.float64]


def pair_counts(state: VertexState) -> tuple[Matrix, Matrix]:
    """Sums of edges and observed pairs between the open blocks, float64 (k, k).

    Both are symmetric in an undirected network.
    """
    slots = state.partition.slots[: int(state.partition.n_blocks[0])]
    size = state.partition.n_members[slots].astype(np.float64)
    n_pairs = np.outer(size, size)
    halves = 1.0 if state.network.directed[0] else 2.0
    np.fill_diagonal(n_pairs, size * (size - 1.0) / halves)
    cell = np.ix_(slots, slots)
    return state.ties.total[cell], n_pairs - state.ties.hidden[cell]


def resample_edges(rng: Generator, family: EdgeFamily, state: VertexState) -> EdgeFamily:
    """The same likelihood with both hyperparameters moved."""
    total, n_pairs = pair_counts(state)
    if not state.network.directed[0]:
        upper = np.triu_indices(total.shape[0])
        total, n_pairs = total[upper], n_pairs[upper]
    if isinstance(family, BetaEdges):
        binary, held = True, [family.a, family.b]
    else:
        binary, held = False, [family.shape, family.rate]
    for which in range(2):

        def log_density(log_value: float, which: int = which) -> float:
            first, second = (np.exp(log_value) if i == which else held[i] for i in range(2))
            # Gamma(1, 1) and the Jacobian of the logarithm.
            density = log_value - np.exp(log_value)
            if binary:
                terms = betaln(total + first, n_pairs - total + second) - betaln(first, second)
            else:
                terms = gammaln(total + first) - gammaln(first) + first * np.log(second)
                terms -= (total + first) * np.log(second + n_pairs)
            return float(density + terms.sum())

        start = min(max(float(np.log(held[which])), _LEAST + 1e-9), _MOST - 1e-9)
        held[which] = float(np.exp(slice_bounded(rng, log_density, start, (_LEAST, _MOST))))
    return beta_edges(*held) if binary else gamma_edges(*held)
