"""What is shown of clusters that overlap, beside the draws that it is told from.

    python -m benchmarks.shown                  50 clusters in a plane, from 16,000 and 30,000 rows
    python -m benchmarks.shown --rows 16000 --seconds 20 --seeds 0 1 2

Adjusted Rand index with the clusters that the rows were drawn from: mean of the draws, what is
shown, and a classifier that knows the centres; and clusters of at least five rows. First of a fit
of so many seconds of one chain, then of a stream of the same rows, both by default. What is shown
should be as much better than the draws as half of what separates these from knowing.
"""

import argparse
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration import draws_of
from benchmarks.memory import Source
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.offline.fit import FitSettings, combine, run_chain
from weald.mcmc.settings import ModelSettings, RefinementSettings
from weald.stream.model.model import free_shard
from weald.treecore.prior.sequential import canonical_labels

Labels = NDArray[np.int64]

N_CLUSTERS, D = 50, 2
CHUNK = 1000
WARM_UP = 200
FEWEST = 5


def line(name: str, truth: Labels, known: float, draws: Sequence[Labels], shown: Labels) -> str:
    """One row of the table."""
    drawn = float(np.mean([adjusted_rand_index(truth, draw) for draw in draws]))
    found = adjusted_rand_index(truth, shown)
    n_shown = int((np.bincount(shown) >= FEWEST).sum())
    half_way = (drawn + known) / 2
    return (
        f"{name:22} draws {drawn:.3f}  shown {found:.3f}  half way {half_way:.3f}  "
        f"known {known:.3f}  clusters {n_shown}"
    )


def fitted(values: NDArray[np.float64], seconds: float, seed: int) -> tuple[list[Labels], Labels]:
    """Draws and shown partition of a fit of one chain."""
    settings = FitSettings(seed=seed, seconds=seconds)
    trace = run_chain(values, settings, 0, time.process_time)
    return trace.draws, combine(settings, [trace], values).labels


def streamed(values: NDArray[np.float64]) -> tuple[list[Labels], Labels]:
    """The newest draws of a stream when its file ends, and what it shows."""
    shard = free_shard(ModelSettings(family="gaussian"), RefinementSettings(), values[:WARM_UP])
    for start in range(0, len(values), CHUNK):
        shard.apply(values[start : start + CHUNK], 0.0)
    shard.conclude(0.0)
    return draws_of(shard), canonical_labels(shard.clusters)


def main() -> None:
    """Draw, fit, stream, tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[16_000, 30_000])
    parser.add_argument("--seconds", type=float, default=20.0, help="of processor time of a fit")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    options = parser.parse_args()
    for n in options.rows:
        source = Source(N_CLUSTERS, D)
        for seed in options.seeds:
            values, truth = source.take(n), source.clusters.copy()
            known = adjusted_rand_index(truth, source.nearest(values))
            print(line(f"fit, {n}, {seed}", truth, known, *fitted(values, options.seconds, seed)))
            print(line(f"stream, {n}, {seed}", truth, known, *streamed(values)), flush=True)


if __name__ == "__main__":
    main()
