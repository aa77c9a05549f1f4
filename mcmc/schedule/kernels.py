"""The kernels by their papers' short names, each with its claim about the posterior.

``exact``: leaves the posterior invariant. ``adaptive``: exact once its adaptation has ceased.
``approximate``: does not, and is never a default; summaries refuse draws made while one was active.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.assignment.scratch import make_notes
from weald.mcmc.chain.position import Position
from weald.mcmc.conditional import fsd, gibbs_supc
from weald.mcmc.conditional import slice as slice_sampler
from weald.mcmc.gibbs import gibbs
from weald.mcmc.reconfiguration import accord, arm, bsm, sarm, srm
from weald.mcmc.reconfiguration.reference_partitions import Guides, make_guides
from weald.mcmc.split_merge import dm, rgsm, rm, rsm, sams, sdds, ss
from weald.mcmc.state.atom_state import NULL, make_tally, record
from weald.mcmc.sub_cluster import subc, subc_burnin, subc_published
from weald.mcmc.tree_guided import tgmcmc, tgmcmc_published
from weald.mcmc.tree_guided.cluster_trees import Trees, labels_of_trees, make_trees
from weald.treecore.errors import ParameterError

__all__ = [
    "KERNELS",
    "SCHEDULES",
    "TGMCMC_BESIDE_GIBBS",
    "Kernel",
    "draw_guides",
    "gibbs_on",
    "guided_names",
    "kernels_named",
    "moves_of",
    "require_every_partition",
]

# What a kernel's name ends with that takes its guides from the past.
PAST = "-history"

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
    guided:
        Whether it takes guides from other chains, so that chains run as a population.
    """

    name: str
    flag: Flag
    parts: tuple[str, ...]
    sweep: Callable[[Generator, Any], Tally]
    guided: bool = False


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


def _tree_guided(rng: Generator, position: Position, moves: NDArray[np.int64]) -> Tally:
    guide, pieces, picks = position.tree()
    tally = np.zeros((len(tgmcmc.KERNELS), 3))
    tgmcmc.sweep(rng, guide, pieces, position.model, picks, moves, tally)
    return tally


def _tgmcmc(rng: Generator, position: Position) -> Tally:
    return _tree_guided(rng, position, tgmcmc.moves_of_sweep(position.n_atoms))


def _tgmcmc_without_scan(rng: Generator, position: Position) -> Tally:
    return _tree_guided(rng, position, np.array([*tgmcmc.MOVES, 0], dtype=np.int64))[:-1]


# For schedules with Gibbs sampling, which is what a scan of leaves does.
TGMCMC_BESIDE_GIBBS = Kernel("tgmcmc", "exact", tgmcmc.KERNELS[:-1], _tgmcmc_without_scan)


def moves_of(tally: Tally) -> Tally:
    """All moves of a tally but the null ones, as one row."""
    return np.delete(tally, NULL, axis=0).sum(axis=0, keepdims=True)


def _pairwise(name: str, sampler: Any, plan: Any, *, near: bool = False) -> Kernel:
    """Kernel of one of the modules whose sweep takes a plan and anchors.

    With ``near`` the atoms come in the order of the guide's leaves, where neighbours are alike.
    """

    def sweep(rng: Generator, position: Position) -> Tally:
        live = position.guide().atom if near else np.arange(position.n_atoms, dtype=np.int64)
        tally = make_tally()
        sampler.sweep(rng, position.flat(), position.model, plan, live, tally)
        return moves_of(tally)

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


def _tgmcmc_published(rng: Generator, position: Position) -> Tally:
    """Keeps the clusters' trees as long as nobody else moves the blocks."""
    name, labels, model = "tgmcmc-published", position.labels(), position.model
    kept: tuple[Trees, Any] | None = position.kept.get(name)
    if kept is None or not np.array_equal(kept[1], labels):
        kept = make_trees(position.family, position.atoms, labels, model), None
    tally = np.zeros((2, 3))
    tgmcmc_published.sweep(rng, model, kept[0], tgmcmc_published.PLAN, tally)
    found = np.empty(position.n_atoms, dtype=np.int64)
    labels_of_trees(kept[0], found)
    position.set_labels(found)
    position.kept[name] = kept[0], position.labels()
    return tally


def draw_guides(rng: Generator, name: str, position: Any) -> Guides | None:
    """Two of the partitions that guide a chain, or None where there are not two.

    They are the present ones of other chains, or past ones for a kernel whose name says so. Raises
    ParameterError if the chain runs alone.
    """
    if name.endswith(PAST):
        if position.history is None:
            raise ParameterError(f"{name} needs the history of a population of chains")
        found = position.history[0].draw(rng, position.history[1])
        return None if found is None else make_guides(*found)
    guides = position.guides
    if len(guides) < 2:
        raise ParameterError(f"{name} takes its guides from other chains: ask for 4 at least")
    first, second = rng.choice(len(guides), size=2, replace=False)
    return make_guides(guides[first], guides[second])


