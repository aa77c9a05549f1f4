"""Fits of the same documents with sparse and with dense rows, by every kernel that takes both.

Run with compilation switched off: ``python -m tests.mcmc.offline.sparse_fit`` writes JSON.
"""

import json
import sys
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from benchmarks.papers.chains import problem
from benchmarks.papers.predicted import HeldOut
from weald.mcmc.offline.fit import FitSettings, combine, run_chain
from weald.mcmc.offline.start import atoms_of
from weald.treecore.prior import build_prior

KERNELS = ("gibbs", "rgsm", "sams", "dm", "sdds", "ss", "rm", "tgmcmc")
N_WORDS, N_SEEN = 25, 10


def documents() -> np.ndarray:
    """Counts (14, 25), one row of them empty."""
    rng = np.random.default_rng(2)
    topics = rng.dirichlet(np.full(N_WORDS, 0.1), size=2)
    counts = np.stack([rng.multinomial(20, topics[i % 2]) for i in range(14)])
    counts[3] = 0
    return counts.astype(np.float64)


def held_out(values: Any) -> float:
    """Log density of the last documents under a partition of the others."""
    prior = build_prior("dp", {"alpha": 1.0})
    here = problem("multinomial", {"beta": 0.2}, prior, values[:N_SEEN])
    held = HeldOut(here.family, atoms_of(here.family, values), N_SEEN)
    return held.density(here.chain(np.arange(N_SEEN) % 3))


def fitted(kernel: str, values: Any) -> list[Any]:
    """Log joints of a short chain, and the labels it comes to."""
    settings = FitSettings(
        family="multinomial", params={"beta": 0.2}, kernels=(kernel,), iterations=3, seed=1
    )
    trace = run_chain(values, settings, 0, lambda: 0.0)
    return [trace.log_joint, combine(settings, [trace]).labels.tolist()]


def main() -> None:
    """Log joints and labels of both forms, for each kernel; and densities of what is held out."""
    found: dict[str, Any] = {}
    for kernel in KERNELS:
        for form, values in (("dense", documents()), ("sparse", csr_array(documents()))):
            found[f"{kernel} {form}"] = fitted(kernel, values)
    found["held out"] = [held_out(form(documents())) for form in (np.asarray, csr_array)]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
