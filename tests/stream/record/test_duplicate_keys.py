"""Records that repeat a key: observations of their own, or duplicates that are counted."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

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
from weald.mcmc.offline.resolution import moved
from weald.stream.model.forgetting import REPLACED_RECORDS, Forgetting
from weald.stream.settings import MemorySettings
from weald.stream.warm_up.stored_family import family_of
from weald.stream.warm_up.stored_transformation import moves_of
from weald.treecore.errors import ParameterError
from weald.treecore.family.interface.base import observe, statistics_width

pytestmark = pytest.mark.slow

N, N_REPEATED = 300, 90


@pytest.fixture
def repeating(tmp_path: Path) -> Path:
    """Good records, some of them again under the same key: soon after, and much later."""
    rows = values_of(N + N_REPEATED)
    lines = [line_of(i, row) for i, row in enumerate(rows[:N])]
    again = [line_of(3 * i, row) for i, row in enumerate(rows[N:])]
    return write_lines(
        tmp_path / "records.jsonl", [*lines[:40], *again[:10], *lines[40:], *again[10:]]
    )


def test_by_default_each_is_an_observation(tmp_path: Path, repeating: Path) -> None:
    store = new_store(tmp_path)
    run(plan_for(repeating), store)
    (row,) = store.ledger(NAME)
    assert (row.n_inserted, row.n_duplicate) == (N + N_REPEATED, 0)


def test_the_first_is_kept_and_the_others_are_counted(tmp_path: Path, repeating: Path) -> None:
    store = new_store(tmp_path)
    run(plan_for(repeating, duplicate_keys="keep-first"), store)
    assert_exactly_once(store, N)
    (row,) = store.ledger(NAME)
    assert (row.n_received, row.n_inserted, row.n_duplicate) == (N + N_REPEATED, N, N_REPEATED)
    first = [row.values.tolist() for row in store.assignments(NAME, ["k0", "k27"])]
    assert first == [values_of(N + N_REPEATED)[i].tolist() for i in (0, 27)]


def test_it_is_the_same_after_a_kill_and_in_other_batches(tmp_path: Path, repeating: Path) -> None:
    calm, store = new_store(tmp_path, "calm"), new_store(tmp_path)
    run(plan_for(repeating, duplicate_keys="keep-first"), calm)
    for count in (1, 3):
        plan = plan_for(repeating, batch_records=23, duplicate_keys="keep-first")
        with pytest.raises(KilledError):
            run(plan, store, killer("redis", count))
    run(plan_for(repeating, batch_records=41, duplicate_keys="keep-first"), store)
    assert outcome(store) == outcome(calm)


@pytest.mark.parametrize("policy", ["keep-first", "update"])
def test_records_without_a_key_are_never_duplicates(tmp_path: Path, policy: str) -> None:
    rows = values_of(200)
    lines = [json.dumps({"x": x, "y": y}) for x, y in rows.tolist()]
    plan = plan_for(write_lines(tmp_path / "plain.jsonl", lines), duplicate_keys=policy)
    schema = type(plan.schema)(fields=plan.schema.fields)
    store = new_store(tmp_path)
    run(type(plan)(plan.stream, schema, plan.model, plan.refinement), store)
    assert store.ledger(NAME)[0].n_inserted == 200
    assert all(row.left_seq is None for row in store.observed(NAME, range(1, 201)))


def test_an_update_replaces_the_observation_before(tmp_path: Path, repeating: Path) -> None:
    """What is shown are the sums over the newest of each key and nothing else."""
    store = new_store(tmp_path)
    run(plan_for(repeating, duplicate_keys="update"), store)
    (row,) = store.ledger(NAME)
    n = N + N_REPEATED
    assert (row.n_received, row.n_inserted, row.n_duplicate) == (n, n, 0)
    block = store.observations(NAME, 0, 1_000)
    assert block is not None
    last: dict[str | None, int] = {}
    replaced = []
    for seq, key in enumerate(block.key, start=1):
        replaced.append(last.get(key, 0))
        last[key] = seq
    assert block.replaces is not None
    assert block.replaces.tolist() == replaced
    # Each left soon after the one that replaced it had come.
    gone = {seq: seq_left for seq, seq_left in enumerate(left(store), start=1) if seq_left}
    by = {earlier: seq for seq, earlier in enumerate(replaced, start=1) if earlier}
    assert gone.keys() == by.keys()
    assert len(gone) == N_REPEATED
    assert all(by[seq] <= gone[seq] < by[seq] + REPLACED_RECORDS for seq in gone)
    spec = store.spec(NAME)
    family, moves = family_of(spec), moves_of(spec)
    assert moves is not None
    seen = moved(block.values, moves, np.arange(1, n + 1), spec.seed)
    rows = np.zeros((n, statistics_width(family)))
    for at in range(n):
        observe(family, seen, at, rows, at)
    live = np.array(sorted(last.values())) - 1
    shown = {each.cluster: each for each in store.clusters(NAME)}
    assert sum(each.n_observations for each in shown.values()) == N
    assert set(shown) == set(block.cluster[live].tolist())
    for cluster, each in shown.items():
        total = rows[live[block.cluster[live] == cluster]].sum(axis=0)
        np.testing.assert_allclose(each.statistics, total, atol=1e-9)
        members = store.members(NAME, cluster, limit=N)
        assert {member.seq for member in members} <= set(last.values())
        assert len(members) == each.n_observations
    (newest, *_) = store.assignments(NAME, ["k27"])
    assert newest.values.tolist() == values_of(n)[N + 9].tolist()


@pytest.mark.parametrize("window", [None, 150])
def test_updates_are_the_same_after_a_kill_and_in_other_batches(
    tmp_path: Path, repeating: Path, window: int | None
) -> None:
    calm, store = new_store(tmp_path, "calm"), new_store(tmp_path)
    memory = MemorySettings(window_records=window)
    run(replace(plan_for(repeating, duplicate_keys="update"), memory=memory), calm)
    # Snapshots at other places than where those that were replaced leave.
    plan = plan_for(repeating, batch_records=23, snapshot_records=70, duplicate_keys="update")
    for step, count in (("redis", 2), ("commit", 3), ("snapshot", 2)):
        with pytest.raises(KilledError):
            run(replace(plan, memory=memory), store, killer(step, count))
    last = plan_for(repeating, batch_records=41, duplicate_keys="update")
    run(replace(last, memory=memory), store)
    assert outcome(store) == outcome(calm)
    assert left(store) == left(calm)


def test_few_keys_that_come_again_and_again(tmp_path: Path) -> None:
    """Fewer keys than the warm-up has records: the model holds one observation of each."""
    rows = values_of(500)
    lines = [line_of(i % 10, row) for i, row in enumerate(rows)]
    path = write_lines(tmp_path / "states.jsonl", lines)
    store = new_store(tmp_path)
    run(plan_for(path, duplicate_keys="update"), store)
    assert sum(row.n_observations for row in store.clusters(NAME)) == 10
    other = new_store(tmp_path, "first")
    run(plan_for(path, duplicate_keys="keep-first"), other)
    assert_exactly_once(other, 10)


def test_a_dead_letter_replaces_nothing(tmp_path: Path) -> None:
    lines = [line_of(i, row) for i, row in enumerate(values_of(120))]
    lines += ['{"id": "k3", "x": "far", "y": 0}', '{"id": "k4", "x": 1e300, "y": 0}']
    store = new_store(tmp_path)
    path = write_lines(tmp_path / "bad.jsonl", lines)
    run(plan_for(path, duplicate_keys="update"), store)
    assert store.ledger(NAME)[0].n_dead == 2
    assert sum(row.n_observations for row in store.clusters(NAME)) == 120


def test_what_waits_to_leave_survives_a_snapshot() -> None:
    forgetting = Forgetting(MemorySettings())
    forgetting.replace(np.array([0, 7, 0, 9]))
    again = Forgetting.restore(forgetting.state())
    assert again.replacing
    assert again.take_replaced().tolist() == [7, 9]
    assert not again.replacing
    without = {name: each for name, each in forgetting.state().items() if name != "replaced"}
    assert not Forgetting.restore(without).replacing


def test_updates_and_bundles_exclude_each_other(tmp_path: Path) -> None:
    plan = plan_for(tmp_path / "x.jsonl", duplicate_keys="update")
    memory = msgspec.convert({"leaf_budget": 4_000}, MemorySettings)
    with pytest.raises(ParameterError, match="choose one of the two"):
        replace(plan, memory=memory)
