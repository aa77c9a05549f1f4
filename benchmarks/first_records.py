"""What a stream makes of kinds that its first records do not tell apart, in few and many columns.

    python -m benchmarks.first_records
    python -m benchmarks.first_records --records 10000 --columns 12 16 --seeds 5

Each line is one kind of data with so many columns, and medians over seeds: the adjusted Rand index
of all records, how many clusters are shown, and the processor time of a record. A stream learns its
base measure, and which family it takes, from its first 200 records. Model and cadence are the
defaults.
"""

import argparse
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


def line(rng: Generator, n: int, d: int) -> tuple[Values, Labels]:
    """Three kinds in a line that is along no column, five standard deviations apart."""
    along, labels = rng.normal(size=d), rng.integers(3, size=n)
    along /= np.linalg.norm(along)
    return rng.normal(size=(n, d)) + np.outer(5.0 * labels, along), labels


def around(rng: Generator, n: int, d: int) -> tuple[Values, Labels]:
    """Eight kinds anywhere, six standard deviations apart on average."""
    centres, labels = rng.normal(size=(8, d)) * 6.0 / np.sqrt(2.0 * d), rng.integers(8, size=n)
    return rng.normal(size=(n, d)) + centres[labels], labels


def alone(rng: Generator, n: int, d: int) -> tuple[Values, Labels]:
    """One kind, each two neighbouring columns correlated."""
    values = rng.normal(size=(n, d))
    values[:, 1:] += values[:, :-1]
    return values, np.zeros(n, dtype=np.int64)


def measured(values: Values, labels: Labels) -> list[float]:
    """Index, clusters, and processor microseconds a record."""
    memory = MemorySettings()
    plan = plan_for(values.shape[1], StreamSettings(name="benchmark"), Way("counted", memory))
    began = time.process_time()
    shard = new_shard(spec_from_sample(plan, values[:200]), plan.refinement, memory)
    for start in range(0, len(values), EVERY):
        shard.apply(values[start : start + EVERY], 0.0, lambda _: nullcontext())
    took = time.process_time() - began
    shown = shard.clusters
    index = adjusted_rand_index(shown, labels)
    return [index, float(len(np.unique(shown))), 1e6 * took / len(values)]


def main() -> None:
    """Measure, and print a line for each kind of data and number of columns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=3000)
    parser.add_argument("--columns", type=int, nargs="+", default=[4, 8, 12, 16, 24])
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    print("kinds    columns    index  clusters  us a record")
    for make in (line, around, alone):
        for d in asked.columns:
            drawn = [make(np.random.default_rng(s), asked.records, d) for s in range(asked.seeds)]
            index, n, took = np.median([measured(*each) for each in drawn], axis=0)
            print(f"{make.__name__:8} {d:7}  {index:7.3f}  {n:8.0f}  {took:11.0f}", flush=True)


if __name__ == "__main__":
    main()
