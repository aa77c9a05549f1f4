"""What a refinement did: each move's proposals, what became of them, and what they cost."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

__all__ = ["KernelReport", "Refinement", "added"]


@dataclass(frozen=True)
class KernelReport:
    """What one move did: sums over its proposals, nats and seconds.

    Merges that were refused early count with a bound of their log ratio.
    """

    name: str
    flag: str
    proposed: int
    accepted: int
    sum_log_ratio: float
    log_joint_gain: float
    seconds: float

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
