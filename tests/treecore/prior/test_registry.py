"""Priors by name: defaults, round trips, and messages that name what is wrong."""

import json
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from tests.treecore.prior.small_partitions import CASES, prior_of
from weald.treecore.errors import ParameterError
from weald.treecore.prior import PRIORS, build_prior


@pytest.mark.parametrize("name", PRIORS)
def test_defaults(name: str) -> None:
    prior = build_prior(name)
    assert prior.name == name
    assert prior.learn is False
    assert np.isfinite(prior.log_probability(np.array([3, 1, 1])))


@pytest.mark.parametrize("case", CASES)
def test_round_trip_through_json(case: str, rng: np.random.Generator) -> None:
    sizes = np.array([9, 1, 3]) if not case.startswith("emm-few") else np.array([9, 4])
    prior = prior_of(case).resample(rng, sizes)
    again = build_prior(prior.name, json.loads(json.dumps(prior.parameters())))
    assert again == prior
    first, second = prior.seating(13, 5), again.seating(13, 5)
    assert first.slope == second.slope
    np.testing.assert_array_equal(first.log_blocks, second.log_blocks)


def test_immutable() -> None:
    prior: Any = build_prior("dp")
    with pytest.raises(FrozenInstanceError):
        prior.alpha = 2.0


def test_whole_numbers_are_numbers() -> None:
    assert build_prior("nggp", {"alpha": 2, "sigma": 0}).parameters()["alpha"] == 2.0


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("crp", {}, "unknown partition prior 'crp'; known: dp, pitman-yor, nggp, mfm, emm"),
        ("dp", {"sigma": 0.5}, "dp: unknown parameter 'sigma'; known: alpha, learn, shape, rate"),
        ("dp", {"alpha": 0.0}, "dp: alpha must be positive and finite, got 0.0"),
        ("dp", {"alpha": "2"}, "dp: alpha must be a finite number, got '2'"),
        ("dp", {"alpha": True}, "dp: alpha must be a finite number, got True"),
        ("dp", {"alpha": float("nan")}, "dp: alpha must be a finite number, got nan"),
        ("dp", {"learn": 1}, "dp: learn must be true or false, got 1"),
        ("dp", {"rate": -1.0}, "dp: rate must be positive and finite, got -1.0"),
        ("nggp", {"sigma": 1.0}, "nggp: sigma must be in [0, 1), got 1.0"),
        (
            "nggp",
            {"sigma": 0.0, "learn_sigma": True},
            "nggp: sigma must be positive to be learned, got 0.0",
        ),
        ("nggp", {"log_u": float("inf")}, "nggp: log_u must be a finite number, got inf"),
        ("pitman-yor", {"discount": -0.1}, "pitman-yor: discount must be in [0, 1), got -0.1"),
        (
            "pitman-yor",
            {"alpha": -0.5, "discount": 0.25},
            "pitman-yor: alpha must be finite and above -discount = -0.25, got -0.5",
        ),
        (
            "pitman-yor",
            {"alpha": -0.1, "learn": True},
            "pitman-yor: alpha must be positive to be learned, got -0.1",
        ),
        (
            "pitman-yor",
            {"discount": 0.0, "learn_discount": True},
            "pitman-yor: discount must be positive to be learned, got 0.0",
        ),
        ("pitman-yor", {"g": 0.0}, "pitman-yor: g must be positive and finite, got 0.0"),
        ("mfm", {"gamma": 0.0}, "mfm: gamma must be positive and finite, got 0.0"),
        ("mfm", {"mean": -3}, "mfm: mean must be positive and finite, got -3.0"),
        ("emm", {"kmax": 0}, "emm: kmax must be 1 or more, got 0"),
        ("emm", {"kmax": 2.5}, "emm: kmax must be a whole number, got 2.5"),
        ("emm", {"sigma": 0.0}, "emm: sigma must be positive and finite, got 0.0"),
    ],
)
def test_what_is_wrong_is_named(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        build_prior(name, parameters)
    assert str(caught.value) == message
