"""What a stored stream is, and what the settings make of it when it is started again."""

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.stream import network
from tests.stream.scenario import plan_for
from weald.mcmc.settings import ModelSettings, RefinementSettings
from weald.storage.commit.parts import part_of
from weald.stream.model.model import (
    StreamConfig,
    revision_of,
    spec_from_sample,
    spec_on_record,
)
from weald.stream.settings import MemorySettings, StreamSettings
from weald.treecore.errors import ParameterError


def mixed(**params_of_counts: Any) -> StreamConfig:
    """A plan whose settings list the parts of its family."""
    parts: list[dict[str, Any]] = [
        {"family": "diagonal", "columns": [0]},
        {"family": "poisson", "columns": [1]},
    ]
    if params_of_counts:
        parts[1]["params"] = params_of_counts
    return replace(plan_for(None), model=ModelSettings(family="mixed", params={"parts": parts}))


@pytest.mark.parametrize("given", [{}, {"shape": 2.0}])
def test_parts_that_settings_list_keep_what_the_sample_said_of_them(given: dict[str, Any]) -> None:
    plan = mixed(**given)
    sample = np.array([[0.5, 3.0], [7.0, 40.0], [-2.0, 11.0]])
    stored = spec_from_sample(plan, sample)
    assert spec_on_record(plan, stored) == stored


def test_parts_with_other_parameters_or_columns_are_another_family() -> None:
    sample = np.array([[0.5, 3.0], [7.0, 40.0], [2.0, 11.0]])
    stored = spec_from_sample(mixed(), sample)
    (numbers, counts) = stored.family_params["parts"]
    (same, other) = spec_on_record(mixed(shape=2.0), stored).family_params["parts"]
    assert same == numbers
    assert other["params"] == counts["params"] | {"shape": [2.0]}
    exchanged = [numbers | {"columns": [1]}, counts | {"columns": [0]}]
    plan = replace(mixed(), model=ModelSettings(family="mixed", params={"parts": exchanged}))
    assert spec_on_record(plan, stored).family_params["parts"] == exchanged


def in_shards(**stream: Any) -> StreamConfig:
    """A plan of a topic in four shards."""
    plan = plan_for(None)
    settings = msgspec.structs.replace(plan.stream, source="kafka", shards=4, **stream)
    return replace(plan, stream=settings, shard=1)


def test_a_shard_has_a_name_of_its_own_and_the_whole_says_how_many_there_are() -> None:
    plan = in_shards()
    assert plan.name == f"{plan.stream.name}/1"
    assert plan_for(None).name == plan.stream.name
    spec = spec_from_sample(plan, np.array([[0.5, 3.0], [7.0, 40.0], [-2.0, 11.0]]))
    assert (spec.name, spec.shards, spec.shard) == (plan.stream.name, 4, None)
    assert spec_on_record(plan, spec) == spec


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"stream": StreamSettings(shards=2, source="file", path="x.jsonl")}, "partitions"),
        ({"refinement": RefinementSettings(mode="workers")}, "leases"),
        ({"memory": MemorySettings(leaf_budget=10_000)}, "leaf_budget"),
        ({"memory": MemorySettings(leaf_budget=10_000, policy="sample")}, "leaf_budget"),
        ({"memory": MemorySettings(half_life_records=100.0)}, "half_life_seconds goes"),
        ({"memory": MemorySettings(window_records=100)}, "window_seconds goes"),
        ({"schema": network.SCHEMA, "model": network.MODEL}, "network"),
    ],
)
def test_what_does_not_go_with_shards_is_refused(change: dict[str, Any], word: str) -> None:
    with pytest.raises(ParameterError, match=rf"stream\.shards = . does not go with .*{word}"):
        replace(in_shards(), **change)


@pytest.mark.parametrize("memory", [{"window_seconds": 60.0}, {"half_life_seconds": 60.0}], ids=str)
def test_forgetting_by_time_goes_with_shards(memory: dict[str, float]) -> None:
    plan = replace(in_shards(), memory=msgspec.convert(memory, MemorySettings))
    assert plan.memory.forgets


def test_a_shard_is_never_seen_anew_by_itself() -> None:
    plan = plan_for(None)
    sample = np.random.default_rng(0).normal(size=(50, 2))
    whole = replace(spec_from_sample(plan, sample), transformation=b"of some kind")
    assert revision_of(plan, whole) is not None
    assert revision_of(plan, part_of(whole, 1)) is None
