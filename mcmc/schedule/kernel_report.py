"""What a refinement did: each move's proposals, what became of them, and what they cost."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .kernels import Kernel

__all__ = ["KernelReport", "Ledger", "Refinement", "added"]


@dataclass(frozen=True)
class KernelReport:
    """What one move did: sums over its proposals, nats and seconds."""

    name: str
    flag: str
    proposed: int
    accepted: int
    sum_log_ratio: float
    log_joint_gain: float
    seconds: float

    @property
    def mean_log_ratio(self) -> float:
        """Of its proposals; merges refused early count with a bound. NaN where there are none."""
        return self.sum_log_ratio / self.proposed if self.proposed else float("nan")

    def __add__(self, other: "KernelReport") -> "KernelReport":
        """Both together, of the same move."""
        return replace(
            self,
            proposed=self.proposed + other.proposed,
            accepted=self.accepted + other.accepted,
            sum_log_ratio=self.sum_log_ratio + other.sum_log_ratio,
            log_joint_gain=self.log_joint_gain + other.log_joint_gain,
            seconds=self.seconds + other.seconds,
        )


@dataclass(frozen=True)
class Refinement:
    """What a refinement did. Log joints are on one scale for the chain's whole life."""

    log_joint_before: float
    log_joint_after: float
    n_blocks: int
    kernels: tuple[KernelReport, ...]
    seconds: float


def added(reports: Iterable[KernelReport]) -> tuple[KernelReport, ...]:
    """One report a move."""
    moves: dict[str, KernelReport] = {}
    for each in reports:
        moves[each.name] = moves[each.name] + each if each.name in moves else each
    return tuple(moves.values())


class Ledger:
    """Adds up what each move of a refinement did."""

    def __init__(self, log_joint: float) -> None:
        self.log_joint = log_joint
        self._reports: tuple[KernelReport, ...] = ()

    def note(
        self, kernel: Kernel, tally: NDArray[np.float64], log_joint: float, seconds: float
    ) -> None:
        """Add a sweep: its tally, the log joint that it reached, and its time."""
        share = 1.0 / len(kernel.parts)
        gain, spent = (log_joint - self.log_joint) * share, seconds * share
        self.log_joint = log_joint
        moves = [
            KernelReport(name, kernel.flag, int(row[0]), int(row[1]), float(row[2]), gain, spent)
            for name, row in zip(kernel.parts, tally, strict=True)
        ]
        self._reports = added([*self._reports, *moves])

    def reports(self) -> tuple[KernelReport, ...]:
        """One report a move."""
        return self._reports
