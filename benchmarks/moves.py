"""Microseconds of processor time a step of each kernel: ``python -m benchmarks.moves``.

First Jain and Neal's example 1 (100 observations of 6 binary attributes in 5 clusters, alpha = beta
= 1), from the partition that 200 Gibbs scans reach from the true one. Then Wang and Russell's
entity/mention model (10 kinds of mention, alpha = 0.001, mu = 0.5, sigma = 1) from K0 entities, for
which the paper's figure 6 has 10.02 ms a step of smart-dumb at N = 500.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.entities.entities import entity_seating, make_entity_state
from weald.mcmc.gibbs import gibbs
from weald.mcmc.offline.start import atoms_of
from weald.mcmc.split_merge import dm, rgsm, rm, rsm, sams, sdds, ss
from weald.mcmc.state.atom_state import MERGE, SPLIT, make_state, make_tally
from weald.treecore.family import FAMILIES
from weald.treecore.family.interface.base import workspace
from weald.treecore.partition.partition import Model
from weald.treecore.prior import build_prior

from .papers.simulated import N_KINDS, attributes, mentions

N = 100
STEPS = 20_000

KERNELS: dict[str, tuple[Any, Any]] = {
    "rsm": (rsm.sweep, rsm.RsmPlan(STEPS)),
    "rgsm (0,1,0)": (rgsm.sweep, rgsm.RgsmPlan(0, STEPS, 0)),
    "rgsm (5,1,0)": (rgsm.sweep, rgsm.RgsmPlan(5, STEPS, 0)),
    "rgsm (1,1,0) anchored": (rgsm.sweep, rgsm.RgsmPlan(1, STEPS, 0, rgsm.ANCHORED)),
    "sams": (sams.sweep, sams.SamsPlan(STEPS)),
    "dm": (dm.sweep, dm.DmPlan(STEPS)),
    "sdds": (sdds.sweep, sdds.SddsPlan(STEPS)),
    "sdds (a)": (sdds.sweep, sdds.SddsPlan(STEPS, 1.0)),
    "sdds (b)": (sdds.sweep, sdds.SddsPlan(STEPS, 0.0)),
    "ss": (ss.sweep, ss.SsPlan(STEPS)),
    "rm": (rm.sweep, rm.RmPlan(STEPS)),
}

ENTITY_KERNELS = ("sdds", "ss", "rgsm (5,1,0)", "rm")


def seconds(run: Callable[[], None]) -> float:
    """Processor time of the fastest of three runs."""
    best = np.inf
    for _ in range(3):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def report(name: str, spent: float, tally: NDArray[np.float64]) -> str:
    """One line of a table."""
    share = 100.0 * tally[:, 1] / np.maximum(tally[:, 0], 1.0)
    accepted = f"{share[SPLIT]:6.2f} / {share[MERGE]:6.2f}"
    return f"{name:32}{1e6 * spent / STEPS:8.2f} us/step{accepted} % of splits / merges accepted"


def example_1(name: str) -> str:
    """A kernel on Jain and Neal's example."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 5, N).astype(np.int64)
    values = (rng.random((N, 6)) < attributes(6)[truth]).astype(np.float64)
    family = FAMILIES["bernoulli"].build({"a": 1.0, "b": 1.0}, values)
    seating = build_prior("dp", {"alpha": 1.0}).seating(N, N)
    model = Model(family, seating, workspace(family))
    state = make_state(family, atoms_of(family, values), truth)
    live = np.arange(N, dtype=np.int64)
    for _ in range(200):
        gibbs.sweep(rng, state, model, live)
    sweep, plan = KERNELS[name]
    sweep(rng, state, model, plan._replace(proposals=1), live, make_tally())
    tally = make_tally()
    spent = seconds(lambda: sweep(rng, state, model, plan, live, tally))
    return report(name, spent, tally)


def entities(name: str, n: int, n_entities: int) -> str:
    """A kernel on n mentions of 10 kinds; each of the first entities holds some kinds whole."""
    rng = np.random.default_rng(0)
    kinds = mentions(rng, n)
    family = FAMILIES["categorical"].build({"beta": 0.001, "levels": N_KINDS}, kinds[:, None] * 1.0)
    model = Model(family, entity_seating(n), workspace(family))
    state = make_state(family, atoms_of(family, kinds[:, None] * 1.0), kinds % n_entities)
    prior: Any = build_prior("emm", {"mu": 0.5, "sigma": 1.0, "kmax": 400})
    live = np.arange(n, dtype=np.int64)
    held = make_entity_state(state, n_entities, prior.log_entities())
    sweep, plan = KERNELS[name]
    sweep(rng, held, model, plan._replace(proposals=1), live, make_tally())
    tally = make_tally()
    spent = seconds(lambda: sweep(rng, held, model, plan, live, tally))
    title = f"{name}, N = {n}, K0 = {n_entities}"
    return f"{report(title, spent, tally)}, K = {held.entities.number[0]}"


if __name__ == "__main__":
    for kernel in KERNELS:
        print(example_1(kernel))
    for kernel in ENTITY_KERNELS:
        for size, start in ((100, 10), (500, 1), (500, 5), (500, 10), (500, 20)):
            print(entities(kernel, size, start))
