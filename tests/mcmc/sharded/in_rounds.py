"""Chains of shards in one process, and the rounds that they go through."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.chain.chain import MixtureChain
from weald.mcmc.leases.leases import Budget
from weald.mcmc.sharded.global_round import PAIRS, GlobalRound
from weald.mcmc.sharded.round_messages import Pairs, ShardReport, Sides, numbers_of
from weald.mcmc.sharded.shard_chain import ShardChain
from weald.treecore.prior import PartitionPrior

BUDGET = Budget("tgmcmc,sams,gibbs", 1, 0)


class InRounds:
    """Shards of some rows (n, d), of which ``owner`` (n) says whose they are.

    Each begins with the blocks that its rows came into, or with them ``together`` in one. With
    ``dies_at`` a shard dies in every round before it answers for that time, and comes back as
    it was at its report. ``meanwhile`` is called before each answer.
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
        self._asked: list[list[tuple[int, Pairs, Sides]]] = [[] for _ in self.shards]
        self._n_answers = 0
        at.hear_anchors([self._who(k, model).anchors(*at.asked_of(k)) for k in range(at.n_shards)])
        for stage in range(at.n_shards):
            for k in range(at.n_shards):
                asked = at.pairs_of(k, stage)
                answer = self._who(k, model).sides(self._numbers(k, stage + 1), model, asked)
                self._asked[k].append((stage, asked, answer))
                at.hear_sides(k, stage, answer)
        for k, turn in enumerate(at.turns()):
            self._who(k, model).take_turn(self._numbers(k, 0), model, turn, budget)
        self.reports = [shard.report() for shard in self.shards]
        self.model, self.next_name = (at.family, at.prior, None), at.next_name
        return at

    def _who(self, shard: int, model: Any) -> ShardChain:
        """The shard, which may have died just now: it answers again what it was asked before."""
        self.meanwhile()
        self._n_answers += 1
        if self._n_answers == self.dies_at:
            again = self.shards[shard] = ShardChain.restore(self._kept[shard])
            for stage, asked, answer in self._asked[shard]:
                found = again.sides(self._numbers(shard, stage + 1), model, asked)
                np.testing.assert_array_equal(found.rows, answer.rows)
                np.testing.assert_array_equal(found.log_q, answer.log_q)
        return self.shards[shard]

    def _numbers(self, shard: int, stage: int) -> np.random.Generator:
        return numbers_of(11, self.number, 1 + shard, stage)

    def names(self) -> NDArray[np.int64]:
        """The block of each row (n), by name."""
        found = np.empty(self.owner.shape[0], dtype=np.int64)
        for shard in self.shards:
            found[self.owner == shard.shard] = shard.named
        return found
