"""Memory of a stream within a budget of leaves: ``python -m benchmarks.memory``.

Feeds observations of Gaussian clusters to one stream's model (what `weald run` keeps in memory:
chain, published clusters, their statistics; no SQL) and prints the process's resident memory as it
goes on, its peak, and by how much that grew after the budget had long been reached, and what it
takes in seconds of processor time. Beside it
stands the adjusted Rand index of the latest observations, as they were placed on arrival, and at
the end that of a classifier that knows the centres: a budget must not cost what it saves. With
``--by-policy`` it compares samples and bundles of several sizes with the stream that keeps all, on
several sets of data: index and number of clusters over the second half, and the processor time of a
record, as a table for ``docs/memory.md``; beside them an offline fit to as many observations as the
least of them hold. With
``--by-budget`` it does a short run for each of several budgets, in a process of its own, and fits a
line: memory as a function of the budget. With ``--machine`` the budget is the one that a stream
gets by itself on a machine of so much memory, and the limit its share. With ``--by-family`` it
prints what an observation takes at the peak, with kinds and numbers of columns, beside what
``stream/model/leaf_budget.py`` reckons.

    python -m benchmarks.memory                        10^7 observations, 50,000 leaves
    python -m benchmarks.memory --records 1000000
    python -m benchmarks.memory --records 250000 --budget 5000 --every 1000 --policy bundles
    python -m benchmarks.memory --machine 2 --every 500
    python -m benchmarks.memory --by-policy --records 250000 --every 1000
    python -m benchmarks.memory --by-budget
    python -m benchmarks.memory --by-family
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.process_memory import mebibytes
from weald import BayesianClusterer
from weald.cli.service.allocation import give_arrays_back
from weald.cli.service.machine_memory import SHARE
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.settings import ModelSettings, RefinementSettings
from weald.stream.model.leaf_budget import leaf_bytes, leaves_within
from weald.stream.model.model import free_shard
from weald.stream.model.shard import Shard
from weald.stream.settings import MemorySettings
from weald.treecore.family import FAMILIES

MIB = 2**20
GIB = 2**30
LIMIT_MIB = 1024
CHUNK = 10_000
BUDGETS = (8_000, 16_000, 32_000, 64_000)
# Compared with the stream that keeps all, on as many sets of data.
POLICIES = (("bundles", 5_000), ("sample", 5_000), ("sample", 15_000), ("sample", 50_000))
N_SETS = 5
# Families and numbers of columns whose memory is measured, between so many observations.
WIDTHS = (("gaussian", 2), ("gaussian", 6), ("gaussian", 10), ("gaussian", 20), ("diagonal", 10))
BETWEEN = (50_000, 100_000)


class Source:
    """Clusters far apart beside clusters that overlap, drawn chunk by chunk."""

    def __init__(self, k: int, d: int, seed: int = 1) -> None:
        self._draw = np.random.default_rng(seed)
        self._centres = self._draw.normal(scale=12.0, size=(k, d))
        self.clusters = np.empty(0, dtype=np.int64)
        """Clusters of the latest observations taken."""

    def take(self, n: int) -> NDArray[np.float64]:
        """Return the next n observations (n, d)."""
        self.clusters = self._draw.integers(len(self._centres), size=n)
        return self._centres[self.clusters] + self._draw.normal(size=(n, self._centres.shape[1]))

    def nearest(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the cluster whose centre is nearest, for each observation (n)."""
        # The squared distance without the part that all centres share.
        from_origin = (self._centres**2).sum(axis=1)
        return np.argmin(from_origin - 2.0 * values @ self._centres.T, axis=1)


