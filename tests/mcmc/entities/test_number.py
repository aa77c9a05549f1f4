"""How many entities there are, against the enumerated posterior over (K, partition)."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.exact.mentions import POINTS, PRIOR, TARGET
from weald.mcmc.entities.number import number_of_entities
from weald.treecore.prior import PartitionPrior, build_prior


@dataclass
class Trace:
    draws: list[NDArray[np.int64]] = field(default_factory=list)
    draw_priors: list[PartitionPrior] = field(default_factory=list)


def test_moments_are_those_of_the_posterior() -> None:
    # Two partitions, of two blocks and of three, as draws of two chains.
    shapes = [(0, 0, 1, 1), (0, 1, 0, 2)]
    laws = [
        {k: weight for (k, each), weight in zip(POINTS, TARGET, strict=True) if each == shape}
        for shape in shapes
    ]
    traces = [Trace([np.array(shape)], [PRIOR]) for shape in shapes]
    mixture = np.zeros(1 + max(k for law in laws for k in law))
    for law in laws:
        for k, weight in law.items():
            mixture[k] += weight / sum(law.values()) / len(laws)
    numbers = np.arange(mixture.size)
    mean = mixture @ numbers
    spread = np.sqrt(mixture @ (numbers - mean) ** 2)
    assert number_of_entities(traces) == pytest.approx((mean, spread), abs=1e-9)


def test_other_priors_have_none() -> None:
    assert number_of_entities([Trace([np.array([0, 1])], [build_prior("dp")])]) is None
