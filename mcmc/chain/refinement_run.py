"""A refinement under way: its rounds, and the account of what its kernels did."""

import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

from numpy.random import Generator

from weald.mcmc.contract import Kernel, PartitionState
from weald.mcmc.schedule.kernel_report import Refinement
from weald.mcmc.schedule.ledger import Ledger
from weald.treecore.prior import PartitionPrior

__all__ = ["LEARNED_EACH_ROUND", "RefinementRun"]

# Another base measure has every atom and node of the guide measured again. Of more atoms than these
# it is learned in the first round of a refinement alone: many say little new from round to round.
LEARNED_EACH_ROUND = 1000

P = TypeVar("P", bound=PartitionState[object])


class RefinementRun:
    """A refinement under way; its clock starts when it is made.

    Parameters
    ----------
    scale : PartitionPrior
        Prior under which log joints are reported.
    """

    def __init__(self, scale: PartitionPrior) -> None:
        self._began = time.perf_counter()
        self._scale = scale
        self._before = 0.0
        self._ledger = Ledger(0.0)

    def rounds(
        self, rng: Generator, position: P, schedule: Sequence[Kernel[P]], n_rounds: int
    ) -> Iterator[None]:
        """Update the hyperparameters and run every kernel, so many times; stop after each round."""
        self._before = position.log_joint(self._scale)
        self._ledger = Ledger(self._before)
        for _ in range(n_rounds):
            position.resample(rng)
            for kernel in schedule:
                started = time.perf_counter()
                tally = kernel.sweep(rng, position)
                reached = position.log_joint(self._scale)
                self._ledger.note(kernel, tally, reached, time.perf_counter() - started)
            yield

    def refinement(self, n_blocks: int) -> Refinement:
        """What was done up to now."""
        seconds = time.perf_counter() - self._began
        after, reports = self._ledger.log_joint, self._ledger.reports()
        return Refinement(self._before, after, n_blocks, reports, seconds)
