"""What is published rests on sixteen draws of nearly all that the model holds."""

import msgspec
import pytest

from tests.stream.scenario import CADENCE, MODEL, values_of
from weald.stream.model import mixture_shard
from weald.stream.model.model import free_shard
from weald.stream.model.shard import MOST_ROUNDS_APART, MOVED_BETWEEN_DRAWS
from weald.stream.publication.certainty import DRAWS_KEPT
from weald.stream.settings import MemorySettings


@pytest.mark.parametrize("few", [100, 10_000])
@pytest.mark.parametrize("window", [None, 250])
@pytest.mark.parametrize("rounds", [1, 3])
def test_draws_are_made_up_before_a_publication(
    monkeypatch: pytest.MonkeyPatch, few: int, window: int | None, rounds: int
) -> None:
    monkeypatch.setattr(mixture_shard, "FEW_ATOMS", few)
    cadence = msgspec.structs.replace(CADENCE, every_records=20, rounds=rounds)
    values = values_of(1_000)
    shard = free_shard(MODEL, cadence, values[:60], MemorySettings(window_records=window))
    published, held = 0, 0
    for end in range(20, len(values) + 1, 20):
        done = shard.apply(values[end - 20 : end], 0.0)
        if done.publications:
            published += 1
            held = min(end, window or end)
            after = shard.state()["draws.after"]
            assert len(after) == DRAWS_KEPT
            assert (end - after <= 0.1 * held).all()
            # Those that there were already are not made again. Of few there is one in several.
            made, more = divmod(done.n_rounds[0], max(MOVED_BETWEEN_DRAWS // held, 1))
            kept = (after < end).sum()
            assert made <= DRAWS_KEPT
            assert more == 0
            assert made == DRAWS_KEPT - kept or kept + rounds >= DRAWS_KEPT
        else:
            assert done.n_rounds == [rounds]
    assert published >= 4
    again = shard.go_on(0.0)
    assert again.n_rounds[0] < DRAWS_KEPT * max(MOVED_BETWEEN_DRAWS // held, 1)


def test_one_observation_is_not_moved_for_long() -> None:
    values = values_of(60)
    shard = free_shard(MODEL, CADENCE, values, MemorySettings())
    shard.apply(values[:1], 0.0)
    done = shard.go_on(0.0)
    assert len(done.publications) == 1
    assert done.n_rounds == [DRAWS_KEPT * MOST_ROUNDS_APART]


def test_who_refines_nothing_makes_no_draws() -> None:
    values = values_of(200)
    shard = free_shard(MODEL, msgspec.structs.replace(CADENCE, rounds=0), values[:60])
    done = shard.apply(values, 0.0)
    assert done.n_rounds == [0, 0]
    assert shard.state()["draws.after"].tolist() == []
