"""Draw the figures of how-it-works.md by running what they show.

Run it from the root of the repository, without compilation, which takes longer than so few points:
``NUMBA_DISABLE_JIT=1 .venv/bin/python docs/figures.py``.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.random import PCG64, Generator
from numpy.typing import NDArray
from scipy.cluster.hierarchy import dendrogram
from weald.mcmc.kernels import KERNELS, Kernel
from weald.mcmc.position import Position
from weald.mcmc.start import atoms_of, forest_labels, grow_forest
from weald.treecore.family import FAMILIES
from weald.treecore.guide import Guide, freeze
from weald.treecore.prior import build_prior

FOLDER = Path(__file__).parent / "images"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e0a800", "#56b4e9", "#8c564b", "#7f6bd6")
N, SWEEPS = 36, 40


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


def main() -> None:
    """Draw them all."""
    FOLDER.mkdir(exist_ok=True)
    values = points()
    family = FAMILIES["gaussian"].build({}, values)
    prior = build_prior("dp", {"alpha": 1.0, "learn": False})
    atoms = atoms_of(family, values)
    forest = grow_forest(family, prior, atoms)
    start = np.zeros(N, dtype=np.int64)
    position = Position(family, atoms, start, prior, lambda model: freeze(model, forest))
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
    for kernel in KERNELS.values():
        moved(
            kernel,
            values,
            lambda: Position(family, atoms, start, prior, lambda model: freeze(model, forest)),
        )


def moved(kernel: Kernel, values: NDArray[np.float64], begin: Callable[[], Position]) -> None:
    """Before, after the first sweep that changed anything, and the log joint from then on."""
    rng = Generator(PCG64(1))
    position = begin()
    before = position.labels()
    trace, first, at = [position.log_joint()], None, 0
    for sweep in range(1, SWEEPS + 1):
        kernel.sweep(rng, position)
        trace.append(position.log_joint())
        if first is None and len(np.unique(position.labels())) > 1:
            first, at = position.labels(), sweep
    figure = Figure(figsize=(7.2, 2.3), layout="constrained")
    panels = figure.subplots(1, 3)
    scatter(panels[0], values, before)
    scatter(panels[1], values, before if first is None else first)
    panels[0].set_title("start", fontsize=10)
    panels[1].set_title("no change" if first is None else f"after sweep {at}", fontsize=10)
    panels[2].plot(trace, color=COLOURS[0], linewidth=1.2)
    panels[2].set_title("log joint by sweep", fontsize=10)
    panels[2].tick_params(labelsize=8)
    save(figure, f"kernel-{kernel.name}")


if __name__ == "__main__":
    main()
