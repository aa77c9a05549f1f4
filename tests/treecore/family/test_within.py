"""The share of variance within clusters, on samples whose share is known."""

import numpy as np
import pytest

from weald.treecore.family.gaussian.default_scale import whitened, within_share

FREEDOM = 7.0


def shared(n: int, d: int, k: int, share: float) -> np.ndarray:
    """Observations (n, d) of variance about one, ``share`` of it within k clusters."""
    rng = np.random.default_rng(7)
    centres = rng.normal(size=(k, d))
    labels = np.arange(n) % k
    values = np.sqrt(share) * rng.normal(size=(n, d))
    if k > 1:
        apart = whitened(centres, centres.mean(axis=0), np.cov(centres, rowvar=False))
        values += np.sqrt(1.0 - share) * apart[labels]
    return np.asarray(values)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize(
    ("d", "k", "share"), [(2, 8, 0.01), (2, 8, 0.003), (5, 20, 0.05), (6, 100, 0.02), (3, 5, 0.1)]
)
def test_a_known_share(d: int, k: int, share: float, *, diagonal: bool) -> None:
    found = within_share(shared(2000, d, k, share), FREEDOM, diagonal=diagonal)
    assert share / 3.0 < found < share * 3.0


@pytest.mark.parametrize("diagonal", [False, True])
def test_one_cluster_has_all_of_it(*, diagonal: bool) -> None:
    found = within_share(shared(500, 3, 1, 1.0), FREEDOM, diagonal=diagonal)
    assert found > 0.5


def test_too_few_rows_say_nothing() -> None:
    assert within_share(np.zeros((0, 2)), FREEDOM, diagonal=False) == pytest.approx(0.1)
    assert within_share(np.ones((7, 4)), FREEDOM, diagonal=True) == pytest.approx(10**-0.5)


def test_equal_rows_and_outliers_are_no_fault() -> None:
    values = np.zeros((40, 2))
    assert 0.0 < within_share(values, FREEDOM, diagonal=False) <= 1.0
    values[0] = 1e6
    assert 0.0 < within_share(values, FREEDOM, diagonal=True) <= 1.0


def test_whitening_takes_scale_and_correlation_out() -> None:
    rng = np.random.default_rng(3)
    sample = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 3)) + [5.0, 0.0, -900.0]
    covariance = np.cov(sample, rowvar=False)
    white = whitened(sample, sample.mean(axis=0), covariance)
    np.testing.assert_allclose(np.cov(white, rowvar=False), np.eye(3), atol=1e-9)
    np.testing.assert_allclose(white.mean(axis=0), 0.0, atol=1e-9)
