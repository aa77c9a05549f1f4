"""What a half-life leaves of clusters, beside a window that holds as many observations.

    python -m benchmarks.half_life
    python -m benchmarks.half_life --records 20000 --half-life 2000 --seeds 5

Each line is one kind of data, and medians over seeds: the adjusted Rand index of the newest
observations, of as many as a half-life has, that are held; how many clusters are shown; how many
observations are held; and the processor time of a record. A half-life h holds h / log 2
observations on average, so the window beside it is so long. Cadence and model are the defaults.
"""

import argparse
import math
import time
from contextlib import nullcontext

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.end_to_end import Way, plan_for
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.stream.model.model import new_shard, spec_from_sample
from weald.stream.settings import MemorySettings, StreamSettings

Values = NDArray[np.float64]
Labels = NDArray[np.int64]

EVERY = 500


def corners(rng: Generator, n: int) -> tuple[Values, Labels]:
    """Five clusters in two numbers, ten standard deviations apart."""
    centres = 10.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1], [2, 0]])
    labels = rng.integers(5, size=n)
    return centres[labels] + rng.normal(size=(n, 2)), labels


def dozen(rng: Generator, n: int) -> tuple[Values, Labels]:
    """Twelve clusters in six numbers."""
    centres, labels = 3.0 * rng.normal(size=(12, 6)), rng.integers(12, size=n)
    return centres[labels] + rng.normal(size=(n, 6)), labels


def uneven(rng: Generator, n: int) -> tuple[Values, Labels]:
    """Eight clusters in three numbers, of 3 to 40 % each."""
    shares = np.array([0.4, 0.2, 0.1, 0.1, 0.08, 0.05, 0.04, 0.03])
    centres, labels = 5.0 * rng.normal(size=(8, 3)), rng.choice(8, p=shares, size=n)
    return centres[labels] + rng.normal(size=(n, 3)), labels


def measured(values: Values, labels: Labels, memory: MemorySettings, newest: int) -> list[float]:
    """Index, clusters, observations held, and processor microseconds a record."""
    plan = plan_for(values.shape[1], StreamSettings(name="benchmark"), Way("counted", memory))
    shard = new_shard(spec_from_sample(plan, values[:200]), plan.refinement, plan.memory)
    began = time.process_time()
    for start in range(0, len(values), EVERY):
        shard.apply(values[start : start + EVERY], 0.0, lambda _: nullcontext())
    took = time.process_time() - began
    table, present = shard.atom_table, shard.atom_table.present
    seqs, clusters = table.seq[present], table.cluster[present]
    late = seqs > len(values) - newest
    index = adjusted_rand_index(labels[seqs[late] - 1], clusters[late])
    return [index, len(np.unique(clusters)), len(present), 1e6 * took / len(values)]


def main() -> None:
    """Run what was asked for and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=8_000)
    parser.add_argument("--half-life", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    memories = {
        "half-life": MemorySettings(half_life_records=options.half_life),
        "window": MemorySettings(window_records=round(options.half_life / math.log(2.0))),
    }
    print(f"{'':<8} {'':<10} {'index':>6} {'clusters':>9} {'held':>6} {'us each':>8}")
    for kind in (corners, dozen, uneven):
        for name, memory in memories.items():
            runs = []
            for seed in range(options.seeds):
                values, labels = kind(np.random.default_rng(seed), options.records)
                runs.append(measured(values, labels, memory, options.half_life))
            index, k, held, took = np.median(runs, axis=0)
            line = (
                f"{kind.__name__:<8} {name:<10} {index:>6.3f} {k:>9.0f} {held:>6.0f} {took:>8.0f}"
            )
            print(line, flush=True)


if __name__ == "__main__":
    main()
