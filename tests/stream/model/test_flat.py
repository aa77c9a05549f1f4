"""What a batch touches does not grow with the stream, and all comes out the same after a kill."""

import tracemalloc
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.stream.scenario import (
    CADENCE,
    MODEL,
    assert_a_kill_changes_nothing,
    new_store,
    outcome,
    plan_for,
    records_file,
    run,
    values_of,
)
from weald.mcmc.settings import RefinementSettings
from weald.stream.model import mixture_shard
from weald.stream.model.mixture_shard import FEW_ATOMS, MixtureShard
from weald.stream.model.model import free_shard
from weald.stream.model.shard import Shard
from weald.stream.publication.arrival_router import Arrivals
from weald.stream.settings import MemorySettings

N = 900
FEW = 250


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let windows begin early."""
    monkeypatch.setattr(mixture_shard, "FEW_ATOMS", FEW)


def overlapping(n: int) -> NDArray[np.float64]:
    """Points of clusters that overlap, so that refinement keeps moving them."""
    draw = np.random.default_rng(5)
    return draw.normal(scale=4.0, size=(8, 2))[draw.integers(8, size=n)] + draw.normal(size=(n, 2))


def shard_of(values: NDArray[np.float64], cadence: RefinementSettings = CADENCE) -> Shard:
    return free_shard(MODEL, cadence, values[:60])


def peak_of(shard: Shard, values: NDArray[np.float64]) -> int:
    """Bytes that applying a batch needed at once, beside what was there."""
    tracemalloc.start()
    shard.apply(values, 0.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("full", [False, True])
def test_a_batch_between_publications_touches_as_much_of_many_as_of_few(full: bool) -> None:
    # Less than one byte for each of the 36,000 atoms that the larger stream has more.
    sizes, batch = (4_000, 40_000), 20
    values, peaks = values_of(sizes[-1] + 2 * batch), []
    for size in sizes:
        shard = shard_of(values, RefinementSettings(size, size, 1))
        shard.apply(values[:size], 0.0)
        memory = MemorySettings(leaf_budget=size + batch, policy="sample")
        cadence = RefinementSettings(batch, batch * 100, 1)
        shard.settle(cadence, memory if full else MemorySettings())
        # The first batch after a publication makes room, and looks where arrivals go.
        shard.apply(values[size : size + batch], 0.0)
        peaks.append(peak_of(shard, values[size + batch : size + 2 * batch]))
        assert shard.chain.n_atoms == (size if full else size + 2 * batch)
    assert peaks[1] < peaks[0] + 20_000


def test_publications_come_as_a_share_of_the_atoms_is_new() -> None:
    every = 500
    values = values_of(3 * FEW_ATOMS)
    shard = shard_of(values, RefinementSettings(every, every, 1))
    done = shard.apply(values, 0.0)
    at = np.array([row.seq for row in done.publications])
    # The first come as there are twice as many records as before.
    assert at[:2].tolist() == [every // 4, every // 2]
    at = at[2:]
    assert len(done.refinements) == len(values) // every + 2
    first = FEW_ATOMS // every
    assert at[:first].tolist() == [every * (i + 1) for i in range(first)]
    gaps = np.diff(at[first - 1 :])
    assert (gaps >= 0.1 * at[first:]).all()
    assert (gaps < 0.1 * at[first:] + every).all()
    # What looks at all atoms looks at each of them a bounded number of times an arrival.
    assert at[first:].sum() <= 11 * (len(values) - FEW_ATOMS)


@pytest.mark.usefixtures("few")
def test_windows_do_not_depend_on_the_cut_or_on_a_start_in_between() -> None:
    values = overlapping(N)
    whole, cut = shard_of(values), shard_of(values)
    done = whole.apply(values, 0.0)
    assert len(done.refinements) > len(done.publications) * 2
    for start in range(0, N, 37):
        cut.apply(values[start : start + 37], 0.0)
        cut = MixtureShard.restore(cut.state(), cut.chain.family)
        cut.moves, cut.sample.seed = whole.moves, whole.sample.seed
    np.testing.assert_array_equal(cut.chain.labels, whole.chain.labels)
    np.testing.assert_array_equal(cut.clusters, whole.clusters)
    assert cut.chain.prior == whole.chain.prior


@pytest.mark.usefixtures("few")
def test_windows_are_replayed_after_a_kill(tmp_path: Path) -> None:
    quiet = new_store(tmp_path, "quiet")
    plan = plan_for(records_file(tmp_path, N), snapshot_records=10_000)
    run(plan, quiet)

    store = assert_a_kill_changes_nothing(tmp_path, plan, outcome(quiet), ("commit", 13))
    at = [row.seq for row in store.publications("stream")]
    assert at != list(range(200, N, 200))


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("policy", ["window", "sample"])
def test_windows_follow_what_leaves(policy: str) -> None:
    values = overlapping(N)
    # Some alone, whose blocks end as they leave.
    values[::9] += 40.0 * np.arange(len(values[::9]))[:, None]
    cadence = msgspec.structs.replace(CADENCE, every_records=50, publish_every_records=100)
    memory = MemorySettings(window_records=400)
    if policy == "sample":
        memory = MemorySettings(leaf_budget=450, policy="sample")
    shard = free_shard(MODEL, cadence, values[:60], memory)
    for at in range(0, N, 50):
        shard.apply(values[at : at + 50], 0.0)
        # Arrivals go where they would after a start.
        fresh = Arrivals.settled(shard.chain.labels, shard.atom_table, 0)
        assert shard._homes().homes == fresh.homes
    present = shard.atom_table.present
    assert len(present) == shard.chain.n_atoms == 400
    assert shard.atom_table.n_observations == shard.chain.n_observations == 400
    assert (shard.chain.labels[present] >= 0).all()
