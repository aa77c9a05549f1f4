"""Numbers of observations in a stream in shards, and blocks of several shards as one."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from weald.storage.commit.commit import ObservationBlock
from weald.storage.queries.whole_numbers import WholeNumbers, merged


def test_each_observation_has_one_number() -> None:
    numbers = WholeNumbers(3)
    given = {numbers.of(shard, seq) for shard in range(3) for seq in range(1, 11)}
    assert given == set(range(1, 31))
    for number in given:
        shard, seq = numbers.shard_of(number), numbers.within(number)
        assert numbers.of(shard, seq) == number
        assert numbers.below(shard, number) == seq
        assert numbers.below(shard, number - 1) == seq - 1
    assert numbers.below(2, 0) == numbers.below(2, 2) == 0
    assert numbers.by_shard([5, 1, 4, 3]) == {1: [2], 0: [1, 2], 2: [1]}


def block(shard: int, seqs: range, topic: str = "events") -> ObservationBlock:
    n = len(seqs)
    return ObservationBlock(
        seq=np.array(seqs),
        topic=topic,
        partition=np.full(n, shard, dtype=np.int32),
        offset=np.array(seqs) - 1,
        key=[f"{shard}-{seq}" for seq in seqs],
        event_time=np.array(seqs, dtype=np.float64),
        values=np.array(seqs, dtype=np.float64)[:, np.newaxis],
        cluster=np.full(n, shard),
        received_at=float(shard),
    )


@pytest.mark.parametrize(("sizes", "limit"), [((9, 2, 5), 4), ((1, 0, 40), 3), ((7, 7, 7), 100)])
def test_blocks_of_shards_are_read_in_the_order_of_their_numbers(
    sizes: tuple[int, ...], limit: int
) -> None:
    numbers = WholeNumbers(3)
    after, found = 0, []
    while True:
        parts = []
        for shard, n in enumerate(sizes):
            first = numbers.below(shard, after) + 1
            if first <= n:
                own = block(shard, range(first, min(first + limit, n + 1)))
                parts.append(numbers.of_block(shard, own))
        next_block = merged(parts, limit)
        if next_block is None:
            break
        assert 0 < len(next_block) <= limit
        found.append(next_block)
        after = int(next_block.seq[-1])
    seq = np.concatenate([each.seq for each in found])
    assert all(a < b for a, b in pairwise(seq.tolist()))
    keys = [str(key) for each in found for key in each.key]
    assert keys == [f"{numbers.shard_of(each)}-{numbers.within(each)}" for each in seq.tolist()]
    assert sorted(keys) == sorted(
        f"{shard}-{seq}" for shard, n in enumerate(sizes) for seq in range(1, n + 1)
    )


def test_a_block_has_one_topic() -> None:
    earlier, later = block(0, range(1, 6)), block(1, range(3, 8), "others")
    found = merged([later, earlier], 100)
    assert found is not None
    assert (found.topic, found.seq.tolist()) == ("events", [1, 2])
    # The rest of a shard may come before what another has.
    ahead = replace(block(1, range(1, 9)), seq=np.arange(8) + 3)
    cut = merged([block(0, range(1, 3)), ahead], 9)
    assert cut is not None
    assert cut.seq.tolist() == [1, 2]
    assert merged([], 5) is None
