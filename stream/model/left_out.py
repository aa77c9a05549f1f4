"""Whether columns that a stream leaves out have begun to say something.

What the first records said of a column, that it has one value, repeats another or is a sum of
others, need not hold for ever. How many records say otherwise is counted as they come. When they
are a twentieth of those that the model holds, and twenty at least, the writer looks at these
before the next publication; where it was right to leave the column out, it looks again when twice
as many have come. All of this follows from the records alone, in a replay as well.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.offline.transformation import Transformation
from weald.storage.commit.commit import StreamSpec

__all__ = ["MOST_SEEN_ANEW", "SAMPLE_RECORDS", "SHARE", "LeftOut", "Revise", "begun_to_vary"]

Values = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]
# From records (n, d) of a sample to what the stream is from now on.
Revise = Callable[[Values], StreamSpec]

# Of the records that are held, and the fewest, in which a column says otherwise.
SHARE, _FEWEST = 0.05, 20
# Records of which it is learned anew how the family sees them, evenly chosen; of more than the
# second number nothing is seen anew, as the writer would be held up for minutes.
SAMPLE_RECORDS, MOST_SEEN_ANEW = 500, 50_000


class LeftOut:
    """How many records say otherwise of each column that is left out, since the stream began so."""

    def __init__(self) -> None:
        self._counts = np.empty(0, dtype=np.int64)
        self._next = _FEWEST

    def note(self, learned: Transformation, values: Values) -> None:
        """Count observations (n, d) that have come."""
        if learned.base.size:
            if not self._counts.size:
                self._counts = np.zeros(learned.base.size, dtype=np.int64)
            self._counts += learned.unlike(values).sum(axis=0)

    def take_due(self, n_held: int) -> bool:
        """Whether it is time to look at the records that are held; it then is no more."""
        most = int(self._counts.max(initial=0))
        due = most >= max(self._next, SHARE * n_held)
        if due:
            self._next = 2 * most
        return due

    def state(self) -> Arrays:
        """Arrays from which `restore` goes on."""
        return {"counts": self._counts.copy(), "next": np.array([self._next])}

    @classmethod
    def restore(cls, state: Arrays) -> "LeftOut":
        """Undo `state`; an earlier Weald counted nothing."""
        left_out = cls()
        if state:
            left_out._counts, left_out._next = state["counts"], int(state["next"][0])
        return left_out


def begun_to_vary(learned: Transformation, values: Values, names: Sequence[str]) -> str | None:
    """Say which columns that are left out say something in these records (n, d), and in how many.

    None where none does in a large enough share of them.
    """
    n = learned.unlike(values).sum(axis=0)
    told = [
        f"{names[column]} in {count} of {len(values)}"
        for column, count in zip(learned.left_out.tolist(), n.tolist(), strict=True)
        if count >= max(_FEWEST, SHARE * len(values))
    ]
    return ", ".join(told) or None
