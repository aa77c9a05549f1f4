"""Learned hyperparameters of edges: draws given a partition against their density on a grid."""

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

from tests.batch_means import batch_means
from weald.mcmc.relational.edge_parameters import pair_counts, resample_edges
from weald.mcmc.relational.vertices import make_vertex_state
from weald.treecore.partition.partition import Model
from weald.treecore.prior import build_prior
from weald.treecore.relational.edges import beta_edges, gamma_edges
from weald.treecore.relational.network import Links, make_network

N, DRAWS, BATCHES = 9, 900, 30


def posterior_means(counts: bool, total: NDArray[Any], n_pairs: NDArray[Any]) -> list[float]:
    """Of both hyperparameters, which are Gamma(1, 1) beforehand; midpoints of logarithms."""
    log_value = np.linspace(-7.0, 4.0, 400)
    first, second = np.meshgrid(np.exp(log_value), np.exp(log_value), indexing="ij")
    log_density = np.log(first) - first + np.log(second) - second
    for y, m in zip(total, n_pairs, strict=True):
        if counts:
            log_density += gammaln(y + first) - gammaln(first) + first * np.log(second)
            log_density -= (y + first) * np.log(second + m)
        else:
            log_density += betaln(y + first, m - y + second) - betaln(first, second)
    weight = np.exp(log_density - log_density.max())
    return [float((weight * value).sum() / weight.sum()) for value in (first, second)]


@pytest.mark.parametrize("counts", [False, True])
def test_draws_follow_the_posterior_of_the_hyperparameters(counts: bool, rng: Generator) -> None:
    source, target = np.triu_indices(N, 1)
    weight = rng.poisson(0.9, len(source)).astype(np.float64)
    network = make_network(N, Links(source, target, weight), counts=counts)
    family: Any = gamma_edges() if counts else beta_edges()
    model = Model(family, build_prior("dp").seating(N, N), np.zeros((1, 1)))
    state = make_vertex_state(model, network, np.arange(N) % 3)
    upper = np.triu_indices(3)
    expected = posterior_means(counts, *(each[upper] for each in pair_counts(state)))
    drawn = np.empty((DRAWS, 2))
    for at in range(DRAWS):
        family = resample_edges(rng, family, state)
        drawn[at] = (family.shape, family.rate) if counts else (family.a, family.b)
    mean, error = batch_means(drawn, BATCHES)
    assert (np.abs(mean - expected) < 3.5 * error).all()
    assert (error < 0.1).all(), "too few independent draws to show anything"
