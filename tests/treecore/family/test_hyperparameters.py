"""Hyperparameters that no family can have or that the sample gives, and values out of range."""

from typing import Any

import numpy as np
import pytest

from tests.treecore.family.examples import marginal_of, sample_of
from weald.treecore.errors import ParameterError
from weald.treecore.family import FAMILIES


@pytest.mark.parametrize(
    ("name", "parameters", "reason"),
    [
        ("gaussian", {"kappa": 0.0}, "kappa must be positive, got 0"),
        ("gaussian", {"nu": 1.0}, "nu must exceed d - 1 = 2"),
        ("gaussian", {"psi": -1.0}, "psi must be positive definite"),
        ("gaussian", {"psi": [[1.0, 0.0], [0.0, 1.0]]}, "psi must be 3 x 3"),
        ("gaussian", {"mean": [0.0, np.nan, 0.0]}, "mean must be finite"),
        ("gaussian", {"mean": "centre"}, "mean must be numeric, got 'centre'"),
        ("diagonal", {"rate": [1.0, 2.0]}, r"rate must be a number or 3 numbers, got shape \(2,\)"),
        ("diagonal", {"shape": -1.0}, "shape must be positive, got -1"),
        ("bernoulli", {"a": 0.0}, "a must be positive"),
        ("bernoulli", {"b": [1.0, 0.0, 1.0]}, "b must be positive"),
        ("categorical", {"beta": -0.5}, "beta must be positive"),
        ("categorical", {"levels": 2.5}, "levels must be whole, from 1 to"),
        ("categorical", {"levels": 0}, "levels must be whole, from 1 to"),
        ("poisson", {"rate": 0.0}, "rate must be positive"),
        ("multinomial", {"beta": 0.0}, "beta must be positive"),
        ("gamma", {"rate": -2.0}, "rate must be positive, got -2"),
        ("gamma", {"grid": [2.0, 0.0]}, r"grid must have positive numbers, got \[2.0, 0.0\]"),
        ("negative-binomial", {"grid": []}, r"grid must have positive numbers, got \[\]"),
        ("negative-binomial", {"grid": "wide"}, "grid must be numeric"),
    ],
)
def test_impossible_hyperparameters_are_refused(
    name: str, parameters: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ParameterError, match=reason):
        FAMILIES[name].build(parameters, np.zeros((4, 3)))


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("gaussian", np.inf, "takes no missing values"),
        ("gaussian", 1e9, r"over 1e\+06 scales away"),
        ("diagonal", 1e9, r"over 1e\+06 scales away"),
        ("diagonal", -np.inf, "not finite"),
        ("bernoulli", 2.0, "a flag is 0 or 1"),
        ("categorical", 2.0, "its levels are the codes 0 to 1"),
        ("categorical", 0.5, "its levels are the codes 0 to 1"),
        ("poisson", -1.0, "a count is whole"),
        ("poisson", 1.5, "a count is whole"),
        ("multinomial", 1e12, "a count is whole"),
        ("gamma", 0.0, "needs numbers above 0"),
        ("gamma", np.inf, "needs numbers above 0"),
        ("negative-binomial", 0.5, "a count is whole"),
    ],
)
def test_values_out_of_range_are_rejected(name: str, value: float, reason: str) -> None:
    sample = sample_of(name)
    family = FAMILIES[name].build({}, sample)
    values = sample.copy()
    values[11, 2] = value
    fault = FAMILIES[name].validate(family, values)
    assert fault is not None
    assert fault[0] == 11
    assert fault[1].startswith(f"feature 2 is {value:g}: ")
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(fault[1])


@pytest.mark.parametrize("name", ["gaussian", "diagonal"])
def test_defaults_follow_the_unit_of_the_data(name: str) -> None:
    values = np.random.default_rng(1).normal(size=(60, 3)) @ np.diag([1.0, 4.0, 0.2])
    scale, shift = np.array([1e-3, 60.0, 1000.0]), np.array([273.15, 0.0, -40.0])
    spec = FAMILIES[name]
    family = spec.build({}, values)
    other = spec.build({}, values * scale + shift)
    # A density is per unit: each observation's changes by the product of the scales.
    jacobian = values.shape[0] * np.log(scale).sum()
    found = marginal_of(other, values * scale + shift)
    assert found == pytest.approx(marginal_of(family, values) - jacobian, rel=1e-9)


def test_defaults_of_amounts_follow_their_unit() -> None:
    values = np.random.default_rng(1).gamma(2.0, size=(60, 2)) * [1.0, 40.0]
    scale = np.array([1e-6, 3600.0])
    spec = FAMILIES["gamma"]
    jacobian = values.shape[0] * np.log(scale).sum()
    found = marginal_of(spec.build({}, values * scale), values * scale)
    assert found == pytest.approx(marginal_of(spec.build({}, values), values) - jacobian, rel=1e-9)


def test_defaults_of_discrete_families_come_from_the_sample() -> None:
    rng = np.random.default_rng(2)
    flags = (rng.random((200, 2)) < [0.1, 0.7]).astype(np.float64)
    bernoulli = FAMILIES["bernoulli"].parameters(FAMILIES["bernoulli"].build({}, flags))
    np.testing.assert_allclose(bernoulli["a"], flags.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(np.add(bernoulli["a"], bernoulli["b"]), 1.0)
    counts = rng.poisson([0.5, 30.0], (200, 2)).astype(np.float64)
    poisson = FAMILIES["poisson"].parameters(FAMILIES["poisson"].build({}, counts))
    means = np.divide(poisson["shape"], poisson["rate"])
    np.testing.assert_allclose(means, counts.mean(axis=0), rtol=0.15)
    codes = np.array([[0.0, 4.0], [np.nan, 1.0], [2.0, 0.0]])
    categorical = FAMILIES["categorical"].parameters(FAMILIES["categorical"].build({}, codes))
    assert categorical == {"beta": [1 / 3, 1 / 5], "levels": [3, 5]}
    multinomial = FAMILIES["multinomial"].parameters(FAMILIES["multinomial"].build({}, counts))
    assert multinomial["beta"] == pytest.approx(counts.sum(axis=1).mean() / 2, rel=0.02)


def test_gaps_in_the_sample_do_not_reach_the_hyperparameters() -> None:
    sample = np.random.default_rng(3).normal(size=(50, 2))
    sample[:10, 0] = np.nan
    sample[:, 1] = np.nan
    built = FAMILIES["diagonal"].parameters(FAMILIES["diagonal"].build({}, sample))
    assert built["mean"] == [pytest.approx(np.nanmean(sample[:, 0])), 0.0]
    gaussian = FAMILIES["gaussian"].build({}, np.column_stack([sample[:, 0], np.ones(50)]))
    assert gaussian.mean[0] == pytest.approx(np.nanmean(sample[:, 0]))


def test_gaussian_refuses_more_features_than_it_can_tell() -> None:
    with pytest.raises(ParameterError, match=r"256 features at most, not 257.*family diagonal"):
        FAMILIES["gaussian"].build({}, np.zeros((5, 257)))
