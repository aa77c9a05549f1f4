"""What refinement adds to one transaction, inline or by workers: plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

__all__ = ["AdoptionRow", "LeaseRow", "RoleRow", "RoundRow"]

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class LeaseRow:
    """A lease as it is offered, or closed.

    Attributes
    ----------
    round_number, number
        Rounds of a stream count from 1, the leases of a round from 0.
    token
        The fence: a return counts while the row has its token and the outcome ``offered``.
    outcome
        ``offered``; or how it was closed: ``adopted``, ``expired`` (nobody held it any more),
        ``parked`` (it ended its workers again and again) or ``abandoned`` (its writer was).
    n_atoms
        How much of the partition it holds.
    offered_at, closed_at
        Seconds since 1970.
    worker
        Who returned it.
    begun_seq, begun_publication
        The point of the stream at which its round began; None where an earlier Weald offered it.
    role
        Of the workers that it was meant for; None where an earlier Weald offered it.
    proposed, accepted
        Moves of its kernels, where it was adopted.
    squared_jump
        Squared change of the sum of squared shares of all observations.
    processor_seconds
        What its kernels took.
    """

    round_number: int
    number: int
    token: int
    outcome: str
    n_atoms: int
    offered_at: float
    closed_at: float | None = None
    worker: str | None = None
    begun_seq: int | None = None
    begun_publication: int | None = None
    role: str | None = None
    proposed: int | None = None
    accepted: int | None = None
    squared_jump: float | None = None
    processor_seconds: float | None = None


@dataclass(frozen=True)
class RoleRow:
    """What the adopted leases of one role came to, over the rounds that SQL keeps.

    Attributes
    ----------
    role
        Of the workers that they were meant for.
    leases, proposed, accepted
        How many, and the moves of their kernels.
    processor_seconds
        What those took.
    squared_jump_per_second
        Squared changes of the sum of squared shares, per processor second: how well the role mixes
        what is slow. None where they took no time.
    """

    role: str
    leases: int
    proposed: int
    accepted: int
    processor_seconds: float
    squared_jump_per_second: float | None


@dataclass(frozen=True, eq=False)
class AdoptionRow:
    """A round of refinement that was taken back, as replay needs it.

    Attributes
    ----------
    round_number
        Of its leases, if it had any.
    begun_seq, begun_publication
        Observations and publications that there were when it began.
    seq, publication
        The same for when it was taken back.
    payload
        The atoms and labels that came back; of a round that the writer made by itself nothing, as a
        replay makes it again.
    """

    round_number: int
    begun_seq: int
    begun_publication: int
    seq: int
    publication: int
    payload: Arrays

    @property
    def is_own(self) -> bool:
        """Whether the writer made it by itself."""
        return not self.payload


@dataclass(frozen=True)
class RoundRow:
    """What one kernel did in one stretch of refinement, after ``seq`` observations."""

    seq: int
    kernel: str
    proposed: int
    accepted: int
    log_joint_before: float
    log_joint_after: float
    seconds: float
