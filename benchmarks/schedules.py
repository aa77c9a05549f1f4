"""Time to the best result, for ``auto`` and single kernels, on six data sets.

    python -m benchmarks.schedules            medians over 5 seeds (a quarter of an hour of a core,
                                              and twice as long again for the AP corpus)
    python -m benchmarks.schedules --quick    small ones of the sets, 2 seeds, a minute or two
    python -m benchmarks.schedules --adaptive    with the kernels of auto drawn by adaptive weights

As ``weald fit`` does: families and priors are the default ones, the concentration is learned, and
chains start from IBHC's trees (``--init one``: from one cluster). A tenth of the observations (1000
at most) is held out, the same for every seed. The time is the processor's, of the kernels and of
the guide, which tree-guided ones build; growing the trees is the same for all.

All kernels sample one posterior, so there is one level to reach: that of the kernel, ``auto``
among them, with the highest held-out log density in the second half of its runs. (A single kernel
that has not arrived says nothing of the number of clusters.) A chain arrives when its held-out
density reaches the 5th percentile of what that kernel's chains have there, and the number of
clusters (of at least 1/200 of the observations) is in the central 90 %; each widened by a little
(``SLACK``). ``auto`` is judged by the time of the best single kernel, which is the one with the
highest density itself. A kernel that arrives in no more than half of the runs has no median; 0 s
says that the start is there already. With ``--keep FOLDER`` every chain is kept as it ends, and a
run that was broken off goes on from there.
"""

import pathlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.sparse import load_npz

from weald.mcmc.offline.start import atoms_of, starting_labels
from weald.treecore.prior import build_prior

from .papers.chains import Problem, arguments, kept_in, problem, reporting, source
from .papers.data import DATA, observations
from .papers.predicted import ADAPTIVE, HeldOut, Path, followed, late
from .papers.simulated import ring

AUTO = "auto"
SINGLE = ("gibbs", "tgmcmc", "sams", "sdds", "rgsm")
HELD_OUT, MOST_HELD_OUT = 0.1, 1000
# Nats of an observation's log density, and clusters.
SLACK = (0.003, 1)
ALLOWED = 1.5


@dataclass(frozen=True)
class Setting:
    """A data set, its family, and how long a chain runs (processor seconds)."""

    values: Callable[[Generator], Any]
    family: str
    seconds: float
    params: dict[str, Any] | None = None


def circle(deviation: float, n: int) -> Callable[[Generator], NDArray[np.float64]]:
    """Ten Gaussian clusters in the plane."""
    return lambda rng: ring(rng, deviation, n)[0]


def stored(name: str) -> Callable[[Generator], NDArray[np.float64]]:
    """A stored table."""
    return lambda _: observations(name)


SETS: dict[str, Setting] = {
    "toy": Setting(stored("tgmcmc_toy.npz"), "gaussian", 0.3),
    "10k": Setting(stored("tgmcmc_10k.npz"), "gaussian", 3.0),
    "semeion": Setting(stored("digits_semeion_binary_1593.npz"), "bernoulli", 2.0),
    # A Gibbs sweep takes seconds here.
    "ap": Setting(lambda _: load_npz(DATA / "text_ap_2246x10473.npz"), "multinomial", 60.0),
    "separated": Setting(circle(1.0, 100_000), "gaussian", 4.0),
    "overlapping": Setting(circle(2.0, 100_000), "gaussian", 4.0),
}
QUICK: dict[str, Setting] = {
    "toy": Setting(stored("tgmcmc_toy.npz"), "gaussian", 0.3),
    "separated": Setting(circle(1.0, 10_000), "gaussian", 1.0),
    "overlapping": Setting(circle(2.0, 10_000), "gaussian", 1.0),
}


def prepared(setting: Setting, seed: int) -> tuple[Problem, HeldOut]:
    """Observations, some of them held out, and the trees of the others in an order of the seed."""
    rng = source(0)
    values = setting.values(rng)
    n = values.shape[0]
    n_seen = n - min(round(HELD_OUT * n), MOST_HELD_OUT)
    # The same ones are held out for every seed; the others come in another order.
    order = rng.permutation(n)
    order[:n_seen] = source(0, seed).permutation(order[:n_seen])
    values = values[order]
    prior = build_prior("dp", {"alpha": 1.0, "learn": True})
    here = problem(setting.family, setting.params or {}, prior, values[:n_seen])
    return here, HeldOut(here.family, atoms_of(here.family, values), n_seen)


def best_of(names: Sequence[str], paths: dict[str, list[Path]]) -> str:
    """The kernel that predicts best in the second half of its runs."""
    return max(names, key=lambda name: float(np.median(late(paths[name]).density)))


