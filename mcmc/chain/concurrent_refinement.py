"""A refinement of all atoms that goes on while the chain takes arrivals.

It works on copies, with random numbers of its own, and asks nothing of the chain; so `run` may be
another thread's, and it may be dropped at any time. What it has arrived at the chain takes over at
a point between two arrivals: see `MixtureChain.adopt_concurrent`.
"""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.contract import Kernel
from weald.mcmc.schedule.kernel_report import Refinement
from weald.treecore.family.interface.base import Family
from weald.treecore.partition.partition import Atoms
from weald.treecore.prior import PartitionPrior

from .position import Position
from .refinement_run import LEARNED_EACH_ROUND, RefinementRun

__all__ = ["ConcurrentRefinement"]

Ids = NDArray[np.int64]


class ConcurrentRefinement:
    """Made by `MixtureChain.begin_concurrent`.

    Parameters
    ----------
    position : Position
        Where it begins; it has no other user.
    atoms : ndarray of int64, shape (n,)
        Ids of the position's atoms, rising.
    rng : Generator
    schedule : sequence of Kernel
    scale : PartitionPrior
        Prior under which log joints are told.
    rounds : tuple of int
        How many, and from one draw that is kept to the next.
    """

    def __init__(
        self,
        position: Position,
        atoms: Ids,
        rng: Generator,
        schedule: Sequence[Kernel[Position]],
        scale: PartitionPrior,
        rounds: tuple[int, int],
    ) -> None:
        self.atoms = atoms
        self._position = position
        self._rng = rng
        self._schedule = schedule
        self._scale = scale
        self.n_rounds, self._every = rounds
        self._stopping = False
        self._draws: list[NDArray[np.int32]] = []
        self._refinement: Refinement | None = None

    def run(self) -> None:
        """Make all rounds, or those until somebody calls `stop`."""
        position, walk = self._position, RefinementRun(self._scale)
        rounds = walk.rounds(self._rng, position, self._schedule, self.n_rounds)
        for number, _ in enumerate(rounds, start=1):
            if self._stopping:
                return
            if number % self._every == 0:
                self._draws.append(position.labels().astype(np.int32))
            if position.n_atoms > LEARNED_EACH_ROUND:
                position.learner = None
        self._refinement = walk.refinement(len(position.sizes()))

    def stop(self) -> None:
        """Have `run` return after the round in hand; nothing comes of it then."""
        self._stopping = True

    # What came of it, once `run` has made all rounds.

    @property
    def refinement(self) -> Refinement:
        """What its kernels did, on the scale of the atoms that were there when it began."""
        if self._refinement is None:
            raise RuntimeError("the refinement has not come to its end")
        return self._refinement

    @property
    def labels(self) -> Ids:
        """Canonical labels (n) of its atoms."""
        return self._position.labels()

    @property
    def family(self) -> Family:
        """The family with the base measure that was learned."""
        family: Family = self._position.family
        return family

    @property
    def measured(self) -> Atoms:
        """Its atoms as they were when it began, with log marginals under `family`."""
        return self._position.atoms

    @property
    def prior(self) -> PartitionPrior:
        """The prior with what was learned of it."""
        return self._position.prior

    def draws_without(self, gone: Ids) -> list[NDArray[np.int32]]:
        """The block of every atom by its id, for each draw; -1 for an id that none had or has."""
        found = []
        for labels in self._draws:
            draw = np.full(int(self.atoms.max(initial=-1)) + 1, -1, dtype=np.int32)
            draw[self.atoms] = labels
            draw[gone] = -1
            found.append(draw)
        return found
