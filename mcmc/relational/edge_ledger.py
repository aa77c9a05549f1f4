"""The records of edges that a stream's model holds, and what they say of each pair of vertices."""

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from weald.treecore.relational.network import Links

__all__ = ["EdgeLedger"]

Ids = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]
Ends = TypeVar("Ends", int, Ids)

_KINDS = {
    "seq": np.int64,
    "time": np.float64,
    "source": np.int64,
    "target": np.int64,
    "weight": np.float64,
}
# Atoms' ids stay below, so that two of them fit one int64.
_MOST_ATOMS = 2**31


class _Edges(NamedTuple):
    seq: Ids
    time: NDArray[np.float64]
    source: Ids
    target: Ids
    weight: NDArray[np.float64]

    def at(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> "_Edges":
        """Some of the rows."""
        seq, time, source, target, weight = self
        return _Edges(seq[rows], time[rows], source[rows], target[rows], weight[rows])


class EdgeLedger:
    """One row a record; ends are ids of atoms.

    Parameters
    ----------
    directed, counts : bool
        Whether edges have a direction, and whether weights of one pair add up. Otherwise the first
        record of a pair makes the edge, and the others repeat it.
    """

    def __init__(self, *, directed: bool, counts: bool) -> None:
        self.directed, self.counts = directed, counts
        self._rows = _Edges(*(np.empty(0, dtype=kind) for kind in _KINDS.values()))
        # Records since the rows were last put together, and which pairs they are about.
        self._new: list[tuple[int, float, int, int, float]] = []
        self._new_pairs: set[int] = set()
        self._pairs: Ids = np.empty(0, dtype=np.int64)

    def _key(self, source: Ends, target: Ends) -> Ends:
        if self.directed:
            return source * _MOST_ATOMS + target
        return np.minimum(source, target) * _MOST_ATOMS + np.maximum(source, target)

    def add(self, seq: int, time: float, edge: tuple[int, int, float]) -> float:
        """Take a record in: source, target, weight; returns what it adds to the pair's edge."""
        source, target, weight = edge
        self._new.append((seq, time, source, target, weight))
        if self.counts:
            return weight
        key = int(self._key(source, target))
        at = int(np.searchsorted(self._pairs, key))
        if key in self._new_pairs or (at < len(self._pairs) and self._pairs[at] == key):
            return 0.0
        self._new_pairs.add(key)
        return 1.0

    def rows(self) -> _Edges:
        """All records, in order of arrival."""
        if self._new:
            seq, time, source, target, weight = zip(*self._new, strict=True)
            held = self._rows
            self._take(
                _Edges(
                    np.append(held.seq, np.array(seq, dtype=np.int64)),
                    np.append(held.time, np.array(time)),
                    np.append(held.source, np.array(source, dtype=np.int64)),
                    np.append(held.target, np.array(target, dtype=np.int64)),
                    np.append(held.weight, np.array(weight)),
                )
            )
        return self._rows

    def _take(self, rows: _Edges) -> None:
        self._rows = rows
        self._new.clear()
        self._new_pairs.clear()
        self._pairs = np.unique(self._key(rows.source, rows.target))

    def links(self) -> Links:
        """The edge of each pair that has one, each pair once."""
        keys, _, weight = self._summed()
        source, target = np.divmod(keys, _MOST_ATOMS)
        return Links(source, target, weight)

    def _summed(self) -> tuple[Ids, Ids, NDArray[np.float64]]:
        """Keys of the pairs that have an edge, which of them each row is about, their edges."""
        rows = self.rows()
        keys, at = np.unique(self._key(rows.source, rows.target), return_inverse=True)
        weight = np.ones(len(keys))
        if self.counts:
            weight = np.bincount(at, weights=rows.weight, minlength=len(keys)).astype(np.float64)
        return keys, at, weight

    def fade(self, factor: float) -> None:
        """Multiply the weight of every record."""
        rows = self.rows()
        self._rows = rows._replace(weight=rows.weight * factor)

    def leave(self, gone: NDArray[np.bool_]) -> Ids:
        """Strike out records, by their place in `rows`; returns their numbers."""
        rows = self.rows()
        self._take(rows.at(~gone))
        return rows.seq[gone]

    def merge(self) -> None:
        """Keep one row a pair, as new as the newest of its records."""
        rows = self.rows()
        keys, at, weight = self._summed()
        if len(keys) == len(at):
            return
        newest = np.zeros(len(keys), dtype=np.int64)
        newest[at] = np.arange(len(at))  # the last one written stays
        merged = rows.at(newest)
        if self.counts:
            merged = merged._replace(weight=weight)
        self._take(merged.at(np.argsort(merged.seq)))

    def state(self) -> Arrays:
        """Arrays from which `restore` makes the ledger again."""
        return dict(zip(_KINDS, self.rows(), strict=True))

    def restore(self, state: Arrays) -> None:
        """Undo `state`."""
        self._take(_Edges(*(state[name] for name in _KINDS)))
