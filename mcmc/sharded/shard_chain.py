"""A chain that takes part in rounds of shards with the atoms of one of them.

A round is of the atoms that were there when the shard reported last. Arrivals may come at any
moment: what came since the report is inserted again behind the round, as with any leases
(:mod:`weald.mcmc.leases.outstanding`). Removals belong between the turn that ends a round and the
report for the next: what leaves in the middle of one is left out of the rest of it, but was in the
sums by which others have decided. Whatever the shard answers follows from its state at the
report, from what it is told, and from the round's number, so that one that died answers alike.

Blocks have names, which are the same in all shards. What a shard splits off by itself gets a new
one. Shards count up by their number, so that nobody has to be asked for a name. With its turn a
shard is told of the blocks of which it has nothing: one that arrivals begin in it afterwards is
reported as one of those, if they are more probable together than apart.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.chain.chain import MixtureChain
from weald.mcmc.chain.growing import taken_from, under
from weald.mcmc.conditional.labels import log_blocks_ratio, log_sizes, require_dense
from weald.mcmc.leases.elsewhere import Elsewhere, with_elsewhere
from weald.mcmc.leases.lease_work import work
from weald.mcmc.leases.leases import Budget
from weald.mcmc.schedule.kernel_report import KernelReport, Refinement
from weald.treecore.family.interface.base import Family, workspace
from weald.treecore.partition.partition import Model, finite_log_marginals
from weald.treecore.prior import PartitionPrior
from weald.treecore.prior.sequential import canonical_labels

from .relay import allocate_own
from .round_messages import (
    Anchors,
    BlockSums,
    Pairs,
    Redraw,
    Redrawn,
    ShardReport,
    ShardTurn,
    Sides,
)

__all__ = ["Learned", "ShardChain", "TurnEnd"]

Ids = NDArray[np.int64]
Matrix = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]
# Family and prior, with the hyperparameters of a round.
Learned = tuple[Family, PartitionPrior]
_NONE = -1
# What is saved beside the chain.
_ARRAYS = ("named", "reported", "drawn", "side")
_ELSEWHERE = "elsewhere."
# Atoms whose weights in all blocks are in memory at a time.
_AT_A_TIME = 1 << 16


class TurnEnd(NamedTuple):
    """How a turn has ended, from which it can be taken again.

    Attributes
    ----------
    atoms, names:
        The atoms (u) of the round, and the block of each from now on.
    next_name:
        Of the shard.
    leased:
        Whether kernels moved any of them, for which the trees were put in order.
    elsewhere:
        Blocks of which the shard had nothing before.
    """

    atoms: Ids
    names: Ids
    next_name: int
    leased: bool
    elsewhere: BlockSums


@dataclass(eq=False)
class ShardChain:
    """A shard's part of a partition.

    Attributes
    ----------
    chain : MixtureChain
        Takes arrivals; rounds of its own are not for it.
    shard, n_shards : int
        Which it is, and among how many.
    named : ndarray of int64
        Names of the blocks at the last report, by atom id; -1 for an id that was in none.
    reported : ndarray of int64
        Ids of the atoms at the last report, ascending.
    drawn : ndarray of int64
        Name of the block that an atom has drawn, by its number in the report; -1 for none.
    side : ndarray of int64
        Which side of its pair an atom has drawn last, by its number in the report; -1 for none.
    next_name : int
    elsewhere : BlockSums
        Blocks of which the shard has nothing, as the last turn has told of them.
    """

    chain: MixtureChain
    shard: int
    n_shards: int
    named: Ids
    reported: Ids
    drawn: Ids
    side: Ids
    next_name: int
    elsewhere: BlockSums

    @classmethod
    def start(cls, chain: MixtureChain, shard: int, n_shards: int) -> Self:
        """A shard with the blocks that the chain has, which are nobody else's."""
        empty = np.empty(0, dtype=np.int64)
        nothing = BlockSums(empty, empty, np.empty((0, 0)))
        return cls(chain, shard, n_shards, empty, empty, empty, empty, shard, nothing)

    def state(self) -> Arrays:
        """Everything, as plain arrays; :meth:`restore` continues bit for bit."""
        return under("shard_", self.own_state()) | self.chain.state()

    @classmethod
    def restore(cls, saved: Arrays) -> Self:
        """The shard whose :meth:`state` this is."""
        return cls.on(MixtureChain.restore(saved), taken_from(saved, "shard_"))

    def own_state(self) -> Arrays:
        """What it knows beside its chain, as plain arrays, for :meth:`on`."""
        about = np.array([self.shard, self.n_shards, self.next_name])
        arrays = {"about": about} | {name: getattr(self, name).copy() for name in _ARRAYS}
        return arrays | under(_ELSEWHERE, self.elsewhere._asdict())

    @classmethod
    def on(cls, chain: MixtureChain, saved: Arrays) -> Self:
        """The shard of a chain that is there, whose :meth:`own_state` this is."""
        shard, n_shards, next_name = saved["about"].tolist()
        named, reported, drawn, side = (saved[name].copy() for name in _ARRAYS)
        elsewhere = BlockSums(**taken_from(saved, _ELSEWHERE))
        return cls(chain, shard, n_shards, named, reported, drawn, side, next_name, elsewhere)

    def _fresh(self, n: int) -> Ids:
        # One more than there are shards: whoever begins the rounds has names to give, too.
        names = self.next_name + (self.n_shards + 1) * np.arange(n, dtype=np.int64)
        self.next_name += (self.n_shards + 1) * n
        return names

    def remove(self, atoms: Ids) -> None:
        """Take atoms out; see :meth:`~weald.mcmc.chain.chain.MixtureChain.remove`."""
        self.chain.remove(atoms)
        self.forget(atoms)

    def forget(self, atoms: Ids) -> None:
        """Note that the chain has these atoms no more: their ids are given to arrivals."""
        self.named[atoms[atoms < self.named.shape[0]]] = _NONE

    def report(self) -> ShardReport:
        """Name all blocks, and hold the atoms that are in them for the next round."""
        chain = self.chain
        labels, sizes = chain.labels, chain.atom_sizes
        known = np.full(labels.shape[0], _NONE, dtype=np.int64)
        held = chain.held
        held = held[held < self.named.shape[0]]
        known[held] = self.named[held]
        present = np.flatnonzero(labels >= 0)
        size = np.bincount(labels[present], sizes[present]).astype(np.int64)
        slots, sums = chain.block_statistics()
        sums = require_dense(sums)
        # All that have a name in a block have the same one.
        name = np.full(size.shape[0], _NONE, dtype=np.int64)
        name[labels[known != _NONE]] = known[known != _NONE]
        self.elsewhere = self.elsewhere.without(name[slots])
        nameless = np.flatnonzero(name[slots] == _NONE)
        name[slots[nameless]] = self._joined(sums[nameless])
        nameless = np.sort(slots[name[slots] == _NONE])
        name[nameless] = self._fresh(nameless.shape[0])
        self.named = np.full(labels.shape[0], _NONE, dtype=np.int64)
        self.named[present] = name[labels[present]]
        self.reported, self.side = present, np.full(present.shape[0], _NONE, dtype=np.int64)
        self.drawn = self.side.copy()
        chain.hold()
        order = np.argsort(name[slots])
        slots = slots[order]
        atoms = np.bincount(labels[present], minlength=size.shape[0])[slots]
        return ShardReport(BlockSums(name[slots], size[slots], sums[order]), atoms)

    def joins(self, rows: Matrix) -> tuple[Ids, Matrix]:
        """Which block elsewhere each of some own blocks would most probably be one with.

        Parameters
        ----------
        rows : ndarray of float64, shape (k, m)
            Statistics of these blocks.

        Returns
        -------
        ndarray of int64, shape (k,)
            Names of blocks; -1 where every one is more probable apart.
        ndarray of float64, shape (k,)
            By how much the log posterior is higher together than apart.
        """
        k, theirs = rows.shape[0], self.elsewhere
        names, gains = np.full(k, _NONE, dtype=np.int64), np.zeros(k)
        n_theirs = theirs.names.shape[0]
        if k * n_theirs == 0:
            return names, gains
        family, n_blocks = self.chain.family, self.chain.n_blocks + n_theirs
        n = int(self.chain.n_observations + theirs.size.sum())
        seating = self.chain.prior.seating(n, n_blocks)

        def worth(sums: Matrix) -> Matrix:
            sizes = np.rint(sums[:, 0]).astype(np.int64)
            return np.asarray(finite_log_marginals(family, sums) + log_sizes(seating, sizes))

        apart = worth(theirs.rows) - log_blocks_ratio(seating, n_blocks, n_blocks - 1)
        # One at a time: sums of all with all would take the memory of k tables.
        for at, own in enumerate(worth(rows).tolist()):
            gain = worth(rows[at] + theirs.rows) - apart
            best = int(gain.argmax())
            gains[at] = gain[best] - own
            if gains[at] > 0.0:
                names[at] = theirs.names[best]
        return names, gains

    def _joined(self, rows: Matrix) -> Ids:
        """Names of blocks that arrivals have begun: of others' blocks, each once, or -1."""
        names, gains = self.joins(rows)
        order = np.argsort(-gains, kind="stable")
        first = order[np.unique(names[order], return_index=True)[1]]
        found = np.full(rows.shape[0], _NONE, dtype=np.int64)
        found[first] = names[first]
        self.elsewhere = self.elsewhere.without(found)
        return found

    def _held(self) -> Ids:
        """Numbers, in the report, of the atoms that are still there."""
        return np.flatnonzero(np.isin(self.reported, self.chain.held))

    def redraw(self, rng: Generator, asked: Redraw) -> Redrawn:
        """Draw a block for each atom of these blocks, beside the present one."""
        held, n_blocks = self._held(), asked.names.shape[0]
        uniform, picked = rng.random((self.reported.shape[0],)), rng.random((n_blocks,))
        names = self.named[self.reported[held]]
        numbers = held[np.isin(names, asked.names)]
        atoms = self.reported[numbers]
        before = np.searchsorted(asked.names, self.named[atoms])
        after, rows = before.copy(), np.zeros_like(asked.natural)
        for start in range(0, numbers.shape[0], _AT_A_TIME):
            part = slice(start, start + _AT_A_TIME)
            weights = self._rows(atoms[part]) @ asked.natural.T
            weights[asked.group[before[part]][:, None] != asked.group] = -np.inf
            weights = np.exp(weights - weights.max(axis=1, keepdims=True)).cumsum(axis=1)
            drawn = uniform[numbers[part], None] * weights[:, -1:]
            after[part] = np.minimum((weights <= drawn).sum(axis=1), n_blocks - 1)
        for block in np.flatnonzero(asked.holds):
            members = np.flatnonzero(before == block)
            if members.shape[0]:
                after[members[int(picked[block] * members.shape[0])]] = block
        self.drawn[numbers] = asked.names[after]
        np.add.at(rows, after, self._rows(atoms))
        size = np.bincount(after, self.chain.atom_sizes[atoms], n_blocks).astype(np.int64)
        return Redrawn(np.bincount(after, minlength=n_blocks), size, rows)

    def _settle(self, moved: Ids) -> None:
        numbers = self._held()
        atoms = self.reported[numbers]
        inside = np.isin(self.named[atoms], moved)
        self.named[atoms[inside]] = self.drawn[numbers[inside]]

    def anchors(self, moved: Ids, asked: Ids, numbers: Ids) -> Anchors:
        """Let the atoms of the blocks ``moved`` go where they were drawn to, and tell of some.

        They are those with these numbers in the report; of one that has left since nothing is told.
        """
        self._settle(moved)
        there = np.isin(numbers, self._held())
        atoms = self.reported[numbers[there]]
        return Anchors(asked[there], self.named[atoms], self._rows(atoms))

    def _rows(self, atoms: Ids) -> Matrix:
        return np.asarray(self.chain.atom_rows(atoms), np.float64)

    def sides(self, rng: Generator, model: Learned, pairs: Pairs) -> Sides:
        """Put the atoms of these blocks on sides; the same numbers draw the same."""
        family, prior = model
        held = self._held()
        own = self.reported[held]
        names, sizes = self.named[own], self.chain.atom_sizes[own]
        seated = Model(family, prior.seating(max(int(sizes.sum()), 1), 2), workspace(family))
        rows, log_q = np.zeros_like(pairs.rows), np.zeros(pairs.names.shape[0])
        for at, (one, other) in enumerate(pairs.names.tolist()):
            contested = (names == one) | (names == other)
            self.side[held[contested]] = names[contested] == other
            # Anchors are counted already.
            for side, anchor in enumerate(pairs.anchors[at].tolist()):
                self.side[held[contested & (held == anchor)]] = side
                contested &= held != anchor
            numbers = held[contested]
            if numbers.shape[0] == 0:
                continue
            sums = self._rows(own[contested])
            forced = None if one == other else self.side[numbers]
            done = allocate_own(rng, seated, (sizes[contested], sums), pairs.rows[at], forced)
            self.side[numbers], log_q[at] = done.side, done.log_q
            rows[at] = sums[done.side == 0].sum(axis=0), sums[done.side == 1].sum(axis=0)
        return Sides(rows, log_q)

    def take_turn(
        self, rng: Generator, model: Learned, turn: ShardTurn, budget: Budget
    ) -> tuple[TurnEnd, Refinement]:
        """Name sides as was decided, move in the blocks that were dealt, and end the round.

        ``budget`` is what the lease does where all blocks are one shard's; its seed is not looked
        at.
        """
        chain, held = self.chain, self._held()
        atoms = self.reported[held]
        before, side = self.named[atoms], self.side[held]
        names = before.copy()
        for pair, target in zip(turn.pairs.tolist(), turn.names, strict=True):
            contested = np.isin(before, pair)
            names[contested] = target[side[contested]]
        chain.learn(*model)
        mine = np.isin(names, turn.mine)
        kernels: tuple[KernelReport, ...] = ()
        if mine.any():
            names[mine], kernels = self._moved(rng, atoms[mine], names[mine], turn, budget)
        end = TurnEnd(atoms, names, self.next_name, bool(mine.any()), turn.elsewhere)
        return end, replace(self._end(end), kernels=kernels)

    def take_again(self, model: Learned, end: TurnEnd) -> Refinement:
        """Take a turn whose end is known: to the same bits, without its kernels."""
        self.chain.learn(*model)
        if end.leased:
            self.chain.tidy()
        return self._end(end)

    def _end(self, end: TurnEnd) -> Refinement:
        chain, self.next_name = self.chain, end.next_name
        # Of no use after it, and a turn that is taken again has none of it.
        self.reported = self.drawn = self.side = np.empty(0, dtype=np.int64)
        self.named = np.full(chain.labels.shape[0], _NONE, dtype=np.int64)
        self.named[end.atoms] = end.names
        self.elsewhere = end.elsewhere.without(end.names)
        labels = np.unique(end.names, return_inverse=True)[1]
        return chain.adopt([(end.atoms, labels)], learns=False)

    def _moved(
        self, rng: Generator, atoms: Ids, names: Ids, turn: ShardTurn, budget: Budget
    ) -> tuple[Ids, tuple[KernelReport, ...]]:
        """Names of these atoms after the kernels of a lease, and what these did."""
        labels = canonical_labels(names)
        # The fewer of its blocks a shard was dealt, the more often it goes through them.
        sweeps = budget.sweeps * turn.n_leases
        own = budget._replace(sweeps=sweeps, seed=int(rng.integers(2**63)))
        lease = self.chain.lease_of(atoms, labels, turn.n_leases, own)
        blocks = dict(zip(names.tolist(), labels.tolist(), strict=True))
        there = turn.others
        numbers = [blocks.setdefault(name, len(blocks)) for name in there.names.tolist()]
        elsewhere = Elsewhere(np.array(numbers, dtype=np.int64), there.size, there.rows)
        lease, among = with_elsewhere(rng, lease, elsewhere)
        returned = work(lease)
        after = canonical_labels(returned.labels)
        name = np.full(int(after.max()) + 1, _NONE, dtype=np.int64)
        name[after[atoms.shape[0] :]] = there.names[among]
        _go_on(name, names, after[: atoms.shape[0]], there.names)
        alone = np.flatnonzero(name == _NONE)
        name[alone] = self._fresh(alone.shape[0])
        return name[after[: atoms.shape[0]]], returned.kernels


def _go_on(name: Ids, before: Ids, after: Ids, shared: Ids) -> None:
    """Let blocks without a name (k, -1) keep one that had most of their atoms.

    ``before`` (n) and ``after`` (n) are names and blocks of the atoms; names that are ``shared``
    with other shards stay with what these have.
    """
    cells, size = np.unique(np.column_stack([before, after]), axis=0, return_counts=True)
    given = set(shared.tolist())
    for old, block in cells[np.argsort(-size, kind="stable")].tolist():
        if name[block] == _NONE and old not in given:
            name[block] = old
            given.add(old)
