"""Microseconds a step of each kernel: ``python -m benchmarks.moves``.

Jain and Neal's example 1 (100 observations of 6 binary attributes in 5 clusters, alpha = beta = 1).
Each kernel runs on from the partition that 200 Gibbs scans reach from the true one.
"""

import time
from typing import Any, NamedTuple

import numpy as np
from weald.mcmc import dm, gibbs, rgsm, rm, rsm, sams, sdds, ss
from weald.mcmc.state import State, make_state, make_tally
from weald.treecore.family import FAMILIES
from weald.treecore.family.base import observe, statistics_width, workspace
from weald.treecore.partition import Model, make_atoms
from weald.treecore.prior import build_prior

# Probabilities of a one: Jain and Neal (2000), table 1.
EXAMPLE_1 = np.array(
    [
        [0.95, 0.95, 0.95, 0.95, 0.95, 0.95],
        [0.05, 0.05, 0.05, 0.05, 0.95, 0.95],
        [0.95, 0.05, 0.05, 0.95, 0.95, 0.95],
        [0.05, 0.05, 0.05, 0.05, 0.05, 0.05],
        [0.95, 0.95, 0.95, 0.95, 0.05, 0.05],
    ]
)
N = 100
STEPS = 20_000

KERNELS: dict[str, tuple[Any, Any]] = {
    "rsm": (rsm.sweep, rsm.Plan(STEPS)),
    "rgsm (0,1,0)": (rgsm.sweep, rgsm.Plan(0, STEPS, 0)),
    "rgsm (5,1,0)": (rgsm.sweep, rgsm.Plan(5, STEPS, 0)),
    "rgsm (1,1,0) anchored": (rgsm.sweep, rgsm.Plan(1, STEPS, 0, rgsm.ANCHORED)),
    "sams": (sams.sweep, sams.Plan(STEPS)),
    "dm": (dm.sweep, dm.Plan(STEPS)),
    "sdds": (sdds.sweep, sdds.Plan(STEPS)),
    "sdds (a)": (sdds.sweep, sdds.Plan(STEPS, 1.0)),
    "sdds (b)": (sdds.sweep, sdds.Plan(STEPS, 0.0)),
    "ss": (ss.sweep, ss.Plan(STEPS)),
    "rm": (rm.sweep, rm.Plan(STEPS)),
}


class Problem(NamedTuple):
    """Model, the atoms in blocks, and the true partition."""

    model: Model
    atoms: Any
    truth: Any


def example_1(seed: int) -> Problem:
    """A data set of the example."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 5, N).astype(np.int32)
    values = (rng.random((N, 6)) < EXAMPLE_1[truth]).astype(np.float64)
    family = FAMILIES["bernoulli"].build({"a": 1.0, "b": 1.0}, values)
    rows = np.zeros((N, statistics_width(family)))
    for i in range(N):
        observe(family, values, i, rows, i)
    model = Model(family, build_prior("dp", {"alpha": 1.0}).seating(N, N), workspace(family))
    return Problem(model, make_atoms(family, rows, np.ones(N, np.int64), model.work), truth)


def burnt_in(problem: Problem, rng: np.random.Generator) -> State:
    """A state that 200 Gibbs scans reach from the truth."""
    state = make_state(problem.model.family, problem.atoms, problem.truth)
    for _ in range(200):
        gibbs.sweep(rng, state, problem.model, np.arange(N, dtype=np.int32))
    return state


def measure(problem: Problem, name: str) -> str:
    """One line of the table."""
    sweep, plan = KERNELS[name]
    rng = np.random.default_rng(1)
    live = np.arange(N, dtype=np.int32)
    state = burnt_in(problem, rng)
    sweep(rng, state, problem.model, plan._replace(proposals=1), live, make_tally())
    best = np.inf
    tally = make_tally()
    for _ in range(3):
        start = time.process_time()
        sweep(rng, state, problem.model, plan, live, tally)
        best = min(best, time.process_time() - start)
    proposed, accepted = tally[:, 0].sum(), tally[:, 1].sum()
    share = 100.0 * accepted / proposed
    return f"{name:22} {1e6 * best / STEPS:8.2f} us/step {share:7.2f} % accepted"


if __name__ == "__main__":
    data = example_1(0)
    for kernel in KERNELS:
        print(measure(data, kernel))
