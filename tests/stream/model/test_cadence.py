"""What is chosen about refinement: checked at the start, and kept with the model."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tests.stream.scenario import plan_for
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.settings import ModelSettings, RefinementSettings
from weald.stream.model.mixture_shard import MixtureShard
from weald.stream.model.model import StreamConfig, free_shard
from weald.treecore.errors import ParameterError


def plan_with(tmp_path: Path, kernels: str, prior: str = "dp") -> StreamConfig:
    plan = plan_for(tmp_path / "records.jsonl", batch_records=40, snapshot_records=300)
    return replace(
        plan,
        model=msgspec.structs.replace(plan.model, prior=prior),
        refinement=msgspec.structs.replace(plan.refinement, kernels=kernels),
    )


def test_kernels_that_cannot_run_are_refused_before_anything_does(tmp_path: Path) -> None:
    assert plan_with(tmp_path, "sams,gibbs").refinement.kernels == "sams,gibbs"
    with pytest.raises(ParameterError, match="fsd is approximate"):
        plan_with(tmp_path, "fsd,gibbs")
    with pytest.raises(ParameterError, match="slice needs a prior of product form"):
        plan_with(tmp_path, "slice", prior="mfm")


def test_the_first_publications_come_early_and_place_what_comes_next() -> None:
    """Clusters of which one draw each, on arrival, makes too few until they are looked at again."""
    draw = np.random.default_rng(1)
    truth = draw.integers(50, size=1000)
    values = draw.normal(scale=3.0, size=(50, 10))[truth] + draw.normal(size=(1000, 10))
    model = ModelSettings(family="gaussian")
    shard, cut = (free_shard(model, RefinementSettings(), values[:200]) for _ in range(2))
    done = shard.apply(values, 0.0)
    assert [row.seq for row in done.publications] == [125, 250, 500, 1000]
    arrived = np.concatenate(done.clusters)
    assert adjusted_rand_index(arrived[250:], truth[250:]) > 0.9
    for start in range(0, 1000, 70):
        cut.apply(values[start : start + 70], 0.0)
        cut = MixtureShard.restore(cut.state(), cut.chain.family)
        cut.moves = shard.moves
    np.testing.assert_array_equal(cut.clusters, shard.clusters)


def test_a_saved_model_goes_on_with_its_kernels() -> None:
    values = np.random.default_rng(1).normal(size=(300, 2))
    cadence = RefinementSettings(100, 100, 1, kernels="sams,gibbs")
    shard = free_shard(ModelSettings(family="gaussian"), cadence, values)
    shard.apply(values[:200], 0.0)
    again = MixtureShard.restore(shard.state(), shard.chain.family)
    again.moves = shard.moves
    assert again.cadence.kernels == "sams,gibbs"
    found = [each.apply(values[200:], 0.0).refinements[-1] for each in (shard, again)]
    assert found[0].log_joint_after == found[1].log_joint_after
    assert (shard.clusters == again.clusters).all()
