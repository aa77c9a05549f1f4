"""Chains of shards in one process, and the rounds that they go through."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.chain.chain import MixtureChain
from weald.mcmc.leases.leases import Budget
from weald.mcmc.sharded.global_round import PAIRS, GlobalRound
from weald.mcmc.sharded.round_messages import (
    Pairs,
    Redraw,
    ShardReport,
    ShardTurn,
    numbers_of,
)
from weald.mcmc.sharded.shard_chain import ShardChain
from weald.treecore.prior import PartitionPrior

BUDGET = Budget("tgmcmc,sams,gibbs", 1, 0)

Question = Callable[[ShardChain], Any]


def _anchors(asked: tuple[Any, ...], shard: ShardChain) -> Any:
    return shard.anchors(*asked)


class InRounds:
    """Shards of some rows (n, d), of which ``owner`` (n) says whose they are.

    Each begins with the blocks that its rows came into, or with them ``together`` in one. With
    ``dies_at`` a shard dies in every round before it answers for that time, and comes back as
    it was at its report. ``meanwhile`` is called before each answer
    and before the reports.
    """

    def __init__(
        self,
        model: tuple[Any, PartitionPrior],
        rows: NDArray[np.float64],
        owner: NDArray[np.int64],
        pairs: int = PAIRS,
        *,
        together: bool = False,
    ) -> None:
        n_shards = int(owner.max()) + 1
        self.shards, self.owner, self.rows = [], owner, rows
        for shard in range(n_shards):
            chain = MixtureChain.start(*model, seed=shard)
            ids = chain.insert(rows[owner == shard])
            if together:
                chain.hold()
                chain.adopt([(ids, np.zeros_like(ids))], learns=False)
            self.shards.append(ShardChain.start(chain, shard, n_shards))
        self.model = (*model, None)
        self.pairs = pairs
        self.number, self.next_name = 0, n_shards
        self.reports: list[ShardReport] = [each.report() for each in self.shards]
        self.dies_at: int | None = None
        self.meanwhile: Callable[[], None] = lambda: None

    def go(self, budget: Budget = BUDGET) -> GlobalRound:
        """One round of all shards."""
        self.number += 1
        at = GlobalRound(self.number, 11, *self.model, self.reports, self.next_name, self.pairs)
        model = at.family, at.prior
        if self.dies_at is not None:
            self._kept = [shard.state() for shard in self.shards]
        self._answered: list[list[tuple[Question, Any]]] = [[] for _ in self.shards]
        self._n_answers, every = 0, range(at.n_shards)
        redraws = [(k, asked) for k in every if (asked := at.redraw_of(k)) is not None]
        at.hear_redrawn([self._ask(k, partial(self._redraw, asked)) for k, asked in redraws])
        at.hear_anchors([self._ask(k, partial(_anchors, at.anchors_of(k))) for k in every])
        for stage in range(at.n_shards):
            for k in every:
                put = partial(self._sides, stage, model, at.pairs_of(k, stage))
                at.hear_sides(k, stage, self._ask(k, put))
        for k, turn in enumerate(at.turns()):
            self._ask(k, partial(self._turn, model, turn, budget))
        self.meanwhile()
        self.reports = [shard.report() for shard in self.shards]
        self.model, self.next_name = (at.family, at.prior, None), at.next_name
        return at

    def _ask(self, shard: int, question: Question) -> Any:
        """Its answer; if it has died just now, it answers again what it was asked before."""
        self.meanwhile()
        self._n_answers += 1
        if self._n_answers == self.dies_at:
            self.shards[shard] = ShardChain.restore(self._kept[shard])
            for earlier, answer in self._answered[shard]:
                for found, was in zip(earlier(self.shards[shard]), answer, strict=True):
                    np.testing.assert_array_equal(found, was)
        answer = question(self.shards[shard])
        self._answered[shard].append((question, answer))
        return answer

    def _redraw(self, asked: Redraw, shard: ShardChain) -> Any:
        return shard.redraw(self._numbers(shard.shard, len(self.shards) + 1), asked)

    def _sides(self, stage: int, model: Any, pairs: Pairs, shard: ShardChain) -> Any:
        return shard.sides(self._numbers(shard.shard, stage + 1), model, pairs)

    def _turn(self, model: Any, turn: ShardTurn, budget: Budget, shard: ShardChain) -> Any:
        return shard.take_turn(self._numbers(shard.shard, 0), model, turn, budget)

    def _numbers(self, shard: int, stage: int) -> np.random.Generator:
        return numbers_of(11, self.number, 1 + shard, stage)

    def names(self) -> NDArray[np.int64]:
        """The block of each row (n), by name."""
        found = np.empty(self.owner.shape[0], dtype=np.int64)
        for shard in self.shards:
            found[self.owner == shard.shard] = shard.named
        return found
