"""The writer's state where a stream is a network: the shard, with edges for records.

Rows are edges and vertices (`weald.stream.record.edges`), numbered together. Only vertices are
atoms, have a cluster and are shown; edges have a place in the chain's ledger. A window holds edges:
when the last edge of a vertex leaves, the vertex leaves with it, and comes back as a new one.
"""

import json
from typing import Self

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.relational.chain import NetworkChain
from weald.mcmc.settings import RefinementSettings
from weald.storage.commit.commit import Departure
from weald.stream.publication.publication import births
from weald.stream.record.edges import NO_CLUSTER, rows_of
from weald.stream.record.record import Batch, joined
from weald.stream.settings import MemorySettings
from weald.stream.telemetry.steps import Step
from weald.treecore.errors import ParameterError
from weald.treecore.family.interface.base import Family
from weald.treecore.relational.family import DEGREE, VertexTotals

from .batch_outcome import BatchOutcome
from .rows import IncomingRows
from .shard import Arrays, Shard

__all__ = ["LEAST_WEIGHT", "NetworkShard"]

NAMES = "names"
# An edge that weighs less leaves the model (``tgmcmc-ibhc.md`` section 7).
LEAST_WEIGHT = 1e-3


class NetworkShard(Shard):
    """One network's model in memory; see :class:`~weald.stream.model.shard.Shard`.

    Parameters
    ----------
    chain : NetworkChain
        Without vertices.
    family : Relational
        The chain's; clusters are tabulated by `VertexTotals`.
    cadence, memory
        As of any shard.

    Attributes
    ----------
    names : dict of str to int
        Number of the row of each vertex that is in the model.
    """

    chain: NetworkChain

    def __init__(
        self,
        chain: NetworkChain,
        _family: Family,
        cadence: RefinementSettings,
        memory: MemorySettings | None = None,
    ) -> None:
        super().__init__(chain, VertexTotals(), cadence, memory)
        self.names: dict[str, int] = {}

    @classmethod
    def chain_of(cls, saved: Arrays) -> NetworkChain:
        """The chain whose state this is."""
        return NetworkChain.restore(saved)

    def settle(self, cadence: RefinementSettings, memory: MemorySettings) -> None:
        """Go on under these settings.

        Raises
        ------
        ParameterError
            For half-lives where edges are no counts.
        """
        if memory.fades and not self.chain.family.counts:
            raise ParameterError(
                "half-lives are for networks of counts (params.counts = true): here a pair of "
                "vertices has an edge or none, and a pair that fades would have neither. Use "
                "memory.window_records or window_seconds, from which edges leave whole"
            )
        super().settle(cadence, memory)

    @property
    def judges_arrivals(self) -> bool:
        """A vertex surprises nobody by itself."""
        return False

    def digest(
        self,
        batch: Batch,
        now: float,
        step: Step,
        replaces: NDArray[np.int64] | None = None,  # noqa: ARG002 - no edge replaces another
    ) -> tuple[Batch, BatchOutcome]:
        """Apply records of edges; returns the rows that they became, and what happened."""
        applied, pieces, at = BatchOutcome(), [], 0
        while at < len(batch):
            # Which vertices are known may change at a refinement: no further than that.
            rows, at = rows_of(batch, at, self.names, (self.seq + 1, self._n_until_refinement))
            pieces.append(rows)
            done = self.apply(rows.values, now, step, times=rows.event_time, keys=rows.key)
            applied.extend(done)
        return joined(pieces), applied

    def cluster_of(self, name: str) -> int | None:
        """Published cluster of a vertex; None for one that is not in the model."""
        number = self.names.get(name)
        if number is None:
            return None
        return int(self.atom_table.cluster[self.atom_table.atoms_of(np.array([number]))[0]])

    def edge_totals(self, first: int, second: int) -> tuple[float, float]:
        """Sum of the edges from one published cluster to another, and how many pairs there are."""
        cluster = self.atom_table.cluster
        links = self.chain.edges()
        source, target = cluster[links.source], cluster[links.target]
        between = (source == first) & (target == second)
        if not self.chain.family.directed:
            between |= (source == second) & (target == first)
        n_first, n_second = (
            int((cluster[self.atom_table.present] == c).sum()) for c in (first, second)
        )
        n_pairs = float(n_first * (n_second - 1 if first == second else n_second))
        if first == second and not self.chain.family.directed:
            n_pairs /= 2.0
        return float(links.weight[between].sum()), n_pairs

    def remove(self, seqs: NDArray[np.int64], applied: BatchOutcome, now: float) -> None:
        """Take edges out of the model, by number, and vertices that have none left."""
        gone = np.isin(self.chain.edge_moments()[0], seqs)
        if gone.any():
            self._lose(gone, applied, now)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Numbers of the rows that the model holds."""
        return np.concatenate([super().numbers, self.chain.edge_moments()[0]])

    def state(self) -> Arrays:
        """Named arrays from which `restore` continues, bit for bit."""
        names = json.dumps(list(self.names.items())).encode()
        return {**super().state(), NAMES: np.frombuffer(names, dtype=np.uint8)}

    @classmethod
    def restore(cls, state: Arrays, family: Family) -> Self:
        """Undo `state`."""
        shard = super().restore(state, family)
        shard.names = dict(json.loads(state[NAMES].tobytes()))
        return shard

    @property
    def _n_held(self) -> int:
        """Edges and vertices, each of which is a row."""
        return self.atom_table.n_observations + self.chain.n_edges

    def _insert(self, rows: IncomingRows, now: float, applied: BatchOutcome) -> None:
        arrivals = self._homes()
        old = self.atom_table.present
        before = self.chain.degrees[old]
        seqs = self.seq + 1 + np.arange(len(rows.values))
        atoms = self.chain.insert(rows.values, seqs, rows.times)
        at = np.flatnonzero(atoms >= 0)
        vertices = atoms[at]
        slots = self.chain.labels[vertices]
        placed, born = arrivals.place(slots, slots)
        applied.lineage += births(self.publication, seqs[at[born]], placed[born], now)
        clusters = np.full(len(atoms), NO_CLUSTER, dtype=np.int64)
        clusters[at] = placed
        applied.clusters.append(clusters)
        self._next_cluster += len(born)
        self.atom_table.enter(vertices, seqs[at], rows.times[at], placed)
        self.names.update((rows.keys[i] or "", int(seqs[i])) for i in at.tolist())
        self.seq += len(rows.values)
        if len(vertices):
            self.table.add(placed, self.chain.atom_rows(vertices), self.publication)
        more = self.chain.degrees[old] - before
        if more.any():
            grown = np.zeros((int((more != 0).sum()), DEGREE + 1))
            grown[:, DEGREE] = more[more != 0]
            self.table.add(self.atom_table.cluster[old[more != 0]], grown, self.publication)

    def _forget(self, applied: BatchOutcome, now: float) -> None:
        """Let time pass: edges fade, or leave, and vertices that have none left."""
        settings = self.forgetting.settings
        if not settings.forgets:
            self.forgetting.go_on(self.seq, np.empty(0), 0)
            self.chain.merge_edges()
            return
        seqs, times = self.chain.edge_moments()
        fresh = seqs > self.forgetting.stood
        factor = self.forgetting.go_on(self.seq, times[fresh], int(fresh.sum()))
        newest = len(seqs) if settings.window_records is None else settings.window_records
        gone = times < self.forgetting.horizon
        gone[: max(len(seqs) - newest, 0)] = True
        if factor < 1.0:
            self.chain.fade_edges(factor)
            gone |= self.chain.edge_weights() < LEAST_WEIGHT
            self._arrivals = None
            self._regroup(set(self.atom_table.cluster[self.atom_table.present].tolist()))
        if gone.any():
            self._lose(gone, applied, now)

    def _compact(self, applied: BatchOutcome) -> None:
        """Vertices are not compacted: each has edges of its own."""

    def _expand(self, applied: BatchOutcome) -> None:
        """Nothing was compacted."""

    def _lose(self, gone: NDArray[np.bool_], applied: BatchOutcome, now: float) -> None:
        touched = set(self.atom_table.cluster[self.atom_table.present].tolist())
        seqs, atoms = self.chain.remove_edges(gone)
        vertices = self.atom_table.seq[atoms]
        left = set(vertices.tolist())
        self.names = {name: seq for name, seq in self.names.items() if seq not in left}
        applied.departures.append(Departure(self.seq, np.sort(np.concatenate([seqs, vertices]))))
        self.atom_table.leave(atoms)
        self._draws.forget(atoms)
        self._arrivals = None  # a block may have lost the members that tied it to its cluster
        # Those that stay have fewer edges.
        applied.lineage += self._retirements(touched, now)
