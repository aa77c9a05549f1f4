"""The kernels by their papers' short names, each with its claim about the posterior.

``exact``: leaves the posterior invariant. ``adaptive``: exact once its adaptation has ceased.
``approximate``: does not, and is never a default; summaries refuse draws made while one was active.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..treecore.errors import ParameterError
from . import gibbs, tgmcmc
from .position import Position

__all__ = ["KERNELS", "Kernel", "kernels_named"]

Flag = Literal["exact", "adaptive", "approximate"]
Tally = NDArray[np.float64]


@dataclass(frozen=True)
class Kernel:
    """One entry of the registry.

    Attributes
    ----------
    name, flag:
        What people write after ``--kernel``, and what may be claimed of it.
    parts:
        Names of the moves that a sweep counts apart.
    sweep:
        ``sweep(rng, position)``: one iteration; returns float64 (len(parts), 3) with the moves
        proposed, accepted, and the sum of their log acceptance ratios.
    """

    name: str
    flag: Flag
    parts: tuple[str, ...]
    sweep: Callable[[Generator, Position], Tally]


def _gibbs(rng: Generator, position: Position) -> Tally:
    state = position.flat()
    visited = np.arange(position.n_atoms, dtype=np.int32)
    gibbs.sweep(rng, state, position.model, visited)
    n = float(position.n_atoms)
    return np.array([[n, n, 0.0]])


def _tgmcmc(rng: Generator, position: Position) -> Tally:
    guide, pieces, picks = position.tree()
    tally = np.zeros((4, 3))
    moves = np.array([100, 100, 100, 200])
    tgmcmc.sweep(rng, guide, pieces, position.model, picks, moves, tally)
    return tally


KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        Kernel("gibbs", "exact", ("gibbs",), _gibbs),
        Kernel("tgmcmc", "exact", tgmcmc.KERNELS, _tgmcmc),
    )
}


def kernels_named(names: str) -> list[Kernel]:
    """Kernels of a comma-joined list of names, in order; raises ParameterError for an unknown one."""
    found = []
    for name in names.split(","):
        kernel = KERNELS.get(name.strip())
        if kernel is None:
            known = ", ".join(sorted(KERNELS))
            raise ParameterError(f"there is no kernel {name.strip()!r}: choose among {known}")
        found.append(kernel)
    return found
