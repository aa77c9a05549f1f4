"""How many chains a fit runs, and that a chain which is stuck has no say."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.offline.chains import chains_for, trusted_chains
from weald.mcmc.offline.fit import ChainTrace, FitSettings, combine, ground_of, run_chain
from weald.mcmc.offline.start import grow_forest
from weald.treecore.family.gaussian.normal_inverse_wishart import normal_inverse_wishart


def test_small_tables_have_more_chains() -> None:
    assert [chains_for(n, 10) for n in (100, 2_500, 2_501, 10_000, 10_001)] == [4, 4, 2, 2, 1]


def test_a_chain_that_predicts_worse_has_no_say(rng: Generator) -> None:
    labels = np.arange(300) % 3
    values = rng.normal(size=(300, 3)) + 8.0 * labels[:, None]
    settings = FitSettings(iterations=30)
    good = [run_chain(values, settings, index, time.perf_counter) for index in (0, 1)]
    stuck = run_chain(
        values, FitSettings(iterations=2, init="one", kernels=("gibbs",)), 0, time.perf_counter
    )
    stuck.draws = [np.zeros(300, dtype=np.int64)] * len(stuck.draws)
    result = combine(settings, [good[0], stuck, good[1]], values)
    assert result.trusted == (0, 2)
    assert len(result.traces) == 3
    assert adjusted_rand_index(result.labels, labels) == 1.0


def test_chains_that_agree_are_all_trusted(rng: Generator) -> None:
    values = rng.normal(size=(200, 2)) + 9.0 * (np.arange(200) % 2)[:, None]
    traces = [run_chain(values, FitSettings(iterations=20), at, time.perf_counter) for at in (0, 1)]
    last = [(trace.last[0], trace.draws[-1]) for trace in traces]
    assert trusted_chains(values, last) == [0, 1]


def test_groups_in_a_line_are_found_in_one_of_many_columns(rng: Generator) -> None:
    """Trees join them all, and the base measure of one cluster lets no sweep part them."""
    groups = np.arange(600) % 3
    values = rng.normal(size=(600, 20))
    values[:, 0] += 8.0 * groups
    settings = FitSettings(family="diagonal", iterations=40, chains=2)
    traces = [run_chain(values, settings, at, time.perf_counter) for at in (0, 1)]
    assert adjusted_rand_index(combine(settings, traces, values).labels, groups) > 0.99


@pytest.mark.parametrize("family", ["gaussian", "bernoulli"])
def test_chains_side_by_side_share_a_forest_and_are_as_each_alone(
    family: str, rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = rng.normal(size=(300, 6)) + 6.0 * (np.arange(300) % 3)[:, None]
    if family == "bernoulli":
        values = (values > 3.0).astype(np.float64)
    settings = FitSettings(family=family, iterations=10, chains=4)
    alone = [run_chain(values, settings, at, time.perf_counter) for at in range(4)]
    grown = []

    def noted(*arguments: Any) -> Any:
        grown.append(len(arguments[2].size))
        return grow_forest(*arguments)

    monkeypatch.setattr("weald.mcmc.offline.ground.grow_forest", noted)
    ground = ground_of(values, settings)

    def one(index: int) -> ChainTrace:
        return run_chain(values, settings, index, time.perf_counter, ground=ground)

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(one, range(4)))
    assert grown.count(300) == 1
    for one_alone, shared in zip(alone, together, strict=True):
        assert one_alone.log_joint == shared.log_joint
        assert (np.stack(one_alone.draws) == np.stack(shared.draws)).all()


def test_rows_on_a_grid_do_not_speak_for_a_cluster_each(rng: Generator) -> None:
    most = np.array([2, 25, 26, 2, 64])
    values = rng.integers(1, most + 1, size=(150, 5)).astype(np.float64)
    settings = FitSettings(iterations=60)
    few = run_chain(values, settings, 0, time.perf_counter)
    # A mode that chains may stay in: clusters as narrow as they like, around any place.
    family = normal_inverse_wishart(values.mean(axis=0), 6e-4, 140.0, np.diag(4.0 * values.var(0)))
    alone = replace(few, last=(family, few.last[1]), relabelled=None)
    alone.draws = [np.arange(150)] * len(few.draws)
    on_the_grid = [(each.last[0], each.draws[-1]) for each in (few, alone)]
    assert trusted_chains(values, on_the_grid) == [1]
    assert combine(settings, [few, alone], values).trusted == (0,)
