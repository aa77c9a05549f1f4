"""Which round of leases is out, and what came back of one, as SQL keeps it.

What a round brought came from outside, not from the stream, so SQL keeps it: the point of the
stream at which each round began and at which it was taken back, and the labels that came back. A
point is a number of observations and a number of publications, for a publication may come between
two rounds without any observation. A refinement that the writer itself has made beside arrivals is
a round, too, of which SQL keeps the place alone: a replay makes it again.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LeaseRounds", "packed", "unpacked"]

Ids = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]


class LeaseRounds:
    """Numbers of the round that is out (0 for none) and of the last that was taken back."""

    def __init__(self, out: int = 0, taken: int = 0, seq: int = 0, publication: int = 0) -> None:
        self.out = out
        self.taken = taken
        self.seq = seq
        self.publication = publication

    def begin(self, number: int, seq: int, publication: int) -> None:
        """A round is out from this point of the stream on."""
        self.out, self.seq, self.publication = number, seq, publication

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
