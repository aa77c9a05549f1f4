"""Windows and half-lives: exact, by numbers and the records' own times, the same after a kill."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.mcmc.chains import chain_faults
from tests.stream.scenario import (
    KilledError,
    killer,
    line_of,
    new_store,
    outcome,
    plan_for,
    records_file,
    run,
    values_of,
    write_lines,
)
from weald.mcmc.chain.chain import MixtureChain
from weald.mcmc.settings import RefinementSettings
from weald.stream.model.batch_outcome import BatchOutcome
from weald.stream.model.forgetting import Forgetting, load_memory, saved_memory
from weald.stream.model.mixture_shard import MixtureShard
from weald.stream.settings import MemorySettings
from weald.stream.tables.atom_table import AtomTable
from weald.treecore.family import FAMILIES
from weald.treecore.family.interface.base import observe, statistics_width
from weald.treecore.prior import build_prior

CADENCE = RefinementSettings(every_records=50, publish_every_records=100, rounds=1)
N = 600


def shard_of(memory: MemorySettings) -> MixtureShard:
    values = values_of(200)
    family = FAMILIES["gaussian"].build({}, values)
    return MixtureShard(
        MixtureChain.start(family, build_prior("dp", {}), seed=3), family, CADENCE, memory
    )


def moved(n: int) -> NDArray[np.float64]:
    """Observations whose one cluster goes away at half time while another comes."""
    draw = np.random.default_rng(5)
    centres = np.where(np.arange(n)[:, None] < n // 2, [0.0, 0.0], [30.0, 0.0])
    return centres + draw.normal(size=(n, 2))


def consistent(shard: MixtureShard) -> None:
    """The chain, the table of atoms and that of clusters tell the same."""
    assert chain_faults(shard.chain) == 0
    atom_table, present = shard.atom_table, shard.atom_table.present
    assert present.tolist() == np.flatnonzero(shard.chain.labels >= 0).tolist()
    rows = {row.cluster: row for row in shard.table.take_changes(1) if not row.retired_publication}
    for cluster, row in rows.items():
        members = present[atom_table.cluster[present] == cluster]
        assert row.n_observations == atom_table.size[members].sum()
        total = shard.chain.atom_rows(members).sum(axis=0)
        np.testing.assert_allclose(row.statistics, total, atol=1e-8)
    assert set(atom_table.cluster[present].tolist()) == set(shard.table._slots)


def test_the_newest_so_many(rng: np.random.Generator) -> None:
    shard = shard_of(MemorySettings(window_records=120))
    values, cuts = moved(N), np.sort(rng.choice(N, 30, replace=False))
    total = BatchOutcome()
    for part in np.split(values, cuts):
        total.extend(shard.apply(part, 0.0))
        consistent(shard)
        oldest = shard.seq - shard.seq % 50 - 120
        assert sorted(shard.atom_table.seq[shard.atom_table.present]) == list(
            range(max(oldest, 0) + 1, shard.seq + 1)
        )
    departed = np.concatenate([each.seq for each in total.departures])
    assert departed.tolist() == list(range(1, N - 120 + 1))
    assert all(each.after_seq % 50 == 0 for each in total.departures)
    # The cluster that was left behind is retired, once and with an event, and so are its rows.
    first = int(total.clusters[0][0])
    (end,) = [e for e in total.lineage if e.kind == "retire" and e.cluster == first]
    assert 300 < end.seq <= 420 + 50
    assert first not in shard.atom_table.cluster
    assert total.publications[-1].n_observations == 120


@pytest.mark.parametrize("memory", [{"window_records": 50}, {"half_life_records": 30.0}], ids=str)
def test_statistics_are_those_of_what_is_left(memory: dict[str, float]) -> None:
    """Bit for bit the sum of the observations that stay, whole: nothing of the others does."""
    shard = shard_of(msgspec.convert(memory, MemorySettings))
    values = values_of(N)
    shard.apply(values, 0.0)
    rows = np.zeros((N, statistics_width(shard.chain.family)))
    for r in range(N):
        observe(shard.chain.family, values, r, rows, r)
    present = shard.atom_table.present
    assert (shard.chain.atom_rows(present) == rows[shard.atom_table.seq[present] - 1]).all()


def test_by_the_records_own_time() -> None:
    shard = shard_of(MemorySettings(window_seconds=10.0))
    times = np.arange(N, dtype=np.float64) / 10  # ten a second
    # Wrong clocks, a century ahead and behind: they neither empty the window nor hold it up.
    times[[333, 555]] = [3e9, -3e9]
    total = BatchOutcome()
    for at in range(0, N, 60):
        total.extend(shard.apply(values_of(N)[at : at + 60], 0.0, times=times[at : at + 60]))
        consistent(shard)
    # The clock stands in the middle of the last fifty.
    left = np.concatenate([each.seq for each in total.departures])
    kept = shard.atom_table.seq[shard.atom_table.present]
    assert 334 in kept
    assert 556 in left
    assert min(seq for seq in kept.tolist() if seq != 334) == 476
    assert len(left) + len(kept) == N


@pytest.mark.parametrize("by", ["records", "seconds"])
def test_half_of_each_age_leaves_within_a_half_life(by: str) -> None:
    n, half_life = 4000, 400
    if by == "records":
        shard = shard_of(MemorySettings(half_life_records=half_life))
    else:
        shard = shard_of(MemorySettings(half_life_seconds=half_life / 5))
    shard.sample.seed = 11
    total = BatchOutcome()
    for part in np.split(np.arange(n), [700, 2950, 3333]):
        total.extend(shard.apply(values_of(n)[part], 0.0, times=part / 5))
        consistent(shard)
    kept = shard.atom_table.seq[shard.atom_table.present]
    left = np.concatenate([each.seq for each in total.departures])
    assert sorted([*kept.tolist(), *left.tolist()]) == list(range(1, n + 1))
    # By seconds the clock stands in the middle of the last fifty.
    age = np.arange(n)[::-1] - (0 if by == "records" else 25)
    share = 0.5 ** (np.maximum(age, 0) / half_life)
    for block in np.split(np.arange(n), 10):
        expected, noise = share[block].sum(), np.sqrt((share * (1 - share))[block].sum())
        assert abs(np.isin(block + 1, kept).sum() - expected) < 4 * noise + 1e-9
    # Who stays is another sample for another seed.
    other = shard_of(MemorySettings(half_life_records=half_life))
    other.sample.seed = 12
    other.apply(values_of(n), 0.0)
    again = other.atom_table.seq[other.atom_table.present]
    assert len(np.intersect1d(kept, again)) < 0.8 * min(len(kept), len(again))


def test_what_comes_after_a_silence_stays() -> None:
    """Of many half-lives, in which nothing came: all from before leaves, and nothing from after."""
    shard = shard_of(MemorySettings(half_life_seconds=60.0))
    shard.apply(values_of(300), 0.0, times=np.arange(300.0))
    shard.apply(values_of(50), 0.0, times=1e5 + np.arange(50.0) / 50)
    assert shard.atom_table.seq[shard.atom_table.present].min() > 300
    assert shard.chain.n_observations >= 48


def test_clear_clusters_stay_apart_however_long_the_stream_is() -> None:
    draw, n = np.random.default_rng(5), 3000
    centres = 10.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1], [2, 0]])
    values = centres[draw.integers(5, size=n)] + draw.normal(size=(n, 2))
    shard = shard_of(MemorySettings(half_life_records=300.0))
    total = shard.apply(values, 0.0)
    assert {row.n_clusters for row in total.publications[5:]} <= {5, 6}
    assert [row.warnings for row in total.publications] == [[]] * len(total.publications)
    group = total.certainties[-1].group
    assert group is not None
    assert len(set(group.tolist())) == 5


@pytest.mark.parametrize("memory", [{"half_life_records": 20.0}, {"window_records": 60}])
def test_every_cluster_that_ends_is_told_of(memory: dict[str, float]) -> None:
    shard = shard_of(msgspec.convert(memory, MemorySettings))
    total = shard.apply(moved(N), 0.0)
    begun = {e.cluster for e in total.lineage if e.kind in {"birth", "split"}}
    ended = [e.cluster for e in total.lineage if e.kind == "retire"]
    assert len(ended) == len(set(ended))
    assert begun - set(ended) == set(shard.table._slots)


@pytest.mark.parametrize("memory", [{"half_life_records": 8.0}, {"window_records": 60}, {}])
def test_a_cluster_that_ends_has_the_size_that_it_had(memory: dict[str, float]) -> None:
    """Of a stream that forgets nothing, what is replaced is taken out by number."""
    shard = shard_of(msgspec.convert(memory, MemorySettings))
    total = shard.apply(moved(N), 0.0)
    if not memory:
        cluster, seq = shard.atom_table.cluster, shard.atom_table.seq
        shard.remove(seq[cluster == cluster[0]], total, 0.0)
    ends = {e.cluster: e.size for e in total.lineage if e.kind == "retire"}
    rows = [row for row in shard.table.take_changes(1) if row.retired_publication is not None]
    assert int(total.clusters[0][0]) in ends
    assert {row.cluster: row.n_observations for row in rows} == ends
    for row in rows:
        assert row.n_observations == row.statistics[0] > 0


MEMORIES = {
    "window": MemorySettings(window_records=150),
    "half-life": MemorySettings(half_life_records=25.0),
}


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("batch_records", [33, 500])
def test_cut_otherwise_and_killed(tmp_path: Path, memory: str, batch_records: int) -> None:
    """The same in SQL: clusters, lineage, and who has left."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder in (whole, cut):
        folder.mkdir()
    plan = replace(plan_for(records_file(whole, N)), memory=MEMORIES[memory])
    store = new_store(whole)
    run(plan, store)
    again = plan_for(records_file(cut, N), batch_records=batch_records, snapshot_records=130)
    again = replace(again, memory=MEMORIES[memory])
    for step, count in (("commit", 1), ("redis", 1)):
        with pytest.raises(KilledError):
            run(again, new_store(cut), killer(step, count))
    other = new_store(cut)
    run(again, other)
    assert outcome(other) == outcome(store)
    keys = [f"k{i}" for i in range(N)]
    left = [row.left_seq for row in store.assignments("stream", keys)]
    assert [row.left_seq for row in other.assignments("stream", keys)] == left
    gone = [i for i, seq in enumerate(left) if seq is not None]
    if memory == "window":
        assert gone == list(range(N - 150))
    assert len(gone) > N // 4
    # The last assignment of what has left stays; members are those in the model.
    assert all(row.cluster > 0 for row in store.assignments("stream", keys))
    shown = store.clusters("stream")
    members = [row for each in shown for row in store.members("stream", each.cluster, limit=N)]
    assert sorted(int(str(row.key)[1:]) for row in members) == sorted(set(range(N)) - set(gone))


