"""Chains followed by what they predict: held-out density and clusters of some size."""

import pathlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.chain.position import Position
from weald.mcmc.contract import Kernel
from weald.mcmc.gibbs.gibbs import log_alone, seating_weights, weights_by_words
from weald.mcmc.schedule.kernels import KERNELS
from weald.mcmc.state.atom_state import State, set_labels
from weald.treecore.compiled.compile import compiled, generic, implements, inner
from weald.treecore.compiled.reference import by_reference
from weald.treecore.family.discrete.word_index import make_index
from weald.treecore.family.interface.base import workspace
from weald.treecore.partition.partition import Atoms, Model, empty_partition
from weald.treecore.statistics.rows import Rows
from weald.treecore.statistics.sparse_rows import SparseRows

from .adaptive import adaptive
from .chains import compile_apart, kept

__all__ = ["ADAPTIVE", "LEAST_SHARE", "HeldOut", "Path", "followed", "late"]

# Of the observations: what is smaller does not count as a cluster.
LEAST_SHARE = 1 / 200
# What names end with whose kernels are drawn by adaptive weights, instead of one after the other.
ADAPTIVE = "-adaptive"
# A look at a chain may cost more than its sweep: the next one is so many times later.
_LATER = 1.07


@generic
def _log_weights_of(rows: Rows, state: State, model: Model, first: int) -> float:
    """Sum of the logs of the total weights of atoms from ``first`` on; ``rows`` are the atoms'."""
    raise NotImplementedError


@inner
def _log_total(log_weights: NDArray[np.float64], n: int) -> float:
    largest, total = -np.inf, 0.0
    for at in range(n):
        largest = max(largest, log_weights[at])
    for at in range(n):
        total += np.exp(log_weights[at] - largest)
    return float(largest + np.log(total))


@implements(_log_weights_of, np.ndarray)
def _log_weights_of_dense(_rows: Rows, state: State, model: Model, first: int) -> float:
    total = 0.0
    for i in range(first, state.partition.label.shape[0]):
        k = seating_weights(state, model, i, log_alone(state, model, i))
        total += _log_total(state.log_weights, k + 1)
    return total


@implements(_log_weights_of, SparseRows)
def _log_weights_of_sparse(rows: Any, state: State, model: Model, first: int) -> float:
    label, capacity = state.partition.label, state.partition.slots.shape[0]
    index = make_index(rows, label, capacity, model.family.vocabulary)
    total = 0.0
    for i in range(first, label.shape[0]):
        k = weights_by_words(index, state, model, i)
        total += _log_total(state.log_weights, k + 1)
    return total


@compiled
def _held_out_density(state: State, model: Model, first: int, log_total: float) -> float:
    """Mean log predictive density of the atoms from ``first`` on, which are in no block."""
    state, model = by_reference(state), by_reference(model)
    total = _log_weights_of(state.atoms.rows, state, model, first)
    return float(total / (state.partition.label.shape[0] - first) - log_total)


class HeldOut:
    """Observations kept from the chains, and how well a partition of the others predicts them."""

    def __init__(self, family: Any, everything: Atoms, n_seen: int) -> None:
        self._family, self._atoms, self._n_seen = family, everything, n_seen

    def density(self, position: Position) -> float:
        """Mean log predictive density; under a Dirichlet process."""
        n, atoms = self._atoms.size.shape[0], self._atoms
        labels = np.full(n, -1, dtype=np.int64)
        labels[: self._n_seen] = position.labels()
        integers = (np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64))
        state = State(
            atoms,
            empty_partition(self._family, n, atoms.rows),
            np.zeros(n + 4),
            *integers,
            np.zeros(n, dtype=np.int8),
        )
        set_labels(atoms, state.partition, labels)
        alpha = position.prior.parameters()["alpha"]
        model = Model(self._family, position.prior.seating(n, n), workspace(self._family))
        return float(_held_out_density(state, model, self._n_seen, np.log(alpha + self._n_seen)))


@dataclass
class Path:
    """A chain at its start and after some of its sweeps.

    Processor seconds since the start, held-out log density of an observation, log joint, and the
    number of clusters of some size (``LEAST_SHARE``).
    """

    seconds: NDArray[np.float64]
    density: NDArray[np.float64]
    log_joint: NDArray[np.float64]
    clusters: NDArray[np.float64]


def late(paths: Sequence[Path]) -> Path:
    """The second half of each chain's time, one chain after the other."""
    halves = [path.seconds >= path.seconds[-1] / 2.0 for path in paths]

    def joined(name: str) -> NDArray[np.float64]:
        each = [getattr(path, name)[half] for path, half in zip(paths, halves, strict=True)]
        return np.concatenate(each)

    return Path(*(joined(column.name) for column in fields(Path)))


def follow(
    kernels: list[Kernel[Position]],
    position: Position,
    rng: Generator,
    held: HeldOut,
    seconds: float,
) -> Path:
    """Cycle through kernels, and look at the start and after sweeps, ever more rarely."""
    rows: list[tuple[float, float, float, int]] = []

    def look(spent: float) -> None:
        large = position.sizes() >= LEAST_SHARE * position.n_atoms
        joint = position.log_joint()
        rows.append((spent, held.density(position), joint, int(large.sum())))

    look(0.0)
    spent = due = 0.0
    while spent < seconds:
        for kernel in kernels:
            began = time.process_time()
            position.resample(rng)
            kernel.sweep(rng, position)
            spent += time.process_time() - began
            if spent >= due:
                due = _LATER * spent
                look(spent)
    return Path(*np.array(rows, dtype=float).T)


def followed(
    names: str,
    chain: Callable[[], Position],
    rng: Generator,
    held: HeldOut,
    seconds: float,
    file: pathlib.Path | None = None,
) -> Path:
    """A new chain under the kernels of these names, or what the file holds of one."""

    def make() -> dict[str, Any]:
        kernels = KERNELS.named(names.removesuffix(ADAPTIVE))
        compile_apart(kernels, chain())
        if names.endswith(ADAPTIVE):
            kernels = [adaptive(names, list(dict.fromkeys(kernels)))]
        return vars(follow(kernels, chain(), rng, held, seconds))

    return Path(**kept(file, make))