def peak() -> float:
    """Return the most memory that the process ever had, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def started(source: Source, arguments: argparse.Namespace) -> Shard:
    """Return an empty model with a budget."""
    every = arguments.every
    cadence = RefinementSettings(every_records=every, publish_every_records=every, rounds=1)
    memory = MemorySettings(leaf_budget=arguments.budget, policy=arguments.policy)
    model = ModelSettings(family=arguments.family)
    return free_shard(model, cadence, source.take(1_000), memory)


def line(shard: Shard, began: float, bare: float, agreement: float) -> str:
    """Return one line of the table."""
    chain, seconds = shard.chain, time.process_time() - began
    return (
        f"{shard.seq:>12,} {chain.n_atoms:>9,} {len(shard.table):>9,} {agreement:>6.3f} "
        f"{mebibytes():>10.1f} {peak():>8.1f} {peak() - bare:>11.1f} {chain.disruption:>11.3g} "
        f"{shard.bounding.n_early:>11,} {seconds:>9.1f} {shard.seq / seconds:>10,.0f}"
    )


def endless(arguments: argparse.Namespace) -> int:
    """Run one stream and print its memory as it goes on."""
    source = Source(arguments.clusters, arguments.features, arguments.seed)
    shard = started(source, arguments)
    # Compiled code and libraries come first: what follows is the model's.
    shard.apply(source.take(arguments.every), 0.0)
    bare, began = mebibytes(), time.process_time()
    print(
        f"{arguments.records:,} observations, {arguments.clusters} clusters in "
        f"{arguments.features} dimensions, {arguments.budget:,} leaves, "
        f"refined every {arguments.every:,}; {bare:.1f} MiB with everything loaded"
    )
    print(
        f"{'observations':>12} {'leaves':>9} {'clusters':>9} {'ARI':>6} {'MiB now':>10} "
        f"{'peak':>8} {'over loaded':>11} {'disruption':>11} {'early':>11} {'seconds':>9} "
        f"{'per second':>10}"
    )
    most, step = 0, max(arguments.records // 20, CHUNK)
    first_full = None
    while shard.seq < arguments.records:
        values = source.take(min(CHUNK, arguments.records - shard.seq))
        placed = np.concatenate(shard.apply(values, 0.0).clusters)
        most = max(most, shard.chain.n_atoms)
        if (
            first_full is None
            and (shard.bounding.next_bundle > 1 or shard.sample.selects)
            and shard.seq > 2 * arguments.budget
        ):
            first_full = (shard.seq, peak())
        if shard.seq % step < CHUNK:
            agreement = adjusted_rand_index(source.clusters, placed)
            print(line(shard, began, bare, agreement), flush=True)
    grown = peak() - first_full[1] if first_full else 0.0
    sizes = shard.atom_table.size[shard.atom_table.present]
    print(f"peak {peak():.1f} MiB of {arguments.limit:,}")
    print(f"most leaves {most:,} of {arguments.budget:,}")
    print(f"grown by {grown:.1f} MiB since {first_full[0] if first_full else 0:,} observations")
    nearest = source.nearest(source.take(CHUNK))
    known = adjusted_rand_index(source.clusters, nearest)
    print(f"adjusted Rand index of who knows the centres: {known:.3f}")
    print(f"largest leaf: {sizes.max():,} observations; in all {sizes.sum():,}")
    return 0 if peak() < arguments.limit and most <= arguments.budget else 1


class Run(NamedTuple):
    """What a run came to.

    Attributes
    ----------
    peak:
        MiB.
    agreement, known:
        Adjusted Rand index of arrivals over the second half, and of who knows the centres.
    clusters:
        Clusters that were shown, at the median of that time.
    seconds:
        Of processor time.
    """

    peak: float
    agreement: float
    known: float
    clusters: float
    seconds: float


def run_of(**options: object) -> Run:
    """A run with these options in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.memory", "--quiet"]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    return Run(*map(float, ended.stdout.split()[-len(Run._fields) :]))


def by_policy(arguments: argparse.Namespace) -> int:
    """Compare each policy and budget with the stream that keeps all: medians (least to most)."""
    print(
        "| leaves | policy | index of arrivals | below all kept | clusters | peak MiB | us each |"
    )
    print("|---|---|---|---|---|---|---|")
    asked = {name: getattr(arguments, name) for name in ("records", "every", "features")}
    asked["clusters"] = arguments.clusters
    kept: list[Run] = []
    for policy, budget in (("sample", 2 * arguments.records), *POLICIES):
        each = {"policy": policy, "budget": budget}
        runs = [run_of(**asked, **each, seed=1 + at) for at in range(N_SETS)]
        kept = kept or runs
        below = [
            all_kept.agreement - run.agreement for all_kept, run in zip(kept, runs, strict=True)
        ]
        cells = [
            "all" if kept is runs else f"{budget:,}",
            f"`{policy}`",
            _spread([run.agreement for run in runs], 3),
            _spread(below, 3),
            _spread([run.clusters for run in runs], 0),
            f"{np.median([run.peak for run in runs]):.0f}",
            f"{1e6 * np.median([run.seconds for run in runs]) / arguments.records:.0f}",
        ]
        print(f"| {' | '.join(cells)} |", flush=True)
    few = min(budget for _, budget in POLICIES)
    fits = [fitted(arguments, few, seed=1 + at) for at in range(N_SETS)]
    index, clusters = ([fit[at] for fit in fits] for at in range(2))
    print(f"| {few:,} | offline fit | {_spread(index, 3)} | | {_spread(clusters, 0)} | | |")
    print(f"who knows the centres: {_spread([run.known for run in kept], 3)}")
    return 0


