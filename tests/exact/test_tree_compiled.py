"""Compiled sweeps of the tree-guided kernels reach the enumerated posterior in the long run."""

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from tests.batch_means import batch_means
from tests.exact.enumeration import Shape
from tests.exact.posed import log_posterior, pose
from tests.exact.trees import chain, guide_of
from weald.mcmc.chain.position import Position
from weald.mcmc.offline.start import grow_forest
from weald.mcmc.tree_guided.tgmcmc import KERNELS, sweep
from weald.treecore.guide.guide import freeze
from weald.treecore.partition.partition import Atoms
from weald.treecore.prior import PartitionPrior, build_prior

N = 5
N_RECORDS = 20_000
N_BATCHES = 50

# Steps of each kernel between two records; leaf moves make the others irreducible.
MIXTURES = {
    "subtree-gibbs": (4, 0, 0, 0, 0, 0, 0),
    "tree-split-merge": (0, 4, 0, 1, 0, 0, 0),
    "subtree-repartition": (0, 0, 4, 1, 0, 0, 0),
    "leaf-gibbs": (0, 0, 0, 6, 0, 0, 0),
    "subtree-gather": (0, 0, 0, 1, 6, 0, 0),
    "subtree-join": (0, 0, 0, 1, 0, 6, 0),
    "leaf-scan": (0, 0, 0, 0, 0, 0, 6),
    "all": (2, 2, 2, 1, 2, 2, 1),
}
PRIORS: dict[str, tuple[str, dict[str, Any]]] = {
    "dp": ("dp", {"alpha": 1.0}),
    # u is drawn anew before every record, and the posterior is the one without u.
    "nggp": ("nggp", {"alpha": 1.0, "sigma": 0.5}),
    "pitman-yor": ("pitman-yor", {"alpha": 1.0, "discount": 0.5}),
    "mfm": ("mfm", {"gamma": 1.0, "mean": 1.5}),
}
COMPACTED = [0, 0, 1, 2, 3]


def records(
    family: Any, atoms: Atoms, prior: PartitionPrior, mixture: str, guide: str, rng: Generator
) -> list[Shape]:
    """The partition after each of ``N_RECORDS`` short sweeps."""
    n = atoms.size.shape[0]
    forest = grow_forest(family, prior, atoms)
    position = Position(
        family,
        atoms,
        np.zeros(n, dtype=np.int64),
        prior,
        lambda model: (
            freeze(model, forest) if guide == "ibhc" else guide_of(model, atoms, chain(n))
        ),
    )
    moves, tally = np.array(MIXTURES[mixture]), np.zeros((len(KERNELS), 3))
    found: list[Shape] = []
    for _ in range(N_RECORDS):
        position.use_prior(position.prior.resample(rng, position.sizes()))
        tree = position.tree()
        sweep(rng, tree.guide, tree.pieces, position.model, tree.picks, moves, tally)
        found.append(tuple(position.labels().tolist()))
    assert (tally[moves > 0, 1] > 0).all(), "a kernel never moved anything"
    return found


def check(found: list[Shape], posterior: dict[Shape, float]) -> None:
    """Total variation below twice its noise, and summaries within three standard errors."""
    evidence = np.logaddexp.reduce(list(posterior.values()))
    states = list(posterior)
    target = np.exp(np.array(list(posterior.values())) - evidence)
    index = {state: at for at, state in enumerate(states)}
    visits = np.zeros((N_RECORDS, len(states)))
    visits[np.arange(N_RECORDS), [index[state] for state in found]] = 1.0
    _, error = batch_means(visits, N_BATCHES)
    distance = 0.5 * np.abs(visits.mean(axis=0) - target).sum()
    assert distance < 2.0 * 0.5 * np.sqrt(2.0 / np.pi) * error.sum()
    assert distance < 0.05, "too few independent draws to show anything"
    summaries = np.array([summary(state) for state in states])
    mean, error = batch_means(visits @ summaries, N_BATCHES)
    assert (np.abs(mean - target @ summaries) < 3.0 * error).all()


def summary(state: Shape) -> tuple[float, float, float]:
    sizes = np.bincount(state)
    return float(sizes.shape[0]), float((sizes**2).sum()), float(state[0] == state[1])


@pytest.mark.parametrize("mixture", MIXTURES)
def test_each_kernel(mixture: str, rng: Generator) -> None:
    family, atoms = pose("gauss1", np.arange(N))
    prior = build_prior(*PRIORS["dp"])
    check(records(family, atoms, prior, mixture, "ibhc", rng), log_posterior(family, atoms, prior))


@pytest.mark.parametrize("name", ["nggp", "pitman-yor", "mfm"])
def test_each_prior(name: str, rng: Generator) -> None:
    """Auxiliary variables move with the partition."""
    family, atoms = pose("gauss1", np.arange(N))
    prior = build_prior(*PRIORS[name])
    check(records(family, atoms, prior, "all", "ibhc", rng), log_posterior(family, atoms, prior))


def test_bad_guide(rng: Generator) -> None:
    family, atoms = pose("gauss1", np.arange(N))
    prior = build_prior(*PRIORS["nggp"])
    check(records(family, atoms, prior, "all", "chain", rng), log_posterior(family, atoms, prior))


def test_compacted_atom(rng: Generator) -> None:
    family, atoms = pose("gauss1", np.array(COMPACTED))
    prior = build_prior(*PRIORS["nggp"])
    check(records(family, atoms, prior, "all", "ibhc", rng), log_posterior(family, atoms, prior))


def test_learned_concentration(rng: Generator) -> None:
    """The posterior with the concentration integrated out, Gamma(2, 1.5) a priori."""
    family, atoms = pose("gauss1", np.arange(N))
    prior = build_prior("dp", {"alpha": 1.0, "learn": True, "shape": 2.0, "rate": 1.5})
    alphas = np.exp(np.linspace(-9.0, 4.0, 261))
    log_weights = 2.0 * np.log(alphas) - 1.5 * alphas
    given = [log_posterior(family, atoms, build_prior("dp", {"alpha": a})) for a in alphas]
    posterior = {
        state: float(np.logaddexp.reduce([each[state] for each in given] + log_weights))
        for state in given[0]
    }
    check(records(family, atoms, prior, "all", "ibhc", rng), posterior)
