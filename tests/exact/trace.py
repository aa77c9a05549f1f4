"""Runs of every kernel, draw by draw: ``python -m tests.exact.trace FILE`` saves them.

Run once compiled and once with ``NUMBA_DISABLE_JIT=1``, the two files must agree.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.exact.cases import FORMS, KERNELS, Kernel, random_state
from tests.mcmc.chains import clumps
from weald.mcmc.chain.position import Position
from weald.mcmc.entities.entities import entity_seating, make_entity_state
from weald.mcmc.gibbs import gibbs
from weald.mcmc.offline.start import atoms_of, grow_forest
from weald.mcmc.schedule.kernels import KERNELS as REGISTRY
from weald.mcmc.split_merge import rgsm, rm, sdds, ss
from weald.mcmc.state.atom_state import make_tally
from weald.treecore.family import FAMILIES
from weald.treecore.guide.guide import freeze
from weald.treecore.prior import build_prior
from weald.treecore.prior.sequential import canonical_labels

N_ATOMS = 24
N_SWEEPS = 80
# Kernels that need more than a state, with sweeps of theirs: some are many moves, others one.
REGISTERED = {
    "tgmcmc": 4,
    "tgmcmc-published": 6,
    "accord": 10,
    "arm": 30,
    "sarm": 15,
    "bsm": 15,
    "srm": 40,
    "slice": 10,
    "subc": 10,
    "gibbs-supc": 10,
}


def trace(kernel: Kernel, family: str) -> NDArray[np.float64]:
    """Labels and tally after each sweep, a row a sweep."""
    rng = np.random.default_rng(20)
    state, model = random_state(family, "mfm", N_ATOMS, rng)
    live = np.arange(N_ATOMS, dtype=np.int64)
    tally = make_tally()
    rows = []
    for _ in range(N_SWEEPS):
        kernel.sweep(rng, state, model, kernel.plan, live, tally)
        rows.append(np.concatenate([canonical_labels(state.partition.label), tally.ravel()]))
    return np.array(rows)


def trace_entities(kernel: Any, plan: Any) -> NDArray[np.float64]:
    """The same for a kernel on the entity/mention model, with K."""
    rng = np.random.default_rng(20)
    state, model = random_state("gaussian", "emm", N_ATOMS, rng)
    model = model._replace(seating=entity_seating(N_ATOMS))
    live = np.arange(N_ATOMS, dtype=np.int64)
    held = make_entity_state(state, 6, -np.log(np.arange(1.0, 40.0)))
    tally = make_tally()
    rows = []
    for _ in range(N_SWEEPS):
        kernel.sweep(rng, held, model, plan, live, tally)
        gibbs.sweep(rng, held, model, live[:2])
        labels = canonical_labels(held.partition.label)
        rows.append(np.concatenate([labels, held.entities.number, tally.ravel()]))
    return np.array(rows)


def trace_registered(name: str) -> NDArray[np.float64]:
    """The same for a kernel by its name, with the sums of its tally in place of all of it."""
    values = clumps(3, N_ATOMS)
    family = FAMILIES["gaussian"].build({}, values)
    prior = build_prior("dp", {"alpha": 1.0, "learn": False})
    atoms = atoms_of(family, values)
    forest = grow_forest(family, prior, atoms)
    starts = np.random.default_rng(3).integers(0, 4, (3, N_ATOMS))
    position = Position(family, atoms, starts[0], prior, lambda model: freeze(model, forest))
    position.guides = tuple(starts[1:])
    rng = np.random.default_rng(20)
    rows = []
    for _ in range(REGISTERED[name]):
        tally = REGISTRY[name].sweep(rng, position)
        rows.append(np.concatenate([position.labels(), tally.sum(axis=0)]))
    return np.array(rows)


# One family with every kernel, the one that all other compiled tests use and hence compile;
# another with those that use most of it.
RUNS: dict[str, Callable[[], NDArray[np.float64]]] = {
    **{f"{k} gaussian": partial(trace, v, "gaussian") for k, v in (KERNELS | FORMS).items()},
    **{f"{k} bernoulli": partial(trace, KERNELS[k], "bernoulli") for k in ("gibbs", "sams")},
    **{name: partial(trace_registered, name) for name in REGISTERED},
    "sdds emm": partial(trace_entities, sdds, sdds.SddsPlan()),
    "ss emm": partial(trace_entities, ss, ss.SsPlan()),
    "rm emm": partial(trace_entities, rm, rm.RmPlan()),
    "rgsm emm": partial(trace_entities, rgsm, rgsm.RgsmPlan(gibbs=0)),
}


if __name__ == "__main__":
    traces = {name: run() for name, run in RUNS.items()}
    np.savez(Path(sys.argv[1]), allow_pickle=False, **traces)
