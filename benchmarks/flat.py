"""What a record costs a stream's model as the stream grows: ``python -m benchmarks.flat``.

One stream with default settings, six numbers, 30 clusters, no SQL. At each size it prints the
processor time of a record by step, over the second half of the way there, so that what happens
rarely is in it; the longest that one batch took; and the resident memory of an observation.

    python -m benchmarks.flat                         10^4, 10^5 and 10^6 observations
    python -m benchmarks.flat 5000 20000 60000
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from benchmarks.process_memory import mebibytes
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.settings import ModelSettings, RefinementSettings
from weald.stream.model.model import free_shard

SIZES = (10_000, 100_000, 1_000_000)
BATCH = 500
SAMPLE = 200
STEPS = ("insert", "refine", "publish", "compact")


class Source:
    """Gaussian clusters, drawn batch by batch."""

    def __init__(self, k: int, d: int) -> None:
        self._draw = np.random.default_rng(0)
        self._centres = self._draw.normal(size=(k, d)) * 8.0

    def take(self, n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the next n observations (n, d) and their clusters (n)."""
        cluster = self._draw.integers(len(self._centres), size=n)
        noise = self._draw.normal(size=(n, self._centres.shape[1]))
        return self._centres[cluster] + noise, cluster


class Laps:
    """Adds up the processor time of each step."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(STEPS, 0.0)
        self.longest = 0.0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time one step."""
        began = time.process_time()
        yield
        self.seconds[name] += time.process_time() - began


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--features", type=int, default=6)
    parser.add_argument("--clusters", type=int, default=30)
    arguments = parser.parse_args()
    source = Source(arguments.clusters, arguments.features)
    first, _ = source.take(SAMPLE)
    shard = free_shard(ModelSettings(), RefinementSettings(), first)
    # Loads the compiled code.
    shard.apply(source.take(2 * BATCH)[0], 0.0)
    bare, placed, truth = mebibytes(), np.empty(0), np.empty(0)
    names = "".join(f"{name:>9}" for name in STEPS)
    print(f"{'observations':>12} {'us each':>8}{names} {'longest ms':>11} {'bytes':>6} {'ARI':>6}")
    for size in arguments.sizes:
        laps, began, start = Laps(), 0.0, shard.seq
        while shard.seq < size:
            if not began and shard.seq >= size // 2:
                laps, began, start = Laps(), time.process_time(), shard.seq
            values, truth = source.take(min(BATCH, size - shard.seq))
            at = time.process_time()
            placed = np.concatenate(shard.apply(values, 0.0, laps.step).clusters)
            laps.longest = max(laps.longest, time.process_time() - at)
        n = shard.seq - start
        shares = "".join(f"{1e6 * laps.seconds[name] / n:>9.1f}" for name in STEPS)
        print(
            f"{size:>12,} {1e6 * sum(laps.seconds.values()) / n:>8.1f}{shares} "
            f"{1e3 * laps.longest:>11.0f} {2**20 * (mebibytes() - bare) / size:>6.0f} "
            f"{adjusted_rand_index(truth, placed):>6.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
