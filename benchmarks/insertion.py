"""Insertion into the forest: ``python -m benchmarks.insertion [k|n|d|target|quality|chain ...]``.

Without arguments all but ``target``, which takes an observation a million times. Times are
processor time, on one core when ``OMP_NUM_THREADS=1``.

``k``, ``n`` and ``d`` vary one of the number of clusters, of observations, of features. Beside each
time stands the arithmetic limit: the k predictive densities alone, as one product of a matrix with
the table of all clusters and one logarithm a density. ``one`` is a product for each observation, as
it arrives; ``batch`` one for 1,024 observations, which no insertion that looks at each arrival
could do. The arrays of both are in memory when the clock starts; what it costs to make the forest's
room and to touch it once, which depends on the operating system more than on anything here, is
``room``. Insertion and limit are taken in turns, because a machine's speed changes by the minute:
what is printed are medians, of the quotients too. ``quality`` runs ten random orders and says what
IBHC alone makes of them; on scattered observations the log joint says whether large clusters have
taken them in, which the adjusted Rand index hardly sees.
"""

import sys
import time
from collections.abc import Callable
from math import log2
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.chain.chain import MixtureChain
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.offline.start import atoms_of, forest_labels, plant_atoms
from weald.treecore.family import FAMILIES
from weald.treecore.forest.forest import Forest, empty_forest
from weald.treecore.prior import build_prior

from .papers.chains import source
from .papers.data import DATA
from .papers.simulated import scattered
from .papers.tgmcmc import base_measure

Values = NDArray[np.float64]
ORDERS = 10
BATCH = 1024
# One after the other so often, less often where a pass takes this many observations.
TURNS = 5
FEW_TURNS, MANY_OBSERVATIONS = 3, 1_000_000
SEPARATION = 6.0
PRIOR = build_prior("dp", {"alpha": 1.0})


