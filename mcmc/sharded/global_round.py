"""A round of all shards, decided on statistics alone.

1. Hyperparameters are drawn given sizes and sums of all blocks.
2. All atoms at once draw their blocks anew, given weights and parameters that are drawn, as in
   :mod:`~weald.mcmc.sharded.sharded_chain`; left out for families whose parameters cannot be.
3. Splits and merges of whole blocks, sequentially allocated: pairs of anchor atoms are drawn
   without a look at the partition, and the atoms of their blocks choose sides in one shard after
   the other (:mod:`~weald.mcmc.sharded.relay`). Each pair begins in a shard of its own, so that all
   of them have work. Only these moves join two blocks that several shards have, since in step 4 no
   shard moves what others have.
4. Blocks are dealt out, and each shard moves its own atoms of the blocks that it was dealt
   (:mod:`weald.mcmc.leases.elsewhere`).

All of it is of the atoms that shards reported, and each step leaves the posterior over all of them
invariant. Of S shards each is asked to redraw, for its anchors, S times for sides, and for its
turn; what is sent depends on the number of blocks and pairs, and not on that of atoms.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.conditional.labels import draw_log_weights, log_coins, within_reach
from weald.mcmc.hyperparameters.learner import Hyperprior, stepped
from weald.mcmc.leases.elsewhere import deal_to_shards
from weald.mcmc.leases.leases import concurrency
from weald.mcmc.sub_cluster.near_anchors import CANDIDATES, gains_together
from weald.treecore.errors import ParameterError
from weald.treecore.family.interface.base import workspace
from weald.treecore.family.parameter_draws import draw_parameters
from weald.treecore.partition.partition import Model, finite_log_marginals
from weald.treecore.prior import PartitionPrior
from weald.treecore.prior.sequential import canonical_labels

from .launches import LaunchedMove, open_launches
from .round_messages import (
    Anchors,
    AnchorsAsked,
    BlockSums,
    Pairs,
    Redraw,
    Redrawn,
    ShardReport,
    ShardTurn,
    Sides,
    added,
    numbers_of,
)

__all__ = ["PAIRS", "GlobalRound"]

Ids = NDArray[np.int64]
_NONE = -1
# Pairs of anchors that are drawn in a round.
PAIRS = 8


@dataclass
class GlobalRound:
    """One round, by whoever asks the shards; the same answers lead to the same round.

    Attributes
    ----------
    number, seed : int
    family, prior, learner
        Before the round, and as they were drawn once it has begun; ``learner`` learns the family's
        base measure, None where it stays.
    reports : list
        Of all shards, in order.
    next_name : int
        For blocks that are split off; the shards' own are never among them.
    pairs : int
        How many pairs of anchors are drawn.
    tally : ndarray
        Proposals, acceptances, and the sum of log ratios, of splits and of merges (2, 3).
    """

    number: int
    seed: int
    family: Any
    prior: PartitionPrior
    learner: Hyperprior | None
    reports: list[ShardReport]
    next_name: int
    pairs: int = PAIRS
    tally: NDArray[np.float64] = field(default_factory=lambda: np.zeros((2, 3)))

    def __post_init__(self) -> None:
        self._rng = numbers_of(self.seed, self.number)
        self._sums = [each.blocks for each in self.reports]
        whole = self.whole()
        self._n = int(whole.size.sum())
        if self._n:
            self.prior = self.prior.resample(self._rng, whole.size)
            if self.learner is not None:
                self.family = stepped(self.learner, self._rng, self.family, whole.rows)
        self.moved = np.empty(0, dtype=np.int64)
        self._redraw = self._draw_parameters()
        self._names = self._anchors = np.empty((0, 2), dtype=np.int64)
        self._rows = np.empty((0, 2, whole.rows.shape[1]))
        self._own = np.zeros((self.n_shards, *self._rows.shape))
        self._log_q, self._first = np.empty(0), np.empty(0, dtype=np.int64)
        self._asked = self._draw_anchors()

    @property
    def n_shards(self) -> int:
        """How many take part."""
        return len(self.reports)

    @property
    def n_pairs(self) -> int:
        """Pairs that count; none before anchors were heard."""
        return int(self._names.shape[0])

    def whole(self) -> BlockSums:
        """All blocks as they are known."""
        return added(self._sums, self.reports[0].blocks.rows.shape[1])

    def _model(self) -> Model:
        n_blocks = self.whole().names.shape[0] + self.pairs + 1
        seating = self.prior.seating(max(self._n, 1), n_blocks)
        return Model(self.family, seating, workspace(self.family))

    # Blocks drawn anew.

    def _draw_parameters(self) -> tuple[Redraw, Ids] | None:
        """What all shards are to draw by, and which of them (c) holds an atom of each block."""
        whole, model = self.whole(), self._model()
        try:
            drawn = draw_parameters(self.family, whole.rows, self._rng)
        except ParameterError:
            return None
        natural = drawn.natural
        natural[:, 0] += draw_log_weights(self._rng, model.seating, whole.size)
        group = within_reach(self._rng, drawn)
        shared = np.bincount(group, minlength=1)[group] > 1
        if not shared.any():
            return None
        cumulative = np.cumsum(self._atoms(whole.names), axis=0)
        holder = (cumulative > self._rng.random((shared.shape[0],)) * cumulative[-1]).argmax(axis=0)
        asked = Redraw(whole.names[shared], group[shared], natural[shared], shared[shared])
        return asked, holder[shared]

    def _atoms(self, names: Ids) -> Ids:
        """How many atoms (S, c) each shard reported in each of these blocks."""
        found = np.zeros((self.n_shards, names.shape[0]), dtype=np.int64)
        for shard, report in enumerate(self.reports):
            there = np.isin(report.blocks.names, names)
            at = np.searchsorted(names, report.blocks.names[there])
            found[shard, at] = report.atoms[there]
        return found

    def redraw_of(self, shard: int) -> Redraw | None:
        """What a shard is to draw by; None where no two blocks are near."""
        if self._redraw is None:
            return None
        asked, holder = self._redraw
        return asked._replace(holds=holder == shard)

    def hear_redrawn(self, answers: Sequence[Redrawn]) -> None:
        """Let super-clusters take what was drawn, or not: ``moved`` are the blocks that do.

        One atom stayed where it was in each block, drawn uniformly: that there are more or fewer to
        draw from afterwards is what the acceptance makes up for.
        """
        if self._redraw is None:
            return
        asked, _ = self._redraw
        before = self._atoms(asked.names).sum(axis=0)
        after = np.sum([each.atoms for each in answers], axis=0)
        group = canonical_labels(asked.group)
        ratio = np.bincount(group, np.log(before) - np.log(np.maximum(after, 1)))
        ratio[np.bincount(group, after == 0) > 0] = -np.inf
        accepted = log_coins(self._rng, ratio.size) < ratio
        takes = accepted[group]
        self.moved = asked.names[takes]
        for shard, each in enumerate(answers):
            sums = self._sums[shard]
            kept = sums.without(self.moved)
            there = takes & (each.size > 0)
            new = BlockSums(asked.names[there], each.size[there], each.rows[there])
            self._sums[shard] = added([kept, new], sums.rows.shape[1])

    # Anchors.

    def _draw_anchors(self) -> list[Ids]:
        """For each pair its first atom and the candidates for the second, by number among all."""
        n = sum(each.n_atoms for each in self.reports)
        if n < 2:
            return []
        found = []
        for pair in range(self.pairs):
            first = int(self._rng.integers(n))
            others = self._rng.integers(n - 1, size=CANDIDATES[pair % len(CANDIDATES)])
            found.append(np.append(first, others + (others >= first)))
        return found

    def _starts(self) -> Ids:
        """The number among all of each shard's first atom, and of what would come next."""
        return np.cumsum([0, *(each.n_atoms for each in self.reports)])

    def anchors_of(self, shard: int) -> AnchorsAsked:
        """Blocks that take what was drawn, and which atoms a shard is to tell of."""
        every = np.concatenate([np.empty(0, np.int64), *self._asked]).astype(np.int64)
        start, end = self._starts()[shard : shard + 2]
        places = np.flatnonzero((every >= start) & (every < end))
        return AnchorsAsked(self.moved, places, every[places] - start)

    def hear_anchors(self, answers: Sequence[Anchors]) -> None:
        """Choose the second anchors, and the pairs that count."""
        m = self.reports[0].blocks.rows.shape[1]
        n_asked = sum(each.shape[0] for each in self._asked)
        names, rows = np.full(n_asked, _NONE, dtype=np.int64), np.zeros((n_asked, m))
        for answer in answers:
            names[answer.asked], rows[answer.asked] = answer.names, answer.rows
        chosen, start = [], 0
        for atoms in self._asked:
            places = start + np.flatnonzero(names[start : start + atoms.shape[0]] != _NONE)
            if places.shape[0] > 1 and places[0] == start:
                others = rows[places[1:]]
                alone = finite_log_marginals(self.family, others)
                gain = gains_together(self.family, rows[start], others, alone)
                chosen.append((start, int(places[1 + int(np.argmax(gain))])))
            start += atoms.shape[0]
        if not chosen:
            return
        ends = np.array(chosen)
        launches, _ = open_launches(ends, names[ends])
        p = launches.clusters.shape[0]
        self._names, self._rows = launches.clusters, rows[launches.anchors]
        self._anchors = np.concatenate(self._asked)[launches.anchors]
        self._own = np.zeros((self.n_shards, *self._rows.shape))
        of_whom = np.searchsorted(self._starts(), self._anchors, side="right") - 1
        for pair, side in np.ndindex(p, 2):
            self._own[of_whom[pair, side], pair, side] = self._rows[pair, side]
        self._log_q = np.zeros(p)
        self._first = self._rng.integers(self.n_shards, size=(p,))

    # Sides.

    def _here(self, shard: int, stage: int) -> Ids:
        """Which pairs are with a shard in a stage."""
        return np.flatnonzero((self._first + stage) % self.n_shards == shard)

    def pairs_of(self, shard: int, stage: int) -> Pairs:
        """What a shard is to put on sides in a stage, of which there are as many as shards."""
        start, end = self._starts()[shard : shard + 2]
        here = self._here(shard, stage)
        anchors = self._anchors[here]
        own = (anchors >= start) & (anchors < end)
        return Pairs(
            self._names[here], np.where(own, anchors - start, _NONE), self._rows[here].copy()
        )

    def hear_sides(self, shard: int, stage: int, answer: Sides) -> None:
        """Add a shard's atoms to the sides; answers of one stage do not depend on each other."""
        here = self._here(shard, stage)
        self._rows[here] += answer.rows
        self._own[shard, here] += answer.rows
        self._log_q[here] += answer.log_q

    def _decide(self) -> Ids:
        """Accept or not, one pair after the other; returns the names (p, 2) of sides after it."""
        target = self._names.copy()
        k = self.whole().names.shape[0]
        model = self._model()
        for at, (one, other) in enumerate(self._names.tolist()):
            move = LaunchedMove(one == other, self._rows[at], float(self._log_q[at]))
            ratio = move.log_ratio(model, model.seating, k)
            accepted = move.is_accepted(self._rng, ratio)
            self.tally[0 if move.is_split else 1] += 1.0, float(accepted), ratio
            if not accepted:
                continue
            k += 1 if move.is_split else -1
            target[at] = (one, self.next_name) if move.is_split else (one, one)
            if move.is_split:
                self.next_name += self.n_shards + 1
            for shard, sums in enumerate(self._sums):
                self._sums[shard] = _renamed(
                    sums, self._names[at], target[at], self._own[shard, at]
                )
        return target

    # Turns.

    def turns(self) -> list[ShardTurn]:
        """What each shard does at last: pairs are decided on, and blocks dealt out."""
        names, whole = self._decide(), self.whole()
        is_product = concurrency(self.prior, max(self._n, 1), 2) == 2
        n_blocks = whole.names.shape[0]
        dealt = deal_to_shards(self._rng, n_blocks, self.n_shards, is_product=is_product)
        found = []
        for shard in range(self.n_shards):
            mine = whole.names[dealt.shards == shard]
            others = [each.of(mine) for at, each in enumerate(self._sums) if at != shard]
            there = added(others, whole.rows.shape[1])
            elsewhere = whole.without(self._sums[shard].names)
            found.append(ShardTurn(self._names, names, mine, dealt.n_leases, there, elsewhere))
        return found


def _renamed(sums: BlockSums, own: Ids, target: Ids, sides: NDArray[np.float64]) -> BlockSums:
    """A shard's sums once the sides (2, m) of the blocks ``own`` have the names ``target``."""
    kept = sums.without(own)
    size = np.rint(sides[:, 0]).astype(np.int64)
    there = np.flatnonzero(size > 0)
    parts = [BlockSums(target[at : at + 1], size[at : at + 1], sides[at : at + 1]) for at in there]
    return added([kept, *parts], sums.rows.shape[1])
