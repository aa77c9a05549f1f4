"""Streams whose family sees the columns through what the first observations taught."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
import sqlalchemy as sa
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from tests.mcmc.chains import chain_faults
from tests.stream.scenario import (
    NAME,
    SCHEMA,
    KilledError,
    Outcome,
    assert_a_kill_changes_nothing,
    assert_exactly_once,
    killer,
    new_store,
    outcome,
    plan_for,
    plan_of_rows,
    run,
    run_to_its_end,
    shard_of,
    values_of,
)
from weald.answers.prediction import PublishedPredictive
from weald.answers.stored_stream import StoredStream
from weald.mcmc.chain import co_occurrence
from weald.mcmc.chain.chain import MixtureChain
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.settings import FeatureSettings, ModelSettings, RefinementSettings
from weald.storage.errors import SchemaMismatch, SnapshotCorrupt, StreamConflict
from weald.storage.sql import migrate
from weald.storage.sql.revision import HEAD
from weald.storage.writing.store import SqlStore
from weald.stream.model.model import StreamConfig
from weald.stream.settings import FieldSettings, MemorySettings, SchemaSettings
from weald.treecore.errors import ParameterError

Values = NDArray[np.float64]

N = 700
WIDTH = 24
WIDE = SchemaSettings(fields=(FieldSettings("x", size=WIDTH),), key="id")


def wide(n: int) -> Values:
    """The five clusters of the plane, in a plane of 24 columns."""
    draw = np.random.default_rng(5)
    turned = values_of(n) @ draw.normal(size=(2, WIDTH))
    return 100.0 + turned + 0.1 * draw.normal(size=(n, WIDTH))


def plan_of(
    folder: Path,
    values: Values,
    features: FeatureSettings | None = None,
    **stream: object,
) -> StreamConfig:
    plan = plan_of_rows(folder, WIDE, ({"x": row} for row in values.tolist()), **stream)
    return replace(plan, features=features or FeatureSettings())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[SqlStore, Outcome]:
    folder = tmp_path_factory.mktemp("undisturbed")
    return run_to_its_end(folder, plan_of(folder, wide(N)))


def test_digits_have_groups_along_components(tmp_path: Path) -> None:
    """Of 64 pixels as they are the groups have an index of .03 on these digits."""
    pixels, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(pixels))[:1000]
    pixels, digits = pixels[order], digits[order]
    schema = SchemaSettings(fields=(FieldSettings("x", size=64),), key="id")
    plan = replace(
        plan_of(tmp_path, pixels),
        schema=schema,
        model=ModelSettings(),
        refinement=RefinementSettings(),
    )
    store = new_store(tmp_path)
    run(plan, store)
    group = {row.cluster: row.group for row in store.clusters(NAME)}
    shown = np.array([group[cluster] for cluster in outcome(store).clusters])
    assert adjusted_rand_index(shown, digits.astype(np.int64)) >= 0.6
    assert store.spec(NAME).family == "gaussian"
    assert store.status(NAME).seen_as == (
        "19 components of 57 of 64 columns, 90 % of the variance; without columns of one value: "
        "x.0, x.8, x.16, x.24, x.32, x.39, x.56"
    )


def test_what_is_shown_has_the_units_that_came_in(undisturbed: tuple[SqlStore, Outcome]) -> None:
    store, whole = undisturbed
    state, values = StoredStream(store, NAME), wide(N)
    block = store.observations(NAME, 0, N)
    assert block is not None
    assert (block.values == values).all()
    (largest,) = store.clusters(NAME, limit=1)
    inside = values[np.array(whole.clusters) == largest.cluster]
    told = state.describe(largest)
    assert [each.name for each in told] == [f"x.{at}" for at in range(WIDTH)]
    centre = np.array([float(each.centre) for each in told])
    spread = np.array([each.spread for each in told])
    assert (np.abs(centre - inside.mean(axis=0)) < 0.1 * inside.std(axis=0) + 0.02).all()
    np.testing.assert_allclose(spread, inside.std(axis=0), rtol=0.1)
    answers = PublishedPredictive.of(state)(values)
    same = [
        each["cluster"] == cluster for each, cluster in zip(answers, whole.clusters, strict=True)
    ]
    assert np.mean(same) > 0.99


def test_the_cut_into_batches_does_not_matter(
    tmp_path: Path, undisturbed: tuple[SqlStore, Outcome]
) -> None:
    _, again = run_to_its_end(tmp_path, plan_of(tmp_path, wide(N), batch_records=7))
    assert again == undisturbed[1]


@pytest.mark.parametrize(("step", "count"), [("commit", 1), ("commit", 6), ("refine", 5)])
def test_killed_and_started_again(
    tmp_path: Path, undisturbed: tuple[SqlStore, Outcome], step: str, count: int
) -> None:
    plan = plan_of(tmp_path, wide(N), snapshot_records=150)
    assert_a_kill_changes_nothing(tmp_path, plan, undisturbed[1], (step, count))


def test_replayed_from_nothing(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, wide(N)[:400])
    store = new_store(tmp_path)
    run(plan, store)
    store.delete_snapshots(NAME, [info.number for info in store.snapshots(NAME)])
    plan = plan_of(tmp_path, wide(N), diverged="stop")
    run(plan, store)
    assert_exactly_once(store, N)


def test_bundles_are_expanded_into_what_the_family_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told that every bundle is torn, a stream takes some apart, and the same after a kill."""
    monkeypatch.setattr(co_occurrence, "SPELL", 2)
    monkeypatch.setattr(MixtureChain, "torn", lambda chain: np.flatnonzero(chain.atom_sizes > 1))
    values = wide(1500)

    def bounded(folder: Path) -> StreamConfig:
        plan = plan_of(folder, values, FeatureSettings(components=2), batch_records=130)
        return replace(plan, memory=MemorySettings(leaf_budget=400, policy="bundles"))

    store = new_store(tmp_path)
    shard = shard_of(run(bounded(tmp_path), store))
    assert chain_faults(shard.chain) == 0
    bundles = -shard.atom_table.seq[shard.atom_table.seq < 0]
    assert 0 < len(bundles) < shard.bounding.next_bundle - 1
    again = tmp_path / "again"
    with pytest.raises(KilledError):
        run(bounded(again), new_store(again), killer("redis", 9))
    other = new_store(again)
    run(bounded(again), other)
    assert outcome(other) == outcome(store)


