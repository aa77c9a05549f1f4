"""Whole numbers that a stream sees by their logarithm, and rounded ones beside other kinds."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from tests.stream.scenario import NAME, new_store, outcome, plan_for, run, write_lines
from weald.answers.stored_stream import StoredStream
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.settings import RefinementSettings
from weald.storage.writing.store import SqlStore
from weald.stream.model.mixture_shard import MixtureShard
from weald.stream.model.model import new_shard, spec_from_sample
from weald.stream.record.fields.originals import original_summaries
from weald.stream.record.schema import Schema
from weald.stream.settings import FieldSettings, SchemaSettings
from weald.stream.warm_up.log_moves import LogMoves
from weald.treecore.family import FeatureSummary

N = 1500
CADENCE = RefinementSettings(quiet_seconds=0.0, publish_every_seconds=0.0)
PAGES = FieldSettings("pages", scale="log", center=1.5, spread=0.7)
MIXED = (
    PAGES,
    FieldSettings("errors", scale="log"),
    FieldSettings("stars"),
    FieldSettings("way", kind="category", values=("web", "app")),
)
NUMBERS = (PAGES, FieldSettings("errors", scale="log"))


def visits(draw: Generator) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Visits (n, 4) of two kinds: counts that vary more than Poisson's, stars, and a way."""
    kind = (draw.random(N) < 0.3).astype(np.int64)
    pages = draw.poisson(np.array([3.0, 60.0])[kind] * draw.gamma(4.0, 0.25, N))
    errors = np.where(kind == 1, draw.poisson(2.0 * draw.gamma(2.0, 0.5, N)), 0)
    stars = np.clip(np.rint(draw.normal(np.array([4.0, 1.5])[kind], 0.7)), 0, 5)
    way = (draw.random(N) < np.array([0.2, 0.8])[kind]).astype(np.int64)
    return np.column_stack([pages, errors, stars, way]).astype(np.float64), kind


def streamed(
    folder: Path, fields: tuple[FieldSettings, ...], values: NDArray[np.float64]
) -> SqlStore:
    names = [field.name for field in fields]
    rows = [dict(zip(names, row, strict=False)) for row in values.tolist()]
    for row in rows:
        if "way" in row:
            row["way"] = ("web", "app")[int(row["way"])]
    lines = [json.dumps({"id": f"{i}", **row}) for i, row in enumerate(rows)]
    plan = plan_for(write_lines(folder / "records.jsonl", lines))
    store = new_store(folder)
    schema = SchemaSettings(fields=fields, key="id")
    run(replace(plan, schema=schema, refinement=CADENCE), store)
    return store


def scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values (n, 4) as the schema of all four reads them."""
    scaling = Schema.of(SchemaSettings(fields=MIXED)).scaling
    assert scaling is not None
    return scaling(values)


def summaries_of(seen: NDArray[np.float64]) -> list[FeatureSummary]:
    """What is to be told of rows (n, 4): means and standard deviations, in units that came in."""
    told = [
        FeatureSummary(name, "number", centre, spread, len(seen))
        for name, centre, spread in zip(
            "abcd", seen.mean(axis=0).tolist(), seen.std(axis=0).tolist(), strict=True
        )
    ]
    return original_summaries(Schema.of(SchemaSettings(fields=MIXED)), told)


def test_a_step_is_as_wide_as_half_of_it_is_upwards(rng: Generator) -> None:
    schema = Schema.of(SchemaSettings(fields=MIXED))
    plain = visits(rng)[0]
    seen = scaled(plain)
    found = LogMoves.of(schema, seen)
    assert found is not None
    # Stars have no logarithm, codes are no numbers.
    np.testing.assert_array_equal(found.step, [1.0, 1.0, 0.0, 0.0])
    up = scaled(plain + np.array([0.5, 0.5, 0.0, 0.0])) - seen
    np.testing.assert_allclose(found.steps(seen), 2.0 * up, rtol=1e-12)
    # Numbers that seldom repeat, or are not whole, are not rounded to any.
    assert LogMoves.of(schema, scaled(plain + rng.random(plain.shape))) is None


@pytest.mark.parametrize("fields", [NUMBERS, MIXED], ids=["numbers", "mixed"])
def test_small_counts_are_no_clusters(fields: tuple[FieldSettings, ...]) -> None:
    """Each was: the index of three streams was .05 to .19, of 13 to 38 clusters."""
    schema = SchemaSettings(fields=fields)
    plan = replace(plan_for(Path("none")), schema=schema, refinement=CADENCE)
    scaling = Schema.of(schema).scaling
    assert scaling is not None
    found = []
    for seed in range(3):
        values, kind = visits(np.random.default_rng(seed))
        seen = scaling(values[:, : len(fields)])
        shard = new_shard(spec_from_sample(plan, seen[:500]), CADENCE)
        for start in range(0, N, 500):
            shard.apply(seen[start : start + 500], 0.0)
        shown = shard.atom_table.cluster[shard.atom_table.present]
        found.append((adjusted_rand_index(shown, kind), np.unique(shown).size))
    index, clusters = np.mean(found, axis=0)
    # Of three each, .62 and .77, with a standard error of .05.
    assert index > 0.45
    assert clusters < 8


def test_counts_are_told_with_the_spread_that_they_have(tmp_path: Path) -> None:
    values, _ = visits(np.random.default_rng(0))
    store = streamed(tmp_path, MIXED, values)
    spec = store.spec(NAME)
    assert spec.log_steps == [1.0, 1.0, 0.0, 0.0]
    # Beside other kinds stars are coarse as they stand.
    assert spec.resolution == [0.0, 0.0, 1.0, 0.0]
    seen, shown = scaled(values), np.array(outcome(store).clusters)
    unmended = StoredStream(store, NAME)
    unmended.__dict__["spec"] = replace(spec, log_steps=None, resolution=None)
    errors = []
    for each in store.clusters(NAME):
        own = shown == each.cluster
        true = summaries_of(seen[own])
        told = [stored.describe(each) for stored in (StoredStream(store, NAME), unmended)]
        wide = [[summary.spread or 0.0 for summary in every][:3] for every in (*told, true)]
        errors.append(np.abs(np.array(wide[:2]) - wide[2]) * own.mean())
    mended, not_so = np.sum(errors, axis=0)
    # Of the logarithm's moves the variance at a cluster's centre stands for all.
    assert (mended < 0.5 * not_so).all()


def test_a_stream_moves_counts_alike_in_any_batch() -> None:
    values = visits(np.random.default_rng(1))[0]
    seen, ids = scaled(values), 1 + np.arange(N)
    before = LogMoves.of(Schema.of(SchemaSettings(fields=MIXED)), seen)
    assert before is not None
    whole = before.moved(seen, ids, 5)
    parts = [before.moved(seen[at], ids[at], 5) for at in (slice(0, 7), slice(7, N))]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    np.testing.assert_array_equal(whole[:, 2:], seen[:, 2:])
    # Half a step in the units that came in, of counts so large that up and down are alike:
    # a standard deviation of n normal ones is off by its share 1 / sqrt(2 n).
    large = values[:, 0] > 20.0
    off = (whole - seen)[large, 0] / before.steps(seen)[large, 0]
    assert off.std() == pytest.approx(0.5, rel=4.0 / np.sqrt(2.0 * large.sum()))


def test_a_stream_of_an_earlier_weald_goes_on_unmoved(tmp_path: Path) -> None:
    values = visits(np.random.default_rng(0))[0][:300]
    spec = streamed(tmp_path, MIXED, values).spec(NAME)
    seen, ids = scaled(values), 1 + np.arange(len(values))
    shards = [new_shard(each, CADENCE) for each in (spec, replace(spec, log_steps=None))]
    now, earlier = (each._seen(seen, ids) for each in shards if isinstance(each, MixtureShard))
    assert (now != seen)[:, :2].all()
    np.testing.assert_array_equal(earlier[:, :2], seen[:, :2])
