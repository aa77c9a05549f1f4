"""Where `[memory]` says nothing, a stream holds as many observations as there is memory for."""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.stream import network
from tests.stream.scenario import (
    NAME,
    assert_exactly_once,
    left,
    new_store,
    outcome,
    plan_for,
    records_file,
    run,
    shard_of,
    values_of,
)
from weald.storage.commit.commit import StreamSpec
from weald.stream.model.leaf_budget import leaves_within
from weald.stream.model.model import StreamConfig, bounded_by_memory, spec_from_sample
from weald.stream.settings import MemorySettings
from weald.treecore.family import FAMILIES

GIB = 2**30
FEWEST = 5_000
NOTHING = MemorySettings()


def leaves(n_bytes: float, d: int = 2, every: int = 500) -> int:
    family = FAMILIES["gaussian"].build({}, np.zeros((0, d)))
    return leaves_within(int(n_bytes), family, every)


def begun(plan: StreamConfig) -> StreamSpec:
    return spec_from_sample(plan, values_of(60))


def kept(plan: StreamConfig, *, bundled: bool = False) -> MemorySettings:
    return bounded_by_memory(plan, begun(plan), bundled=bundled)


def test_more_memory_holds_more_and_wider_rows_hold_fewer() -> None:
    assert leaves(GIB) < leaves(2 * GIB) < leaves(12 * GIB)
    assert leaves(GIB, d=2) > leaves(GIB, d=6) > leaves(GIB, d=20)
    # In bytes: a leaf of two numbers is thousands of them, and a quarter of a GiB is loaded anyway.
    assert 2_000 < 0.75 * GIB / leaves(GIB) < 4_000


def test_a_little_more_or_less_changes_nothing() -> None:
    assert leaves(4.00 * GIB) == leaves(3.99 * GIB)


def test_there_is_always_room_for_a_few_refinements() -> None:
    assert leaves(0) == FEWEST
    assert leaves(0, every=FEWEST) == 4 * FEWEST


def test_what_settings_say_holds() -> None:
    plan = replace(plan_for(None), memory_bytes=GIB)
    assert kept(plan) == MemorySettings(leaf_budget=leaves(GIB, every=100))
    for said in (
        MemorySettings(window_records=9_000),
        MemorySettings(half_life_seconds=60.0),
        MemorySettings(leaf_budget=9_000),
        MemorySettings(leaf_budget=9_000, policy="bundles"),
    ):
        assert kept(replace(plan, memory=said)) is said
    assert kept(replace(plan, memory_bytes=None)) == NOTHING


def test_where_there_can_be_no_sample_all_is_held(tmp_path: Path) -> None:
    updating = replace(plan_for(None, duplicate_keys="update"), memory_bytes=GIB)
    assert kept(updating) == NOTHING
    assert kept(replace(plan_for(None), memory_bytes=GIB), bundled=True) == NOTHING
    in_shards = plan_for(None, source="kafka", shards=2)
    assert kept(replace(in_shards, memory_bytes=GIB)) == NOTHING
    edges = replace(network.plan_for(tmp_path), memory_bytes=GIB)
    spec = spec_from_sample(edges, np.zeros((0, 2)))
    assert bounded_by_memory(edges, spec, bundled=False) == NOTHING


def test_until_it_is_full_nothing_is_otherwise(tmp_path: Path) -> None:
    plan = plan_for(records_file(tmp_path, 1_000))
    bounded, unbounded = new_store(tmp_path, "bounded"), new_store(tmp_path, "unbounded")
    run(replace(plan, memory_bytes=GIB), bounded)
    run(plan, unbounded)
    assert outcome(bounded) == outcome(unbounded)
    assert left(bounded) == [None] * 1_000


def test_a_full_one_samples_says_so_and_goes_on_elsewhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    n, more = FEWEST + 1_000, FEWEST + 1_500
    store = new_store(tmp_path)
    plan = plan_for(records_file(tmp_path, n, more), batch_records=500)
    first = shard_of(run(replace(plan, memory_bytes=1), store))
    assert "holds at most 5,000 observations, and beyond these a uniform sample" in caplog.text
    assert first.chain.n_atoms <= FEWEST
    assert first.sample.selects
    assert_exactly_once(store, n)
    caplog.clear()
    # On a machine with more memory: what is out stays out, and more comes to be held.
    records_file(tmp_path, more)
    second = shard_of(run(replace(plan, memory_bytes=GIB), store))
    assert f"holds at most {leaves(GIB, every=100):,} observations" in caplog.text
    assert np.isin(first.numbers, second.numbers).all()
    assert second.sample.selects
    assert_exactly_once(store, more)
    assert sum(row.n_observations for row in store.clusters(NAME)) == more
