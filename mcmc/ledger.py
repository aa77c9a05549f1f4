"""What a refinement did: each move's proposals, what became of them, and what they cost."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .kernels import Kernel

__all__ = ["KernelReport", "Ledger", "Refinement"]


@dataclass(frozen=True)
class KernelReport:
    """What one move did in a refinement; ``mean_log_ratio`` is NaN where nothing was proposed."""

    name: str
    flag: str
    proposed: int
    accepted: int
    mean_log_ratio: float
    log_joint_gain: float
    seconds: float


@dataclass(frozen=True)
class Refinement:
    """What a refinement did. Log joints are on one scale for the chain's whole life."""

    log_joint_before: float
    log_joint_after: float
    best_log_joint: float
    n_blocks: int
    kernels: tuple[KernelReport, ...]
    seconds: float


class Ledger:
    """Adds up what each move of a refinement did."""

    def __init__(self, log_joint: float) -> None:
        self.log_joint = log_joint
        self._rows: dict[str, list[float]] = {}
        self._flags: dict[str, str] = {}

    def note(
        self, kernel: Kernel, tally: NDArray[np.float64], log_joint: float, seconds: float
    ) -> None:
        """Add a sweep: its tally, the log joint that it reached, and its time."""
        gain = log_joint - self.log_joint
        self.log_joint = log_joint
        share = 1.0 / len(kernel.parts)
        for name, moves in zip(kernel.parts, tally, strict=True):
            self._flags[name] = kernel.flag
            row = self._rows.setdefault(name, [0.0] * 5)
            for at, value in enumerate((*moves, gain * share, seconds * share)):
                row[at] += float(value)

    def reports(self) -> tuple[KernelReport, ...]:
        """One report a move."""
        return tuple(
            KernelReport(
                name=name,
                flag=self._flags[name],
                proposed=int(row[0]),
                accepted=int(row[1]),
                mean_log_ratio=row[2] / row[0] if row[0] else float("nan"),
                log_joint_gain=row[3],
                seconds=row[4],
            )
            for name, row in self._rows.items()
        )
