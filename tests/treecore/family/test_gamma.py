import numpy as np
import pytest
from scipy.special import gammaln

from weald.treecore.statistics.log_gamma import log_gamma, log_rising, rising, rising_table


@pytest.mark.parametrize("x", [1e-8, 0.3, 1.0, 1.5, 2.0, 9.99, 10.0, 123.4, 1e6, 1e15])
def test_log_gamma(x: float) -> None:
    assert log_gamma(x) == pytest.approx(gammaln(x), rel=1e-14, abs=2e-14)


@pytest.mark.parametrize("x", [0.0, 1.0, 7.0, 0.5, 4093.0, 4096.0, 5000.25])
def test_log_rising_factorial_in_and_beyond_its_table(x: float) -> None:
    starts = np.array([0.01, 3.7])
    table = rising_table(starts)
    for group, start in enumerate(starts):
        expected = gammaln(start + x) - gammaln(start)
        assert log_rising(table, group, x) == pytest.approx(expected, rel=1e-13, abs=1e-13)


def test_rising_factorial() -> None:
    assert rising(2.5, 0.0) == 1.0
    assert rising(2.5, 3.0) == 2.5 * 3.5 * 4.5
