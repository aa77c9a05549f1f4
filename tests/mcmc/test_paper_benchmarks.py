"""What the benchmarks of papers and schedules say is computed as they say."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.papers.adaptive import FIRST_EPOCH, FLOOR, Adaptive
from benchmarks.papers.chains import Course, common_level
from benchmarks.papers.predicted import Path
from benchmarks.papers.simulated import N_KINDS, attributes, bernoulli_mixture, pair_in_doubt
from benchmarks.papers.smart_dumb import PRIOR, law_of_k
from benchmarks.schedules import SINGLE, arrivals
from weald.mcmc.sweeps import Sampler


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
    assert leader == "sams"
    assert band == pytest.approx((-1.003, 5.0, 7.0))
    assert (hits["sams"], hits["auto"], hits["gibbs"]) == ([4.0], [3.0], [np.inf])


def test_a_single_kernel_that_has_not_arrived_does_not_set_the_level() -> None:
    seconds = np.arange(1.0, 9.0)
    paths = {name: [Path(seconds, np.full(8, -2.0), seconds, np.full(8, 48.0))] for name in SINGLE}
    paths["auto"] = [Path(seconds, np.full(8, -1.0), seconds, np.full(8, 10.0))]
    leader, _, hits = arrivals(paths)
    assert leader == "auto"
    assert (hits["auto"], hits["sdds"]) == ([1.0], [np.inf])


class Stirred:
    """Stands for a chain of a hundred observations, and counts the hours that kernels take."""

    def __init__(self) -> None:
        self.size, self.hours = 50, 0.0

    def guide(self) -> None:
        """There is none."""

    def sizes(self) -> NDArray[np.int64]:
        return np.array([self.size, 100 - self.size])

    def kernel(self, hours: float, *, moves: bool = True) -> Sampler[Any]:
        """One whose every turn moves as far, to and fro, or not at all."""

        def sweep(_rng: Generator, _position: Any) -> NDArray[np.float64]:
            self.hours += hours
            if moves:
                self.size = 140 - self.size
            return np.zeros((1, 3))

        return Sampler("stirring", "exact", ("stirring",), sweep)


def test_weights_follow_jumps_per_hour_and_stand_still_for_an_epoch() -> None:
    chain: Any = Stirred()
    kernels = [chain.kernel(1.0, moves=False), chain.kernel(4.0), chain.kernel(1.0)]
    mixed = Adaptive(kernels, clock=lambda: float(chain.hours))
    rng = np.random.default_rng(0)
    shares = (1.0 - FLOOR) * np.array([0.0, 1.0, 4.0]) / 5.0
    expected = np.full(3, 1.0 / 3.0)
    for epoch in (FIRST_EPOCH, 2 * FIRST_EPOCH):
        for _ in range(epoch):
            assert mixed.weights == pytest.approx(expected)
            mixed.sweep(rng, chain)
        expected = FLOOR / 3.0 + shares
    assert mixed.weights == pytest.approx(expected)


def test_weights_stay_where_nothing_jumps() -> None:
    chain: Any = Stirred()
    mixed = Adaptive([chain.kernel(1.0, moves=False)] * 2, clock=lambda: float(chain.hours))
    for _ in range(FIRST_EPOCH):
        mixed.sweep(np.random.default_rng(0), chain)
    assert mixed.weights.tolist() == [0.5, 0.5]
