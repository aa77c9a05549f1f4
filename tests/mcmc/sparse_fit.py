"""Fits of the same documents with sparse and with dense rows, by every kernel that takes both.

Run with compilation switched off: ``python -m tests.mcmc.sparse_fit`` writes JSON.
"""

import json
import sys

import numpy as np
from scipy.sparse import csr_array
from weald.mcmc.fit import FitSettings, combine, run_chain

KERNELS = ("gibbs", "rgsm", "sams", "dm", "sdds", "ss", "rm", "tgmcmc")
N_WORDS = 25


def documents() -> np.ndarray:
    """Counts (14, 25), one row of them empty."""
    rng = np.random.default_rng(2)
    topics = rng.dirichlet(np.full(N_WORDS, 0.1), size=2)
    counts = np.stack([rng.multinomial(20, topics[i % 2]) for i in range(14)])
    counts[3] = 0
    return counts.astype(np.float64)


def main() -> None:
    """Log joints and labels of both forms, for each kernel."""
    found = {}
    for kernel in KERNELS:
        settings = FitSettings(
            family="multinomial", params={"beta": 0.2}, kernels=(kernel,), iterations=3, seed=1
        )
        for form, values in (("dense", documents()), ("sparse", csr_array(documents()))):
            trace = run_chain(values, settings, 0, lambda: 0.0)
            result = combine(values, settings, [trace])
            found[f"{kernel} {form}"] = [trace.log_joint, result.labels.tolist()]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
