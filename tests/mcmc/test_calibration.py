"""The short form of the joint test and of simulation-based calibration."""

import numpy as np
import pytest

from tests.exact.calibration import N_RANKED, geweke, ranks, uniformity
from weald.mcmc.schedule.kernels import KERNELS

# Kernels that draw parameters, which no enumeration reaches, and one of those that it does.
STEPS = {"slice": 1_000, "subc": 300, "gibbs": 1_000}


@pytest.mark.parametrize("name", STEPS)
def test_joint(name: str) -> None:
    """Partition and concentration come out as the prior has them."""
    off = geweke([KERNELS[name]], STEPS[name], seed=4)
    assert np.isfinite(off).all()
    assert (np.abs(off) < 4.0).all(), off


def test_ranks() -> None:
    found = ranks([KERNELS["slice"]], 80, 3, seed=5)
    assert found.min() >= 0
    assert found.max() <= N_RANKED
    assert uniformity(found) > 1e-3


def test_a_wrong_kernel_shows() -> None:
    """Too few clusters: what the published moves are known for."""
    assert geweke([KERNELS["tgmcmc-published"]], 1_000, seed=4)[0] < -5.0
