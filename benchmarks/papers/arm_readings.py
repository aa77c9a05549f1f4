"""Adaptive reconfiguration by readings of its paper: ``python -m benchmarks.papers.arm_readings``.

First what R-hat may be of, where ``--kept`` names a folder of restarts that ``arm --keep`` left:
the chains of one index in all restarts (the mean over indices, as in ``arm``, and the median), the
chains of one restart, all chains of all, each restart's chains one after another, and the first
again without anything discarded.

Then acceptance. Herlau et al. publish 19.4 % on NIPS (table 5). One population is run until its
chains agree (``--warm`` iterations of what ``weald fit`` does); then each reading proposes
``--moves`` moves for each chain, with a Gibbs sweep after each. Printed are the percentage accepted
and quantiles of the log ratio.

The first four take the guides from all chains, from the chain's own past, from others' only, or
from its own last five states. The rest take them from all chains and a first vertex uniformly among
those that the guides disagree on (the paper's pairs favour large blocks), never in the largest
block, or by the inverse size of its block.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.assignment.scratch import make_notes
from weald.mcmc.reconfiguration import arm
from weald.mcmc.reconfiguration.reference_partitions import Guides, make_guides
from weald.mcmc.relational.position import VertexPosition
from weald.mcmc.schedule.kernels import NETWORK_KERNELS
from weald.mcmc.state.atom_state import make_tally
from weald.mcmc.state.vertex_state import VertexState
from weald.mcmc.sweeps import Tally, moves_of

from .arm import network, population, scale_reduction, scale_reductions
from .population import N_CHAINS, OURS

Labels = NDArray[np.int64]

SOURCES = ("all chains", "own past", "others", "own last five")
FIRST_VERTICES = ("any vertex", "outside the largest", "by inverse size")
# Draws of a second guide that differs from the first before a move is passed over.
N_TRIES = 20
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def r_hats(rows: NDArray[np.float64]) -> dict[str, float]:
    """R-hat by each reading, of log joints (restarts, iterations, chains)."""
    late = rows[:, rows.shape[1] // 2 :]
    chains = late.transpose(0, 2, 1)
    return {
        "by index": float(scale_reductions(late).mean()),
        "median": float(np.median(scale_reductions(late))),
        "a restart": float(np.mean([scale_reduction(each) for each in chains])),
        "all chains": scale_reduction(chains.reshape(-1, late.shape[1])),
        "end to end": scale_reduction(chains.reshape(len(chains), -1)),
        "whole run": float(scale_reductions(rows).mean()),
    }


def tell_r_hats(folder: Path) -> None:
    """A line for each network and method that all restarts are there of."""
    runs: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*-?.npz")):
        runs.setdefault(path.stem[:-2], []).append(path)
    for name, paths in runs.items():
        if len(paths) > 1:
            rows = np.stack([np.load(path)["rows"] for path in paths])[:, :, :N_CHAINS]
            told = ", ".join(f"{reading} {value:.2f}" for reading, value in r_hats(rows).items())
            print(f"{name}, {len(paths)} restarts: {told}")


def draw_guides(
    rng: Generator, states: list[list[Labels]], chain: int, source: str
) -> Guides | None:
    """Two different partitions of the later half of the past; None where none were found."""
    later = [each[len(each) // 2 :] for each in states]
    others = [each for index, each in enumerate(later) if index != chain]
    pools = {
        "all chains": (later[chain], later),
        "own past": (later[chain], [later[chain]]),
        "others": (later[chain], others),
        "own last five": (states[chain][-5:], [states[chain][-5:]]),
    }
    mine, pool = pools[source]
    first = mine[int(rng.integers(len(mine)))]
    for _ in range(N_TRIES):
        among = pool[int(rng.integers(len(pool)))]
        second = among[int(rng.integers(len(among)))]
        if not np.array_equal(first, second):
            return make_guides(first, second)
    return None


def with_first_vertex(rng: Generator, guides: Guides, labels: Labels, how: str) -> Guides:
    """The same guides where one vertex, drawn so, is the first of every pair."""
    n_apart = np.diff(guides.apart, prepend=0.0)
    sizes = np.bincount(labels)
    weights = (n_apart > 0).astype(np.float64)
    if how == "outside the largest":
        weights *= labels != np.argmax(sizes)
    elif how == "by inverse size":
        weights /= sizes[labels]
    only = np.zeros(len(labels))
    if weights.any():
        chosen = rng.choice(len(labels), p=weights / weights.sum())
        only[chosen] = n_apart[chosen]
    return guides._replace(apart=np.cumsum(only))


def move(rng: Generator, position: VertexPosition, guides: Guides) -> NDArray[np.float64]:
    """One reconfiguration: proposed, accepted, log ratio."""

    def once(state: VertexState) -> NDArray[np.float64]:
        tally = make_tally()
        n = position.n_atoms
        notes, live = make_notes(n, n + 4), np.arange(n, dtype=np.int64)
        arm.sweep(rng, state, position.model, arm.PLAN, guides, notes, live, tally)
        return moves_of(tally)

    found: Tally = position.run(rng, once)[0]
    return found


def main() -> None:
    """Print a line for each reading."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="NIPS:1.0")
    parser.add_argument("--warm", type=int, default=120)
    parser.add_argument("--moves", type=int, default=60)
    parser.add_argument("--kept", type=Path, help="folder of restarts that have ended")
    options = parser.parse_args()
    if options.kept:
        tell_r_hats(options.kept)
    name, scale = options.network.split(":")
    chains = population(network(name, float(scale)), 0, "history")
    past: list[list[Labels]] = [[] for _ in range(N_CHAINS)]
    for _ in range(options.warm):
        chains.advance(OURS)
        for index, (position, _) in enumerate(chains.chains):
            past[index].append(position.labels())
    for reading in (*SOURCES, *FIRST_VERTICES):
        moves = []
        for _ in range(options.moves):
            for index, (position, rng) in enumerate(chains.chains):
                source = reading if reading in SOURCES else SOURCES[0]
                guides = draw_guides(rng, past, index, source)
                if guides is not None and reading in FIRST_VERTICES:
                    guides = with_first_vertex(rng, guides, position.labels(), reading)
                if guides is not None and guides.apart[-1] > 0.0:
                    moves.append(move(rng, position, guides))
                NETWORK_KERNELS["gibbs"].sweep(rng, position)
                past[index].append(position.labels())
        told = np.array(moves)
        share = 100.0 * told[:, 1].sum() / told[:, 0].sum()
        ratios = " ".join(f"{value:.1f}" for value in np.quantile(told[:, 2], QUANTILES))
        print(f"{name} {reading:20} accepted {share:5.2f} % of {len(moves)} | log ratio {ratios}")


if __name__ == "__main__":
    main()
