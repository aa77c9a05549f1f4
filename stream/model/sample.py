"""Which observations a model holds that holds a sample of its stream, and where the others go.

Every observation has a priority, a number that follows from the stream's seed and its own number
and from nothing else, and the model holds those of least priority. So what it holds is a uniform
sample of all that came, whatever the values and the partition are, and a replay holds the same.
What is out never comes back: the bound, the least priority that is out, only goes down, and most
that comes to a full model is out as it comes. It is shown in the cluster that is most probable
under the clusters of the last refinement, so that it does not matter where the stream is cut.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.stream.tables.atom_table import AtomTable
from weald.stream.tables.cluster_table import ClusterTable
from weald.treecore.family.interface.base import Family
from weald.treecore.family.totals import (
    add_observations,
    empty_totals,
    log_marginals,
    log_predictives,
)
from weald.treecore.prior import PartitionPrior

__all__ = ["Sample", "priorities"]

Ids = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

# Of those that are held, the share that is listed in the order in which they are to leave, and how
# many times those that leave now are: all that are held are looked at for the list.
_LISTED, _LISTED_TURNS = 1 / 64, 8
_ALL = np.uint64(2**64 - 1)
# Steele, Lea and Flood's SplitMix64 (2014): its step, and the two factors and three shifts.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)


def priorities(seed: int, seqs: Ids) -> NDArray[np.uint64]:
    """Priority of each observation by its number (n): no two have the same."""
    start = _mixed(np.array([seed % 2**64], dtype=np.uint64))
    return _mixed(start + seqs.astype(np.uint64) * _STEP)


def _mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> _SHIFTS[0])) * _FACTORS[0]
    z = (z ^ (z >> _SHIFTS[1])) * _FACTORS[1]
    return z ^ (z >> _SHIFTS[2])


class Sample:
    """What decides about an observation, and the clusters as they were at the last refinement.

    Attributes
    ----------
    seed : int
        The stream's.
    n_passed : int
        Observations that were out as they came.
    """

    def __init__(self) -> None:
        self.seed = 0
        self.n_passed = 0
        self._bound = _ALL
        # Of the highest priorities, in rising order, and whose they are: all that are held from
        # the one on that is named. It follows from what is held, and is not saved.
        self._ranks: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self._atoms: Ids = np.empty(0, dtype=np.int64)
        self._listed_from = _ALL
        # Ids, totals and log weights.
        self._clusters: tuple[Ids, NDArray[np.float64], NDArray[np.float64]] | None = None

    @property
    def selects(self) -> bool:
        """Whether anything has left, so that not all that comes is taken in."""
        return bool(self._bound < _ALL)

    def takes(self, seqs: Ids) -> NDArray[np.bool_]:
        """Whether the model takes each of these observations in."""
        return priorities(self.seed, seqs) < self._bound

    def entered(self, atoms: Ids, seqs: Ids) -> None:
        """Note observations (n) that the model has taken in as these atoms (n)."""
        ranks = priorities(self.seed, seqs)
        listed = np.flatnonzero(ranks >= self._listed_from)
        if len(listed):
            listed = listed[np.argsort(ranks[listed])]
            places = np.searchsorted(self._ranks, ranks[listed])
            self._ranks = np.insert(self._ranks, places, ranks[listed])
            self._atoms = np.insert(self._atoms, places, atoms[listed])

    def last(self, atom_table: AtomTable, n: int) -> Ids:
        """Atoms of highest priority (n), which are to leave first; none where n is not positive."""
        if n <= 0:
            return np.empty(0, dtype=np.int64)
        if len(self._ranks) < n or not self._lists(atom_table, n):
            self._list(atom_table, n)
        leaving = self._atoms[-n:]
        self._ranks, self._atoms = self._ranks[:-n], self._atoms[:-n]
        return leaving

    def _lists(self, atom_table: AtomTable, n: int) -> bool:
        """Whether the last n that are listed are those that they were."""
        now = priorities(self.seed, atom_table.seq[self._atoms[-n:]])
        return bool((now == self._ranks[-n:]).all())

    def _list(self, atom_table: AtomTable, n: int) -> None:
        """List those of highest priority, in its order: so many that it is seldom done."""
        atoms = atom_table.present
        ranks = priorities(self.seed, atom_table.seq[atoms])
        listed = min(max(_LISTED_TURNS * n, int(_LISTED * len(atoms))), len(atoms))
        order = np.argpartition(ranks, len(atoms) - listed)[len(atoms) - listed :]
        order = order[np.argsort(ranks[order])]
        self._ranks, self._atoms = ranks[order], atoms[order]
        self._listed_from = self._ranks[0]

    def let_go(self, seqs: Ids) -> None:
        """Note which observations are out."""
        self._bound = min(self._bound, priorities(self.seed, seqs).min())

    @staticmethod
    def heirs(
        family: Family, prior: PartitionPrior, gone: NDArray[np.float64], stay: NDArray[np.float64]
    ) -> Ids:
        """Where each group of observations, of which none is held any more, is most probable.

        Parameters
        ----------
        family, prior
        gone : ndarray of float64, shape (g, m)
            Statistics of each group, which goes as a whole.
        stay : ndarray of float64, shape (k, m)
            Those of the clusters that stay.

        Returns
        -------
        ndarray of int64, shape (g,)
            Places among those that stay.
        """
        weights = prior.log_predictive(np.rint(stay[:, 0]).astype(np.int64))[: len(stay)]
        weights -= log_marginals(family, stay)
        return np.array(
            [np.argmax(log_marginals(family, stay + row) + weights) for row in gone], dtype=np.int64
        )

    def renew(self) -> None:
        """Forget the clusters as they were."""
        self._clusters = None

    def look(self, table: ClusterTable, prior: PartitionPrior) -> None:
        """Look at the clusters as they are, unless they have been looked at since the last time."""
        if self._clusters is None:
            ids = table.ids
            totals = table.totals(ids)
            weights = prior.log_predictive(np.rint(totals[:, 0]).astype(np.int64))
            self._clusters = ids, totals, weights[: len(ids)]

    def place(self, family: Family, values: NDArray[np.float64]) -> Ids:
        """Return the most probable cluster of each of these (n, q), which the model does not hold.

        Of those that there are: what resembles none may come to be a cluster when one like it is in
        the sample.
        """
        if self._clusters is None:
            raise RuntimeError("nobody has looked at the clusters")
        ids, totals, weights = self._clusters
        rows = empty_totals(family, len(values))
        add_observations(family, values, np.arange(len(values), dtype=np.int64), rows)
        self.n_passed += len(values)
        best = np.argmax(log_predictives(family, rows, totals) + weights, axis=1)
        clusters: Ids = ids[best]
        return clusters

    def state(self) -> Arrays:
        """Arrays from which `restore` goes on."""
        known = np.array([self._bound, self.n_passed], dtype=np.uint64).view(np.int64)
        arrays: Arrays = {"known": known}
        if self._clusters is not None:
            arrays |= dict(zip(("ids", "totals", "weights"), self._clusters, strict=True))
        return arrays

    @classmethod
    def restore(cls, state: Arrays) -> "Sample":
        """Undo `state`, but for the seed; an earlier Weald had none."""
        sample = cls()
        if "known" in state:
            sample._bound = state["known"].view(np.uint64)[0]
            sample.n_passed = int(state["known"][1])
        if "ids" in state:
            sample._clusters = state["ids"], state["totals"], state["weights"]
        return sample
