"""Where a chain stands: one partition, in the form that the next kernel needs.

Kernels that move atoms work on :class:`~weald.mcmc.state.atom_state.State`, tree-guided ones on
:class:`~weald.mcmc.state.pieces.Pieces`. The partition is carried from one form to the other, with
every block's statistics summed afresh, only when a kernel of the other kind has its turn. A kernel
of the same kind finds them summed afresh in place: what kernels subtract drifts.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.conditional.labels import require_dense
from weald.mcmc.contract import PastStates
from weald.mcmc.hyperparameters.base_scale import log_likelihood_of
from weald.mcmc.hyperparameters.learner import Learner, stepped
from weald.mcmc.state.atom_state import State, make_state
from weald.mcmc.state.pieces import Pieces, labels_of_pieces, make_pieces
from weald.mcmc.tree_guided.tgmcmc import TreePosition, make_picks
from weald.treecore.errors import ParameterError
from weald.treecore.family.interface.base import Family, workspace
from weald.treecore.guide.guide import Guide, measure_again, refresh_potentials
from weald.treecore.partition.partition import (
    Atoms,
    Model,
    Partition,
    lower_slots,
    make_atoms,
    rebuild_rows,
)
from weald.treecore.prior.base import PartitionPrior
from weald.treecore.prior.sequential import canonical_labels

__all__ = ["Position"]

T = TypeVar("T")


class Position:
    """A partition of ``atoms`` under a family and a prior.

    Parameters
    ----------
    family, atoms, labels, prior:
        The model, the atoms (n) and any integer labels (n).
    make_guide:
        Builds the guide when the first tree-guided kernel asks for it.
    learner:
        What learns the family's base measure beside the partition; None where it stays.
    first_family:
        The one under which the guide is made and log joints are told; by default ``family``.
    """

    def __init__(
        self,
        family: Family,
        atoms: Atoms,
        labels: NDArray[np.int64],
        prior: PartitionPrior,
        make_guide: Callable[[Model], Guide],
        *,
        learner: Learner[Any] | None = None,
        first_family: Family | None = None,
    ) -> None:
        self.family: Any = family
        self._first_family: Any = family if first_family is None else first_family
        self.learner = learner
        # Updates of the hyperparameters for which the base measure stays as it is.
        self.base_rests = 0
        self.atoms = atoms
        # Labels that other chains are at, for the kernels that take guides from them.
        self.guides: tuple[NDArray[np.int64], ...] = ()
        # Where all chains have been, and which of them this is.
        self.history: tuple[PastStates, int] | None = None
        self._make_guide = make_guide
        # Auxiliary variables that a kernel keeps between its turns, by its name.
        self.kept: dict[str, object] = {}
        self._labels: NDArray[np.int64] | None = canonical_labels(labels)
        self._state: State | None = None
        self._tree: TreePosition | None = None
        # The forms that are not the present one, whose arrays are used again.
        self._spare_state: State | None = None
        self._spare_pieces: Pieces | None = None
        self._guide: Guide | None = None
        self._work = workspace(family)
        self.model: Model
        self._set_prior(prior)

    @property
    def n_atoms(self) -> int:
        """Number of atoms."""
        return int(self.atoms.size.shape[0])

    def use_prior(self, prior: PartitionPrior) -> None:
        """Go on under another prior, or the same one with other parameters."""
        # Tables of some priors take milliseconds for many atoms, and potentials take a pass.
        if prior == self.prior:
            return
        self._set_prior(prior)
        if self._guide is not None:
            refresh_potentials(self.model, self._guide)
            if self._tree is not None:
                self._tree = self._tree._replace(picks=make_picks(self._guide))

    def resample(self, rng: Generator) -> None:
        """One exact update of the hyperparameters that are learned."""
        prior, before, family = self.prior.resample(rng, self.sizes()), self.family, self.family
        if self.base_rests > 0:
            self.base_rests -= 1
        elif self.learner is not None:
            family = stepped(self.learner, rng, family, self._block_rows())
        if family is before:
            self.use_prior(prior)
            return
        self._use_family(family, prior)
        if self._guide is not None and not _is_possible(self._guide):
            self._use_family(before, prior)

    def hyperparameters(self) -> dict[str, float]:
        """Numbers that a trace shows."""
        found = self.prior.parameters().items()
        shown = {name: value for name, value in found if isinstance(value, float)}
        return shown if self.learner is None else shown | self.learner.shown(self.family)

    def _use_family(self, family: Family, prior: PartitionPrior) -> None:
        """Go on under the family with another base measure, which statistics do not depend on."""
        self._labels = self.labels()
        self.family = family
        self.atoms = make_atoms(family, self.atoms.rows, self.atoms.size, self._work)
        if self._spare_state is not None:
            self._spare_state = self._spare_state._replace(atoms=self.atoms)
        self._state = self._tree = None
        # What kernels keep was measured under the other one.
        self.kept.clear()
        if prior == self.prior:
            self.model = self.model._replace(family=family)
        else:
            self._set_prior(prior)
        if self._guide is not None:
            measure_again(self.model, self._guide)
            refresh_potentials(self.model, self._guide)

    def _set_prior(self, prior: PartitionPrior) -> None:
        n = int(self.atoms.size.sum())
        self.prior = prior
        self.model = Model(self.family, prior.seating(n, self.n_atoms), self._work)

    def flat(self) -> State:
        """The partition atom by atom, for a kernel to change in place."""
        if self._state is not None:
            lower_slots(self._state.partition)
            rebuild_rows(self.atoms, self._state.partition)
        state = self._state or self._make_state()
        self._labels = self._tree = None
        return state

    def run(self, _rng: Generator, sweep: Callable[[State], T]) -> T:
        """Let ``sweep`` move the atoms in place; returns what it does."""
        return sweep(self.flat())

    def _make_state(self) -> State:
        labels = self.labels()
        self._state = make_state(self.family, self.atoms, labels, self._spare_state)
        self._spare_state = self._state
        return self._state

    def guide(self) -> Guide:
        """The guide, which knows nothing of the partition."""
        if self._guide is None:
            # Its topology comes from what the chain was given, not from what it has learned.
            first = self.model._replace(family=self._first_family)
            self._guide = self._make_guide(first)
            if self.family is not self._first_family:
                measure_again(self.model, self._guide)
            refresh_potentials(self.model, self._guide)
            if not _is_possible(self._guide):
                raise ParameterError(
                    "the family's base measure gives some of the observations no probability as "
                    "one cluster: scale the numbers, or leave the family's parameters to the data"
                )
        return self._guide

    def in_guide_order(self) -> NDArray[np.int64]:
        """All atoms in the order of the guide's leaves, where neighbours are alike."""
        return self.guide().atom

    def tree(self) -> TreePosition:
        """The partition as pieces of the guide, for a kernel to change in place."""
        if self._tree is None:
            guide = self.guide()
            pieces = make_pieces(self.family, guide, self.labels(), self._spare_pieces)
            self._spare_pieces = pieces
            self._tree = TreePosition(guide, pieces, make_picks(guide))
        else:
            rebuild_rows(self._tree.pieces.nodes, self._tree.pieces.partition)
        self._labels = self._state = None
        return self._tree

    def labels(self) -> NDArray[np.int64]:
        """Canonical labels of the atoms (n)."""
        if self._labels is None:
            if self._state is not None:
                self._labels = canonical_labels(self._state.partition.label[: self.n_atoms])
            else:
                assert self._tree is not None  # noqa: S101 - one of the three forms is always held
                found = np.empty(self.n_atoms, dtype=np.int64)
                labels_of_pieces(self._tree.guide, self._tree.pieces, found)
                self._labels = canonical_labels(found)
        return self._labels

    def set_labels(self, labels: NDArray[Any]) -> None:
        """Go to another partition of the same atoms."""
        self._labels = canonical_labels(labels)
        self._state = self._tree = None

    def _partition(self) -> Partition:
        if self._tree is not None:
            return self._tree.pieces.partition
        return (self._state or self._make_state()).partition

    def sizes(self) -> NDArray[np.int64]:
        """Observations of each block, in no particular order."""
        partition = self._partition()
        return partition.size[partition.slots[: int(partition.n_blocks[0])]]

    def _block_rows(self) -> NDArray[np.float64]:
        """Statistics (k, m) of the blocks; raises ParameterError where they are not dense."""
        partition = self._partition()
        rows = require_dense(partition.rows)
        return rows[partition.slots[: int(partition.n_blocks[0])]]

    def log_likelihood(self) -> float:
        """Sum of the blocks' log marginal likelihoods, under the family that was given."""
        return log_likelihood_of(self.model, self._partition(), self._first_family)

    def log_joint(self, prior: PartitionPrior | None = None) -> float:
        """Log of prior times likelihood, auxiliary variables integrated out.

        ``prior`` is the present one unless another is given (to compare partitions on one scale).
        """
        chosen = self.prior if prior is None else prior
        return self.log_likelihood() + chosen.log_probability(self.sizes())


def _is_possible(guide: Guide) -> bool:
    """Whether each node can be one cluster: kernels weigh all of them against what is below."""
    return bool(np.isfinite(guide.log_marginal).all())
