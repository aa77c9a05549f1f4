"""A stream within a budget of atoms: everything stays answerable, and the same after a kill."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tests.mcmc.chains import chain_faults
from tests.stream.scenario import (
    CADENCE,
    MODEL,
    KilledError,
    Outcome,
    assert_exactly_once,
    killer,
    line_of,
    new_store,
    outcome,
    plan_for,
    records_file,
    run,
    shard_of,
    values_of,
    write_lines,
)
from weald.mcmc.chain import co_occurrence
from weald.storage.queries.base import AsOf
from weald.storage.writing.store import SqlStore
from weald.stream.engine.engine import Engine
from weald.stream.model.compacted_atoms import Archive
from weald.stream.model.model import StreamConfig, free_shard
from weald.stream.settings import MemorySettings
from weald.treecore.errors import ParameterError

N = 1500
BUDGET = 400


def bounded(folder: Path, **stream: object) -> StreamConfig:
    folder.mkdir(exist_ok=True)
    plan = plan_for(records_file(folder, N), **stream)  # type: ignore[arg-type]
    return replace(plan, memory=MemorySettings(leaf_budget=BUDGET, policy="bundles"))


@pytest.fixture(autouse=True)
def short_spells(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that within a short stream atoms grow old enough to be compacted by the rule, and torn."""
    monkeypatch.setattr(co_occurrence, "SPELL", 2)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[SqlStore, Engine]:
    folder = tmp_path_factory.mktemp("whole")
    store = new_store(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(co_occurrence, "SPELL", 2)
        engine = run(bounded(folder), store)
    return store, engine


def test_within_the_budget_everything_is_there(whole: tuple[SqlStore, Engine]) -> None:
    store, engine = whole
    assert_exactly_once(store, N)
    shard = shard_of(engine)
    assert shard.chain.n_atoms <= BUDGET
    assert shard.chain.n_observations == shard.atom_table.n_observations == N
    assert chain_faults(shard.chain) == 0
    assert max(row.n_atoms or 0 for row in store.publications("stream")) <= BUDGET
    assert shard.bounding.next_bundle > 1
    status = store.status("stream")
    assert (status.n_observations, status.n_atoms) == (N, shard.chain.n_atoms)
    assert 0.0 < (status.estimated_disruption or 0.0) <= 1.0
    # Five clusters far apart are kept apart all the same, if not always whole: what was bundled
    # early is seldom put right.
    clusters = store.clusters("stream")
    assert 5 <= len(clusters) <= 10
    for row in clusters:
        n, sums, squares = row.n_observations, row.statistics[2:4], row.statistics[[4, 6]]
        assert (squares / n - (sums / n) ** 2 < 4.0).all(), "of two of the five"


def test_members_are_in_sql(whole: tuple[SqlStore, Engine]) -> None:
    """Each bundle's observations have the cluster and the number that memory knows it by."""
    store, engine = whole
    atom_table = shard_of(engine).atom_table
    values = values_of(N)
    seen: list[int] = atom_table.seq[atom_table.present][
        atom_table.seq[atom_table.present] > 0
    ].tolist()
    archive = Archive(store, "stream")
    for atom in atom_table.present[atom_table.seq[atom_table.present] < 0].tolist():
        found = archive.observations(-int(atom_table.seq[atom]))
        assert found is not None
        seqs, rows, _ = found
        assert len(seqs) == atom_table.size[atom]
        assert (rows == values[seqs - 1]).all()
        keys = [f"k{seq - 1}" for seq in seqs.tolist()]
        assert {row.cluster for row in store.assignments("stream", keys)} == {
            int(atom_table.cluster[atom])
        }
        seen += seqs.tolist()
    assert sorted(seen) == list(range(1, N + 1))


@pytest.mark.parametrize(("batch_records", "step"), [(37, "commit"), (500, "redis")])
def test_cut_otherwise_and_killed(
    tmp_path: Path, whole: tuple[SqlStore, Engine], batch_records: int, step: str
) -> None:
    expected: Outcome = outcome(whole[0])
    plan = bounded(tmp_path, batch_records=batch_records, snapshot_records=350)
    for count in (2, 1):
        with pytest.raises(KilledError):
            run(plan, new_store(tmp_path), killer(step, count))
    store = new_store(tmp_path)
    run(plan, store)
    assert outcome(store) == expected
    assert store.status("stream").n_atoms == whole[0].status("stream").n_atoms


def test_as_of_any_publication(tmp_path: Path, whole: tuple[SqlStore, Engine]) -> None:
    """What a stream that ended early showed is what the whole one says that it showed then."""
    early = new_store(tmp_path)
    lines = [line_of(i, row) for i, row in enumerate(values_of(N)[:1000])]
    plan = plan_for(write_lines(tmp_path / "early.jsonl", lines))
    run(replace(plan, memory=MemorySettings(leaf_budget=BUDGET, policy="bundles")), early)
    keys = [f"k{i}" for i in range(1000)]
    shown = early.publications("stream")[-1]
    assert shown.seq == 1000
    now = [row.cluster for row in early.assignments("stream", keys)]
    asked = AsOf(publication=shown.number)
    then = [row.cluster for row in whole[0].assignments("stream", keys, as_of=asked)]
    assert then == now


def test_what_looks_torn_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told that every bundle is torn, it takes apart what there is room for, and stays whole."""
    from weald.mcmc.chain.chain import MixtureChain

    def torn(chain: MixtureChain) -> np.ndarray:
        return np.flatnonzero(chain.atom_sizes > 1)

    monkeypatch.setattr(MixtureChain, "torn", torn)
    store = new_store(tmp_path)
    engine = run(bounded(tmp_path, batch_records=130, snapshot_records=10_000), store)
    assert_exactly_once(store, N)
    shard = shard_of(engine)
    assert chain_faults(shard.chain) == 0
    # Expansions took bundles' numbers away that compactions gave.
    bundles = -shard.atom_table.seq[shard.atom_table.seq < 0]
    assert 0 < len(bundles) < shard.bounding.next_bundle - 1
    # A commit that carries an expansion carries a snapshot, since a replay cannot repeat it.
    assert len(store.snapshots("stream")) > 1
    expected = outcome(store)
    other = tmp_path / "killed"
    plan = bounded(other, batch_records=130, snapshot_records=10_000)
    for count in (4, 3):
        with pytest.raises(KilledError):
            run(plan, new_store(other), killer("redis", count))
    again = new_store(other)
    run(plan, again)
    assert outcome(again) == expected


def test_budgets_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="cannot be combined"):
        MemorySettings(leaf_budget=1000, window_records=10)
    with pytest.raises(msgspec.ValidationError, match="cannot be combined"):
        msgspec.convert({"leaf_budget": 1000, "half_life_seconds": 10.0}, MemorySettings)
    with pytest.raises(ParameterError, match="at least 400"):
        free_shard(MODEL, CADENCE, values_of(50), MemorySettings(leaf_budget=399, policy="bundles"))
