"""The law of concurrent rounds over a real Redis, against the enumerated posterior.

    python -m tests.leases.exactness                      every form, 2 and 4 workers
    python -m tests.leases.exactness --rounds 3000 --form coins

For each form: the total variation between the visited partitions and the posterior, what chance
alone would make of it (from 50 batch means), and the mean number of clusters with its error. Leaves
with 1 when a right form is further away than chance explains, or a wrong one is not.
NUMBA_DISABLE_JIT=1 saves the compilation, which five observations do not repay.
"""

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from math import pi, sqrt
from pathlib import Path

import numpy as np

from tests.exact.cases import Problem, problem
from tests.leases.plane import Form, Plane
from tests.servers.redis import redis_server

BATCHES = 50
# Of a sum over dozens of states, whose own spread is small beside its mean.
MOST_BY_CHANCE = 1.6
# Of a mean of 50 batches: one run in two thousand is further away by chance.
MOST_ERRORS = 3.7


@dataclass(frozen=True)
class Found:
    """Distance from the posterior, what chance explains of it, and the mean number of clusters."""

    form: Form
    n_workers: int
    n_rounds: int
    distance: float
    by_chance: float
    n_clusters: float
    n_clusters_error: float
    true_clusters: float
    n_fenced: int
    seconds: float

    @property
    def agrees(self) -> bool:
        """Whether chance explains the distance."""
        off = abs(self.n_clusters - self.true_clusters)
        near = off < MOST_ERRORS * self.n_clusters_error
        return near and self.distance < MOST_BY_CHANCE * self.by_chance

    def line(self) -> str:
        """For people."""
        return (
            f"{self.form:32} {self.n_workers} workers {self.n_rounds:6} rounds  "
            f"TV {self.distance:.4f} (chance {self.by_chance:.4f})  "
            f"E[K] {self.n_clusters:.3f} +- {self.n_clusters_error:.3f} "
            f"(true {self.true_clusters:.3f})  "
            f"fenced {self.n_fenced}  {self.seconds:.0f} s"
        )


def measure(
    small: Problem, form: Form, n_workers: int, n_rounds: int, redis_url: str, seed: int = 1
) -> Found:
    """Run the rounds and compare."""
    index = {state: at for at, state in enumerate(small.states)}
    visits = np.zeros(n_rounds, dtype=np.int64)
    plane = Plane(small, form, np.random.default_rng(seed))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, plane.running(Path(folder), redis_url, n_workers):
        for at in range(n_rounds):
            plane.turn()
            visits[at] = index[tuple(plane.labels.tolist())]
    n_states = len(small.states)
    law = np.bincount(visits, minlength=n_states) / n_rounds
    batches = np.array_split(visits, BATCHES)
    means = np.array([np.bincount(each, minlength=n_states) / len(each) for each in batches])
    errors = means.std(axis=0, ddof=1) / sqrt(BATCHES)
    sizes = np.array([max(state) + 1 for state in small.states])
    return Found(
        form,
        n_workers,
        n_rounds,
        float(np.abs(law - small.target).sum() / 2),
        float(errors.sum() * sqrt(2.0 / pi) / 2),
        float(law @ sizes),
        float((means @ sizes).std(ddof=1) / sqrt(BATCHES)),
        float(small.target @ sizes),
        plane.n_fenced,
        time.monotonic() - began,
    )


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--workers", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--form", type=Form, choices=list(Form), nargs="*", default=list(Form))
    parser.add_argument("--atoms", type=int, default=5)
    asked = parser.parse_args()
    small = problem("bernoulli", "dp", asked.atoms)
    wrong = False
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        server = redis_server(folder)
        server.start()
        running.callback(server.stop)
        for n_workers in asked.workers:
            for form in asked.form:
                url = f"redis://127.0.0.1:{server.port}/0"
                found = measure(small, form, n_workers, asked.rounds, url)
                verdict = "ok" if found.agrees == form.right else "NOT AS IT SHOULD BE"
                wrong |= found.agrees != form.right
                sys.stdout.write(f"{found.line()} {verdict}\n")
                sys.stdout.flush()
    sys.exit(int(wrong))


if __name__ == "__main__":
    main()
