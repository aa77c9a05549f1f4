"""Whether to believe what was found, in words: the checks' reasons, and whether it has settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Trust"]


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
