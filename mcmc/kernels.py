"""The kernels by their papers' short names, each with its claim about the posterior.

``exact``: leaves the posterior invariant. ``adaptive``: exact once its adaptation has ceased.
``approximate``: does not, and is never a default; summaries refuse draws made while one was active.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..treecore.errors import ParameterError
from . import (
    dm,
    fsd,
    gibbs,
    gibbs_supc,
    rgsm,
    rm,
    rsm,
    sams,
    sdds,
    slice,  # noqa: A004  (named as people write it)
    ss,
    subc,
    subc_burnin,
    subc_published,
    tgmcmc,
)
from .position import Position
from .state import NULL, make_tally, record

__all__ = ["KERNELS", "SCHEDULES", "Kernel", "gibbs_on", "kernels_named"]

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
    visited = np.arange(position.n_atoms, dtype=np.int64)
    gibbs.sweep(rng, state, position.model, visited)
    n = float(position.n_atoms)
    return np.array([[n, n, 0.0]])


def gibbs_on(limit: int) -> Kernel:
    """Collapsed Gibbs on at most ``limit`` atoms a sweep, drawn without regard to the partition."""

    def sweep(rng: Generator, position: Position) -> Tally:
        n = min(position.n_atoms, limit)
        visited = rng.choice(position.n_atoms, size=n, replace=False, shuffle=False)
        gibbs.sweep(rng, position.flat(), position.model, visited.astype(np.int64))
        return np.array([[n, n, 0.0]])

    return Kernel("gibbs", "exact", ("gibbs",), sweep)


def _tgmcmc(rng: Generator, position: Position) -> Tally:
    guide, pieces, picks = position.tree()
    tally = np.zeros((4, 3))
    moves = np.array([100, 100, 100, 200])
    tgmcmc.sweep(rng, guide, pieces, position.model, picks, moves, tally)
    return tally


def _pairwise(name: str, sampler: Any, plan: Any) -> Kernel:
    """Kernel of one of the modules whose sweep takes a plan and anchors."""

    def sweep(rng: Generator, position: Position) -> Tally:
        live = np.arange(position.n_atoms, dtype=np.int64)
        tally = make_tally()
        sampler.sweep(rng, position.flat(), position.model, plan, live, tally)
        return np.delete(tally, NULL, axis=0).sum(axis=0, keepdims=True)

    return Kernel(name, sampler.FLAG, (name,), sweep)


def _one_scan(name: str, sampler: Any, *plan: Any) -> Kernel:
    """Kernel of one of the modules whose sweep redraws the labels of all atoms."""

    def sweep(rng: Generator, position: Position) -> Tally:
        labels = sampler.sweep(rng, position.atoms, position.labels(), position.model, *plan)
        position.set_labels(labels)
        n = float(position.n_atoms)
        return np.array([[n, n, 0.0]])

    return Kernel(name, sampler.FLAG, (name,), sweep)


def _subc(rng: Generator, position: Position) -> Tally:
    labels, infos = subc.sweep(
        rng, position.atoms, position.labels(), position.model, subc.Plan(_PROPOSALS)
    )
    position.set_labels(labels)
    tally = make_tally()
    for info in infos:
        record(tally, info)
    return tally.sum(axis=0, keepdims=True)


def _burnin(name: str, flag: Flag, plan: subc_burnin.Plan) -> Kernel:
    """Kernel that keeps sub-clusters as long as nobody else moves the blocks."""

    def sweep(rng: Generator, position: Position) -> Tally:
        labels, atoms, model = position.labels(), position.atoms, position.model
        state = position.kept.get(name)
        if state is None or not np.array_equal(state.labels, labels):
            state = subc_burnin.begin(rng, atoms, labels, model)
        state, n_accepted = subc_burnin.sweep(rng, atoms, state, model, plan)
        position.set_labels(state.labels)
        position.kept[name] = subc_burnin.renumbered(state, position.labels())
        n = float(position.n_atoms)
        return np.array([[n, n_accepted, 0.0]])

    return Kernel(name, flag, (name,), sweep)


# A sweep costs a few passes over the atoms whichever kernel makes it, so that names compare.
_PROPOSALS = 5

KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        Kernel("gibbs", "exact", ("gibbs",), _gibbs),
        Kernel("tgmcmc", "exact", tgmcmc.KERNELS, _tgmcmc),
        _pairwise("rsm", rsm, rsm.Plan(_PROPOSALS)),
        _pairwise("rgsm", rgsm, rgsm.Plan()),
        _pairwise("sams", sams, sams.Plan(_PROPOSALS)),
        _pairwise("dm", dm, dm.Plan(_PROPOSALS)),
        _pairwise("sdds", sdds, sdds.Plan(_PROPOSALS)),
        _pairwise("ss", ss, ss.Plan(_PROPOSALS)),
        _pairwise("rm", rm, rm.Plan(_PROPOSALS)),
        _one_scan("slice", slice),
        Kernel("subc", subc.FLAG, ("subc",), _subc),
        _burnin("subc-burnin", subc_burnin.FLAG, subc_burnin.Plan()),
        _burnin("subc-published", subc_published.FLAG, subc_published.PLAN),
        _one_scan("fsd", fsd, fsd.Plan()),
        _one_scan("gibbs-supc", gibbs_supc, gibbs_supc.Plan()),
    )
}
# Several names at once; what `auto` stands for is exact throughout.
SCHEDULES = {"auto": ("tgmcmc", "gibbs", "sams")}


def kernels_named(names: str) -> list[Kernel]:
    """Kernels of a comma-joined list of names, in order.

    Raises ParameterError for an unknown one.
    """
    found = []
    for name in (part.strip() for part in names.split(",")):
        for single in SCHEDULES.get(name, (name,)):
            if single not in KERNELS:
                known = ", ".join(sorted({*KERNELS, *SCHEDULES}))
                raise ParameterError(f"there is no kernel {single!r}: choose among {known}")
            found.append(KERNELS[single])
    return found
