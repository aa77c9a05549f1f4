"""The observations behind atoms and bundles: from SQL, and from what is not committed yet.

In memory an atom is its statistics and a number, and so is a bundle. What an observation's values
were, and who is in a bundle, only SQL knows, up to the last commit; what happened since is kept
here until the next.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weald.storage.commit.commit import Bundled
from weald.storage.errors import StorageUnavailable

if TYPE_CHECKING:
    from weald.storage.writing.store import SqlStore

__all__ = ["Archive"]

Ids = NDArray[np.int64]
Values = NDArray[np.float64]

_log = logging.getLogger("weald.stream")


class Archive:
    """What a shard asks when it expands a bundle, or sees its observations otherwise.

    Parameters
    ----------
    store : SqlStore
    stream : str
    """

    def __init__(self, store: SqlStore, stream: str) -> None:
        self._store = store
        self._stream = stream
        self._first_seq = 0
        self._values: list[Values] = []
        self._times: list[Values] = []
        self._made: dict[int, list[Bundled]] = {}

    def arrived(self, first_seq: int, values: Values, times: Values) -> None:
        """Keep observations, numbered from `first_seq`, until they are committed."""
        if not self._values:
            self._first_seq = first_seq
        self._values.append(values)
        self._times.append(times)

    def bundled(self, made: Iterable[Bundled]) -> None:
        """Note bundles, or what was added to them."""
        for each in made:
            self._made.setdefault(each.bundle, []).append(each)

    @property
    def waits(self) -> bool:
        """Whether anything is kept that is not committed yet."""
        return bool(self._values or self._made)

    def committed(self) -> None:
        """Forget what SQL holds now."""
        self._values.clear()
        self._times.clear()
        self._made.clear()

    def observations(self, bundle: int) -> tuple[Ids, Values, Values] | None:
        """Return numbers (n), values (n, d) and times (n) of all that is in a bundle.

        None when a row is not in SQL any more, or SQL cannot be asked: the bundle stays then.
        """
        try:
            seqs = np.sort(self._members(bundle))
            found = self._recalled(seqs)
        except StorageUnavailable as error:
            _log.warning("bundle %d is not expanded: %s", bundle, error)
            return None
        if found is None:
            _log.info("bundle %d is not expanded: its observations are not all in SQL", bundle)
            return None
        return seqs, *found

    def values_of(self, seqs: Ids) -> Values | None:
        """Return values (n, d) of the observations with these numbers, rising.

        None when a row is not in SQL any more, or SQL cannot be asked.
        """
        try:
            found = self._recalled(seqs)
        except StorageUnavailable as error:
            _log.warning("observations are not seen anew: %s", error)
            return None
        return None if found is None else found[0]

    def _recalled(self, seqs: Ids) -> tuple[Values, Values] | None:
        """Values (n, d) and times (n) of observations, rising; None where one is missing."""
        older = seqs[seqs < self._first_seq] if self._values else seqs
        values, times = self._store.values_of(self._stream, older)
        if len(values) != len(older) or len(seqs) == 0:
            return None
        if len(older) < len(seqs):
            newer = seqs[len(older) :] - self._first_seq
            held = np.concatenate(self._values)[newer]
            values = np.concatenate([values.reshape(len(older), held.shape[1]), held])
            times = np.concatenate([times, np.concatenate(self._times)[newer]])
        return values, times

    def _members(self, bundle: int) -> Ids:
        found = [self._store.bundled(self._stream, bundle)]
        for made in self._made.get(bundle, ()):
            found.append(made.seq)
            found += [self._members(other) for other in made.absorbed]
        return np.concatenate(found)
