"""The law of concurrent rounds over a real Redis and SQL, against enumerated laws.

    python -m tests.leases.exactness                      every form, 2 and 4 workers, 5 points
    python -m tests.leases.exactness --atoms 4            the points of the specification's figures
    python -m tests.leases.exactness --rounds 3000 --form coins

Each line tells of one form: the total variation between the visited partitions and the posterior,
and what chance alone would make of it; the same distance of the wrong form's law, enumerated path
by path (``tests.exact.rounds``); and how far towards that law the visits are, with its error: 0
is the posterior and 1 the wrong law. A right form must be at 0 and a wrong one at 1, within what
chance explains; leaves with 1 when one is not.

The share of the way is the mean over visits of f = q / p - 1, divided by its mean under q, with p
the posterior and q the wrong law. Errors come from independent copies of the partition.
"""

# Every path of a kernel can be followed only where nothing is compiled, and five observations do
# not repay a compilation.

import os

if __name__ == "__main__":
    os.environ["NUMBA_DISABLE_JIT"] = "1"

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from math import pi, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.exact.cases import Problem, problem
from tests.exact.enumeration import stationary
from tests.exact.rounds import (
    Rounds,
    by_coins,
    full_share,
    optimistic_matrix,
    scans_of,
    stale_counts_matrix,
    stale_return_matrix,
)
from tests.leases.plane import Form, Plane, shard_of
from tests.servers.redis import redis_server
from weald.mcmc.leases import lease_work

COPIES = 50
# All copies begin at exact draws from the posterior: right forms are there at once, and wrong ones
# need a while to their own law.
FORGOTTEN_TURNS = 30
# Of a mean of 50 copies: one run in two thousand is further away by chance.
MOST_ERRORS = 3.7
# The way of doing it wrong that a right form is told from.
RIVALS = {
    Form.COINS: Form.PLAIN_ALPHA,
    Form.PAIRS: Form.OPTIMISTIC,
    Form.LATE: Form.NO_TOKEN,
}

Law = NDArray[np.float64]


@dataclass(frozen=True)
class Found:
    """What was visited, beside the posterior and the wrong law."""

    form: Form
    n_workers: int
    n_visits: int
    distance: float
    by_chance: float
    by_chance_error: float
    wrong_distance: float
    share: float
    share_error: float
    n_fenced: int
    seconds: float

    @property
    def is_posterior(self) -> bool:
        """Whether chance explains the distance from the posterior."""
        near = abs(self.share) < MOST_ERRORS * self.share_error
        excess = self.distance - self.by_chance
        return near and excess < MOST_ERRORS * self.by_chance_error

    @property
    def is_wrong_law(self) -> bool:
        """Whether chance explains the distance from the wrong law, and not from the posterior."""
        there = abs(self.share - 1.0) < MOST_ERRORS * self.share_error
        return there and self.share > MOST_ERRORS * self.share_error

    @property
    def as_it_should_be(self) -> bool:
        """What must be true."""
        return self.is_posterior if self.form.right else self.is_wrong_law

    def line(self) -> str:
        """For people."""
        return (
            f"{self.form:29} {self.n_workers} workers {self.n_visits:6} visits  "
            f"TV {self.distance:.4f} (chance {self.by_chance:.4f}; wrong law "
            f"{self.wrong_distance:.4f})  way to the wrong law {self.share:+.3f} "
            f"+- {self.share_error:.3f}  fenced {self.n_fenced}  {self.seconds:.0f} s  "
            f"{'ok' if self.as_it_should_be else 'NOT AS IT SHOULD BE'}"
        )


@cache
def wrong_law(n_atoms: int, form: Form, n_workers: int) -> Law:
    """The law in the long run of a wrong form, enumerated."""
    small = problem("bernoulli", "dp", n_atoms)
    rounds = Rounds(small, ("dp", {"alpha": 1.0}))
    kernels, lease_work.lease_kernels = lease_work.lease_kernels, scans_of
    try:
        if form is Form.PLAIN_ALPHA:
            matrix = rounds.matrix(small.states, by_coins(n_workers), full_share)
        elif form is Form.STALE_COUNTS:
            atoms = np.arange(n_atoms, dtype=np.int64)
            shards = [shard_of(atoms, number, n_workers) for number in range(n_workers)]
            matrix = stale_counts_matrix(small, shards)
        elif form is Form.OPTIMISTIC:
            matrix = optimistic_matrix(rounds, small.states)
        else:
            whole = rounds.matrix(small.states, by_coins(n_workers))
            matrix = stale_return_matrix(rounds, small, n_workers, whole)
    finally:
        lease_work.lease_kernels = kernels
    return stationary(matrix)


def enumerable(form: Form, n_workers: int) -> bool:
    """Whether there is a wrong law to compare with: of optimistic pairs, there is of two."""
    return n_workers == 2 or RIVALS.get(form, form) is not Form.OPTIMISTIC


def measure(
    small: Problem,
    form: Form,
    n_workers: int,
    n_visits: int,
    redis_url: str,
    forgotten: int | None = None,
) -> Found:
    """Run the rounds and compare."""
    if forgotten is None:
        forgotten = 0 if form.right else FORGOTTEN_TURNS
    began = time.monotonic()
    target = small.target
    wrong = wrong_law(len(small.states[0]), RIVALS.get(form, form), n_workers)
    index = {state: at for at, state in enumerate(small.states)}
    counts = np.zeros((COPIES, len(small.states)))
    n_turns = -(-n_visits // COPIES)
    plane = Plane(small, form, n_workers, COPIES, np.random.default_rng(1))
    with tempfile.TemporaryDirectory() as folder, plane.running(Path(folder), redis_url):
        for at in range(forgotten + n_turns):
            plane.turn()
            if at >= forgotten:
                for copy, labels in enumerate(plane.labels):
                    counts[copy, index[tuple(labels.tolist())]] += 1
    laws = counts / n_turns
    law = laws.mean(axis=0)
    errors = laws.std(axis=0, ddof=1) / sqrt(COPIES)
    tilt = wrong / target - 1.0
    shares = laws @ tilt / float(wrong @ tilt)
    return Found(
        form,
        n_workers,
        n_turns * COPIES,
        float(np.abs(law - target).sum() / 2),
        # Half a sum of absolute values of normal deviates, as if they were independent.
        float(errors.sum() * sqrt(2.0 / pi) / 2),
        float(np.linalg.norm(errors) * sqrt(1.0 - 2.0 / pi) / 2),
        float(np.abs(wrong - target).sum() / 2),
        float(shares.mean()),
        float(shares.std(ddof=1) / sqrt(COPIES)),
        plane.n_fenced,
        time.monotonic() - began,
    )


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=10_000)
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
                if not enumerable(form, n_workers):
                    continue
                url = f"redis://127.0.0.1:{server.port}/0"
                found = measure(small, form, n_workers, asked.rounds, url)
                wrong |= not found.as_it_should_be
                sys.stdout.write(f"{found.line()}\n")
                sys.stdout.flush()
    sys.exit(int(wrong))


if __name__ == "__main__":
    main()
