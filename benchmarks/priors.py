"""What partition priors cost with a million observations in 50,000 blocks.

    python -m benchmarks.priors             least of 15 runs for each prior, in milliseconds

``log probability`` is that of the whole partition. ``tables`` are those that kernels read, at a
count that was not tabulated before and at the same one again.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from weald.treecore.prior import (
    DirichletProcess,
    MixtureOfFiniteMixtures,
    NormalizedGeneralizedGamma,
    PartitionPrior,
    PitmanYor,
    UniformAssignment,
)

N = 1_000_000
N_BLOCKS = 50_000
N_RUNS = 15

PRIORS: dict[str, PartitionPrior] = {
    "dp": DirichletProcess(alpha=2.0),
    "pitman-yor": PitmanYor(alpha=1.0, discount=0.4),
    "nggp": NormalizedGeneralizedGamma(alpha=1.0, sigma=0.5),
    "mfm": MixtureOfFiniteMixtures(gamma=1.0, mean=9.0),
    "emm": UniformAssignment(mu=10.0, sigma=2.0, kmax=60_000),
}


def sizes() -> NDArray[np.int64]:
    """A few large blocks and many small ones."""
    spread = np.maximum(1, (N // 12) // np.arange(1, N_BLOCKS + 1))
    spread[0] += N - spread.sum()
    return spread.astype(np.int64)


def least(action: Callable[[], object]) -> float:
    """Milliseconds of the quickest of several runs; the first, which compiles, is left out."""
    action()
    times = []
    for _ in range(N_RUNS):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return 1e3 * min(times)


def _seating_of_next(prior: PartitionPrior, counts: Iterator[int]) -> object:
    return prior.seating(next(counts), N_BLOCKS)


def main() -> None:
    """Print a line for each prior."""
    blocks = sizes()
    print(f"{N:,} observations in {N_BLOCKS:,} blocks; milliseconds, least of {N_RUNS} runs")
    print(f"{'prior':<12}{'log probability':>17}{'new tables':>12}{'tables again':>14}")
    for name, prior in PRIORS.items():
        counts = iter(range(N, 2 * N))
        probability = least(partial(prior.log_probability, blocks))
        new = least(partial(_seating_of_next, prior, counts))
        again = least(partial(prior.seating, N, N_BLOCKS))
        print(f"{name:<12}{probability:>17.2f}{new:>12.2f}{again:>14.4f}")


if __name__ == "__main__":
    main()
