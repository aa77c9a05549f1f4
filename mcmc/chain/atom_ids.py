"""Ids of a chain's atoms: places in its arrays, given again when an atom has left."""

import numpy as np
from numpy.typing import NDArray

from weald.treecore.errors import ObservationError

__all__ = ["AtomIds"]

Ids = NDArray[np.int64]


class AtomIds:
    """Which ids are in use.

    Attributes
    ----------
    end : int
        Every id in use is below this.
    free : ndarray of int64
        Ids below ``end`` that no atom has; the last one is given next.
    """

    def __init__(self, end: int = 0, free: Ids | None = None) -> None:
        self.end = end
        self.free: Ids = np.empty(0, dtype=np.int64) if free is None else free

    def __len__(self) -> int:
        """Ids in use."""
        return self.end - self.free.shape[0]

    def take(self, n: int) -> Ids:
        """Ids for n atoms: those given back last come first, then new ones."""
        n_left = max(self.free.shape[0] - n, 0)
        used = self.free[n_left:][::-1]
        fresh = np.arange(self.end, self.end + n - used.shape[0], dtype=np.int64)
        self.free = self.free[:n_left]
        self.end += fresh.shape[0]
        return np.concatenate((used, fresh))

    def give_back(self, ids: Ids) -> None:
        """Note that these atoms are no more."""
        self.free = np.concatenate((self.free, ids))

    def require(self, ids: Ids) -> None:
        """Raise ObservationError when one of these is not in use, or is named twice."""
        known = (ids >= 0) & (ids < self.end) & ~np.isin(ids, self.free)
        if not known.all():
            raise ObservationError(f"no atom has the id {ids[~known][0]}")
        if np.unique(ids).shape[0] < ids.shape[0]:
            raise ObservationError("an atom can be removed only once")
