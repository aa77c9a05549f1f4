"""What a chain holds: atoms, the forest over them, their partition; and making less of it.

A base of :class:`~weald.mcmc.chain.chain.MixtureChain`, which moves the partition. Here are the
questions about it, and what forgets or compacts: nothing here draws a random number.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.state.atom_state import State
from weald.treecore.errors import ObservationError, ParameterError
from weald.treecore.forest.forest import Forest, reserve
from weald.treecore.partition.partition import Model
from weald.treecore.prior import PartitionPrior
from weald.treecore.statistics.rows import Rows

from .arrival import replace_block
from .atom_ids import AtomIds
from .co_occurrence import CoOccurrence
from .compacting import Compaction, compact, numbered_pairs
from .growing import enlarged_state, fade

__all__ = ["Holdings"]


class Holdings:
    """See the module; made by the chain."""

    family: Any
    prior: PartitionPrior
    _first_prior: PartitionPrior
    _work: Rows
    _ids: AtomIds
    _state: State
    _forest: Forest
    _company: CoOccurrence
    _doubt: NDArray[np.float64]

    @property
    def n_atoms(self) -> int:
        """Atoms that are there."""
        return len(self._ids)

    @property
    def n_observations(self) -> int:
        """Observations in the atoms that are there."""
        # Each of them is in a block, and there are fewer of these.
        partition = self._state.partition
        return int(partition.size[partition.slots[: self.n_blocks]].sum())

    @property
    def n_blocks(self) -> int:
        """Open blocks of the partition."""
        return int(self._state.partition.n_blocks[0])

    @property
    def labels(self) -> NDArray[np.int64]:
        """Block slot of each atom by its id, -1 for an id that no atom has."""
        return self._state.partition.label[: self._ids.end].copy()

    def labels_of(self, atoms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Block slot of each of these atoms."""
        return self._state.partition.label[atoms]

    def _model(self, prior: PartitionPrior, n_more: int) -> Model:
        """What places ``n_more`` observations beside those that are there."""
        n = self.n_observations + n_more
        seating = prior.seating(max(n, 1), self.n_blocks + n_more)
        return Model(self.family, seating, self._work)

    def _reserve(self, n: int) -> None:
        # One row beyond the last atom is kept for questions.
        capacity = self._state.atoms.size.shape[0]
        if n + 1 > capacity:
            capacity = max(2 * capacity, n + 1)
            self._state = enlarged_state(self.family, self._state, capacity)
            self._doubt = np.pad(self._doubt, (0, capacity - self._doubt.shape[0]))
        self._forest = reserve(self._forest, self.family, n)

    def _present(self) -> NDArray[np.int64]:
        """Ids of the atoms that are there, rising."""
        return np.flatnonzero(self._state.partition.label[: self._ids.end] >= 0)

    def _give_back(self, ids: NDArray[np.int64]) -> None:
        self._doubt[ids] = 0.0
        self._ids.give_back(ids)

    @property
    def disruption(self) -> float:
        """Estimated total variation between the posterior and what is sampled since compactions.

        The sum of what Bayesian hierarchical clustering says against every compacted atom: an
        estimate and no bound, for it knows partitions along the trees only.
        """
        return min(float(self._doubt.sum()), 1.0)

    def compact(self, n_atoms: int, tags: NDArray[np.int64], n_most: int) -> Compaction:
        """Make fewer atoms of those that are there, where they are in one block.

        The partition stays. What is sampled from then on is the posterior given that the
        observations in an atom stay together; :attr:`disruption` estimates what that costs.

        Parameters
        ----------
        n_atoms : int
            How many should be left. More are where more than so many subtrees are in several
            blocks.
        tags : ndarray of int64, shape (n,)
            By atom id: only atoms with equal tags become one.
        n_most : int
            How many may be left: to get there leaves are joined that are in one block, but are no
            neighbours in the forest. More are where there are more blocks and tags: the partition
            is never bent to save memory.
        """
        fewer = self.n_atoms - n_atoms, self.n_atoms - n_most
        if fewer[0] <= 0:
            return Compaction([], 0)
        present = self._present()
        groups = np.full((2, self._ids.end), -1, dtype=np.int64)
        groups[0, present] = numbered_pairs(self.labels[present], tags[present])
        groups[1, present] = numbered_pairs(groups[0, present], self._company.groups(present))
        models = self._model(self._first_prior, 0), self._model(self.prior, 0)
        done = compact(models, self._forest, self._state, groups, self._doubt, fewer)
        stand = np.array([each.atom for each in done.compacted], dtype=np.int64)
        members = [each.members[1:] for each in done.compacted]
        self._give_back(np.concatenate([np.empty(0, dtype=np.int64), *members]))
        self._company.compacted(stand)
        return done

    def torn(self) -> NDArray[np.int64]:
        """Compacted atoms that look as if they should be several, by id.

        Those that none of the other atoms has accompanied through the newest sweeps: what was
        compacted had been together with its like for long, and no longer is.
        """
        present = self._present()
        return present[self._company.wanderers(present) & (self._state.atoms.size[present] > 1)]

    def expand(self, atom: int, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Put the observations (n, d) that were compacted into an atom in its place.

        The partition stays: they are in the block where it was. Returns their ids, which may
        include the atom's own. Raises ObservationError when they are not as many as it stands for.
        """
        size = int(self.atom_sizes[atom]) if 0 <= atom < self._ids.end else 0
        if size == 0 or values.shape[0] != size:
            raise ObservationError(f"atom {atom} has {size} observations, not {values.shape[0]}")
        self._give_back(np.array([atom]))
        ids = self._ids.take(size)
        self._reserve(self._ids.end)
        first_model = self._model(self._first_prior, 0)
        values = np.ascontiguousarray(values, dtype=np.float64)
        replace_block(first_model, self._forest, self._state, atom, values, ids)
        self._company.arrive(ids)
        return ids

    def fade(self, factor: float) -> None:
        """Multiply the weight of every observation that is there by a factor of at most one.

        From then on the target is a weighted-likelihood posterior: partition prior of the whole
        numbers of observations, times ``prod_c P(X_c; w)`` in which an observation's density has
        the power of its weight. Every kernel leaves it invariant (``tgmcmc-ibhc.md`` section 7).
        """
        if not 0.0 < factor <= 1.0:
            raise ParameterError(f"weights fade by a factor in (0, 1], got {factor}")
        if self.n_atoms:
            fade(self._model(self._first_prior, 0), self._forest, self._state, factor)

    @property
    def atom_sizes(self) -> NDArray[np.int64]:
        """Observations in each atom by its id, 0 for an id that no atom has."""
        return self._state.atoms.size[: self._ids.end].copy()

    def atom_rows(self, atoms: NDArray[np.int64]) -> Rows:
        """Statistics rows (n, m) of these atoms; column 0 counts, column 1 sums weights."""
        return self._state.atoms.rows[atoms]
