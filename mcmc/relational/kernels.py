"""The kernels for networks by their papers' short names, each with its claim, as for mixtures."""

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.reconfiguration import accord, arm, bsm, sarm, srm
from weald.mcmc.schedule.kernels import Flag, Kernel, draw_guides, guided_names, moves_of
from weald.mcmc.schedule.stream_kernels import stream_kernels
from weald.mcmc.state.atom_state import make_tally

from . import gibbs, rgsm, sdds
from .position import VertexPosition
from .vertices import VertexState

__all__ = ["NETWORK_KERNELS", "NETWORK_SCHEDULES", "kernels_of_networks"]

Tally = NDArray[np.float64]


def _gibbs(rng: Generator, position: VertexPosition) -> Tally:
    position.run(rng, lambda state: gibbs.sweep(rng, state, position.model, position.live))
    n = float(position.n_atoms)
    return np.array([[n, n, 0.0]])


def _plain(name: str, sampler: Any, plan: Any) -> Kernel:
    def sweep(rng: Generator, position: VertexPosition) -> Tally:
        def once(state: VertexState) -> Tally:
            tally = make_tally()
            model, notes, live = position.model, position.notes, position.live
            sampler.sweep(rng, state, model, plan, notes, live, tally)
            return moves_of(tally)

        result: Tally = position.run(rng, once)
        return result

    return Kernel(name, sampler.FLAG, (name,), sweep)


def _guided(name: str, flag: Flag, sampler: Any) -> Kernel:
    def sweep(rng: Generator, position: VertexPosition) -> Tally:
        guides = draw_guides(rng, name, position)
        if guides is None:
            return np.zeros((1, 3))

        def once(state: VertexState) -> Tally:
            tally = make_tally()
            model, notes, live = position.model, position.notes, position.live
            sampler.sweep(rng, state, model, sampler.PLAN, guides, notes, live, tally)
            return moves_of(tally)

        result: Tally = position.run(rng, once)
        return result

    return Kernel(name, flag, (name,), sweep, guided=True)


NETWORK_KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        Kernel("gibbs", "exact", ("gibbs",), _gibbs),
        _plain("rgsm", rgsm, rgsm.Plan()),
        _plain("sdds", sdds, sdds.Plan()),
        _plain("srm", srm, srm.PLAN),
        *(_guided(*named, accord) for named in guided_names("accord", "exact")),
        *(_guided(*named, arm) for named in guided_names("arm", "exact")),
        *(_guided(*named, sarm) for named in guided_names("sarm", "exact")),
        *(_guided(*named, bsm) for named in guided_names("bsm", "exact")),
    )
}
# Guides out of the past mix far better on networks than those of a population, and a fit stops
# collecting them before the draws that it reports.
NETWORK_SCHEDULES = {"auto": ("accord-history", "arm-history", "gibbs")}


def kernels_of_networks(names: str) -> tuple[Kernel, ...]:
    """Kernels that refine a stream of edges, by a comma-joined list of names.

    Raises as :func:`~weald.mcmc.schedule.stream_kernels.stream_kernels`.
    """
    return stream_kernels(names, NETWORK_KERNELS, ("sdds", "rgsm", "gibbs"))
