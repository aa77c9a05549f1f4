"""What a chain on a network does does not depend on the room that it has for blocks."""

import numpy as np
import pytest
from numpy.typing import NDArray

from weald.mcmc.relational.position import VertexPosition
from weald.mcmc.relational.vertices import make_vertex_state
from weald.mcmc.schedule.kernels import NETWORK_KERNELS
from weald.treecore.prior import build_prior
from weald.treecore.relational.edges import beta_edges
from weald.treecore.relational.network import Links, Network, make_network

N = 40


def network() -> Network:
    rng = np.random.default_rng(0)
    block = rng.integers(0, 12, N)
    source, target = np.triu_indices(N, 1)
    there = rng.random(len(source)) < np.where(block[source] == block[target], 0.9, 0.05)
    ends = source[there].astype(np.int64), target[there].astype(np.int64)
    links = Links(*ends, np.ones(int(there.sum())))
    return make_network(N, links, directed=False, counts=False)


def run(name: str, room: int) -> tuple[NDArray[np.int64], int]:
    """Labels after each of some sweeps from one block, and the room in the end."""
    together = np.zeros(N, dtype=np.int64)
    prior = build_prior("dp", {"alpha": 8.0, "learn": False})
    position = VertexPosition(beta_edges(0.3, 0.7), network(), together, prior)
    position._state = make_vertex_state(position.model, position.network, together, room)
    rng = np.random.default_rng(3)
    rows = []
    for sweep in range(60):
        NETWORK_KERNELS[name].sweep(rng, position)
        if sweep % 10 == 0:
            NETWORK_KERNELS["gibbs"].sweep(rng, position)
        rows.append(position.labels())
    return np.array(rows), position._state.ties.total.shape[0]


@pytest.mark.parametrize("name", ["gibbs", "rgsm", "sdds", "rm"])
def test_room_does_not_matter(name: str) -> None:
    narrow, grown = run(name, 1)
    wide, kept = run(name, N + 1)
    assert grown > 1
    assert kept == N + 1
    np.testing.assert_array_equal(narrow, wide)
