"""Clusters that a base measure, learned of the first records, has hidden from the chain."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.mcmc.offline.test_base_from_sample import in_a_line
from tests.stream.scenario import (
    CADENCE,
    MODEL,
    NAME,
    Outcome,
    assert_a_kill_changes_nothing,
    assert_images_stay_as_they_are,
    assert_models_replayed,
    new_store,
    plan_of_rows,
    run,
    run_to_its_end,
    shard_of,
)
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.storage.writing.store import SqlStore
from weald.stream.model import mixture_shard
from weald.stream.model.model import StreamConfig
from weald.stream.settings import FieldSettings, MemorySettings, SchemaSettings

# Of the first 200 records of 24 numbers no chain learns that there are three kinds in a line. They
# are looked for at the first publication from 500 records on.
N, D, LOOKED = 900, 24, 600
SAID = "clusters said no more than one, and "


def plan_of(folder: Path, values: NDArray[np.float64], **stream: object) -> StreamConfig:
    names = [f"x{column}" for column in range(values.shape[1])]
    schema = SchemaSettings(fields=tuple(map(FieldSettings, names)), key="id")
    named = (dict(zip(names, row, strict=True)) for row in values.tolist())
    plan = plan_of_rows(folder, schema, named, **stream)
    return replace(plan, model=msgspec.structs.replace(MODEL, warmup_records=200))


def hidden(folder: Path, **stream: object) -> StreamConfig:
    return plan_of(folder, in_a_line(N, D, 8.0)[0], **stream)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[SqlStore, Outcome]:
    folder = tmp_path_factory.mktemp("undisturbed")
    return run_to_its_end(folder, hidden(folder))


def index_of(found: Outcome) -> float:
    return adjusted_rand_index(np.array(found.clusters), in_a_line(N, D, 8.0)[1])


def test_they_are_found_and_the_journal_says_so(undisturbed: tuple[SqlStore, Outcome]) -> None:
    store, found = undisturbed
    (told,) = store.models(NAME)
    assert (told.seq, told.reason) == (LOOKED, f"{SAID}others predict better")
    assert index_of(found) > 0.95


def test_nobody_finds_them_who_does_not_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mixture_shard, "FIRST_LOOK", N + 1)
    store, found = run_to_its_end(tmp_path, hidden(tmp_path))
    assert store.models(NAME) == []
    assert index_of(found) < 0.5


@pytest.mark.parametrize("looks", [True, False], ids=["looks", "does not"])
def test_one_kind_in_many_columns_is_no_hundred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: bool
) -> None:
    """Clusters as narrow as may be are where a chain of full covariances is held."""
    if not looks:
        monkeypatch.setattr(mixture_shard, "FIRST_LOOK", N + 1)
    values = np.random.default_rng(0).normal(size=(N, 10))
    values[:, 1:] += values[:, :-1]
    plan = plan_of(tmp_path, values)
    plan = replace(plan, model=msgspec.structs.replace(plan.model, family="gaussian"))
    store, found = run_to_its_end(tmp_path, plan)
    reasons = [row.reason for row in store.models(NAME)]
    assert reasons == ([f"{SAID}fewer predict as well"] if looks else [])
    assert (np.bincount(found.clusters).max() > 0.9 * N) == looks


@pytest.mark.parametrize(
    "memory",
    [MemorySettings(leaf_budget=400), MemorySettings(leaf_budget=800, policy="bundles")],
    ids=["sample", "bundles"],
)
def test_where_nobody_looks(tmp_path: Path, memory: MemorySettings) -> None:
    """The model does not hold all of them, or may come to hold several as one."""
    store, _ = run_to_its_end(tmp_path, replace(hidden(tmp_path), memory=memory))
    assert store.models(NAME) == []


def test_where_there_are_none_all_stays_as_it_is(tmp_path: Path) -> None:
    values = np.random.default_rng(5).normal(size=(N, 3))
    store = new_store(tmp_path)
    shard = shard_of(run(plan_of(tmp_path, values), store))
    assert store.models(NAME) == []
    assert shard.state()[mixture_shard.NEXT_LOOK].tolist() == [2 * LOOKED]
    assert_models_replayed(store, shard, CADENCE)


@pytest.mark.parametrize(("step", "count"), [("commit", 9), ("commit", 10), ("refine", 6)])
def test_killed_and_started_again(
    tmp_path: Path, undisturbed: tuple[SqlStore, Outcome], step: str, count: int
) -> None:
    plan = hidden(tmp_path, snapshot_records=150)
    store = assert_a_kill_changes_nothing(tmp_path, plan, undisturbed[1], (step, count))
    assert [row.seq for row in store.models(NAME)] == [LOOKED]


def test_images_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = hidden(tmp_path, snapshot_records=100)
    assert_images_stay_as_they_are(tmp_path, plan, monkeypatch)
