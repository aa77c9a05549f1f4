"""Time of moves on networks: ``python -m benchmarks.networks``.

First every kernel on the USAir network (332 vertices) at 20 clusters: processor milliseconds of a
Gibbs sweep (median and quantiles of single sweeps, since a machine that others use has a spread),
and of one move of the others with guides out of other chains, or out of their past.
Then a Gibbs sweep of synthetic networks of 10^3 to 10^6 edges, 20 vertices' worth of edges each, in
20 planted blocks: the cost should be linear in the edges.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from weald.mcmc.reconfiguration.reference_partitions import History
from weald.mcmc.relational.position import VertexPosition
from weald.mcmc.schedule.kernels import NETWORK_KERNELS
from weald.treecore.prior import build_prior
from weald.treecore.relational.edges import beta_edges
from weald.treecore.relational.network import Links, Network, make_network

from .papers.data import DATA

N_BLOCKS, DEGREE = 20, 20
# Of a vertex's edges, how many stay inside its block.
WITHIN = 0.7
# Chains of USAir from as many clusters, and the sweeps of each that are timed one by one.
N_STARTS, N_SWEEPS = 30, 10
QUANTILES = (0.0, 0.05, 0.5, 0.95)


def milliseconds(run: Callable[[], object], repeats: int) -> float:
    """Processor time of the fastest of three batches, a run of it."""
    run()
    best = np.inf
    for _ in range(3):
        began = time.process_time()
        for _ in range(repeats):
            run()
        best = min(best, (time.process_time() - began) / repeats)
    return 1e3 * best


def gibbs_sweeps(rng: Generator, net: Network) -> str:
    """Times of the first sweeps from 20 random clusters, the very first of each left out."""
    gibbs, spent, clusters = NETWORK_KERNELS["gibbs"], [], []
    for _ in range(N_STARTS):
        chain = position(net, rng.integers(0, N_BLOCKS, net.n_vertices))
        gibbs.sweep(rng, chain)
        for _ in range(N_SWEEPS):
            began = time.process_time()
            gibbs.sweep(rng, chain)
            spent.append(1e3 * (time.process_time() - began))
            clusters.append(len(chain.sizes()))
    least, low, median, high = np.quantile(spent, QUANTILES)
    return (
        f"{median:8.3f} ms, from {low:.3f} to {high:.3f} in nine of ten of {len(spent)},"
        f" {least:.3f} at least; {np.mean(clusters):.1f} clusters on average"
    )


def position(net: Network, labels: NDArray[np.int64]) -> VertexPosition:
    """Chain on a network with the concentration fixed at 1."""
    return VertexPosition(beta_edges(), net, labels, build_prior("dp", {"alpha": 1.0}))


def usair() -> None:
    """Every kernel from what 100 sweeps make of 20 random blocks."""
    with np.load(DATA / "net_usair97_332.npz") as arrays:
        source, target = np.nonzero(np.triu(arrays["A"], 1))
        n = len(arrays["A"])
    net = make_network(n, Links(source, target, np.ones(len(source))))
    rng = Generator(PCG64(0))
    others = [position(net, rng.integers(0, N_BLOCKS, n)) for _ in range(4)]
    past = History(1 + len(others))
    for index, chain in enumerate(others):
        for _ in range(20):
            NETWORK_KERNELS["gibbs"].sweep(rng, chain)
            past.note(1 + index, chain.labels())
    chain = position(net, rng.integers(0, N_BLOCKS, n))
    print(f"USAir, {n} vertices, {len(source)} edges, from {N_BLOCKS} clusters")
    print(f"  gibbs          sweep  {gibbs_sweeps(rng, net)}")
    for _ in range(N_STARTS):
        NETWORK_KERNELS["gibbs"].sweep(rng, chain)
    chain.guides = tuple(other.labels() for other in others)
    past.note(0, chain.labels())
    chain.history = (past, 0)
    for name, kernel in NETWORK_KERNELS.items():
        if name != "gibbs":
            tally = np.zeros(3)

            def move(kernel: object = kernel, tally: NDArray[np.float64] = tally) -> None:
                tally += kernel.sweep(rng, chain)[0]  # type: ignore[attr-defined]  # a Kernel

            spent = milliseconds(move, 50)
            accepted = 100.0 * tally[1] / max(tally[0], 1.0)
            print(f"  {name:14} move   {spent:8.3f} ms, accepted {accepted:5.1f} %")


def synthetic(n_edges: int) -> None:
    """A sweep of a sparse network whose number of vertices grows with its edges."""
    rng = Generator(PCG64(1))
    n = max(2 * n_edges // DEGREE, 2 * N_BLOCKS)
    truth = np.arange(n) % N_BLOCKS
    source = rng.integers(0, n, n_edges)
    inside = rng.random(n_edges) < WITHIN
    # Members of a block lie N_BLOCKS apart.
    step = rng.integers(1, n // N_BLOCKS, n_edges) * N_BLOCKS
    target = np.where(inside, (source + step) % (n - n % N_BLOCKS), rng.integers(0, n, n_edges))
    net = make_network(n, Links(source, target, np.ones(n_edges)))
    chain = position(net, truth)
    spent = milliseconds(lambda: NETWORK_KERNELS["gibbs"].sweep(rng, chain), 1)
    held = int(net.start[-1]) // 2
    print(
        f"  {held:9} edges, {n:7} vertices: {spent:10.2f} ms a sweep,"
        f" {1e6 * spent / held:7.1f} ns an edge, {len(chain.sizes())} clusters"
    )


def main() -> None:
    """Print both parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most-edges", type=int, default=1_000_000)
    options = parser.parse_args()
    usair()
    print("synthetic networks, Gibbs")
    n_edges = 1000
    while n_edges <= options.most_edges:
        synthetic(n_edges)
        n_edges *= 10


if __name__ == "__main__":
    main()
