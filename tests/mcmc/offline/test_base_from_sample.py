"""What a stream of Gaussian clusters begins with."""

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.offline.base_from_sample import Learned, base_from_sample, clusters_elsewhere
from weald.mcmc.settings import ModelSettings, RefinementSettings
from weald.stream.model.model import free_shard
from weald.treecore.family import FAMILIES
from weald.treecore.family.totals import single_rows
from weald.treecore.prior import build_prior

PRIOR = build_prior("dp", {"alpha": 1.0, "learn": True})
GAUSSIAN = FAMILIES["gaussian"]


def many(rng: Generator, n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Twenty clusters of unit width."""
    labels = rng.integers(0, 20, n)
    centres = rng.normal(scale=8.0, size=(20, 3))
    return centres[labels] + rng.normal(size=(n, 3)), labels


def in_a_line(n: int, d: int, gap: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Three kinds of unit width in a line that is along no column, so far apart."""
    draw = np.random.default_rng(0)
    truth = draw.integers(3, size=n)
    along = draw.normal(size=d)
    along /= np.linalg.norm(along)
    return draw.normal(size=(n, d)) + np.outer(gap * (truth - 1), along), truth


def test_clusters_are_as_wide_as_they_are(rng: Generator) -> None:
    values, _ = many(rng, 400)
    family = base_from_sample(GAUSSIAN.build({}, values), PRIOR, values).family
    width = np.diag(family.psi) / (family.nu - 4.0)
    # A mean of 400 squares less 60 for the means; a fifth is four standard errors.
    np.testing.assert_allclose(width, 1.0, rtol=0.35)


def test_units_do_not_matter(rng: Generator) -> None:
    values, _ = many(rng, 200)
    units = np.array([1e-3, 1.0, 1e4])
    one, other = (
        base_from_sample(GAUSSIAN.build({}, each), PRIOR, each).family
        for each in (values, values * units)
    )
    assert other.nu == pytest.approx(one.nu, rel=0.05)
    np.testing.assert_allclose(other.psi, one.psi * np.outer(units, units), rtol=0.2, atol=0.05e8)


def test_a_handful_says_nothing(rng: Generator) -> None:
    values, _ = many(rng, 19)
    family = GAUSSIAN.build({}, values)
    assert base_from_sample(family, PRIOR, values) == Learned(family)
    flags = FAMILIES["bernoulli"].build({}, np.ones((50, 2)))
    assert base_from_sample(flags, PRIOR, np.ones((50, 2))) == Learned(flags)


def test_rows_on_a_grid_are_not_a_cluster_each() -> None:
    """Of these rows a chain that begins with one for each stays there, its means all over."""
    most = np.array([34, 4, 4, 12, 2, 2, 4, 4, 2])
    values = np.random.default_rng(7).integers(1, most + 1, size=(200, 9)).astype(np.float64)
    family = base_from_sample(GAUSSIAN.build({}, values), PRIOR, values).family
    # One cluster for each row has .15 here, and widths of a sixth of the columns'.
    assert family.kappa > 0.4


def test_a_stream_begins_with_it(rng: Generator) -> None:
    """And with what a person gives, where there is anything."""
    values, labels = many(rng, 2000)
    cadence = RefinementSettings(every_records=200, publish_every_records=200)
    shown = {}
    for name, params in {"learned": {}, "given": {"nu": 6.0}}.items():
        shard = free_shard(ModelSettings(family="gaussian", params=params), cadence, values[:200])
        shard.apply(values, 0.0)
        shown[name] = adjusted_rand_index(shard.clusters, labels)
        family: Any = shard.chain.family
        assert (family.nu == 6.0) == (name == "given")
    assert shown["learned"] > 0.85
    assert shown["learned"] > shown["given"]


@pytest.mark.parametrize("name", ["gaussian", "diagonal"])
def test_clusters_are_found_elsewhere(name: str) -> None:
    values, truth = in_a_line(1500, 8, 6.0)
    family, one = FAMILIES[name].build({}, values), np.zeros(1500, dtype=np.int64)
    found = clusters_elsewhere(family, one, family, PRIOR, values)
    assert found is not None
    # Of those that were not looked at, too; neighbours overlap by a thousandth.
    assert adjusted_rand_index(found.labels, truth) > 0.97
    # With its own base measure the chain has nothing to gain elsewhere.
    assert clusters_elsewhere(found.family, found.labels, family, PRIOR, values) is None


@pytest.mark.parametrize("name", ["gaussian", "diagonal"])
def test_one_kind_stays_one(name: str, rng: Generator) -> None:
    values = rng.normal(size=(600, 12))
    family = FAMILIES[name].build({}, values)
    one = np.zeros(600, dtype=np.int64)
    assert clusters_elsewhere(family, one, family, PRIOR, values) is None
    many = rng.integers(60, size=600)
    found = clusters_elsewhere(family, many, family, PRIOR, values)
    assert found is not None
    assert np.bincount(found.labels).max() > 540


@pytest.mark.parametrize("name", ["gaussian", "diagonal"])
def test_observations_come_back_out_of_their_rows(name: str, rng: Generator) -> None:
    values = rng.normal(3.0, 2.0, size=(50, 4))
    if name == "diagonal":
        values[::7, 2] = np.nan
    spec = FAMILIES[name]
    family = spec.build({}, rng.normal(size=(40, 4)))
    assert spec.observations is not None
    np.testing.assert_allclose(spec.observations(family, single_rows(family, values)), values)
