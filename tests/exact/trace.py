"""Runs of every kernel, draw by draw: ``python -m tests.exact.trace FILE`` saves them.

Run once compiled and once with ``NUMBA_DISABLE_JIT=1``, the two files must agree.
"""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from weald.mcmc.state import canonical_labels, make_tally

from tests.exact.cases import FORMS, KERNELS, Kernel, random_state

N_ATOMS = 24
N_SWEEPS = 80

# Kernel and family; the first family with every kernel, another with those that use most of it.
RUNS: dict[str, tuple[Kernel, str]] = {
    **{f"{name} bernoulli": (kernel, "bernoulli") for name, kernel in (KERNELS | FORMS).items()},
    **{f"{name} gaussian": (KERNELS[name], "gaussian") for name in ("gibbs", "sams")},
}


def trace(kernel: Kernel, family: str) -> NDArray[np.float64]:
    """Labels and tally after each sweep, a row a sweep."""
    rng = np.random.default_rng(20)
    state, model = random_state(family, "mfm", N_ATOMS, rng)
    live = np.arange(N_ATOMS, dtype=np.int32)
    tally = make_tally()
    rows = []
    for _ in range(N_SWEEPS):
        kernel.sweep(rng, state, model, kernel.plan, live, tally)
        rows.append(np.concatenate([canonical_labels(state.partition.label), tally.ravel()]))
    return np.array(rows)


if __name__ == "__main__":
    traces = {name: trace(*run) for name, run in RUNS.items()}
    np.savez(Path(sys.argv[1]), allow_pickle=False, **traces)
