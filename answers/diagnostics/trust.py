"""Whether to believe what was found, in words: the checks' reasons, and whether it has settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

__all__ = ["NEARLY_SAME", "SAME", "Trust", "share_stayed", "stayed_in_words"]

# The least share of rows in the same groups or clusters as otherwise, if these have settled, and
# nearly.
SAME, NEARLY_SAME = 0.95, 0.85


@dataclass(frozen=True)
class Trust:
    """Whether to believe what is shown.

    Parameters
    ----------
    reasons : sequence of str
        To doubt it; none where no check gave one.
    settled : str
        Whether more sampling would say the same, answer first; empty where nobody asked.
    """

    reasons: Sequence[str]
    settled: str = ""

    @property
    def for_now(self) -> bool:
        """Whether nothing speaks against it but that more sampling may change a part of it."""
        return not self.reasons and self.settled.startswith(("no:", "not known:"))

    @property
    def verdict(self) -> str:
        """The verdict as people are told it."""
        if self.reasons:
            return "doubt it"
        return "believe it for now" if self.for_now else "believe it"


def share_stayed(n_moved: int, n_clustered: int) -> float:
    """Share of the observations in clusters that a publication left in their own."""
    return 1.0 - min(n_moved / max(n_clustered, 1), 1.0)


def stayed_in_words(stayed: float) -> str:
    """Say in one sentence whether a publication left what was shown before as it was."""
    how = "yes" if stayed >= SAME else "nearly" if stayed >= NEARLY_SAME else "no"
    left = floor(100.0 * stayed)
    return f"{how}: {left} % of the observations stayed in their cluster at the newest publication"