def test_settings_survive_a_snapshot() -> None:
    for memory in (
        MemorySettings(),
        MemorySettings(window_records=7, window_seconds=0.5, half_life_seconds=1e9),
        MemorySettings(half_life_records=2.5),
    ):
        assert load_memory(saved_memory(memory)) == memory
    forgetting = Forgetting(MemorySettings(half_life_seconds=2.0))
    atom_table = AtomTable()
    atom_table.enter(
        np.arange(3), 1 + np.arange(3), np.array([1.0, 5.0, 6.0]), np.ones(3, dtype=np.int64)
    )
    forgetting.advance(atom_table, 3)
    again = Forgetting.restore(forgetting.state())
    atom_table.enter(
        np.arange(3, 5), np.array([4, 5]), np.array([7.0, 7.0]), np.ones(2, dtype=np.int64)
    )
    for each in (again, forgetting):
        each.advance(atom_table, 5)
        assert each.state()["stood"].tolist() == [5.0, 7.0]
    with pytest.raises(ValueError, match="not both"):
        MemorySettings(half_life_records=1.0, half_life_seconds=1.0)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"window_records": 0}, MemorySettings)


def test_removal_by_number() -> None:
    shard = shard_of(MemorySettings())
    shard.apply(values_of(130), 0.0)
    told = BatchOutcome()
    shard.remove(np.array([5, 17, 999]), told, 1.0)
    assert [each.seq.tolist() for each in told.departures] == [[5, 17]]
    consistent(shard)
    shard.apply(values_of(80), 0.0)
    consistent(shard)
    assert shard.seq == 210


def test_everything_leaves(tmp_path: Path) -> None:
    """A stream in which everything has left goes on."""
    shard = shard_of(MemorySettings(window_seconds=1.0))
    shard.apply(values_of(50), 0.0, times=np.arange(50.0))
    shard.apply(values_of(50), 0.0, times=np.full(50, 1e6))
    assert shard.atom_table.n_observations == 50
    path = write_lines(tmp_path / "x.jsonl", [line_of(i, r) for i, r in enumerate(values_of(70))])
    run(replace(plan_for(path), memory=MemorySettings(window_records=1)), new_store(tmp_path))