def mixture(n: int, d: int, k: int, seed: int = 0) -> tuple[Values, NDArray[np.int64]]:
    """Observations (n, d) of k standard Gaussians, with labels (n)."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=SEPARATION, size=(k, d))
    labels = rng.integers(k, size=n)
    return centres[labels] + rng.normal(size=(n, d)), labels


def microseconds(run: Callable[[], Any], n: int) -> float:
    """Processor time an observation."""
    start = time.process_time()
    run()
    return 1e6 * (time.process_time() - start) / n


def arithmetic_limit(d: int, k: int, batch: int) -> float:
    """Microseconds for k predictive densities: a quadratic form each, and its logarithm."""
    rng = np.random.default_rng(0)
    # A Gaussian's row holds 1, x and the products of x: a quadratic form is linear in it.
    rows = rng.random((batch, 2 + d + d * (d + 1) // 2))
    tables = rng.random((rows.shape[1], k))
    out = np.empty((batch, k))
    repeats = max(1, 50_000 // batch)

    def run() -> None:
        for _ in range(repeats):
            np.log1p(np.dot(rows, tables, out=out), out=out)

    return microseconds(run, repeats * batch)


def tallest(forest: Forest) -> float:
    """The greatest height of a tree, in binary logarithms of its leaves."""
    roots = forest.roots[: int(forest.n_roots[0])]
    heights = [
        float(forest.height[v]) / log2(float(forest.n_leaves[v]))
        for v in roots
        if forest.n_leaves[v] > 1
    ]
    return max(heights, default=0.0)


def touched_forest(family: Any, n: int) -> Forest:
    """An empty forest with room for n leaves, every page of which the system has handed out."""
    forest = empty_forest(family, n)
    for array in forest:
        np.add(array, 0, out=array)
    return forest


def grow(values: Values, parameters: dict[str, Any] | None = None) -> tuple[float, float, Forest]:
    """Microseconds an observation of one pass, and of making room for it; and the forest."""
    family = FAMILIES["gaussian"].build(parameters or {}, values)
    kept: list[Forest] = []
    atoms, n = atoms_of(family, values), values.shape[0]
    room = microseconds(lambda: kept.append(touched_forest(family, n)), n)
    spent = microseconds(lambda: plant_atoms(family, PRIOR, atoms, kept[0]), n)
    return spent, room, kept[0]


def line(n: int, d: int, k: int) -> str:
    """One setting."""
    values, labels = mixture(n, d, k)
    turns = []
    for _ in range(FEW_TURNS if n >= MANY_OBSERVATIONS else TURNS):
        before = arithmetic_limit(d, k, 1)
        spent, room, forest = grow(values)
        one = (before + arithmetic_limit(d, k, 1)) / 2.0
        batch = arithmetic_limit(d, k, BATCH)
        turns.append((spent, one, spent / one, batch, spent / batch, room))
    spent, one, times_one, batch, times_batch, room = (
        median(each) for each in zip(*turns, strict=True)
    )
    found = adjusted_rand_index(labels, forest_labels(forest, n))
    return (
        f"{n:>9}{d:>4}{k:>5}{spent:10.2f}"
        f"{one:9.2f}{times_one:7.1f}{batch:9.2f}{times_batch:7.1f}{room:8.2f}"
        f"{int(forest.n_roots[0]):8}{found:8.3f}{tallest(forest):9.2f}"
    )


TITLE = (
    f"{'n':>9}{'d':>4}{'k':>5}{'us/obs':>10}{'one':>9}{'times':>7}{'batch':>9}{'times':>7}{'room':>8}"
    f"{'trees':>8}{'ARI':>8}{'h/log2':>9}"
)

SETTINGS = {
    "k": [(50_000, 10, k) for k in (5, 20, 50, 100)],
    "n": [(n, 10, 50) for n in (10_000, 30_000, 100_000, 300_000)],
    "d": [(50_000, d, 50) for d in (2, 5, 10, 20, 32)],
    "target": [(1_000_000, 10, 50)],
}


def log_joint(forest: Forest) -> float:
    """Of the partition that the trees are, under the prior that they grew by."""
    roots = forest.roots[: int(forest.n_roots[0])]
    prior = PRIOR.log_probability(forest.size[roots])
    return prior + float(forest.log_marginal[roots].sum())


def quality(name: str, values: Values, labels: Any, parameters: dict[str, Any]) -> str:
    """IBHC alone over random orders."""
    spent, found, trees, heights, joints = [], [], [], [], []
    for order in range(ORDERS):
        p = np.random.default_rng(order).permutation(values.shape[0])
        each, room, forest = grow(np.ascontiguousarray(values[p]), parameters)
        spent.append((each + room) * values.shape[0] / 1e6)
        found.append(adjusted_rand_index(labels[p], forest_labels(forest, p.size)))
        trees.append(int(forest.n_roots[0]))
        heights.append(tallest(forest))
        joints.append(log_joint(forest))
    return (
        f"{name:34}ARI {np.mean(found):.3f} +- {np.std(found):.3f} (least {min(found):.3f})  "
        f"{min(trees)}-{max(trees)} trees  {np.mean(spent):.2f} s (most {max(spent):.2f})  "
        f"height {max(heights):.2f} log2  log joint {np.mean(joints):.0f} +- {np.std(joints):.0f}"
    )


def qualities() -> list[str]:
    """The paper's own data, a large set of ten clusters, and one of 2,675, most of them of one."""
    held = np.load(DATA / "tgmcmc_10k.npz")
    values, labels = np.asarray(held["X"], dtype=np.float64), held["y"].astype(np.int64)
    many, of_ten = mixture(100_000, 2, 10, seed=3)
    apart, of_many = scattered(source(10_000), 10_000, 0.8)
    return [
        quality("10K, the paper's hyperparameters", values, labels, base_measure(values)),
        quality("10K, the defaults", values, labels, {}),
        quality("100,000 x 2, 10 clusters", many, of_ten, {}),
        quality("10,000 x 6, scattered", apart, of_many, {}),
    ]


def chain_line(n: int, d: int, k: int) -> str:
    """The same with the draw of a block for each arrival, as a stream has it."""
    values, _ = mixture(n, d, k)
    family = FAMILIES["gaussian"].build({}, values)
    chain = MixtureChain.start(family, PRIOR, seed=0)
    batches = np.array_split(values, max(1, n // 1000))
    spent = microseconds(lambda: [chain.insert(batch) for batch in batches], n)
    return f"{n:>9}{d:>4}{k:>5}{spent:10.2f} with a Gibbs draw, {chain.n_blocks} blocks"


def main(chosen: list[str]) -> None:
    """Print what was asked for."""
    grow(mixture(100, 2, 2)[0])
    for name, settings in SETTINGS.items():
        if name in chosen:
            print(f"\n{name}\n{TITLE}")
            for n, d, k in settings:
                print(line(n, d, k), flush=True)
    if "quality" in chosen:
        print("\nquality\n" + "\n".join(qualities()), flush=True)
    if "chain" in chosen:
        print("\nchain")
        chain_line(100, 2, 2)
        for n, d, k in ((20_000, 10, 10), (20_000, 10, 50), (60_000, 10, 50)):
            print(chain_line(n, d, k), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["k", "n", "d", "quality", "chain"])
