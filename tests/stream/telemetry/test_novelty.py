"""Anomalies, drift and the halves of the trace: what the metrics of model and data are made of."""

import numpy as np
import pytest
from numpy.random import Generator
from scipy.stats import ks_2samp

from weald.mcmc.settings import ModelSettings, RefinementSettings
from weald.stream.model.model import free_shard
from weald.stream.telemetry.mixing import FEWEST, Mixing, split_rhat
from weald.stream.telemetry.novelty import Novelty, kolmogorov_smirnov

CADENCE = RefinementSettings(every_records=500, publish_every_records=500, rounds=1)


def test_the_distance_is_kolmogorov_and_smirnovs(rng: Generator) -> None:
    for n, m in ((5, 9), (128, 128), (128, 896)):
        one, other = rng.normal(size=n).round(1), rng.normal(0.5, size=m).round(1)
        assert kolmogorov_smirnov(one, other) == pytest.approx(ks_2samp(one, other).statistic)


def test_what_does_not_change_has_few_anomalies_and_no_drift(rng: Generator) -> None:
    novelty, scored, anomalies, drift = Novelty(), 0, 0, 0.0
    for _ in range(500):
        scores = novelty.judge(rng.exponential(size=16))
        if scores is not None:
            scored, anomalies = scored + scores.n_scored, anomalies + scores.n_anomalies
            drift = scores.drift or 0.0
    # Binomial of 1 %, and a little more for the quantile's own error: five standard deviations.
    assert abs(anomalies / scored - 0.01) < 5 * (0.01 / scored) ** 0.5 + 0.002
    # Exceeded by chance once in 10,000.
    assert drift < 2.23 * (1 / 128 + 1 / 896) ** 0.5


def test_a_stream_that_changes_shows_it(rng: Generator) -> None:
    shard = free_shard(ModelSettings(family="gaussian", seed=1), CADENCE, rng.normal(size=(200, 2)))
    novelty, told = Novelty(), []
    for batch in range(50):
        values = rng.normal(20.0 if batch >= 48 else 0.0, size=(100, 2))
        told.append(novelty.score(shard, values))
        shard.apply(values, now=0.0)
    assert told[0] is None
    before, after = told[47], told[48]
    assert before is not None
    assert after is not None
    assert before.drift is not None
    assert after.drift is not None
    assert before.n_anomalies <= 2
    assert after.n_anomalies == after.n_scored
    assert after.drift > before.drift


def test_scoring_is_bounded_whatever_comes() -> None:
    novelty = Novelty()
    assert [novelty._turn(n, 10) for n in (1, 7, 3, 5, 10_000, 0)] == [0, 1, 0, 1, 16, 0]
    assert novelty._turn(10_000, 0) == 0
    assert novelty._turn(10_000, 100_000) == 1


def test_rhat_of_halves(rng: Generator) -> None:
    assert split_rhat([3.0] * 9) == 1.0
    assert split_rhat([3.0] * 4 + [4.0] * 4) == float("inf")
    noise = rng.normal(size=64)
    assert split_rhat(noise.tolist()) < 1.15
    assert split_rhat((noise + np.linspace(0, 8, 64)).tolist()) > 1.5
    # By hand: within 1, between (2 - 4)^2 / 2 = 2.
    assert split_rhat([1.0, 2.0, 3.0, 3.0, 4.0, 5.0]) == pytest.approx((2 / 3 + 2) ** 0.5)


def test_rhat_waits_for_enough_refinements() -> None:
    mixing = Mixing()
    for n in range(1, FEWEST + 1):
        assert not mixing.rhat()
        mixing.add(-3.0 * n, n, 4)
    assert mixing.rhat() == {"log_joint": 1.0, "clusters": 1.0}
