"""One chain over a network that comes edge by edge: insert, forget, refine, save, restore.

The counterpart of :class:`~weald.mcmc.chain.chain.MixtureChain` where the atoms are vertices and
the records are edges. Rows come in with :meth:`NetworkChain.insert`: an edge between two vertices,
named by the numbers of their own rows, and right behind it one row for each of the two that is new.
A vertex's block is one draw from its conditional given all that is there at that moment.

Refinement runs the exact kernels for networks on the whole. Deterministic: the same rows and the
same calls of :meth:`NetworkChain.refine` between them give the same partition, bit for bit, however
the rows were cut into batches, and across :meth:`NetworkChain.state` and :meth:`~.restore`.
"""

import json
from typing import Any, Self

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from weald.mcmc.chain.atom_ids import AtomIds
from weald.mcmc.chain.chain import Note
from weald.mcmc.chain.growing import taken_from, under
from weald.mcmc.chain.refinement_run import RefinementRun
from weald.mcmc.schedule.kernel_report import Refinement
from weald.mcmc.schedule.stream_kernels import kernels_of_networks
from weald.treecore.partition.partition import Model
from weald.treecore.prior import PartitionPrior, build_prior
from weald.treecore.relational.family import IRM, Relational
from weald.treecore.relational.network import Links, Network, make_network

from .arrival import EDGE, RECEIVER, SENDER, arrive
from .edge_ledger import EdgeLedger
from .growing import (
    empty_vertices,
    more_blocks,
    more_vertices,
    restored_vertices,
    settled_vertices,
    vertex_arrays,
)
from .position import VertexPosition
from .vertices import room_for

__all__ = ["NetworkChain"]

Ids = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

_FIRST_CAPACITY = 256
# Vertices inserted by one call: there is room for as many new blocks, and a row for each.
_STRETCH = 128
# Reconfiguration takes its guides from a population of chains, which a stream does not keep.


