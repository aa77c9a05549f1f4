"""Chains of one kernel or several on one data set, timed: what the papers' benchmarks share."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray
from scipy.sparse import issparse

from weald.mcmc.chain.position import Position
from weald.mcmc.contract import Kernel
from weald.mcmc.offline.offline_guide import offline_guide
from weald.mcmc.offline.start import atoms_of, forest_labels, grow_forest
from weald.treecore.family import FAMILIES
from weald.treecore.forest.forest import Forest
from weald.treecore.partition.partition import Atoms
from weald.treecore.prior import PartitionPrior

__all__ = [
    "Course",
    "Problem",
    "arguments",
    "autocorrelation_time",
    "common_level",
    "compile_apart",
    "draw_courses",
    "kept",
    "kept_in",
    "problem",
    "ran",
    "reporting",
    "run",
    "source",
]

# As a family, its rows, a prior and a kernel; numba keeps as much for a process.
_COMPILED: set[tuple[str, ...]] = set()


@dataclass(frozen=True)
class Problem:
    """Observations as atoms, a family, a prior, and the forest that guides come from."""

    family: Any
    atoms: Atoms
    prior: PartitionPrior
    forest: Forest

    @property
    def n(self) -> int:
        """Observations."""
        return int(self.atoms.size.shape[0])

    def forest_labels(self) -> NDArray[np.int64]:
        """The partition (n) that IBHC's trees are."""
        return forest_labels(self.forest, self.n)

    def chain(self, labels: NDArray[Any]) -> Position:
        """A chain that starts from the labels (n)."""
        return Position(
            self.family,
            self.atoms,
            labels,
            self.prior,
            lambda model: offline_guide(model, self.forest, self.atoms),
        )


def problem(family: str, params: dict[str, Any], prior: PartitionPrior, values: Any) -> Problem:
    """Observations (n, d), maybe sparse, under a family by its name, with their forest grown."""
    built = FAMILIES[family].build(params, values)
    if not issparse(values):
        refused = FAMILIES[family].validate(built, values)
        assert refused is None, refused
    atoms = atoms_of(built, values)
    return Problem(built, atoms, prior, grow_forest(built, prior, atoms))


def source(*key: int) -> Generator:
    """A source of randomness of its own for each key."""
    return Generator(PCG64(SeedSequence(0, spawn_key=key)))


@dataclass
class Course:
    """A chain after each of its iterations.

    ``seconds`` of processor time since the start, for the kernels alone; ``tally`` (parts, 3) the
    first kernel's moves: proposed, accepted, and the sum of log acceptance ratios.
    """

    seconds: NDArray[np.float64]
    log_joint: NDArray[np.float64]
    n_blocks: NDArray[np.int64]
    tally: NDArray[np.float64]

    @property
    def per_iteration(self) -> float:
        """Seconds an iteration took."""
        return float(self.seconds[-1]) / len(self.seconds)

    @property
    def late_mean(self) -> float:
        """Mean log joint of the second half of the time."""
        late = self.seconds >= self.seconds[-1] / 2.0
        return float(self.log_joint[late].mean())

    def reached(self, level: float) -> float:
        """Seconds until the log joint was first at the level; infinite where it never was."""
        at = np.flatnonzero(self.log_joint >= level)
        return float(self.seconds[at[0]]) if at.size else np.inf


def run(
    kernels: Sequence[Kernel[Position]], position: Position, rng: Generator, seconds: float
) -> Course:
    """Cycle through kernels, the hyperparameters first, for some seconds of processor time."""
    scale = position.prior
    rows: list[tuple[float, float, int]] = []
    spent = 0.0
    tally = np.zeros((len(kernels[0].parts), 3))
    while not rows or spent < seconds:
        began = time.process_time()
        position.resample(rng)
        for kernel in kernels:
            moves = kernel.sweep(rng, position)
            if kernel is kernels[0]:
                tally += moves
        spent += time.process_time() - began
        rows.append((spent, position.log_joint(scale), len(position.sizes())))
    found = np.array(rows)
    return Course(found[:, 0], found[:, 1], found[:, 2].astype(np.int64), tally)


def compile_apart(kernels: Sequence[Kernel[Position]], position: Position) -> None:
    """Sweep once with each kernel that has not run in this process, as compiling is not timed."""
    forms = (position.family, position.atoms.rows, position.prior)
    form = tuple(type(each).__name__ for each in forms)
    for kernel in kernels:
        if (*form, kernel.name) not in _COMPILED:
            position.resample(source(0))
            kernel.sweep(source(0), position)
            _COMPILED.add((*form, kernel.name))


def ran(
    kernels: Sequence[Kernel[Position]],
    chain: Callable[[], Position],
    rng: Generator,
    seconds: float,
    file: Path | None = None,
) -> Course:
    """A new chain, or what the file holds of one."""

    def make() -> dict[str, Any]:
        compile_apart(kernels, chain())
        return vars(run(kernels, chain(), rng, seconds))

    return Course(**kept(file, make))


def common_level(samplers: Sequence[Sequence[Course]]) -> float:
    """The level that exact samplers agree on: the best one's median over its runs."""
    return max(float(np.median([course.late_mean for course in runs])) for runs in samplers)


def autocorrelation_time(trace: NDArray[np.float64]) -> float:
    """One plus twice the sum of autocorrelations, by ArviZ; NaN for a trace that never moves."""
    from weald.stream.estimators.inference_data import library  # slow to load

    if trace.min() == trace.max():
        return np.nan
    return len(trace) / float(library().ess(trace[None, :], method="mean"))


def arguments(described: str | None) -> argparse.ArgumentParser:
    """A parser with what every benchmark of a paper takes."""
    parser = argparse.ArgumentParser(
        description=described, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", choices=("text", "json"), default="text")
    return parser


def kept_in(parser: argparse.ArgumentParser) -> None:
    """Let a benchmark take the folder where what has ended is kept."""
    parser.add_argument(
        "--keep", type=Path, help="folder of runs that have ended; go on from there"
    )


def kept(file: Path | None, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Arrays that the file holds, or new ones, which go there whole or not at all."""
    if file is None:
        return make()
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        whole = file.with_suffix(".part.npz")
        np.savez(whole, **make())
        whole.rename(file)
    with np.load(file) as saved:
        return dict(saved)


@contextmanager
def reporting(output: str) -> Iterator[list[dict[str, Any]]]:
    """A list to put rows in; as JSON they alone go to standard output, and tables beside it."""
    rows: list[dict[str, Any]] = []
    if output == "text":
        yield rows
        return
    with redirect_stdout(sys.stderr):
        yield rows
    print(json.dumps(rows))


def draw_courses(samplers: dict[str, list[Course]], file: Path, title: str) -> None:
    """Log joint against processor time, a line a run, to a PNG; needs the extra ``plots``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    panel = figure.subplots()
    for index, (name, runs) in enumerate(samplers.items()):
        for at, course in enumerate(runs):
            label = name if at == 0 else None
            panel.plot(course.seconds, course.log_joint, color=f"C{index}", lw=1.0, label=label)
    reached = np.concatenate([course.log_joint for runs in samplers.values() for course in runs])
    panel.set(xlabel="processor seconds", ylabel="log joint", title=title)
    # The first moments of a chain would hide all others.
    panel.set_ylim(bottom=float(np.percentile(reached, 2)))
    panel.legend(frameon=False)
    figure.savefig(file, dpi=150)
