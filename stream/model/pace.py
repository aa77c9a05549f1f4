"""When a refinement has its turn, and whether it is made then.

The first is the cadence, which a saved model holds as a row of numbers; the second as the writer
has decided it, or as SQL remembers it.
"""

from collections.abc import Iterable
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.settings import RefinementSettings

__all__ = ["COUNTED", "Pace", "Remembered", "cadence_of", "cadence_row"]

_MODES: tuple[Literal["inline", "workers"], ...] = ("inline", "workers")


def cadence_row(cadence: RefinementSettings) -> NDArray[np.int64]:
    """Say a cadence in numbers."""
    counts = (cadence.every_records, cadence.publish_every_records, cadence.rounds)
    return np.array([*counts, _MODES.index(cadence.mode)], dtype=np.int64)


def cadence_of(row: NDArray[Any], kernels: str) -> RefinementSettings:
    """Undo `cadence_row`, for a stream that these kernels refine."""
    every, publish_every, rounds, mode = row.tolist()
    return RefinementSettings(every, publish_every, rounds, _MODES[mode], kernels=kernels)


class Pace(Protocol):
    """Asked at each refinement's turn. What it answers has to be in SQL with what came of it."""

    def postpones(self, seq: int, *, of_many: int, concurrent: bool) -> bool:
        """Whether the refinement after observation number `seq` is put off.

        ``of_many`` counts the atoms of one that looks at all of many, and costs as much more as
        there are more; 0 for others. ``concurrent`` says whether that one could go on beside
        arrivals.
        """

    def refined(self, seconds: float, *, of_many: int) -> None:
        """One was made in its turn, and took so long."""


class Remembered:
    """The pace of a replay: what was put off then is put off again.

    Parameters
    ----------
    postponed : iterable of int
        Numbers of observations.
    """

    def __init__(self, postponed: Iterable[int] = ()) -> None:
        self._postponed = frozenset(postponed)

    def postpones(self, seq: int, *, of_many: int, concurrent: bool) -> bool:  # noqa: ARG002 - SQL knows
        """Whether it was put off."""
        return seq in self._postponed

    def refined(self, seconds: float, *, of_many: int) -> None:
        """Decides nothing."""


# Every refinement in its turn.
COUNTED = Remembered()
