"""A round in numbered steps, through bytes: each message comes back, and each shard, to the bit."""

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from tests.mcmc.sharded.in_rounds import BUDGET, InRounds
from tests.mcmc.sharded.test_rounds import apart
from weald.mcmc.sharded.global_round import GlobalRound
from weald.mcmc.sharded.message_arrays import VERSION, Message, arrays_of, message_of
from weald.mcmc.sharded.round_messages import BlockSums, ShardReport, ShardTurn
from weald.mcmc.sharded.round_steps import RoundKey, RoundSteps, answer, turn_step
from weald.mcmc.sharded.shard_chain import ShardChain
from weald.storage.encoding.snapshot import decode, encode
from weald.treecore.family import spec_of
from weald.treecore.family.same_kind import with_parameters


def same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return type(one) is type(other) and all(map(same, one, other))
    return np.asarray(one).dtype == np.asarray(other).dtype and np.array_equal(one, other)


class InSteps(InRounds):
    """Rounds whose every message goes through bytes; `said` are all that were."""

    def __init__(self, rounds: InRounds) -> None:
        vars(self).update(vars(rounds))
        self.said: list[Message] = []

    def carried(self, message: Message) -> Message:
        self.said.append(message)
        back = message_of(decode(encode(arrays_of(message))))
        assert same(message, back)
        return back

    def step(self) -> GlobalRound:
        """One round."""
        self.number += 1
        reports = [self.carried(each) for each in self.reports]
        at = GlobalRound(self.number, 11, *self.model, reports, self.next_name, self.pairs)  # type: ignore[arg-type]  # they are reports
        key, model, steps = RoundKey(11, self.number), (at.family, at.prior), RoundSteps(at)
        self._kept = [shard.state() for shard in self.shards]
        self.ends = []
        while steps.step < turn_step(at.n_shards):
            asked = [self.carried(each) for each in steps.questions()]
            steps.hear(
                [
                    self.carried(answer(shard, steps.step, key, model, each))
                    for shard, each in zip(self.shards, asked, strict=True)
                ]
            )
        for shard, turn in zip(self.shards, steps.questions(), strict=True):
            told = self.carried(turn)
            assert isinstance(told, ShardTurn)
            numbers = key.of_shard(shard.shard, 0)
            self.ends.append(shard.take_turn(numbers, model, told, BUDGET)[0])
        self.before = self._kept
        self.reports = [shard.report() for shard in self.shards]
        self.model, self.next_name = (*model, None), at.next_name
        return at


@pytest.fixture
def twice(rng: Generator) -> tuple[InRounds, InSteps]:
    state = rng.bit_generator.state
    whole = apart(rng, 120, 3)[0]
    rng.bit_generator.state = state
    return whole, InSteps(apart(rng, 120, 3)[0])


def test_a_round_in_steps_is_the_round(twice: tuple[InRounds, InSteps]) -> None:
    whole, stepped = twice
    for _ in range(8):
        np.testing.assert_array_equal(whole.go().tally, stepped.step().tally)
        np.testing.assert_array_equal(whole.names(), stepped.names())
        assert same(tuple(whole.reports), tuple(stepped.reports))
    kinds = {type(each).__name__ for each in stepped.said}
    assert kinds == {
        *("ShardReport", "Redraw", "Redrawn", "AnchorsAsked", "Anchors"),
        *("Pairs", "Sides", "ShardTurn"),
    }


def test_a_turn_whose_end_is_known_is_taken_again_without_kernels(
    twice: tuple[InRounds, InSteps],
) -> None:
    """So a replay need not be asked anything, and goes on with the same bits."""
    _, stepped = twice
    for _ in range(5):
        at = stepped.step()
        known = spec_of(at.family).parameters(at.family)
        again = [ShardChain.restore(saved) for saved in stepped.before]
        for shard, end, live, report in zip(
            again, stepped.ends, stepped.shards, stepped.reports, strict=True
        ):
            shard.take_again((with_parameters(shard.chain.family, known), at.prior), end)
            assert same(shard.report(), report)
            state, other = shard.state(), live.state()
            assert state.keys() == other.keys()
            for name, array in state.items():
                np.testing.assert_array_equal(array, other[name], err_msg=name)


def test_messages_of_another_version_are_refused() -> None:
    empty = np.empty(0, np.int64)
    arrays = arrays_of(ShardReport(BlockSums(empty, empty, np.empty((0, 7))), empty))
    arrays["about"] = arrays["about"] + [1, 0]
    with pytest.raises(ValueError, match=f"version {VERSION + 1}"):
        message_of(arrays)
    with pytest.raises(ValueError, match="lacks"):
        message_of({"about": np.array([VERSION, 0])})
