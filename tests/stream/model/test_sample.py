"""A sample of the stream: uniform, the same after a kill, and everything else counted and shown."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.stream.scenario import (
    NAME,
    KilledError,
    assert_exactly_once,
    killer,
    left,
    line_of,
    new_store,
    outcome,
    plan_for,
    run,
    values_of,
    write_lines,
)
from weald.mcmc.chain.chain import MixtureChain
from weald.mcmc.estimate.predictive import Predictive
from weald.mcmc.settings import RefinementSettings
from weald.storage.commit.commit import ClusterRow, Handover, Reassignment
from weald.storage.writing.store import SqlStore
from weald.stream.model.batch_outcome import BatchOutcome
from weald.stream.model.forgetting import load_memory, saved_memory
from weald.stream.model.mixture_shard import MixtureShard
from weald.stream.model.model import StreamConfig
from weald.stream.model.sample import Sample, priorities
from weald.stream.publication.publication import Published
from weald.stream.recovery import snapshots
from weald.stream.recovery.consistency import faults_of
from weald.stream.recovery.recovery import usable
from weald.stream.settings import MemorySettings
from weald.stream.tables.atom_table import AtomTable
from weald.treecore.errors import ParameterError
from weald.treecore.family import FAMILIES
from weald.treecore.prior import build_prior

BUDGET = 200
CADENCE = RefinementSettings(every_records=50, publish_every_records=50, rounds=1)
MEMORY = MemorySettings(leaf_budget=BUDGET, policy="sample")
N = 900


def shard_of(values: NDArray[np.float64], memory: MemorySettings = MEMORY) -> MixtureShard:
    family = FAMILIES["gaussian"].build({}, values)
    chain = MixtureChain.start(family, build_prior("dp", {}), seed=3)
    shard = MixtureShard(chain, family, CADENCE, memory)
    shard.sample.seed = 3
    return shard


def close_together(n: int) -> NDArray[np.float64]:
    """Clusters so close that publications merge and split them."""
    draw = np.random.default_rng(2)
    places: NDArray[np.float64] = draw.integers(4, size=n)[:, None] * np.array([2.5, 0.0])
    return places + draw.normal(size=(n, 2))


def with_strays(n: int) -> NDArray[np.float64]:
    """The same, and of 12 each one far from all others, in a line."""
    values = close_together(n)
    strays = np.arange(5, n, 12)
    values[strays, 0] = 100.0 + 40.0 * np.arange(len(strays))
    return values


def with_small_clusters(n: int) -> NDArray[np.float64]:
    """The same, and of 12 each one far from these: three of them are in one place."""
    values = close_together(n)
    strays = np.arange(5, n, 12)
    places = np.random.default_rng(4).uniform(-300.0, 300.0, size=(len(strays), 2))
    values[strays] += places[np.arange(len(strays)) // 3 * 3]
    return values


class Told:
    """The cluster in which each observation is shown, as a reader of the outcomes knows it."""

    def __init__(self) -> None:
        self.cluster: dict[int, int] = {}
        self.left: dict[int, int] = {}
        self.n_handed_over = 0

    def hear(self, first: int, told: BatchOutcome) -> None:
        arrived = np.concatenate(told.clusters).tolist()
        self.cluster |= dict(enumerate(arrived, start=first))
        for seqs in told.passed:
            self.left |= {seq: seq for seq in seqs.tolist()}
        for departure in told.departures:
            self.left |= dict.fromkeys(departure.seq.tolist(), departure.after_seq)
        for change in told.reassigned:
            if isinstance(change, Reassignment):
                self.cluster |= dict(zip(change.seq.tolist(), change.cluster.tolist(), strict=True))
            elif isinstance(change, Handover):
                heirs = dict(zip(change.cluster.tolist(), change.heir.tolist(), strict=True))
                for seq, at in self.left.items():
                    if at <= change.seq and self.cluster[seq] in heirs:
                        self.cluster[seq] = heirs[self.cluster[seq]]
                        self.n_handed_over += 1


def test_the_law_is_uniform() -> None:
    """Every number is as often among the least, and neighbours are independent."""
    n, kept, seeds = 40, 10, 4_000
    seqs = np.arange(1, n + 1)
    inside = np.array(
        [np.argsort(np.argsort(priorities(seed, seqs))) < kept for seed in range(seeds)]
    )
    share, spread = kept / n, np.sqrt(kept / n * (1 - kept / n) / seeds)
    # Of 40 frequencies one beyond 4.5 standard deviations: once in 3,700 seeds of the test.
    assert np.abs(inside.mean(axis=0) - share).max() < 4.5 * spread
    both = share * (kept - 1) / (n - 1)
    pairs = (inside[:, 1:] & inside[:, :-1]).mean(axis=0)
    assert np.abs(pairs - both).max() < 4.5 * np.sqrt(both * (1 - both) / seeds)
    assert len(np.unique(priorities(5, np.arange(100_000)))) == 100_000


def test_what_is_held_and_what_is_shown(rng: np.random.Generator) -> None:
    values = close_together(2_000)
    shard, told = shard_of(values), Told()
    for part in np.split(values, np.sort(rng.choice(len(values), 40, replace=False))):
        first = shard.seq + 1
        told.hear(first, shard.apply(part, 0.0))
        # What is held follows from the numbers alone.
        held = np.sort(shard.numbers)
        assert len(held) <= BUDGET
        out = np.setdiff1d(np.arange(1, shard.seq + 1), held)
        assert out.tolist() == sorted(told.left)
        if len(out):
            ranks = priorities(3, held), priorities(3, out)
            assert ranks[0].max() < ranks[1].min()
        # Clusters count all that are shown in them, and sum what is held.
        shown = dict(zip(shard.numbers.tolist(), shard.clusters.tolist(), strict=True))
        assert shown.items() <= told.cluster.items()
        counts = list(told.cluster.values())
        shard.table.touch_all()
        rows = [row for row in shard.table.take_changes(1) if row.retired_publication is None]
        assert {row.cluster for row in rows} == set(counts)
        for row in rows:
            assert row.n_observations == counts.count(row.cluster)
            assert row.statistics[0] == list(shown.values()).count(row.cluster)
    assert shard.chain.n_atoms >= 0.9 * (BUDGET - 50) - 1
    assert told.n_handed_over > 0, "no cluster was merged into another"


def test_few_leave_at_a_time() -> None:
    """Once it is full as many leave as have come in, and nobody waits for a tenth of the model."""
    values = close_together(2_000)
    shard = shard_of(values)
    full = BUDGET - CADENCE.every_records
    for at in range(0, len(values), CADENCE.every_records):
        applied = shard.apply(values[at : at + CADENCE.every_records], 0.0)
        assert sum(len(each.seq) for each in applied.departures) <= CADENCE.every_records
        assert shard.chain.n_atoms == min(shard.seq, full)


def test_what_leaves_is_found_without_a_look_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    n, held = 60_000, 20_000
    atom_table, sample, looked_at = AtomTable(), Sample(), 0
    whole = Sample._list

    def counted(sample: Sample, atom_table: AtomTable, n: int) -> None:
        nonlocal looked_at
        looked_at += len(atom_table.present)
        whole(sample, atom_table, n)

    monkeypatch.setattr(Sample, "_list", counted)
    free = np.arange(held + 100)[::-1]
    for arrivals in np.split(np.arange(1, n + 1), n // 100):
        seqs = arrivals[sample.takes(arrivals)]
        atoms, free = free[-len(seqs) :], free[: -len(seqs)]
        atom_table.enter(atoms, seqs, np.zeros(len(seqs)), np.zeros(len(seqs), dtype=np.int64))
        if sample.selects:
            sample.entered(atoms, seqs)
        leaving = sample.last(atom_table, atom_table.n_observations - held)
        if len(leaving):
            sample.let_go(atom_table.seq[leaving])
            atom_table.leave(leaving)
            free = np.concatenate([free, leaving])
    every = priorities(0, np.arange(1, n + 1))
    kept = np.sort(np.argpartition(every, held)[:held]) + 1
    assert np.sort(atom_table.seq[atom_table.present]).tolist() == kept.tolist()
    # About 22,000 have left, in lists of eight times a hundred.
    assert 0 < looked_at < 100 * n


def test_a_cluster_of_which_nothing_is_held_is_shown_until_it_is_handed_over() -> None:
    values = with_strays(2_400)
    shard, told, n_emptied = shard_of(values), Told(), 0
    ended: dict[int, int] = {}
    for at in range(0, len(values), 30):
        applied = shard.apply(values[at : at + 30], 0.0)
        told.hear(shard.seq - 29, applied)
        assert faults_of(shard) == []
        shown = set(shard.clusters.tolist())
        emptied = shard.table.emptied.tolist()
        assert set(shard.table.ids.tolist()) == shown | set(emptied)
        assert not shown & set(emptied)
        n_emptied += len(emptied)
        counts = list(told.cluster.values())
        shard.table.touch_all()
        rows = shard.table.take_changes(1)
        assert {r.cluster: r.n_observations for r in rows if r.retired_publication is None} == {
            each: counts.count(each) for each in set(counts)
        }
        # What a cluster had when it ended is what its history says.
        retired = {r.cluster: r.n_observations for r in rows if r.retired_publication is not None}
        ended |= {each.cluster: each.size for each in applied.lineage if each.kind == "retire"}
        assert {each: ended.get(each, n) for each, n in retired.items()} == retired
    assert max(ended.values()) > 1, "nothing was tested"
    assert n_emptied > 10, "nothing was tested"
    assert told.n_handed_over > 0
    again = MixtureShard.restore(shard.state(), shard.chain.family)
    assert again.table.emptied.tolist() == shard.table.emptied.tolist()


def test_what_is_not_held_any_more_goes_where_it_is_most_probable() -> None:
    draw = np.random.default_rng(6)
    values = draw.normal(size=(2_400, 2))
    values[1::2, 0] += 1_000.0
    # Each alone, and nearer to the second.
    strays = np.arange(5, len(values), 12)  # which numbers are even
    values[strays, 0] = 1_100.0 + 40.0 * np.arange(len(strays))
    shard, heirs = shard_of(values), set()
    while shard.seq < len(values):
        told = shard.apply(values[shard.seq : shard.seq + 30], 0.0)
        for change in told.reassigned:
            heirs |= set(change.heir.tolist()) if isinstance(change, Handover) else set()
    assert heirs, "nothing was tested"
    far = shard.clusters[shard.numbers % 2 == 1]
    assert not heirs & set(far.tolist())


def test_what_sql_shows_is_adopted_with_clusters_of_which_nothing_is_held() -> None:
    shard = shard_of(with_strays(2_400))
    values = with_strays(2_400)
    while not len(shard.table.emptied):
        shard.apply(values[shard.seq : shard.seq + 30], 0.0)
    shard.table.touch_all()
    rows = [row for row in shard.table.take_changes(1) if row.retired_publication is None]
    before = shard.table.state()
    shown = Published(shard.publication, shard.clusters.copy(), max(before["ids"]) + 1)
    shard.adopt(shown, shard.seq, rows)
    after = shard.table.state()
    for name in ("ids", "born", "beside", "emptied"):
        assert after[name].tolist() == before[name].tolist(), name
    np.testing.assert_allclose(after["totals"], before["totals"], rtol=1e-9, atol=1e-9)
    assert faults_of(shard) == []


def test_under_a_window_only_what_is_held_is_counted() -> None:
    """Of a stream that held a sample: also clusters of which this held nothing any more."""
    shard = shard_of(with_strays(2_400))
    values = with_strays(2_400)
    while not len(shard.table.emptied):
        shard.apply(values[shard.seq : shard.seq + 30], 0.0)
    emptied, held = set(shard.table.emptied.tolist()), shard.atom_table.n_observations
    sizes = {row.cluster: row.n_observations for row in rows_of(shard)}
    assert sum(sizes.values()) == shard.seq > held
    shard.settle(CADENCE, MemorySettings())
    assert {row.cluster: row.n_observations for row in rows_of(shard)} == sizes, "all is kept"
    shard.settle(CADENCE, MemorySettings(window_records=10_000))
    shard.table.take_changes(1)
    told = shard.apply(values[shard.seq : shard.seq + 50], 0.0)
    ends = {event.cluster: event.size for event in told.lineage if event.kind == "retire"}
    assert {cluster: sizes[cluster] for cluster in emptied}.items() <= ends.items()
    assert not emptied & set(shard.table.ids.tolist())
    changed = [row for row in shard.table.take_changes(1) if row.retired_publication is None]
    assert {row.cluster for row in changed} >= sizes.keys() & set(shard.table.ids.tolist())
    assert sum(row.n_observations for row in rows_of(shard)) == held + 50
    assert faults_of(shard) == []


def rows_of(shard: MixtureShard) -> list[ClusterRow]:
    """Rows of all clusters that are there."""
    shard.table.touch_all()
    return [row for row in shard.table.take_changes(1) if row.retired_publication is None]


def test_sums_that_have_drifted_are_summed_anew() -> None:
    """As much leaves a cluster between two publications as is in it, and no more is kept."""
    values = with_strays(2_400)
    shard, n_seen = shard_of(values), 0
    for at in range(0, len(values), CADENCE.every_records):
        published = shard.publication
        shard.apply(values[at : at + CADENCE.every_records], 0.0)
        n_seen += len(shard.table.worn)
        if shard.publication > published:
            assert shard.table.worn == set()
    assert n_seen > 0, "nothing was tested"


def test_those_that_pass_are_shown_where_they_are_most_probable() -> None:
    values = close_together(700)
    shard = shard_of(values)
    shard.apply(values[:650], 0.0)
    table = shard.table.state()
    asked = Predictive.of(shard.chain.family, shard.chain.prior, table["ids"], table["totals"])
    expected = table["ids"][asked.log_joint(values[650:])[:, :-1].argmax(axis=1)]
    told = shard.apply(values[650:699], 0.0)
    (passed,) = told.passed
    assert len(passed) > 20
    assert told.clusters[0][passed - 651].tolist() == expected[passed - 651].tolist()


@pytest.mark.parametrize("at", [633, 701])
@pytest.mark.parametrize("drawn", [close_together, with_strays])
def test_a_restored_model_goes_on_bit_for_bit(
    drawn: Callable[[int], NDArray[np.float64]], at: int
) -> None:
    values = drawn(N)
    whole, cut = shard_of(values), shard_of(values)
    whole.apply(values, 0.0)
    cut.apply(values[:at], 0.0)
    again = MixtureShard.restore(cut.state(), cut.chain.family)
    again.sample.seed = 3
    again.settle(CADENCE, MEMORY)
    again.apply(values[at:], 0.0)
    one, other = whole.state(), again.state()
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.tobytes() == other[name].tobytes(), name


def planned(
    folder: Path, drawn: Callable[[int], NDArray[np.float64]] = close_together, **changes: object
) -> StreamConfig:
    lines = [line_of(i, row) for i, row in enumerate(drawn(N))]
    plan = plan_for(write_lines(folder / "records.jsonl", lines), **changes)  # type: ignore[arg-type]  # of the stream
    return replace(plan, memory=msgspec.structs.replace(MEMORY, leaf_budget=400))


@pytest.mark.parametrize("drawn", [close_together, with_small_clusters])
def test_cut_otherwise_and_killed(
    tmp_path: Path, drawn: Callable[[int], NDArray[np.float64]]
) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder in (whole, cut):
        folder.mkdir()
    store = new_store(whole)
    run(planned(whole, drawn), store)
    again = planned(cut, drawn, batch_records=33, snapshot_records=130)

    with pytest.raises(KilledError):
        run(again, new_store(cut), killer("commit", 20))
    other = new_store(cut)
    run(again, other)
    assert outcome(other) == outcome(store)
    assert left(other) == left(store)
    assert sum(at is None for at in left(store)) <= 400
    assert any(at == seq for seq, at in enumerate(left(store), start=1))
    assert_exactly_once(store, N)


def with_snapshots(folder: Path) -> tuple[StreamConfig, SqlStore]:
    store = new_store(folder, snapshots_kept=100)
    plan = planned(folder, snapshot_records=100)
    run(plan, store)
    return plan, store


def test_back_to_a_snapshot_and_on_again(tmp_path: Path) -> None:
    plan, store = with_snapshots(tmp_path)
    before, gone = outcome(store), left(store)
    snapshot = next(each.number for each in store.snapshots(NAME) if 500 < each.seq < 700)
    snapshots.revert_dropping(store, NAME, snapshot)
    run(plan, store)
    assert outcome(store) == before
    assert left(store) == gone


@pytest.mark.parametrize("between", [(100, 300), (500, 700)])
def test_kept_results_go_on_with_the_same_sample(tmp_path: Path, between: tuple[int, int]) -> None:
    """From before the sample was full, too: what is out stays out, and so does the bound."""
    _, store = with_snapshots(tmp_path)
    before, gone = outcome(store), left(store)
    snapshot = next(e.number for e in store.snapshots(NAME) if between[0] < e.seq < between[1])
    made = snapshots.revert_keeping(store, NAME, snapshot, CADENCE, lambda _: None)
    shard = usable(store, NAME, made)
    held = [seq for seq, at in enumerate(gone, start=1) if at is None]
    assert sorted(shard.numbers.tolist()) == held
    later = np.arange(N + 1, 2 * N)
    out = [seq for seq, at in enumerate(gone, start=1) if at is not None]
    least = priorities(shard.sample.seed, np.array(out)).min()
    assert (shard.sample.takes(later) == (priorities(shard.sample.seed, later) < least)).all()
    after = outcome(store)
    assert (after.clusters, after.lineage) == (before.clusters, before.lineage)
    assert [row[:2] for row in after.rows] == [row[:2] for row in before.rows]


def test_settings() -> None:
    assert load_memory(saved_memory(MEMORY)) == MEMORY
    earlier = saved_memory(MemorySettings(window_records=7))[:-1]
    assert load_memory(earlier) == MemorySettings(window_records=7)
    before = saved_memory(MemorySettings(leaf_budget=BUDGET, policy="bundles"))[:-1]
    assert load_memory(before).bundle_budget == BUDGET
    with pytest.raises(ValueError, match="leaf_budget"):
        MemorySettings(policy="bundles")
    with pytest.raises(ValueError, match="window"):
        MemorySettings(policy="sample", leaf_budget=200, window_records=7)
    bundled = shard_of(values_of(300), MemorySettings(leaf_budget=BUDGET, policy="bundles"))
    bundled.apply(values_of(300), 0.0)
    with pytest.raises(ParameterError, match="become one"):
        bundled.settle(CADENCE, MEMORY)


def test_turned_on_later_the_whole_stream_is_sampled() -> None:
    values = values_of(N)
    shard = shard_of(values, MemorySettings())
    shard.apply(values[:500], 0.0)
    shard.settle(CADENCE, MEMORY)
    shard.apply(values[500:], 0.0)
    held = shard.numbers
    out = np.setdiff1d(np.arange(1, N + 1), held)
    assert priorities(3, held).max() < priorities(3, out).min()
    assert len(held) <= BUDGET
