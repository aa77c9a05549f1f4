"""Chains that guide each other, on observations and on networks."""

from typing import Any

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from weald.mcmc.offline.fit import FitSettings, fit
from weald.mcmc.reconfiguration.reference_partitions import History
from weald.mcmc.relational.fit import blocks_of, fit_network
from weald.mcmc.relational.position import VertexPosition
from weald.mcmc.relational.vertices import make_vertex_state
from weald.mcmc.schedule.kernels import KERNELS, NETWORK_KERNELS
from weald.treecore.errors import ParameterError
from weald.treecore.prior import build_prior
from weald.treecore.relational.edges import beta_edges
from weald.treecore.relational.network import Links, Network, make_network

N, K = 45, 3


def rings(rng: Generator, *, hidden: Any = None, within: float = 0.7) -> Network:
    """A planted network of three blocks."""
    truth = np.arange(N) % K
    share = np.where(truth[:, None] == truth[None, :], within, 0.05)
    source, target = np.nonzero(np.triu(rng.random((N, N)) < share, 1))
    return make_network(N, Links(source, target, np.ones(len(source))), hidden=hidden)


def test_kernels_with_guides_find_clumps(rng: Generator) -> None:
    truth = np.repeat(np.arange(K), 15)
    values = 9.0 * np.eye(K)[truth] + rng.normal(size=(N, K))
    for names in (("arm", "gibbs"), ("arm-history", "gibbs"), ("accord", "gibbs")):
        settings = FitSettings(kernels=names, chains=4, iterations=40, init="one", seed=1)
        result = fit(values, settings, lambda: 0.0)
        assert result.n_clusters == K
        assert len(result.traces) == 4


def test_too_few_chains_to_guide_each_other() -> None:
    with pytest.raises(ParameterError, match="4 at least"):
        fit(np.zeros((5, 1)), FitSettings(kernels=("arm",), chains=2), lambda: 0.0)


def test_claims() -> None:
    for kernels in (KERNELS, NETWORK_KERNELS):
        for name in ("accord", "arm", "sarm", "bsm"):
            assert kernels[name].claim == "exact"
            assert kernels[f"{name}-history"].claim == "adaptive"


def test_history_gives_this_chains_past_and_somebody_elses(rng: Generator) -> None:
    history = History(2)
    assert history.draw(rng, 0) is None
    for at in range(8):
        history.note(0, np.array([0, at]))
        history.note(1, np.array([1, at]))
    drawn = [history.draw(rng, 0) for _ in range(200)]
    firsts = {tuple(each[0].tolist()) for each in drawn if each is not None}
    seconds = {tuple(each[1].tolist()) for each in drawn if each is not None}
    assert firsts == {(0, at) for at in range(4, 8)}
    assert seconds == {(chain, at) for chain in (0, 1) for at in range(4, 8)}


def test_the_past_is_collected_before_the_draws_that_count(
    rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[int] = []
    monkeypatch.setattr(History, "note", lambda _, chain, __: noted.append(chain))
    fit_network(
        rings(rng),
        FitSettings(family="irm", kernels=("auto",), chains=4, iterations=6),
        lambda: 0.0,
    )
    assert noted == [0, 1, 2, 3] * 3


def test_room_decides_nothing() -> None:
    """Sweeps that ask for more blocks than there is room for are done again with more."""
    network, prior = rings(Generator(PCG64(3)), within=0.1), build_prior("dp", {"alpha": 3000.0})
    found = []
    for room in (4, N + 1):
        rng = Generator(PCG64(4))
        position = VertexPosition(beta_edges(), network, np.arange(N) % 3, prior)
        position._state = make_vertex_state(position.model, network, np.arange(N) % 3, room)
        position.guides = (np.arange(N) % 7, np.arange(N) % 5)
        for name in ("gibbs", "accord", "arm", "sdds", "rgsm", "srm"):
            NETWORK_KERNELS[name].sweep(rng, position)
        found.append(position.labels())
    np.testing.assert_array_equal(found[0], found[1])
    assert found[0].max() > 4


@pytest.mark.parametrize("learn", [False, True])
def test_planted_blocks_are_found(rng: Generator, learn: bool) -> None:
    settings = FitSettings(
        family="irm", params={"learn": learn}, chains=4, iterations=40, kernels=("auto",)
    )
    network = rings(rng)
    result = fit_network(network, settings, lambda: 0.0)
    assert result.n_clusters == K
    blocks = blocks_of(result.family, network, result.labels)
    assert np.diag(blocks.mean).min() > 0.5
    assert blocks.total.trace() + np.triu(blocks.total, 1).sum() == network.between.sum() / 2
    assert (np.bincount(blocks.label) == 15).all()
    if learn:
        assert set(result.traces[0].hyper) >= {"alpha", "edge_a", "edge_b"}
