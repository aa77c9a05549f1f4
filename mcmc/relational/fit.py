"""A network clustered offline: a population of chains, the reported blocks, link prediction."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from weald.mcmc.offline.fit import (
    LEAST_POPULATION,
    ChainTrace,
    Clock,
    FitResult,
    FitSettings,
    Progress,
    report,
    sample,
)
from weald.mcmc.schedule.kernels import NETWORK_KERNELS
from weald.treecore.errors import ParameterError
from weald.treecore.partition.partition import Model
from weald.treecore.prior import PRIORS, PartitionPrior, build_prior
from weald.treecore.relational.edges import EdgeFamily, beta_edges, edge_mean, gamma_edges
from weald.treecore.relational.network import Network

from .edge_parameters import pair_counts
from .position import VertexPosition
from .vertices import make_vertex_state

__all__ = ["Blocks", "blocks_of", "fit_network", "predict_links"]

_BINARY, _COUNTS = {"a", "b", "learn"}, {"shape", "rate", "learn"}
# Far fewer starting blocks than vertices: the room for statistics of pairs grows with their square.
_MOST_STARTING_BLOCKS = 2000

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class Blocks:
    """A partition of a network in numbers, blocks by decreasing size.

    ``label`` (n) says the block of each vertex, ``total`` and ``n_pairs`` (k, k) the sums of edges
    and the observed pairs from one block to another, ``mean`` (k, k) the expected edge.
    """

    label: NDArray[np.int64]
    total: NDArray[np.float64]
    n_pairs: NDArray[np.float64]
    mean: NDArray[np.float64]


def _edges(settings: FitSettings, *, counts: bool) -> tuple[EdgeFamily, bool]:
    """Edge likelihood of the settings, and whether it is learned."""
    params = dict(settings.params)
    unknown = sorted(params.keys() - (_COUNTS if counts else _BINARY))
    if unknown:
        known = ", ".join(sorted(_COUNTS if counts else _BINARY))
        kind = "weighted" if counts else "binary"
        raise ParameterError(f"irm: unknown parameter {unknown[0]!r} of a {kind} network: {known}")
    learn = params.pop("learn", False)
    if not isinstance(learn, bool):
        raise ParameterError(f"irm: learn must be true or false, got {learn!r}")
    return (gamma_edges(**params) if counts else beta_edges(**params)), learn


def _prior(settings: FitSettings) -> PartitionPrior:
    if settings.prior not in PRIORS:
        known = ", ".join(PRIORS)
        raise ParameterError(f"there is no prior {settings.prior!r}: choose among {known}")
    return build_prior(settings.prior, {**settings.prior_params, "learn": settings.learn_hyper})


def _labels(start: str, n: int, rng: Generator) -> NDArray[np.int64]:
    """Starting labels; what trees are to mixtures is to a network a random division."""
    if start == "one":
        return np.zeros(n, dtype=np.int64)
    if start == "singletons" and n <= _MOST_STARTING_BLOCKS:
        return np.arange(n, dtype=np.int64)
    name, _, number = start.partition(":")
    if name == "random" and number.isdecimal() and 0 < int(number) <= _MOST_STARTING_BLOCKS:
        return rng.integers(0, int(number), size=n, dtype=np.int64)
    if start in ("auto", "ibhc"):
        return rng.integers(0, max(1, min(50, n // 5)), size=n, dtype=np.int64)
    raise ParameterError(
        f"a network of {n} vertices has no start {start!r}: choose one or random:K, "
        f"K up to {_MOST_STARTING_BLOCKS}"
    )


def fit_network(
    network: Network,
    settings: FitSettings,
    clock: Clock,
    progress: Progress | None = None,
    *,
    counts: bool = False,
) -> FitResult:
    """Cluster the vertices of a network and report, as for mixtures.

    Kernels with guides, which the default has, need four chains or more. Raises ParameterError for
    settings that no network can have.
    """
    if network.n_vertices == 0:
        raise ParameterError("the network has no vertices")
    names = ",".join(settings.kernels)
    kernels = NETWORK_KERNELS.named(names)
    if any(kernel.guided for kernel in kernels) and settings.chains < LEAST_POPULATION:
        raise ParameterError(
            f"{names} takes guides from other chains: "
            f"ask for {LEAST_POPULATION} at least, not {settings.chains}"
        )
    family, learn = _edges(settings, counts=counts)
    prior = _prior(settings)
    chains = []
    for index in range(settings.chains):
        rng = Generator(PCG64(SeedSequence(settings.seed, spawn_key=(index,))))
        labels = _labels(settings.init, network.n_vertices, rng)
        position = VertexPosition(family, network, labels, prior, learn=learn)
        # Chains that are alike have nothing to guide each other by.
        NETWORK_KERNELS["gibbs"].sweep(rng, position)
        chains.append((position, rng))
    traces = sample(chains, kernels, settings, clock, progress)
    return report(settings.consensus, kernels, traces)


def blocks_of(family: EdgeFamily, network: Network, labels: NDArray[np.int64]) -> Blocks:
    """What a partition says of the edges between its blocks."""
    sizes = np.bincount(labels)
    rank = np.empty(sizes.shape[0], dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(sizes.shape[0])
    ranked = rank[labels]
    n = network.n_vertices
    model = Model(family, build_prior("dp").seating(n, n), np.zeros((1, 1)))
    state = make_vertex_state(model, network, ranked)
    # Slots are opened in the order in which blocks first appear.
    order = np.argsort(ranked[np.sort(np.unique(ranked, return_index=True)[1])])
    total, n_pairs = pair_counts(state)
    cell = np.ix_(order, order)
    total, n_pairs = total[cell], n_pairs[cell]
    return Blocks(ranked, total, n_pairs, edge_mean(family, total, n_pairs))


def predict_links(
    family: EdgeFamily, network: Network, traces: Sequence[ChainTrace], pairs: Pairs
) -> NDArray[np.float64]:
    """Expected edge (probability, or mean count) of each pair, averaged over the kept draws.

    ``pairs`` are sources and targets, int64 (q). Hidden pairs are predicted from all that is seen.
    """
    draws = [labels for trace in traces for labels in trace.draws]
    if not draws:
        draws = [max(traces, key=lambda trace: trace.best_log_joint).best_labels]
    expected = np.zeros(pairs[0].shape[0])
    for labels in draws:
        blocks = blocks_of(family, network, labels)
        expected += blocks.mean[blocks.label[pairs[0]], blocks.label[pairs[1]]]
    return expected / len(draws)
