"""Where a chain on a network stands: its partition, under an edge likelihood and a prior.

There is room for a bounded number of blocks. A sweep that asks for more is void: it is taken back,
the randomness with it, and done again with twice the room, so that what a chain does never depends
on how much there was. Blocks are in their slots again, and vertices in the same order in them:
otherwise other draws would come of the same randomness, chosen by what came of it first.
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.contract import PastStates
from weald.mcmc.state.vertex_state import VertexState
from weald.treecore.partition.partition import Model, Partition
from weald.treecore.prior.base import PartitionPrior
from weald.treecore.prior.sequential import canonical_labels
from weald.treecore.relational.edges import EdgeFamily, edge_numbers
from weald.treecore.relational.network import Network
from weald.treecore.relational.ties import empty_ties, recount
from weald.treecore.relational.weighing import log_likelihood

from .edge_parameters import resample_edges
from .vertices import make_vertex_state

__all__ = ["VertexPosition"]

Labels = NDArray[np.int64]
T = TypeVar("T")


class VertexPosition:
    """A partition of a network's vertices.

    Parameters
    ----------
    family, network, labels, prior:
        Edge likelihood, network of n vertices, any integer labels (n), prior of partitions.
    learn:
        Whether :meth:`resample` moves the edge likelihood's hyperparameters.
    """

    def __init__(
        self,
        family: EdgeFamily,
        network: Network,
        labels: NDArray[np.int64],
        prior: PartitionPrior,
        *,
        learn: bool = False,
    ) -> None:
        self.network = network
        self.prior = prior
        self.learn = learn
        self.guides: tuple[Labels, ...] = ()
        self.history: tuple[PastStates, int] | None = None
        self.model = self._model(family, prior)
        self._state = make_vertex_state(self.model, network, canonical_labels(labels))

    def _model(self, family: EdgeFamily, prior: PartitionPrior) -> Model:
        n = self.network.n_vertices
        return Model(family, prior.seating(n, n), np.zeros((1, 1)))

    @property
    def n_atoms(self) -> int:
        """Number of vertices."""
        return self.network.n_vertices

    @property
    def family(self) -> EdgeFamily:
        """The edge likelihood as it stands."""
        return self.model.family

    def run(self, rng: Generator, sweep: Callable[[VertexState], T]) -> T:
        """Let a kernel, which draws by ``rng``, change the partition; returns what it returns."""
        back, drawn = _way_back(self._state, self.model), rng.bit_generator.state
        result = sweep(self._state)
        while self._state.ties.crowded[0]:
            rng.bit_generator.state = drawn
            self._state = back(2 * self._state.ties.total.shape[0])
            result = sweep(self._state)
        return result

    def resample(self, rng: Generator) -> None:
        """One update of the prior's hyperparameters, and of the edges', where they are learned."""
        self.prior = self.prior.resample(rng, self.sizes())
        family = resample_edges(rng, self.family, self._state) if self.learn else self.family
        self.model = self._model(family, self.prior)
        if self.learn:
            # What pairs of blocks weigh depends on the hyperparameters.
            room = self._state.ties.total.shape[0]
            self._state = make_vertex_state(self.model, self.network, self.labels(), room)

    def hyperparameters(self) -> dict[str, float]:
        """Numbers that a trace shows."""
        found = {k: v for k, v in self.prior.parameters().items() if isinstance(v, float)}
        if self.learn:
            found |= {f"edge_{name}": value for name, value in edge_numbers(self.family).items()}
        return found

    def labels(self) -> Labels:
        """Canonical labels of the vertices (n)."""
        return canonical_labels(self._state.partition.label)

    def sizes(self) -> Labels:
        """Vertices of each block, in no particular order."""
        partition = self._state.partition
        return partition.size[partition.slots[: int(partition.n_blocks[0])]]

    def log_joint(self, prior: PartitionPrior | None = None) -> float:
        """Log of prior times likelihood; ``prior`` is the present one unless another is given."""
        state = self._state
        likelihood = float(log_likelihood(state.network, state.partition, state.ties))
        return likelihood + (prior or self.prior).log_probability(self.sizes())


def _way_back(state: VertexState, model: Model) -> Callable[[int], VertexState]:
    """What makes the state as it is now again, with room for the sums of so many blocks."""
    partition = _copied(state.partition)
    used = partition.slots[: int(partition.n_blocks[0])]
    square = np.ix_(used, used)
    total, hidden = state.ties.total[square], state.ties.hidden[square]

    def back(room: int) -> VertexState:
        again, ties = _copied(partition), empty_ties(len(state.members), room)
        ties.total[square], ties.hidden[square] = total, hidden
        recount(model, state.network, again, ties)
        return state._replace(partition=again, ties=ties)

    return back


def _copied(partition: Partition) -> Partition:
    return Partition._make(array.copy() for array in partition)
