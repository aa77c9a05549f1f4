"""While refinement is put off trees place arrivals, and all is as replayable as ever."""

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.settings import ModelSettings, RefinementSettings
from weald.stream.model.mixture_shard import MixtureShard
from weald.stream.model.model import free_shard
from weald.stream.model.pace import Remembered

N = 700
# The first refinement, after 250 records, is made, and so are those from 600 on.
PUT_OFF = Remembered(range(251, 600))


def begun(values: NDArray[np.float64]) -> MixtureShard:
    cadence = RefinementSettings(every_records=50, publish_every_records=2000, rounds=1)
    shard = free_shard(ModelSettings(family="gaussian"), cadence, values[:200])
    shard.pace = PUT_OFF
    return shard


def applied(shard: MixtureShard, values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The clusters that these are shown in on arrival."""
    return np.concatenate(shard.apply(values, 0.0).clusters)


@pytest.fixture
def values(rng: Generator) -> NDArray[np.float64]:
    """Observations (n, 10) of 50 clusters that overlap."""
    centres, kind = rng.normal(scale=2.0, size=(50, 10)), rng.integers(50, size=N)
    return centres[kind] + rng.normal(size=(N, 10))


def test_a_cut_and_a_restart_change_nothing(values: NDArray[np.float64], rng: Generator) -> None:
    whole = begun(values)
    shown = applied(whole, values)
    assert whole.owed > 0
    for n_cuts in (3, 30):
        cuts = np.sort(rng.choice(np.arange(300, N), size=n_cuts, replace=False))
        shard, again = begun(values), []
        for part in np.split(values, cuts):
            again.append(applied(shard, part))
            kept = shard._homes().homes
            seen_by = shard.moves
            shard = MixtureShard.restore(shard.state(), shard.table.family)
            shard.pace, shard.moves = PUT_OFF, seen_by
            assert shard._homes().homes == kept
        assert np.concatenate(again).tolist() == shown.tolist()
        assert shard.chain.labels.tolist() == whole.chain.labels.tolist()


def test_trees_move_what_is_there_only_while_something_is_owed(values: NDArray[np.float64]) -> None:
    shard = begun(values)
    moved = []
    for at in range(0, N, 10):
        before, owed = shard.chain.labels, shard.owed
        shard.apply(values[at : at + 10], 0.0)
        if (at + 10) % 50:  # else it is the turn of a refinement
            moved.append((shard.chain.labels[: before.shape[0]] != before).sum())
            assert owed or moved[-1] == 0
    assert sum(moved) > 0
