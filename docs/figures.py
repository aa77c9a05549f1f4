"""Draw the figures of how-it-works.md by running what they show.

Run it from the root of the repository, without compilation, which takes longer than so few points:
``NUMBA_DISABLE_JIT=1 .venv/bin/python docs/figures.py``; names of kernels, and ``network-`` before
those of networks, draw theirs alone. ``kmeans`` and ``overview`` are drawn when they are asked for,
compiled: ``.venv/bin/python docs/figures.py kmeans overview``.
"""

import sys
from collections.abc import Callable
from contextlib import chdir
from functools import partial
from pathlib import Path
from runpy import run_path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.random import PCG64, Generator
from numpy.typing import NDArray
from scipy.cluster.hierarchy import dendrogram

from weald.mcmc.chain.position import Position
from weald.mcmc.contract import Kernel
from weald.mcmc.offline.fit import FitSettings, fit
from weald.mcmc.offline.start import atoms_of, forest_labels, grow_forest
from weald.mcmc.relational.fit import fit_network
from weald.mcmc.schedule.kernels import KERNELS, NETWORK_KERNELS
from weald.treecore.family import FAMILIES
from weald.treecore.guide.guide import Guide, freeze
from weald.treecore.prior import PartitionPrior, build_prior
from weald.treecore.relational.network import Links, make_network

FOLDER = Path(__file__).parent / "images"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e0a800", "#56b4e9", "#8c564b", "#7f6bd6")
N, SWEEPS = 36, 40
# Observations that are marked as least sure.
LEAST_SURE = 2
LIKE_THE_OTHERS: dict[str, Any] = {
    "learn_hyper": False,
    "iterations": SWEEPS,
    "seed": 1,
    "keep_labels": True,
}


def points() -> NDArray[np.float64]:
    """Three groups, in random order."""
    rng = np.random.default_rng(4)
    centres = np.array([[0.0, 0.0], [5.0, 0.5], [2.5, 4.5]])[rng.integers(0, 3, N)]
    return centres + rng.normal(size=(N, 2)) * 0.8


def scatter(panel: Axes, values: NDArray[np.float64], labels: NDArray[np.int64]) -> None:
    """Points in the colours of their clusters, largest first."""
    ids, sizes = np.unique(labels, return_counts=True)
    for rank, cluster in enumerate(ids[np.argsort(-sizes)]):
        chosen = values[labels == cluster]
        panel.scatter(*chosen.T, s=26, color=COLOURS[rank % len(COLOURS)])
    panel.set(xticks=[], yticks=[])


def linkage_of(guide: Guide, n: int) -> NDArray[np.float64]:
    """The guide as scipy draws trees; heights are ranks, so that every join is seen."""
    number, size = np.zeros(2 * n - 1, dtype=int), np.zeros(2 * n - 1)
    rows = np.zeros((n - 1, 4))
    inner = [v for v in range(2 * n - 1) if guide.n_leaves[v] > 1]
    height = {v: float(guide.n_leaves[v]) for v in inner}
    for made, v in enumerate(sorted(inner, key=lambda v: (guide.n_leaves[v], -v))):
        for child in (v + 1, v + 1 + int(guide.n_nodes[v + 1])):
            if guide.n_leaves[child] == 1:
                number[child], size[child] = guide.atom[guide.first[child]], 1
        left, right = v + 1, v + 1 + int(guide.n_nodes[v + 1])
        rows[made] = number[left], number[right], np.log2(height[v]), guide.n_leaves[v]
        number[v] = n + made
    return rows


def save(figure: Figure, name: str) -> None:
    """On white, which both colour schemes of the site can carry."""
    figure.savefig(FOLDER / f"{name}.png", dpi=110, facecolor="#ffffff")