def arrivals(
    paths: dict[str, list[Path]],
) -> tuple[str, tuple[float, float, float], dict[str, list[float]]]:
    """Whose level it is, its band (least density, fewest and most clusters), and times."""
    leader = best_of([name for name in paths if not name.endswith(ADAPTIVE)], paths)
    there = late(paths[leader])
    least = float(np.percentile(there.density, 5)) - SLACK[0]
    fewest, most = np.percentile(there.clusters, [5, 95]) + np.array([-SLACK[1], SLACK[1]])
    hits: dict[str, list[float]] = {}
    for name, found in paths.items():
        hits[name] = []
        for path in found:
            inside = (path.clusters >= fewest) & (path.clusters <= most)
            at = np.flatnonzero(inside & (path.density >= least))
            hits[name].append(float(path.seconds[at[0]]) if at.size else np.inf)
    return leader, (least, float(fewest), float(most)), hits


def ratio(one: float, other: float) -> float:
    """Of two times, either of which may be nil (the start is there already) or infinite."""
    return 1.0 if one == other else one / other if other > 0.0 else np.inf


def compare(
    name: str,
    setting: Setting,
    everyone: tuple[str, ...],
    seeds: int,
    init: str,
    folder: pathlib.Path | None = None,
) -> list[dict[str, Any]]:
    """Print one data set's table, of ``SINGLE`` and others; returns its rows."""
    paths: dict[str, list[Path]] = {kernel: [] for kernel in everyone}
    n = 0
    for seed in range(seeds):
        here, held = prepared(setting, seed)
        n = here.n
        start = starting_labels(init, here.forest, n, source(seed))
        for kernel in everyone:
            key = f"{name}-{n}-{init}-{setting.seconds:g}-{kernel}-{seed}.npz"
            path = followed(
                kernel,
                partial(here.chain, start),
                source(seed, 1),
                held,
                setting.seconds,
                folder and folder / key,
            )
            paths[kernel].append(path)
    leader, band, hits = arrivals(paths)
    best = best_of(SINGLE, paths)
    medians = {kernel: float(np.median(found)) for kernel, found in hits.items()}
    print(
        f"\n{name}: {n:,} observations, {seeds} seeds, {setting.seconds:g} s each; the level is"
        f" {leader}'s: density at least {band[0]:.4f}, clusters {band[1]:.0f} to {band[2]:.0f};"
        f" the best single kernel is {best}"
    )
    fastest = min(medians[kernel] for kernel in SINGLE)
    rows = []
    for kernel in everyone:
        end = late(paths[kernel])
        row = {
            "set": name,
            "kernel": kernel,
            "seconds": medians[kernel],
            "to_best": ratio(medians[kernel], medians[best]),
            "to_fastest": ratio(medians[kernel], fastest),
            "arrived": int(np.isfinite(hits[kernel]).sum()),
            "density": float(np.median(end.density)),
            "clusters": float(np.median(end.clusters)),
        }
        print(
            f"{kernel:>13} | {row['seconds']:8.3f} s | {row['to_best']:6.2f} of the best's"
            f" | {row['to_fastest']:6.2f} of the fastest's | arrived {row['arrived']}/{seeds}"
            f" | held out {row['density']:.4f} | {row['clusters']:.0f} clusters",
            flush=True,
        )
        rows.append(row)
    return rows


def main() -> None:
    """Print a table for each data set, and whether ``auto`` keeps to what is asked of it."""
    parser = arguments(__doc__)
    parser.add_argument("--sets", help="some of them, by their names")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--share", type=float, default=1.0, help="of the seconds of each run")
    parser.add_argument("--init", default="ibhc", help="as of `weald fit`")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--adaptive", action="store_true", help="follow weights that adapt as well")
    kept_in(parser)
    options = parser.parse_args()
    sets = QUICK if options.quick else SETS
    everyone = (AUTO, *((AUTO + ADAPTIVE,) if options.adaptive else ()), *SINGLE)
    seeds = options.seeds or (2 if options.quick else 5)
    with reporting(options.output) as rows:
        for name in options.sets.split(",") if options.sets else sets:
            setting = replace(sets[name], seconds=options.share * sets[name].seconds)
            rows.extend(compare(name, setting, everyone, seeds, options.init, options.keep))
        autos = [row for row in rows if row["kernel"] == AUTO]
        within = sum(row["to_best"] <= ALLOWED for row in autos)
        print(f"\nauto within {ALLOWED} of the best's time on {within} of {len(autos)} sets")


if __name__ == "__main__":
    main()
