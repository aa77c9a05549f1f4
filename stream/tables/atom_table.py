"""What the stream knows of each of the chain's atoms, by atom id: it grows as the chain does."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.storage.commit.commit import Reassignment
from weald.treecore.statistics.room import longer, next_length

__all__ = ["AtomTable"]

Ids = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

_COLUMNS = {"seq": np.int64, "time": np.float64, "cluster": np.int64, "size": np.int64}
_FIRST_ROOM = 1024


class AtomTable:
    """One row an atom that is there.

    Attributes
    ----------
    seq : ndarray of int64
        Number of the observation in the stream; of a compacted atom, its bundle's with a minus
        sign; 0 for an id that no atom has.
    time : ndarray of float64
        When it happened, by the record, in seconds since the epoch.
    cluster : ndarray of int64
        The published cluster.
    size : ndarray of int64
        Observations in the atom; 0 for an id that no atom has.
    n_observations : int
        Observations in all atoms.
    """

    def __init__(self) -> None:
        self.seq: Ids = np.zeros(_FIRST_ROOM, dtype=np.int64)
        self.time: NDArray[np.float64] = np.zeros(_FIRST_ROOM)
        self.cluster: Ids = np.zeros(_FIRST_ROOM, dtype=np.int64)
        self.size: Ids = np.zeros(_FIRST_ROOM, dtype=np.int64)
        self.end = 0
        self.n_observations = 0

    @property
    def present(self) -> Ids:
        """Ids of the atoms that are there, rising."""
        return np.flatnonzero(self.size[: self.end])

    @property
    def singles(self) -> Ids:
        """Ids of the atoms that are one observation, in order of arrival."""
        atoms = np.flatnonzero(self.seq[: self.end] > 0)
        ordered: Ids = atoms[np.argsort(self.seq[atoms])]
        return ordered

    def enter(self, atoms: Ids, seqs: Ids, times: NDArray[np.float64], clusters: Ids) -> None:
        """Take in observations that are these atoms."""
        if len(atoms) == 0:
            return
        self.end = max(self.end, int(atoms.max()) + 1)
        self._reserve(self.end)
        self.seq[atoms] = seqs
        self.time[atoms] = times
        self.cluster[atoms] = clusters
        self.size[atoms] = 1
        self.n_observations += len(atoms)

    def leave(self, atoms: Ids) -> None:
        """Strike out atoms that have left."""
        self.n_observations -= int(self.size[atoms].sum())
        for name in _COLUMNS:
            getattr(self, name)[atoms] = 0

    def bundle(self, members: Ids, bundle: int) -> None:
        """Let the first of these atoms, which are in one cluster, stand for all of them."""
        stands, size = members[0], int(self.size[members].sum())
        self.leave(members[1:])
        self.n_observations += size - int(self.size[stands])
        self.seq[stands], self.time[stands], self.size[stands] = -bundle, 0.0, size

    def atoms_of(self, seqs: Ids) -> Ids:
        """Atoms of those observations that are in one of their own."""
        if len(seqs) == 0:
            return seqs
        present = self.present
        return present[np.isin(self.seq[present], seqs)]

    def reassignment(self, publication: int, atoms: Ids) -> Reassignment:
        """Say to SQL that a publication has given these atoms the clusters that they have now."""
        numbers, clusters = self.seq[atoms], self.cluster[atoms]
        single = numbers > 0
        return Reassignment(
            publication, numbers[single], clusters[single], -numbers[~single], clusters[~single]
        )

    def state(self) -> Arrays:
        """Arrays from which `restore` makes the table again."""
        return {name: getattr(self, name)[: self.end].copy() for name in _COLUMNS}

    @classmethod
    def restore(cls, state: Arrays) -> "AtomTable":
        """Undo `state`."""
        atom_table = cls()
        atom_table.end = len(state["seq"])
        atom_table._reserve(atom_table.end)
        for name in _COLUMNS:
            getattr(atom_table, name)[: atom_table.end] = state[name]
        atom_table.n_observations = int(atom_table.size.sum())
        return atom_table

    def _reserve(self, n: int) -> None:
        room = len(self.seq)
        if n <= room:
            return
        for name in _COLUMNS:
            setattr(self, name, longer(getattr(self, name), next_length(room, n)))
