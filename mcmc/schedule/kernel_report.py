"""What a refinement did: each move's proposals, what became of them, and what they cost."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

__all__ = ["KernelReport", "Refinement", "added"]


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
