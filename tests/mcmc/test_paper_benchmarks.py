"""What the benchmarks of papers and schedules say is computed as they say."""

from itertools import product

import numpy as np
import pytest

from benchmarks.papers.chains import Course, common_level
from benchmarks.papers.predicted import Path
from benchmarks.papers.simulated import N_KINDS, attributes, bernoulli_mixture, pair_in_doubt
from benchmarks.papers.smart_dumb import PRIOR, law_of_k
from benchmarks.schedules import SINGLE, arrivals


def test_number_of_pure_entities_is_that_of_all_allocations() -> None:
    kinds = np.array([0, 0, 1, 2])
    law, log_prior = law_of_k(kinds), PRIOR.log_entities()
    weights = []
    for k in (1, 2, 3, 4):
        pure = [
            float(N_KINDS) ** -len(set(owners))
            for owners in product(range(k), repeat=4)
            if len(set(zip(owners, kinds.tolist(), strict=True))) == len(set(owners))
        ]
        weights.append(np.exp(log_prior[k]) * k**-4.0 * sum(pure))
    assert law.sum() == pytest.approx(1.0)
    assert law[1:3] == pytest.approx(0.0)
    assert law[4] / law[3] == pytest.approx(weights[3] / weights[2], rel=1e-12)


def test_an_observation_in_doubt_is_as_likely_of_both_components() -> None:
    values, truth = bernoulli_mixture(np.random.default_rng(0), 6, 100)
    _, second = pair_in_doubt(values, truth)
    of_one = np.abs(attributes(6) - (1.0 - values[second])).prod(axis=1)
    assert of_one[1] == pytest.approx(of_one[2])
    assert np.bincount(truth).tolist() == [20] * 5


def test_the_common_level_is_the_best_samplers_late_mean() -> None:
    seconds = np.array([1.0, 2.0, 3.0, 4.0])
    low = Course(seconds, np.array([-9.0, -8.0, -8.0, -8.0]), seconds, seconds)
    high = Course(seconds, np.array([-9.0, -5.0, -3.0, -4.0]), seconds, seconds)
    assert common_level([[low, low], [high]]) == -4.0
    assert high.reached(-5.0) == 2.0
    assert low.reached(-5.0) == np.inf


def test_a_kernel_arrives_where_both_density_and_clusters_are_the_bests() -> None:
    seconds = np.arange(1.0, 9.0)

    def path(density: list[float], clusters: list[float]) -> Path:
        return Path(seconds, np.array(density), seconds, np.array(clusters))

    slow = path([-5.0] * 8, [3.0] * 8)
    paths = {name: [slow] for name in SINGLE}
    paths["sams"] = [path([-3.0, -2.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0], [9.0] * 3 + [6.0] * 5)]
    paths["auto"] = [path([-3.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0], [9.0, 9.0] + [6.0] * 6)]
    leader, band, hits = arrivals(paths)
    assert leader in {"sams", "auto"}
    assert band == pytest.approx((-1.003, 5.0, 7.0))
    assert (hits["sams"], hits["auto"], hits["gibbs"]) == ([4.0], [3.0], [np.inf])


def test_a_single_kernel_that_has_not_arrived_does_not_set_the_level() -> None:
    seconds = np.arange(1.0, 9.0)
    paths = {name: [Path(seconds, np.full(8, -2.0), seconds, np.full(8, 48.0))] for name in SINGLE}
    paths["auto"] = [Path(seconds, np.full(8, -1.0), seconds, np.full(8, 10.0))]
    leader, _, hits = arrivals(paths)
    assert leader == "auto"
    assert (hits["auto"], hits["sdds"]) == ([1.0], [np.inf])
