"""Where a fit in shards stands after a sweep: all that the next one rests on but the labels."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.sharded.sharded_chain import ShardedState
from weald.treecore.prior import PartitionPrior

__all__ = ["FitStanding", "KeptDraws", "ShardedTrace"]

# Draws of which the shown partition is made, at most.
_DRAWS = 16


@dataclass
class ShardedTrace:
    """What is followed, sweep by sweep; ``bytes`` are those sent and received."""

    log_joint: list[float] = field(default_factory=list)
    n_clusters: list[int] = field(default_factory=list)
    sum_of_squares: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    hyper: dict[str, list[float]] = field(default_factory=dict)
    tally: NDArray[np.float64] = field(default_factory=lambda: np.zeros((3, 3)))
    bytes: list[int] = field(default_factory=list)
    n_remade: int = 0


@dataclass
class KeptDraws:
    """Which sweeps' labels are kept: the newest, and some of those before, evenly spaced.

    Attributes
    ----------
    kept:
        Sweeps of which some will be compared.
    stride:
        How far apart they are.
    held:
        All whose labels there are.
    unneeded:
        Those whose labels nobody will ask for again, once the next sweep is made.
    """

    kept: list[int] = field(default_factory=list)
    stride: int = 1
    held: set[int] = field(default_factory=set)
    unneeded: list[int] = field(default_factory=list)

    def begin(self, sweep: int) -> None:
        """Enter the start, which is no draw."""
        self.held.add(sweep)

    def after(self, sweep: int) -> None:
        """Enter a sweep that was made."""
        if sweep % self.stride == 0:
            self.kept.append(sweep)
        if len(self.kept) == 4 * _DRAWS:
            del self.kept[::2]
            self.stride *= 2
        self.held.add(sweep)
        done = self.held - {*self.kept, sweep}
        self.held -= done
        self.unneeded = sorted(done)

    def second_half(self) -> list[int]:
        """Of those that are kept, as many as a shown partition is made of."""
        late = self.kept[len(self.kept) // 2 :]
        return [late[at] for at in np.unique(np.linspace(0, len(late) - 1, _DRAWS).astype(int))]


@dataclass
class FitStanding:
    """After a sweep; ``first_prior`` is that by which log joints are told."""

    state: ShardedState
    first_prior: PartitionPrior
    trace: ShardedTrace = field(default_factory=ShardedTrace)
    draws: KeptDraws = field(default_factory=KeptDraws)