def main(asked: set[str]) -> None:
    """Draw those of these kernels, or all."""
    FOLDER.mkdir(exist_ok=True)
    for name, drawn in (("kmeans", beside_kmeans), ("overview", overview)):
        if name in asked:
            drawn()
    only = asked - {"kmeans", "overview"}
    if asked and not only:
        return
    values = points()
    family = FAMILIES["gaussian"].build({}, values)
    prior = build_prior("dp", {"alpha": 1.0, "learn": False})
    atoms = atoms_of(family, values)
    forest = grow_forest(family, prior, atoms)
    start = np.zeros(N, dtype=np.int64)

    def begin(chosen: PartitionPrior) -> Position:
        return Position(family, atoms, start, chosen, lambda model: freeze(model, forest))

    position = begin(prior)
    guide = freeze(position.model, forest)

    figure = Figure(figsize=(7.2, 2.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    scatter(left, values, forest_labels(forest, N))
    left.set_title("the trees after one pass", fontsize=10)
    dendrogram(
        linkage_of(guide, N),
        ax=right,
        no_labels=True,
        color_threshold=0.0,
        above_threshold_color=COLOURS[0],
    )
    right.set_title("the guide: all trees joined at the top", fontsize=10)
    right.set_ylabel("log2 of leaves")
    save(figure, "ibhc")
    for name, kernel in KERNELS.items():
        if only and name not in only:
            continue
        if kernel.guided:
            guided(name, values)
        else:
            chosen = build_prior("emm") if "entities" in kernel.needs else prior
            moved(kernel, values, partial(begin, chosen))
    for name in NETWORK_KERNELS:
        if not only or f"network-{name}" in only:
            on_network(name)


def overview() -> None:
    """What becomes of observations: trees at once, draws of a chain, and what is shown."""
    rng = np.random.default_rng(3)
    centres = np.array([[0.0, 0.0], [3.4, 0.3], [1.6, 4.6]])[rng.integers(0, 3, 60)]
    values = centres + rng.normal(size=(60, 2)) * 0.8
    family = FAMILIES["gaussian"].build({}, values)
    prior = build_prior("dp", {"alpha": 1.0, "learn": False})
    forest = grow_forest(family, prior, atoms_of(family, values))
    result = fit(
        values,
        FitSettings(family="gaussian", iterations=200, seed=1, keep_labels=True),
        perf_counter,
    )

    figure = Figure(figsize=(9.6, 2.9), layout="constrained")
    panels = figure.subplots(1, 4)
    panels[0].scatter(*values.T, s=26, color="#6b7680")
    panels[0].set(xticks=[], yticks=[])
    scatter(panels[1], values, forest_labels(forest, len(values)))
    scatter(panels[2], values, result.traces[0].labels[-1])
    scatter(panels[3], values, result.labels)
    for at in np.argsort(result.probability)[:LEAST_SURE].tolist():
        panels[3].scatter(*values[at], s=110, facecolors="none", edgecolors="#1b1f24")
        panels[3].annotate(
            f"{result.probability[at]:.2f}",
            values[at],
            (7, 6),
            textcoords="offset points",
            fontsize=9,
        )
    titles = ("1 observations come", "2 trees: an answer at once", "3 one of many draws")
    for panel, title in zip(panels, (*titles, "4 what is shown"), strict=True):
        panel.set_title(title, fontsize=10)
    save(figure, "overview")


def beside_kmeans() -> None:
    """The rows of kmeans.md, cut by k-means that is told their number, and by a fit."""
    from sklearn.cluster import KMeans

    page = (FOLDER.parent / "kmeans.md").read_text(encoding="utf-8")
    block = page.partition("```python\n")[2].partition("```")[0]
    with TemporaryDirectory() as folder, chdir(folder):
        Path("rows.py").write_text(block, encoding="utf-8")
        rows = run_path("rows.py")["rows"]
    from weald import BayesianClusterer

    told = KMeans(3, n_init=10, random_state=0).fit_predict((rows - rows.mean(0)) / rows.std(0))
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for panel, labels, title in (
        (left, told, "k-means, told that there are 3"),
        (right, BayesianClusterer(random_state=0).fit(rows).labels_, "Weald, told nothing"),
    ):
        ids, sizes = np.unique(labels, return_counts=True)
        for rank, cluster in enumerate(ids[np.argsort(-sizes)].tolist()):
            panel.scatter(
                *rows[labels == cluster].T,
                s=14,
                color=COLOURS[rank],
                marker="os^"[rank % 3],
                linewidths=0,
            )
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("km")
        panel.tick_params(labelsize=8)
    left.set_ylabel("minutes")
    save(figure, "kmeans")


Pane = Callable[[Axes, NDArray[np.int64]], None]


def moved(
    kernel: Kernel[Position], values: NDArray[np.float64], begin: Callable[[], Position]
) -> None:
    """A kernel that needs no other chain, from one cluster."""
    rng = Generator(PCG64(1))
    position = begin()
    labels, trace = [position.labels()], [position.log_joint()]
    for _ in range(SWEEPS):
        kernel.sweep(rng, position)
        labels.append(position.labels())
        trace.append(position.log_joint())
    told(f"kernel-{kernel.name}", labels, trace, lambda at, each: scatter(at, values, each))


def guided(name: str, values: NDArray[np.float64]) -> None:
    """A kernel that takes guides from other chains: the first chain of a population."""
    settings = FitSettings(kernels=(name,), init="random:5", chains=4, **LIKE_THE_OTHERS)
    trace = fit(values, settings, perf_counter).traces[0]
    told(
        f"kernel-{name}",
        trace.labels,
        trace.log_joint,
        lambda at, each: scatter(at, values, each),
    )


def on_network(name: str) -> None:
    """A kernel of networks: the adjacency matrix in the order of the blocks."""
    rng = np.random.default_rng(2)
    group = rng.integers(0, 3, N)
    share = np.where(group[:, None] == group, 0.6, 0.05)
    links = np.triu(rng.random((N, N)) < share, 1).astype(np.float64)
    source, target = np.nonzero(links)
    network = make_network(N, Links(source, target, np.ones(len(source))))
    settings = FitSettings(kernels=(name,), init="random:5", chains=4, **LIKE_THE_OTHERS)
    trace = fit_network(network, settings, perf_counter).traces[0]

    def adjacency(panel: Axes, labels: NDArray[np.int64]) -> None:
        order = np.argsort(labels, kind="stable")
        panel.imshow((links + links.T)[np.ix_(order, order)], cmap="Greys")
        for edge in np.flatnonzero(np.diff(labels[order])) + 0.5:
            panel.axhline(edge, color=COLOURS[1], linewidth=1)
            panel.axvline(edge, color=COLOURS[1], linewidth=1)
        panel.set(xticks=[], yticks=[])

    told(f"network-{name}", trace.labels, trace.log_joint, adjacency)


def told(name: str, labels: list[NDArray[np.int64]], trace: list[float], pane: Pane) -> None:
    """Before, after the first sweep that changed anything, and the log joint from then on."""
    changed = [at for at, each in enumerate(labels) if not np.array_equal(each, labels[0])]
    at = changed[0] if changed else 0
    figure = Figure(figsize=(7.2, 2.3), layout="constrained")
    panels = figure.subplots(1, 3)
    pane(panels[0], labels[0])
    pane(panels[1], labels[at])
    panels[0].set_title("start", fontsize=10)
    panels[1].set_title(f"after sweep {at}" if changed else "no change", fontsize=10)
    panels[2].plot(trace, color=COLOURS[0], linewidth=1.2)
    panels[2].set_title("log joint by sweep", fontsize=10)
    panels[2].tick_params(labelsize=8)
    save(figure, name)


if __name__ == "__main__":
    main(set(sys.argv[1:]))