def test_a_stream_that_began_without_goes_on_without(tmp_path: Path) -> None:
    """As one did that an earlier Weald began: independent features of all 24 columns."""
    store = new_store(tmp_path)
    as_they_are = FeatureSettings(components="all")
    run(plan_of(tmp_path, wide(N)[:300], as_they_are), store)
    began = store.spec(NAME)
    assert (began.family, began.transformation, began.seen_as) == ("diagonal", None, None)
    run(plan_of(tmp_path, wide(N)[:500]), store)
    assert store.spec(NAME) == began
    assert_exactly_once(store, 500)
    for asked in (FeatureSettings(components=4), FeatureSettings(standardise=True)):
        with pytest.raises(StreamConflict, match=r"began without \[features\], asked for"):
            run(plan_of(tmp_path, wide(N), asked), store)


def test_a_stream_keeps_the_features_that_it_began_with(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    run(plan_of(tmp_path, wide(N)[:100]), store)
    for asked in (FeatureSettings(components="all"), FeatureSettings(components=4)):
        with pytest.raises(StreamConflict, match=r'began with .*"auto".* asked for'):
            run(plan_of(tmp_path, wide(N), asked), store)
    with pytest.raises(SchemaMismatch, match=f"{NAME!r} sees .* nothing was changed"):
        migrate.downgrade(store._settings, "0014")
    assert migrate.current(store._settings) == HEAD


def test_a_damaged_transformation_is_no_transformation(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    run(plan_of(tmp_path, wide(N)[:100]), store)
    damaged = bytearray(store.spec(NAME).transformation or b"")
    damaged[-1] ^= 1
    with store._writing() as connection:
        change = sa.text("UPDATE streams SET transformation = :bytes")
        connection.execute(change, {"bytes": bytes(damaged)})
    with pytest.raises(SnapshotCorrupt, match=r"transformation of stream .* backup"):
        run(plan_of(tmp_path, wide(N)), store)


def amounts(folder: Path, values: Values, features: FeatureSettings) -> StreamConfig:
    rows = ({"x": x, "y": y} for x, y in values.tolist())
    return replace(plan_of_rows(folder, SCHEMA, rows), features=features)


def test_what_has_no_logarithm_becomes_a_dead_letter(tmp_path: Path) -> None:
    values = values_of(200)
    values[:, 0] = np.exp(values[:, 0] / 4.0)
    values[[3, 150], 0] = 0.0, -5.0
    store = new_store(tmp_path)
    run(amounts(tmp_path, values, FeatureSettings(log=("x",), standardise=True)), store)
    assert store.status(NAME).seen_as == "the logarithm of 1 column; 2 columns standardised"
    letters = sorted(store.dead_letters(NAME), key=lambda each: each.offset)
    assert [(each.offset, each.detail) for each in letters] == [
        (3, "field 'x' is 0, and only numbers above 0 have logarithms"),
        (150, "field 'x' is -5, and only numbers above 0 have logarithms"),
    ]
    assert store.status(NAME).n_inserted == 198
    (row,) = store.clusters(NAME, limit=1)
    inside = np.array(outcome(store).clusters) == row.cluster
    kept = np.delete(values, [3, 150], axis=0)[inside]
    told = StoredStream(store, NAME).describe(row)
    assert float(told[0].centre) == pytest.approx(np.exp(np.log(kept[:, 0]).mean()), rel=0.02)


def test_a_sample_without_any_logarithm_is_an_error(tmp_path: Path) -> None:
    asked = FeatureSettings(log=("x",))
    with pytest.raises(ParameterError, match="none of the first 60 records has numbers above 0"):
        run(amounts(tmp_path, -1.0 - np.abs(values_of(100)), asked), new_store(tmp_path))


@pytest.mark.parametrize(
    ("fields", "family", "asked", "reason"),
    [
        (
            (FieldSettings("x"), FieldSettings("n", kind="count")),
            "auto",
            FeatureSettings(unit_length=True),
            r"\[features\] is for streams whose fields are all numbers.*count, number under mixed",
        ),
        (
            (FieldSettings("x"),),
            "poisson",
            FeatureSettings(components=1),
            r"under family gaussian or diagonal: this one has number under poisson",
        ),
        (
            (FieldSettings("x"),),
            "auto",
            FeatureSettings(log=("y",)),
            "no field is called y; there are x",
        ),
        (
            (FieldSettings("x", scale="log"),),
            "auto",
            FeatureSettings(log=("x",)),
            'field x has scale = "log" already',
        ),
    ],
    ids=["mixed", "poisson", "unknown", "twice"],
)
def test_what_a_stream_does_not_have_is_refused_before_it_begins(
    fields: tuple[FieldSettings, ...], family: str, asked: FeatureSettings, reason: str
) -> None:
    plan = plan_for(None)
    schema = msgspec.structs.replace(plan.schema, fields=fields)
    with pytest.raises(ParameterError, match=reason):
        replace(plan, schema=schema, model=ModelSettings(family=family), features=asked)


def test_parameters_that_were_given_are_of_the_columns_as_they_are(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    plan = plan_of(tmp_path, wide(N)[:100])
    model = msgspec.structs.replace(plan.model, family="gaussian", params={"kappa": 0.1})
    run(replace(plan, model=model), store)
    assert store.spec(NAME).transformation is None
    run(replace(plan_of(tmp_path, wide(N)[:150]), model=model), store)
    assert_exactly_once(store, 150)
