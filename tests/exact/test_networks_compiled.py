"""Compiled kernels on networks: the enumerated posterior of five and six vertices in the long run.

Guided kernels run as a population: eight chains in two halves, of which one moves at a time with
guides out of the other.
"""

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from tests.exact.networks import (
    GUIDED,
    PLAIN,
    NetworkProblem,
    guided,
    larger,
    live,
    shape_of,
)
from weald.mcmc.gibbs import gibbs
from weald.mcmc.reconfiguration.reference_partitions import make_guides
from weald.mcmc.state.vertex_state import VertexState

N_CHAINS = 8
N_BATCHES = 50


def summaries(small: NetworkProblem) -> NDArray[np.float64]:
    """For each state: blocks, mean size of a vertex's block, two pairs together."""
    shapes = [np.array(shape) for shape in small.states]
    rows = [
        [s.max() + 1, (np.bincount(s) ** 2).sum() / len(s), s[0] == s[1], s[0] == s[3]]
        for s in shapes
    ]
    return np.array(rows, dtype=np.float64)


def close(small: NetworkProblem, visited: NDArray[np.int64]) -> None:
    """Means of the summaries are within three standard errors; ``visited`` in order of time."""
    values = summaries(small)
    batches = values[visited].reshape(N_BATCHES, -1, values.shape[1]).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(N_BATCHES)
    assert (np.abs(batches.mean(axis=0) - small.target @ values) < 3.5 * error).all()
    assert (error < 0.1).all(), "too few independent draws to show anything"


def chains(small: NetworkProblem, rng: Generator) -> list[VertexState]:
    """From different partitions: chains that are alike have nothing to disagree on."""
    starts = rng.choice(len(small.states), N_CHAINS, replace=False)
    return [small.prepare(small.states[at]) for at in starts]


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("n", [5, 6])
def test_long_run(name: str, n: int, rng: Generator) -> None:
    small = larger(n)
    index = {shape: at for at, shape in enumerate(small.states)}
    state = small.prepare(small.states[0])
    visited = np.empty(5000, dtype=np.int64)
    for at in range(len(visited)):
        for _ in range(4):
            PLAIN[name](rng, small, state)
        visited[at] = index[shape_of(state)]
    close(small, visited)


@pytest.mark.parametrize("name", GUIDED)
@pytest.mark.parametrize("n", [5, 6])
def test_population(name: str, n: int, rng: Generator) -> None:
    small = larger(n)
    index = {shape: at for at, shape in enumerate(small.states)}
    states = chains(small, rng)
    halves = (range(N_CHAINS // 2), range(N_CHAINS // 2, N_CHAINS))
    visited = np.empty((1000, N_CHAINS), dtype=np.int64)
    for at in range(len(visited)):
        for moving, still in (halves, halves[::-1]):
            for chain in moving:
                first, second = rng.choice(still, 2, replace=False)
                guides = make_guides(states[first].partition.label, states[second].partition.label)
                guided(*GUIDED[name], guides)(rng, small, states[chain])
                # Alone it freezes where all chains agree.
                gibbs.sweep(rng, states[chain], small.model, live(n)[:1])
        visited[at] = [index[shape_of(state)] for state in states]
    close(small, visited)