def fitted(arguments: argparse.Namespace, n: int, seed: int) -> tuple[float, float]:
    """Index of predictions by an offline fit to the first n observations, and its clusters."""
    source = Source(arguments.clusters, arguments.features, seed)
    fit = BayesianClusterer(random_state=0).fit(source.take(n))
    predicted = fit.predict(source.take(arguments.records // 2))
    agreement = adjusted_rand_index(source.clusters, predicted)
    return agreement, float(len(np.unique(fit.labels_)))


def _spread(values: Sequence[float], places: int) -> str:
    middle, least, most = np.median(values), min(values), max(values)
    return f"{middle:.{places}f} ({least:.{places}f} to {most:.{places}f})"


def by_budget(arguments: argparse.Namespace) -> int:
    """Run each budget in a process of its own and fit a line."""
    measured = []
    for budget in BUDGETS:
        every, d, k = budget // 4, arguments.features, arguments.clusters
        asked = {"features": d, "clusters": k, "policy": arguments.policy}
        measured.append(run_of(records=4 * budget, budget=budget, every=every, **asked).peak)
        print(f"{budget:>8,} leaves: peak {measured[-1]:.1f} MiB", flush=True)
    slope, constant = np.polyfit(BUDGETS, measured, 1)
    print(
        f"{arguments.features} features: {constant:.0f} MiB + {slope * MIB / 1024:.2f} KiB a leaf; "
        f"at 50,000 leaves {constant + 50_000 * slope:.0f} MiB"
    )
    return 0


def by_family() -> int:
    """Measure what an observation takes with each family and width, and print what is reckoned."""
    print(f"{'family':>9} {'columns':>7} {'bytes':>7} {'reckoned':>8}")
    for family, d in WIDTHS:
        asked = {"family": family, "features": d, "clusters": 30, "every": 500}
        few, many = (run_of(records=n, budget=10 * n, **asked).peak for n in BETWEEN)
        measured = (many - few) * MIB / (BETWEEN[1] - BETWEEN[0])
        reckoned = leaf_bytes(FAMILIES[family].build({}, np.zeros((0, d))))
        print(f"{family:>9} {d:>7} {measured:>7,.0f} {reckoned:>8,.0f}", flush=True)
    return 0


def quiet(arguments: argparse.Namespace) -> int:
    """Run one stream and print what it came to, for :func:`run_of`."""
    source = Source(arguments.clusters, arguments.features, arguments.seed)
    shard, began = started(source, arguments), time.process_time()
    index, known, clusters = [], [], []
    while shard.seq < arguments.records:
        values = source.take(min(CHUNK, arguments.records - shard.seq))
        placed = np.concatenate(shard.apply(values, 0.0).clusters)
        if shard.seq > arguments.records // 2:
            index.append(adjusted_rand_index(source.clusters, placed))
            known.append(adjusted_rand_index(source.clusters, source.nearest(values)))
            clusters.append(len(shard.table))
    seconds = time.process_time() - began
    middle = [float(np.median(each)) for each in (index, known, clusters)]
    print(peak(), *middle, seconds)
    return 0


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--budget", type=int, default=50_000)
    parser.add_argument("--every", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=2)
    parser.add_argument("--clusters", type=int, default=50)
    parser.add_argument("--policy", choices=("bundles", "sample"), default="sample")
    parser.add_argument("--family", default="gaussian")
    parser.add_argument("--machine", type=float, metavar="GIB")
    parser.add_argument("--seed", type=int, default=1, help="of the data")
    parser.add_argument("--by-policy", action="store_true")
    parser.add_argument("--by-budget", action="store_true")
    parser.add_argument("--by-family", action="store_true")
    parser.add_argument("--quiet", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    give_arrays_back()  # as `weald run` does
    if arguments.by_family:
        return by_family()
    arguments.limit = LIMIT_MIB
    if arguments.machine is not None:
        share = int(SHARE * arguments.machine * GIB)
        family = FAMILIES[arguments.family].build({}, np.zeros((0, arguments.features)))
        arguments.budget = leaves_within(share, family, arguments.every)
        arguments.limit = share // MIB
    if arguments.by_policy:
        return by_policy(arguments)
    if arguments.by_budget:
        return by_budget(arguments)
    return quiet(arguments) if arguments.quiet else endless(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
