"""Whether a refinement is made in its turn, as the writer has decided it or as SQL remembers it."""

from collections.abc import Iterable
from typing import Protocol

__all__ = ["COUNTED", "Pace", "Remembered"]


class Pace(Protocol):
    """Asked at each refinement's turn. What it answers has to be in SQL with what came of it."""

    def postpones(self, seq: int, *, of_many: int) -> bool:
        """Whether the refinement after observation number `seq` is put off.

        ``of_many`` counts the atoms of one that looks at all of many, and costs as much more as
        there are more; 0 for others.
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

    def postpones(self, seq: int, *, of_many: int) -> bool:  # noqa: ARG002 - SQL knows
        """Whether it was put off."""
        return seq in self._postponed

    def refined(self, seconds: float, *, of_many: int) -> None:
        """Decides nothing."""


# Every refinement in its turn.
COUNTED = Remembered()
