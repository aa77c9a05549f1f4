"""Columns that said nothing when a stream began, and have begun to since."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from tests.stream.scenario import (
    NAME,
    KilledError,
    Outcome,
    assert_a_kill_changes_nothing,
    assert_images_stay_as_they_are,
    killer,
    new_store,
    outcome,
    plan_of_rows,
    run,
    run_to_its_end,
    shard_of,
)
from weald.answers.stored_stream import StoredStream
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.leases.lease_work import work
from weald.mcmc.leases.leases import Budget
from weald.mcmc.offline.preparation import informative_columns
from weald.mcmc.offline.transformation import Transformation
from weald.mcmc.settings import FeatureSettings
from weald.storage.errors import SnapshotCorrupt
from weald.storage.writing.store import SqlStore
from weald.stream.model.model import StreamConfig
from weald.stream.recovery.snapshots import verify
from weald.stream.settings import FieldSettings, MemorySettings, SchemaSettings

Values = NDArray[np.float64]

N, WAKES = 1000, 300
SCHEMA = SchemaSettings(fields=tuple(FieldSettings(name) for name in "xyzw"), key="id")


def rows(n: int = N) -> tuple[Values, NDArray[np.int64]]:
    """Two clusters by x and y; z is 5 at first, and then tells two others apart; w is 2 x."""
    draw = np.random.default_rng(11)
    truth = draw.integers(4, size=n)
    values = draw.normal(size=(n, 4))
    values[:, 0] += np.where(truth % 2, 12.0, 0.0)
    values[:, 2] += np.where(truth // 2, 25.0, 5.0)
    values[:WAKES, 2] = 5.0
    values[:, 3] = 2.0 * values[:, 0]
    return values, truth


def plan_of(folder: Path, values: Values, **stream: object) -> StreamConfig:
    named = (dict(zip("xyzw", row, strict=True)) for row in values.tolist())
    return plan_of_rows(folder, SCHEMA, named, **stream)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[SqlStore, Outcome]:
    folder = tmp_path_factory.mktemp("undisturbed")
    return run_to_its_end(folder, plan_of(folder, rows()[0]))


def test_a_column_that_begins_to_vary_joins_and_the_journal_says_so(
    undisturbed: tuple[SqlStore, Outcome],
) -> None:
    store, whole = undisturbed
    (told,) = store.models(NAME)
    assert told.earlier_seen_as is not None
    assert told.earlier_seen_as.endswith("of one value: z, that repeat others: w (as x)")
    assert told.seen_as == store.status(NAME).seen_as
    assert told.seen_as is not None
    assert told.seen_as.endswith("without columns that repeat others: w (as x)")
    # At the publication after a twentieth of what is held varies, and twenty records at least.
    assert (told.seq, told.reason) == (400, "z in 100 of 400")
    values, truth = rows()
    late = slice(WAKES, None)
    clusters = np.array(whole.clusters)
    assert adjusted_rand_index(clusters[late], truth[late]) > 0.9
    assert adjusted_rand_index(clusters[:WAKES], truth[:WAKES] % 2) > 0.9
    state = StoredStream(store, NAME)
    for row in store.clusters(NAME, limit=4):
        inside = values[clusters == row.cluster]
        centre = np.array([float(each.centre) for each in state.describe(row)])
        np.testing.assert_allclose(centre, inside.mean(axis=0), atol=0.1)


@pytest.mark.parametrize(
    "memory",
    [
        MemorySettings(),
        MemorySettings(leaf_budget=400),
        MemorySettings(window_records=250),
        MemorySettings(half_life_records=250.0),
    ],
    ids=["all", "budget", "window", "half-life"],
)
def test_images_stay_as_they_are(
    tmp_path: Path, memory: MemorySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = replace(plan_of(tmp_path, rows()[0], snapshot_records=100), memory=memory)
    assert_images_stay_as_they_are(tmp_path, plan, monkeypatch)


def test_clusters_keep_their_ids(undisturbed: tuple[SqlStore, Outcome]) -> None:
    store, _ = undisturbed
    (told,) = store.models(NAME)
    born = [row.born_publication for row in store.clusters(NAME)]
    before = [row.number for row in store.publications(NAME) if row.seq < told.seq]
    assert min(born) <= max(before)
    assert {event.kind for event in store.lineage(NAME) if event.seq == told.seq} <= {
        "split",
        "move",
        "birth",
        "merge",
        "retire",
    }


def test_the_cut_into_batches_does_not_matter(
    tmp_path: Path, undisturbed: tuple[SqlStore, Outcome]
) -> None:
    _, again = run_to_its_end(tmp_path, plan_of(tmp_path, rows()[0], batch_records=7))
    assert again == undisturbed[1]


@pytest.mark.parametrize("count", [6, 7])
def test_what_a_half_life_has_left_is_seen_anew(tmp_path: Path, count: int) -> None:
    """What stays is whole, as in a window."""
    memory = MemorySettings(half_life_records=500.0)
    (quiet := tmp_path / "undisturbed").mkdir()
    plan = replace(plan_of(quiet, rows()[0]), memory=memory)
    store, whole = run_to_its_end(quiet, plan)
    (told,) = store.models(NAME)
    assert told.reason.startswith("z in ")
    plan = replace(plan_of(tmp_path, rows()[0], snapshot_records=150), memory=memory)
    with pytest.raises(KilledError):
        run(plan, new_store(tmp_path), killer("commit", count))
    assert run_to_its_end(tmp_path, plan)[1] == whole


def test_a_sample_that_is_not_full_is_seen_anew(
    tmp_path: Path, undisturbed: tuple[SqlStore, Outcome]
) -> None:
    plan = replace(plan_of(tmp_path, rows()[0]), memory=MemorySettings(leaf_budget=N + 100))
    assert run_to_its_end(tmp_path, plan)[1] == undisturbed[1]


@pytest.mark.parametrize(
    ("step", "count"), [("commit", 6), ("commit", 7), ("commit", 8), ("refine", 4), ("refine", 5)]
)
def test_killed_and_started_again(
    tmp_path: Path, undisturbed: tuple[SqlStore, Outcome], step: str, count: int
) -> None:
    plan = plan_of(tmp_path, rows()[0], snapshot_records=150)
    store = assert_a_kill_changes_nothing(tmp_path, plan, undisturbed[1], (step, count))
    assert [(row.seq, row.reason) for row in store.models(NAME)] == [(400, "z in 100 of 400")]


def test_started_again_after_the_change(
    tmp_path: Path, undisturbed: tuple[SqlStore, Outcome]
) -> None:
    store = new_store(tmp_path)
    run(plan_of(tmp_path, rows()[0][:600], diverged="stop"), store)
    assert len(store.models(NAME)) == 1
    run(plan_of(tmp_path, rows()[0], diverged="stop"), store)
    assert outcome(store) == undisturbed[1]


def test_a_round_that_is_out_comes_back_first(tmp_path: Path, rng: Generator) -> None:
    values, _ = rows()
    with new_store(tmp_path) as store:
        shard = shard_of(run(plan_of(tmp_path, values[:390]), store))
        shard.settle(msgspec.structs.replace(shard.cadence, mode="workers"), MemorySettings())
        lent = shard.lend(1, rng, [Budget("gibbs", 1, 0)])
        assert shard.apply(values[390:600], 0.0).revisions == []
        shard.take_back([(each.atoms, work(each.lease).labels) for each in lent])
        (revision,) = shard.apply(values[600:800], 0.0).revisions
    assert (revision.row.seq, revision.row.reason) == (800, "z in 500 of 800")


def test_images_from_before_are_refused(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    run(plan_of(tmp_path, rows()[0][:390]), store)
    (earlier, *_) = store.snapshots(NAME)
    run(plan_of(tmp_path, rows()[0]), store)
    assert earlier.number in [info.number for info in store.snapshots(NAME)]
    with pytest.raises(SnapshotCorrupt, match=r"otherwise since number 400 .*z in 100 of 400"):
        verify(store, NAME, earlier.number)


@pytest.mark.parametrize("how", ["given", "full sample"])
def test_where_nothing_is_seen_anew(tmp_path: Path, how: str) -> None:
    plan = plan_of(tmp_path, rows()[0])
    if how == "given":
        model = msgspec.structs.replace(plan.model, params={"nu": 9.0})
        plan = replace(plan, model=model, features=FeatureSettings(standardise=True))
    else:  # what is shown beside it would not be seen anew
        plan = replace(plan, memory=MemorySettings(leaf_budget=400))
    store = new_store(tmp_path)
    run(plan, store)
    assert store.models(NAME) == []


def test_a_column_is_unlike_what_was_said_of_it() -> None:
    draw = np.random.default_rng(2)
    values = draw.normal(size=(300, 4))
    values[:, 1] = 7.0
    values[:, 3] = values[:, 0] - 3.0 * values[:, 2] + 1.0
    found = informative_columns(values)
    learned = Transformation.learned(values, FeatureSettings(), "gaussian", (), found)
    assert learned is not None
    assert learned.left_out.tolist() == [1, 3]
    assert not learned.unlike(values).any()
    values[3, 1], values[5, 3], values[6, 1] = 7.001, values[5, 3] + 0.1, np.nan
    assert [each.tolist() for each in np.nonzero(learned.unlike(values))] == [[3, 5], [0, 1]]
