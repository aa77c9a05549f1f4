"""Arrays that grow at their end at constant cost per row."""

from typing import Any

from numpy.typing import NDArray

from weald.treecore.statistics.room import longer, next_length

__all__ = ["GrowingArray"]


class GrowingArray:
    """A growing array; the first axis grows.

    Parameters
    ----------
    initial : ndarray, shape (n, ...)
        Copied.
    """

    def __init__(self, initial: NDArray[Any]) -> None:
        self._array = initial.copy()
        self._length = len(initial)

    def __len__(self) -> int:
        return self._length

    @property
    def rows(self) -> NDArray[Any]:
        """What was put in so far; valid until the next `extend`."""
        return self._array[: self._length]

    def extend(self, more: NDArray[Any]) -> None:
        """Append rows."""
        needed = self._length + len(more)
        if needed > len(self._array):
            self._array = longer(self._array, max(next_length(len(self._array), needed), 64))
        self._array[self._length : needed] = more
        self._length = needed
