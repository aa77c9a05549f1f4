"""Which atoms have been together through the newest sweeps of a chain.

Every atom has a fingerprint: a hash of the blocks that it has been in, sweep by sweep. Two atoms
that were never apart have the same, whatever has become of the trees above them; two that were
have different ones, but for one chance in 2^64. Fingerprints cover two spells of ``SPELL`` sweeps,
the present one and the one before it, so those that agree tell of at least ``SPELL`` sweeps
(``tgmcmc-ibhc.md`` section 7 asks for 200).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["SPELL", "CoOccurrence"]

SPELL = 200

Ids = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

_ODD = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_ALONE = np.uint64(1)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread every bit over all the others (the finaliser of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    mixed: NDArray[np.uint64] = values ^ (values >> np.uint64(31))
    return mixed


class CoOccurrence:
    """Fingerprints by atom id; ids of atoms that left keep theirs until they are given again."""

    def __init__(self) -> None:
        self._prints = np.zeros((2, 0), dtype=np.uint64)
        self._met = np.zeros((2, 0), dtype=np.uint8)
        # When each atom began to be what it is, in sweeps of the chain's life.
        self._since: Ids = np.zeros(0, dtype=np.int64)
        self._sweeps = 0
        self._arrived = 0

    def arrive(self, atoms: Ids) -> None:
        """Begin for new atoms: they have been with nobody in the spell before."""
        if len(atoms) == 0:
            return
        room = self._prints.shape[1]
        end = int(atoms.max()) + 1
        if end > room:
            more = max(end, 2 * room) - room
            self._prints = np.pad(self._prints, ((0, 0), (0, more)))
            self._met = np.pad(self._met, ((0, 0), (0, more)))
            self._since = np.pad(self._since, (0, more))
        serial = self._arrived + 1 + np.arange(len(atoms), dtype=np.uint64)
        self._prints[0, atoms] = _mixed(serial * _ODD)
        self._prints[1, atoms] = _mixed(serial * _ODD + _ALONE)
        self._met[:, atoms] = 0
        self._since[atoms] = self._sweeps
        self._arrived += len(atoms)

    def compacted(self, atoms: Ids) -> None:
        """Note that these atoms stand for more from now on."""
        self._since[atoms] = self._sweeps

    def note(self, atoms: Ids, labels: Ids) -> None:
        """Take down one sweep.

        Parameters
        ----------
        atoms : ndarray of int64, shape (n,)
            Every atom that is there.
        labels : ndarray of int64, shape (n,)
            Their blocks: any numbers, equal where the block is.
        """
        if self._sweeps % SPELL == 0:
            self._prints = np.stack([self._prints[1], np.zeros_like(self._prints[1])])
            self._met = np.stack([self._met[1], np.zeros_like(self._met[1])])
        self._sweeps += 1
        seen = labels.astype(np.uint64) * _ODD + np.uint64(self._sweeps)
        self._prints[1, atoms] = _mixed(self._prints[1, atoms] ^ _mixed(seen))
        alone = np.bincount(labels)[labels] == 1
        self._met[1, atoms] |= ~alone

    def groups(self, atoms: Ids) -> Ids:
        """Number these atoms (n) by fingerprint: equal where two were never apart."""
        pairs = _mixed(self._prints[0, atoms] + _ODD) ^ self._prints[1, atoms]
        _, numbers = np.unique(pairs, return_inverse=True)
        return numbers.astype(np.int64)

    def wanderers(self, atoms: Ids) -> NDArray[np.bool_]:
        """Which of these atoms (all that there are) nobody has accompanied all along.

        An atom that has been alone all along is none: it went nowhere. Neither is one that began
        in the two spells of which the fingerprints tell.
        """
        groups = self.groups(atoms)
        lone = np.bincount(groups)[groups] == 1
        old = self._since[atoms] <= self._sweeps - 2 * SPELL
        wanderers: NDArray[np.bool_] = lone & old & (self._met[:, atoms] > 0).any(axis=0)
        return wanderers

    def state(self, end: int) -> Arrays:
        """Arrays about the ids below `end`, from which `restore` goes on."""
        return {
            "prints": self._prints[:, :end].copy(),
            "met": self._met[:, :end].copy(),
            "since": self._since[:end].copy(),
            "counts": np.array([self._sweeps, self._arrived]),
        }

    @classmethod
    def restore(cls, state: Arrays) -> "CoOccurrence":
        """Undo `state`."""
        made = cls()
        made._prints, made._met = state["prints"], state["met"]
        made._since = state["since"]
        made._sweeps, made._arrived = state["counts"].tolist()
        return made
