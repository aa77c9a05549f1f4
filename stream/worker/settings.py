"""What people may choose about workers and their leases."""

from typing import Annotated

import msgspec

__all__ = ["WorkersSettings"]

Seconds = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class WorkersSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The refinement plane; in force where ``refinement.mode`` is ``workers``.

    Attributes
    ----------
    leases
        Leases of a round; 0 makes one for each worker that is there when the round begins.
    sweeps
        Sweeps of each kernel on a lease: its length, which is never a time. Longer leases lose less
        on the way between writer and workers, shorter ones deal the blocks out anew more often.
    kernels
        Other kernels of workers without a role of their own than ``refinement.kernels``, whose
        ``auto`` this stands for. With ``leases`` at 1 a lease is the whole partition: workers of
        the role ``subc`` then sweep over all of it with all cores of their machine.
    lease_seconds
        Without a sign of life for so long, a lease is given to another worker. Workers beat four
        times as often.
    deliveries
        A lease that has ended so many workers is parked: its clusters stay as they are this round.
    behind_seconds
        While the oldest record in hand is older than this, rounds cost the writer a quarter of what
        they may otherwise: the latency of assignments comes first.
    writer_share
        The most of the writer's time that giving out and taking back leases may cost.
    threads
        Workers that `weald run --embedded` starts beside the writer.
    nice
        By how much `weald worker` lowers its priority, so that ingestion has the cores first.
    """

    leases: Annotated[int, msgspec.Meta(ge=0)] = 0
    sweeps: Count = 8
    kernels: str = "auto"
    lease_seconds: Seconds = 10.0
    deliveries: Count = 3
    behind_seconds: Seconds = 5.0
    writer_share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.2
    threads: Count = 1
    nice: Annotated[int, msgspec.Meta(ge=0, le=19)] = 5