def guided_names(name: str, flag: Flag) -> tuple[tuple[str, Flag], tuple[str, Flag]]:
    """A guided kernel's names with their claims: guides from other chains, and from the past."""
    return (name, flag), (name + PAST, "adaptive")


def _guided(name: str, flag: Flag, sampler: Any) -> Kernel:
    """Kernel of one of the modules whose sweep takes guides."""

    def sweep(rng: Generator, position: Position) -> Tally:
        guides = draw_guides(rng, name, position)
        if guides is None:
            return np.zeros((1, 3))
        live = np.arange(position.n_atoms, dtype=np.int64)
        tally, notes = make_tally(), make_notes(position.n_atoms, position.n_atoms + 4)
        state, model = position.flat(), position.model
        sampler.sweep(rng, state, model, sampler.PLAN, guides, notes, live, tally)
        return moves_of(tally)

    return Kernel(name, flag, (name,), sweep, guided=True)


def _simplified(rng: Generator, position: Position) -> Tally:
    live = np.arange(position.n_atoms, dtype=np.int64)
    tally, notes = make_tally(), make_notes(position.n_atoms, position.n_atoms + 4)
    srm.sweep(rng, position.flat(), position.model, srm.PLAN, notes, live, tally)
    return moves_of(tally)


# A sweep costs a few passes over the atoms whichever kernel makes it, so that names compare.
_PROPOSALS = 5
# Of kernels that refuse most merges early: as much, where there are several clusters.
_SEQUENTIAL = 20

KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        Kernel("gibbs", "exact", ("gibbs",), _gibbs),
        Kernel("tgmcmc", "exact", tgmcmc.KERNELS, _tgmcmc),
        Kernel(
            "tgmcmc-published",
            tgmcmc_published.FLAG,
            tgmcmc_published.PARTS,
            _tgmcmc_published,
        ),
        _pairwise("rsm", rsm, rsm.Plan(_PROPOSALS)),
        _pairwise("rgsm", rgsm, rgsm.Plan()),
        _pairwise("sams", sams, sams.Plan(_SEQUENTIAL)),
        _pairwise("sams-near", sams, sams.Plan(_SEQUENTIAL, 0.5), near=True),
        _pairwise("dm", dm, dm.Plan(_PROPOSALS)),
        _pairwise("sdds", sdds, sdds.Plan(_SEQUENTIAL)),
        _pairwise("ss", ss, ss.Plan(_SEQUENTIAL)),
        _pairwise("rm", rm, rm.Plan(_PROPOSALS)),
        _one_scan("slice", slice_sampler),
        Kernel("subc", subc.FLAG, ("subc",), _subc),
        _burnin("subc-burnin", subc_burnin.FLAG, subc_burnin.Plan()),
        _burnin("subc-published", subc_published.FLAG, subc_published.PLAN),
        _one_scan("fsd", fsd, fsd.Plan()),
        _one_scan("gibbs-supc", gibbs_supc, gibbs_supc.Plan()),
        *(_guided(*named, accord) for named in guided_names("accord", "exact")),
        *(_guided(*named, arm) for named in guided_names("arm", "exact")),
        *(_guided(*named, sarm) for named in guided_names("sarm", "exact")),
        *(_guided(*named, bsm) for named in guided_names("bsm", "exact")),
        Kernel("srm", "exact", ("srm",), _simplified),
    )
}
# Several names at once; what `auto` stands for is exact throughout. Gibbs sampling has most of the
# time, and comes first: growing a guide takes longer than two scans, which may be enough.
SCHEDULES = {"auto": ("gibbs", "sams", "gibbs", "tgmcmc", "sams")}


def require_every_partition(kernels: Sequence[Kernel]) -> None:
    """Raise ParameterError for kernels that together do not reach every partition.

    Those that take guides move only what the guides tell apart or together.
    """
    if all(kernel.guided for kernel in kernels):
        names = ",".join(kernel.name for kernel in kernels)
        raise ParameterError(
            f"{names} alone does not reach every partition: add another (--kernel {names},gibbs)"
        )


def kernels_named(
    names: str,
    kernels: Mapping[str, Kernel] | None = None,
    schedules: Mapping[str, tuple[str, ...]] | None = None,
) -> list[Kernel]:
    """Kernels of a comma-joined list of names, in order; those of mixtures unless others are given.

    Beside Gibbs sampling, tree-guided moves leave single atoms to it.

    Raises ParameterError for an unknown one.
    """
    kernels = KERNELS if kernels is None else kernels
    schedules = SCHEDULES if schedules is None else schedules
    found = []
    for name in (part.strip() for part in names.split(",")):
        for single in schedules.get(name, (name,)):
            if single not in kernels:
                known = ", ".join(sorted({*kernels, *schedules}))
                raise ParameterError(f"there is no kernel {single!r}: choose among {known}")
            found.append(kernels[single])
    if any(kernel.name == "gibbs" for kernel in found):
        return [TGMCMC_BESIDE_GIBBS if kernel.name == "tgmcmc" else kernel for kernel in found]
    return found
