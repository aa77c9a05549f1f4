"""What is shown, beside the draws that it is told from and a classifier that knows the clusters.

    python -m benchmarks.shown                  every set, three seeds: half an hour
    python -m benchmarks.shown plane-16000      one of them
    python -m benchmarks.shown 10k --seconds 20 --seeds 0 1 2 3 4

Adjusted Rand index with the labels: mean of the draws, what is shown, and, where the rows are drawn
from Gaussians, who knows these; and clusters of at least five rows, shown and true. First of a fit
of so many seconds of one chain, then of a stream of the same rows, both by default. What is shown
should be as much better than the draws as half of what separates these from knowing. Real tables
have no such bound, as no Gaussian is true there. A seed draws the rows anew where they are drawn,
and else their order.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

from benchmarks.calibration import draws_of
from benchmarks.labelled_tables import load
from benchmarks.papers.data import DATA
from benchmarks.papers.simulated import ring
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.offline.fit import FitSettings, combine, run_chain
from weald.mcmc.offline.transformation import Transformation
from weald.mcmc.settings import FeatureSettings, ModelSettings, RefinementSettings
from weald.stream.model.model import free_shard
from weald.treecore.prior.sequential import canonical_labels

Labels = NDArray[np.int64]
Labelled = tuple[NDArray[np.float64], Labels]

CHUNK = 1000
WARM_UP = 200
FEWEST = 5


def plane(rng: Generator, n: int) -> Labelled:
    """Fifty clusters of the plane, far apart beside overlapping, as in the memory benchmark."""
    centres = rng.normal(scale=12.0, size=(50, 2))
    labels = rng.integers(50, size=n)
    return centres[labels] + rng.normal(size=(n, 2)), labels


def overlapping(rng: Generator) -> Labelled:
    """Ten Gaussians around a circle, 10^5 rows."""
    values, labels = ring(rng, 2.0, 100_000)
    return values, np.asarray(labels, dtype=np.int64)


def generated(rng: Generator) -> Labelled:
    """The 10,000 x 6 rows of 119 clusters that the tree-guided sampler's paper has."""
    with np.load(DATA / "tgmcmc_10k.npz") as held:
        values, labels = held["X"].astype(np.float64), held["y"].astype(np.int64)
    order = rng.permutation(len(values))
    return np.ascontiguousarray(values[order]), labels[order]


def table(name: str, rng: Generator) -> Labelled:
    """A real one as `weald fit` sees it."""
    loaded = load(name)
    if loaded is None:
        raise SystemExit(f"{name} is not here: set WEALD_DATA")
    values, labels = loaded
    order = rng.permutation(len(values))
    learned = Transformation.learned(values, FeatureSettings(), "gaussian")
    seen = values if learned is None else learned.seen(values)
    return np.ascontiguousarray(seen[order]), np.unique(labels, return_inverse=True)[1][order]


DRAWN: dict[str, Callable[[Generator], Labelled]] = {
    "plane-16000": partial(plane, n=16_000),
    "plane-30000": partial(plane, n=30_000),
    "10k": generated,
    "overlapping": overlapping,
}
REAL: dict[str, Callable[[Generator], Labelled]] = {
    name: partial(table, name) for name in ("usps", "semeion")
}


def line(name: str, truth: Labels, known: float, draws: Sequence[Labels], shown: Labels) -> str:
    """One row of the table."""
    drawn = float(np.mean([adjusted_rand_index(truth, draw) for draw in draws]))
    told = f"{name:24} draws {drawn:.3f}  shown {adjusted_rand_index(truth, shown):.3f}"
    if np.isfinite(known):
        told += f"  half way {(drawn + known) / 2:.3f}  known {known:.3f}"
    return f"{told}  clusters {_large(shown)}, true {_large(truth)}"


def _large(labels: Labels) -> int:
    return int((np.bincount(labels) >= FEWEST).sum())


def known_by(values: NDArray[np.float64], truth: Labels) -> float:
    """Index of who knows each cluster's Gaussian, as its own rows tell it."""
    enough = np.bincount(truth)[truth] > values.shape[1] + 1
    model = QuadraticDiscriminantAnalysis().fit(values[enough], truth[enough])
    return adjusted_rand_index(truth, model.predict(values).astype(np.int64))


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
    parser.add_argument("sets", nargs="*", help=f"of {', '.join([*DRAWN, *REAL])}; all by default")
    parser.add_argument("--seconds", type=float, default=20.0, help="of processor time of a fit")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    options = parser.parse_args()
    for name in options.sets or [*DRAWN, *REAL]:
        for seed in options.seeds:
            values, truth = {**DRAWN, **REAL}[name](np.random.default_rng(seed))
            known = known_by(values, truth) if name in DRAWN else np.nan
            fit, stream = fitted(values, options.seconds, seed), streamed(values)
            print(line(f"fit, {name}, {seed}", truth, known, *fit))
            print(line(f"stream, {name}, {seed}", truth, known, *stream), flush=True)


if __name__ == "__main__":
    main()
