"""The sum of what each move of a refinement did."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.contract import Kernel

from .kernel_report import KernelReport, added

__all__ = ["Ledger"]

S = TypeVar("S")


class Ledger:
    """Adds up what each move of a refinement did."""

    def __init__(self, log_joint: float) -> None:
        self.log_joint = log_joint
        self._reports: tuple[KernelReport, ...] = ()

    def note(
        self, kernel: Kernel[S], tally: NDArray[np.float64], log_joint: float, seconds: float
    ) -> None:
        """Add a sweep: its tally, the log joint that it reached, and its time."""
        share = 1.0 / len(kernel.parts)
        gain, spent = (log_joint - self.log_joint) * share, seconds * share
        self.log_joint = log_joint
        moves = [
            KernelReport(name, kernel.claim, int(row[0]), int(row[1]), float(row[2]), gain, spent)
            for name, row in zip(kernel.parts, tally, strict=True)
        ]
        self._reports = added([*self._reports, *moves])

    def reports(self) -> tuple[KernelReport, ...]:
        """One report a move."""
        return self._reports
