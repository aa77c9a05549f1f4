"""Which round of leases is out, and doing rounds again at a replay.

What a round brought came from outside, not from the stream, so SQL keeps it: the point of the
stream at which each round began and at which it was taken back, and the labels that came back. A
point is a number of observations and a number of publications, for a publication may come between
two rounds without any observation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..storage.commit import AdoptionRow

if TYPE_CHECKING:
    from .shard import Shard

__all__ = ["LeaseRounds", "RoundsAgain", "packed", "unpacked"]

Ids = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]


class LeaseRounds:
    """Numbers of the round that is out (0 for none) and of the last that was taken back."""

    def __init__(self, out: int = 0, taken: int = 0, seq: int = 0, publication: int = 0) -> None:
        self.out = out
        self.taken = taken
        self.seq = seq
        self.publication = publication

    def begin(self, number: int, shard: Shard) -> None:
        """A round is out from this point of the stream on."""
        self.out, self.seq, self.publication = number, shard.seq, shard.publication

    def end(self) -> None:
        """It is taken back."""
        self.out, self.taken = 0, self.out

    def abandon(self) -> None:
        """It will never be."""
        self.out = 0

    def row(self) -> Ids:
        """Arguments from which it is made again."""
        return np.array([self.out, self.taken, self.seq, self.publication], dtype=np.int64)


def packed(returns: Sequence[tuple[Ids, Ids]]) -> Arrays:
    """Atoms and labels of the leases that came back, as arrays for SQL."""
    nothing = np.empty(0, dtype=np.int64)
    return {
        "lengths": np.array([len(atoms) for atoms, _ in returns], dtype=np.int64),
        "atoms": np.concatenate([nothing, *(atoms for atoms, _ in returns)]),
        "labels": np.concatenate([nothing, *(labels for _, labels in returns)]).astype(np.int32),
    }


def unpacked(payload: Arrays) -> list[tuple[Ids, Ids]]:
    """Undo `packed`."""
    cuts = np.cumsum(payload["lengths"])[:-1]
    atoms = np.split(payload["atoms"], cuts)
    labels = np.split(payload["labels"].astype(np.int64), cuts)
    return list(zip(atoms, labels, strict=True)) if len(payload["lengths"]) else []


class RoundsAgain:
    """The rounds that SQL holds beyond a shard's state, to be done again in their places."""

    def __init__(self, rows: Sequence[AdoptionRow], shard: Shard) -> None:
        self._rows = deque(rows)
        self._shard = shard

    def catch_up(self) -> None:
        """Begin and take back whatever has its place at the present point."""
        shard = self._shard
        while self._rows:
            row = self._rows[0]
            here = (shard.seq, shard.publication)
            if shard.rounds.out != row.round_number:
                if (row.begun_seq, row.begun_publication) != here:
                    return
                shard.rounds.begin(row.round_number, shard)
                shard.chain.note_lent()
            if (row.seq, row.publication) != here:
                return
            shard.take_back(unpacked(row.payload))
            self._rows.popleft()

    def room(self, limit: int) -> int:
        """How many observations may be applied before the next place, at most ``limit``."""
        if not self._rows:
            return limit
        row, shard = self._rows[0], self._shard
        begun = shard.rounds.out == row.round_number
        ahead = (row.seq if begun else row.begun_seq) - shard.seq
        # A place at this very observation comes after a publication that is still to come.
        return min(limit, ahead) if ahead > 0 else limit