class NetworkChain:
    """One chain; made by :meth:`start` or :meth:`restore`."""

    def __init__(self, family: Relational, prior: PartitionPrior, rng: Generator) -> None:
        self.family = family
        self.prior = prior
        self._rng = rng
        # Reported log joints keep the prior as it was at the start.
        self._first_prior = prior
        self._ids = AtomIds()
        self._seated: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._degree = np.zeros(0)
        # The atom of each vertex's row, and the edge with which those came that have no block yet.
        self._atom_of: dict[int, int] = {}
        self._waiting: dict[int, tuple[int, int, float]] = {}
        self._edges = EdgeLedger(directed=family.directed, counts=family.counts)
        self._state = empty_vertices(family, _FIRST_CAPACITY, room_for(0))
        self._reserve(0)

    @classmethod
    def start(cls, family: Relational, prior: PartitionPrior, *, seed: int) -> Self:
        """An empty chain."""
        return cls(family, prior, Generator(PCG64(seed)))

    # What it holds.

    @property
    def n_atoms(self) -> int:
        """Vertices."""
        return int(self._seated.sum())

    @property
    def n_observations(self) -> int:
        """Vertices: they are what is clustered."""
        return self.n_atoms

    @property
    def n_blocks(self) -> int:
        """Blocks of the partition."""
        return int(self._state.partition.n_blocks[0])

    @property
    def n_edges(self) -> int:
        """Records of edges that are held."""
        return len(self._edges.rows().seq)

    @property
    def disruption(self) -> float:
        """Nothing is compacted."""
        return 0.0

    @property
    def labels(self) -> Ids:
        """Block slot of each atom by its id, -1 for an id that none has."""
        return self._state.partition.label[: self._ids.end].copy()

    @property
    def degrees(self) -> NDArray[np.float64]:
        """Sum of the edges at each atom by its id, in both directions."""
        return self._degree[: self._ids.end].copy()

    def atom_rows(self, atoms: Ids) -> NDArray[np.float64]:
        """Statistics rows (n, 3) of these atoms; see :class:`VertexTotals`."""
        one = np.ones(len(atoms))
        return np.column_stack([one, one, self._degree[atoms]])

    def edges(self) -> Links:
        """The edge of each pair that has one; ends are atoms."""
        return self._edges.links()

    def network(self) -> Network:
        """The network of the vertices that are there, numbered without gaps by their atoms."""
        return self._network(self._present())

    # Arrival.

    def insert(self, values: NDArray[np.float64], seqs: Ids, times: NDArray[np.float64]) -> Ids:
        """Take rows in, in order; returns the atom of each that is a vertex, -1 of edges.

        Parameters
        ----------
        values : ndarray of float64, shape (n, 2) or (n, 3)
            Of an edge the numbers of its ends' rows, and its weight (1 without); zeros of a vertex.
            The row of an edge comes before those of vertices that are new with it.
        seqs : ndarray of int64, shape (n,)
            Numbers of the rows.
        times : ndarray of float64, shape (n,)
        """
        atoms = np.full(len(values), -1, dtype=np.int64)
        steps: list[tuple[int, int, int]] = []
        amounts: list[float] = []
        n_new, stretch = 0, _STRETCH if self.prior.seating(1, 1).is_product else 1
        for at, (row, seq) in enumerate(zip(values.tolist(), seqs.tolist(), strict=True)):
            if row[0]:
                source, target = self._atom(int(row[0]), seq), self._atom(int(row[1]), seq)
                weight = row[2] if len(row) > 2 else 1.0
                added = self._edges.add(seq, float(times[at]), (source, target, weight))
                self._wait(source, target, added)
                steps.append((EDGE, source, target))
                amounts.append(added)
                self._degree[[source, target]] += added
                continue
            atom = atoms[at] = self._atom(seq, seq)
            what, other, edge = self._waiting.pop(int(atom), (SENDER, int(atom), 0.0))
            steps.append((what, int(atom), other))
            amounts.append(edge)
            self._seated[atom] = True
            n_new += 1
            if n_new == stretch:
                self._arrive(steps, amounts, n_new)
                steps, amounts, n_new = [], [], 0
        self._arrive(steps, amounts, n_new)
        return atoms

    def _atom(self, vertex: int, seq: int) -> int:
        """The atom of a vertex's row; one that comes with or after row ``seq`` may be new."""
        known = self._atom_of.get(vertex)
        if known is not None:
            return known
        if vertex < seq:
            raise KeyError(f"row {seq} names vertex {vertex}, which is not there")
        atom = int(self._ids.take(1)[0])
        self._atom_of[vertex] = atom
        self._reserve(self._ids.end)
        self._seated[atom], self._degree[atom] = False, 0.0
        return atom

    def _wait(self, source: int, target: int, edge: float) -> None:
        for atom, what, other in ((source, SENDER, target), (target, RECEIVER, source)):
            if not self._seated[atom]:
                self._waiting[atom] = (what, other, edge)

    def _model(self, n: int, n_blocks: int) -> Model:
        return Model(self.family.edges, self.prior.seating(n, n_blocks), np.zeros((1, 1)))

    def _arrive(self, steps: list[tuple[int, int, int]], amounts: list[float], n_new: int) -> None:
        if not steps:
            return
        self._state = more_blocks(self._state, self.n_blocks + n_new)
        model = self._model(self.n_atoms, self.n_blocks + n_new)
        arrive(self._rng, self._state, model, np.array(steps, dtype=np.int64), np.array(amounts))

    # Room.

    def _reserve(self, n: int) -> None:
        """Make room for so many atoms. What a chain does never depends on how much there is."""
        room = len(self._degree)
        if n > room or room == 0:
            more = max(n, 2 * room, _FIRST_CAPACITY) - room
            self._degree = np.pad(self._degree, (0, more))
            self._seated = np.pad(self._seated, (0, more))
        self._state = more_vertices(self.family, self._state, n)

    # Refinement.

    def _present(self) -> Ids:
        return np.flatnonzero(self._seated[: self._ids.end])

    def _by_id(self, present: Ids, labels: Ids) -> Ids:
        full = np.full(self._ids.end, -1, dtype=np.int64)
        full[present] = labels
        return full

    def _network(self, present: Ids) -> Network:
        """The edges between vertices that are there, numbered without gaps by their ids."""
        place = np.full(self._ids.end, -1, dtype=np.int64)
        place[present] = np.arange(len(present))
        links = self._edges.links()
        ends = place[links.source], place[links.target]
        # An edge may have come whose vertex is the very next row.
        known = (ends[0] >= 0) & (ends[1] >= 0)
        links = Links(ends[0][known], ends[1][known], links.weight[known])
        directed, counts = self.family.directed, self.family.counts
        # Records were looked at as they came; since then they may have faded.
        return make_network(len(present), links, directed=directed, counts=counts, faded=counts)

    def _position(self, present: Ids) -> VertexPosition:
        network, labels = self._network(present), self.labels[present]
        family = self.family
        return VertexPosition(family.edges, network, labels, self.prior, learn=family.learn)

    def relabelled(self, draws: Ids) -> Ids:
        """The draws as they are: what a vertex's edges make probable, all others decide."""
        return draws

    def log_joint(self) -> float:
        """Log of prior times likelihood of the partition, under the prior it started with.

        Hyperparameters of the edges are those of the moment.
        """
        return self._position(self._present()).log_joint(self._first_prior) if self.n_atoms else 0.0

    def refine(
        self, rounds: int = 1, note: Note | None = None, kernels: str = "auto"
    ) -> Refinement:
        """Rounds of hyperparameter updates and every kernel, as of any chain."""
        walk, schedule = RefinementRun(self._first_prior), kernels_of_networks(kernels)
        if self.n_atoms:
            present = self._present()
            position = self._position(present)
            for _ in walk.rounds(self._rng, position, schedule, rounds):
                if note is not None:
                    note(self._by_id(present, position.labels()))
            self.prior = position.prior
            self.family = self.family._replace(edges=position.family)
            self._settle(present, position.labels())
        return walk.refinement(self.n_blocks)

    def _settle(self, present: Ids, labels: Ids) -> None:
        """Take over a partition (canonical labels), with everything summed afresh."""
        links, n = self._edges.links(), len(self._state.members)
        self._sum_degrees(links)
        model = self._model(len(present), int(labels.max(initial=-1)) + 1)
        self._state = settled_vertices(self.family, model, (present, labels), links, n)

    def _sum_degrees(self, links: Links) -> None:
        self._degree[:] = 0.0
        for ends in (links.source, links.target):
            np.add.at(self._degree, ends, links.weight)

    # Forgetting.

    def merge_edges(self) -> None:
        """Keep one row for each pair of vertices: without a window nobody asks for the others."""
        self._edges.merge()

    def edge_moments(self) -> tuple[Ids, NDArray[np.float64]]:
        """Numbers and times of the records of edges that are held, in order of arrival."""
        rows = self._edges.rows()
        return rows.seq, rows.time

    def edge_weights(self) -> NDArray[np.float64]:
        """What the records of :meth:`edge_moments` still weigh."""
        return self._edges.rows().weight

    def fade_edges(self, factor: float) -> None:
        """Multiply the weight of every record of an edge, where edges are counts."""
        self._edges.fade(factor)
        for atom, (what, other, edge) in self._waiting.items():
            self._waiting[atom] = (what, other, factor * edge)
        present = self._present()
        _, labels = np.unique(self.labels[present], return_inverse=True)
        self._settle(present, labels.astype(np.int64))

    def remove_edges(self, gone: NDArray[np.bool_]) -> tuple[Ids, Ids]:
        """Take records of edges out, exactly, and with them every vertex that has none left.

        What is left of the partition is a valid state of a chain for the network that remains, not
        a draw from its posterior: refinement makes up for it.

        Parameters
        ----------
        gone : ndarray of bool
            By the places of :meth:`edge_moments`.

        Returns
        -------
        ndarray of int64, ndarray of int64
            Numbers of the records, and the atoms that have left. Their ids are given to later ones.
        """
        seqs = self._edges.leave(gone)
        rows = self._edges.rows()
        named = np.zeros(self._ids.end, dtype=np.bool_)
        named[rows.source] = named[rows.target] = True
        present = self._present()
        left, stay = present[~named[present]], present[named[present]]
        self._seated[left] = False
        lost = set(left.tolist())
        self._atom_of = {each: atom for each, atom in self._atom_of.items() if atom not in lost}
        self._ids.give_back(left)
        for atom, (what, other, _) in self._waiting.items():
            if not named[atom]:
                self._waiting[atom] = (what, other, 0.0)
        _, labels = np.unique(self.labels[stay], return_inverse=True)
        self._settle(stay, labels.astype(np.int64))
        return seqs, left

    # Saving.

    def state(self) -> Arrays:
        """Everything, as plain arrays; :meth:`restore` continues bit for bit."""
        about = {
            "family": IRM.parameters(self.family),
            "prior": [self.prior.name, self.prior.parameters()],
            "first_prior": [self._first_prior.name, self._first_prior.parameters()],
            "rng": self._rng.bit_generator.state,
            "end": self._ids.end,
            "room": len(self._state.members),
        }
        end = self._ids.end
        # Integers of 128 bits survive JSON as they are.
        saved: Arrays = {"about": np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)}
        saved |= {"free": self._ids.free, "seated": self._seated[:end].copy()}
        saved["vertices"] = np.array(list(self._atom_of.items()), dtype=np.int64).reshape(-1, 2)
        saved |= under("edges_", self._edges.state())
        saved |= vertex_arrays(self._state, end)
        return saved

    @classmethod
    def restore(cls, saved: Arrays) -> Self:
        """The chain whose :meth:`state` this is."""
        about = json.loads(saved["about"].tobytes())
        bits = PCG64()
        bits.state = about["rng"]
        family = IRM.build(about["family"], np.empty((0, 0)))
        chain = cls(family, build_prior(*about["prior"]), Generator(bits))
        chain._first_prior = build_prior(*about["first_prior"])
        chain._ids = AtomIds(about["end"], saved["free"])
        chain._reserve(about["room"])
        end = about["end"]
        chain._seated[:end] = saved["seated"]
        chain._atom_of = dict(saved["vertices"].tolist())
        chain._edges.restore(taken_from(saved, "edges_"))
        chain._sum_degrees(chain._edges.links())
        model = chain._model(chain.n_atoms, int(saved["n_blocks"][0]))
        chain._state = restored_vertices(family, model, saved)
        return chain
