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
from weald.mcmc import emm, rgsm, rm, sdds, ss
from weald.mcmc.entities import entity_seating, make_entities
from weald.mcmc.state import make_tally
from weald.treecore.prior.sequential import canonical_labels

from tests.exact.cases import FORMS, KERNELS, Kernel, random_state

N_ATOMS = 24
N_SWEEPS = 80


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


def trace_entities(plan: Any) -> NDArray[np.float64]:
    """The same for a kernel on the entity/mention model, with K."""
    rng = np.random.default_rng(20)
    state, model = random_state("categorical", "emm", N_ATOMS, rng)
    model = model._replace(seating=entity_seating(N_ATOMS))
    live = np.arange(N_ATOMS, dtype=np.int64)
    held = make_entities(6, -np.log(np.arange(1.0, 40.0)), live)
    tally = make_tally()
    rows = []
    for _ in range(N_SWEEPS):
        emm.sweep(rng, state, model, plan, held, tally)
        emm.gibbs_sweep(rng, state, model, held._replace(live=live[:2]))
        labels = canonical_labels(state.partition.label)
        rows.append(np.concatenate([labels, held.number, tally.ravel()]))
    return np.array(rows)


# One family with every kernel, another with those that use most of it.
RUNS: dict[str, Callable[[], NDArray[np.float64]]] = {
    **{f"{k} bernoulli": partial(trace, v, "bernoulli") for k, v in (KERNELS | FORMS).items()},
    **{f"{k} gaussian": partial(trace, KERNELS[k], "gaussian") for k in ("gibbs", "sams")},
    "sdds emm": partial(trace_entities, sdds.Plan()),
    "ss emm": partial(trace_entities, ss.Plan()),
    "rm emm": partial(trace_entities, rm.Plan()),
    "rgsm emm": partial(trace_entities, rgsm.Plan()),
}


if __name__ == "__main__":
    traces = {name: run() for name, run in RUNS.items()}
    np.savez(Path(sys.argv[1]), allow_pickle=False, **traces)
